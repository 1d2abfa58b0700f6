#!/usr/bin/env python3
"""The peer of patternd-components-study: CuPy's ndimage.label on the same kinds of picture, median of 50 by device events."""
import cupy
from cupyx.scipy import ndimage


def median_us(run, repetitions=50):
    times = []
    for i in range(repetitions + 5):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        end.record()
        end.synchronize()
        if i >= 5:
            times.append(1e3 * cupy.cuda.get_elapsed_time(start, end))
    return sorted(times)[len(times) // 2]


def main():
    structure = cupy.ones((3, 3))
    for density in (10, 30, 50, 70, 90):
        picture = cupy.random.default_rng(1).random((2048, 2048)) < density / 100
        print(f"noise{density}: {median_us(lambda: ndimage.label(picture, structure)):.0f} us, labels alone")


if __name__ == "__main__":
    main()
