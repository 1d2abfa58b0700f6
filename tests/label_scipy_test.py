#!/usr/bin/python3
"""Compares `patternctl label` with scipy.ndimage.label, relabelled to scan order.

Usage: label_scipy_test.py PATTERNCTL
Exit 77 (ctest: skipped) where scipy is not installed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
SEED = 20
PICTURES = 1000

try:
    import numpy
    from scipy import ndimage
except ImportError as missing:
    print(f"SKIPPED: {missing.name} is not installed (Debian: python3-scipy)")
    sys.exit(SKIPPED)


def write_pgm(path, picture):
    most = 255 if picture.dtype == numpy.uint8 else 65535
    header = f"P5\n{picture.shape[1]} {picture.shape[0]}\n{most}\n".encode()
    path.write_bytes(header + picture.astype(picture.dtype.newbyteorder(">")).tobytes())


def in_scan_order(labels):
    """Numbers components by their first pixel in scan order."""
    values, first = numpy.unique(labels, return_index=True)
    renumbered = numpy.zeros(labels.max() + 1, numpy.int32)
    order = [value for _, value in sorted(zip(first, values)) if value != 0]
    renumbered[order] = numpy.arange(1, len(order) + 1)
    return renumbered[labels]


def expected_labels(foreground, connectivity):
    return in_scan_order(ndimage.label(foreground, numpy.ones((3, 3)) if connectivity == 8 else None)[0])


def run(program, arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments}: exit {done.returncode}: {done.stderr}"
    return done.stdout


def random_picture(random):
    """Noise, smoothed noise or stripes, 8 or 16 bit, of any size up to 70 in both directions."""
    height, width = random.integers(1, 71, 2)
    kind = random.integers(3)
    picture = random.random((height, width))
    if kind == 1:
        picture = ndimage.gaussian_filter(picture, 1.5)
        picture = (picture - picture.min()) / max(picture.max() - picture.min(), 1e-9)
    elif kind == 2:
        picture = (numpy.add.outer(numpy.arange(height), numpy.arange(width)) % 5) / 4.0
    deep = random.integers(2) == 1
    return (picture * (65535 if deep else 255)).astype(numpy.uint16 if deep else numpy.uint8)


def check_picture(program, folder, random, number):
    picture = random_picture(random)
    most = 255 if picture.dtype == numpy.uint8 else 65535
    threshold = random.integers(0, most) + random.choice([0.0, 0.5])
    connectivity = random.choice([4, 8])
    below = random.integers(2) == 1
    write_pgm(folder / "in.pgm", picture)
    method = "propagation" if number % 10 == 0 else "runs"
    output = run(program, ["--json", "label", "--threshold", threshold, "--connectivity", connectivity,
                           "--method", method, *(["--below"] if below else []),
                           folder / "in.pgm", folder / "out.npy"])
    labels = numpy.load(folder / "out.npy")
    expected = expected_labels(picture < threshold if below else picture > threshold, connectivity)
    what = f"seed {SEED}, picture {number}: {picture.shape[::-1]}, threshold {threshold}"
    assert labels.dtype == numpy.int32 and numpy.array_equal(labels, expected), what
    report = json.loads(output)
    assert report["type"] == "labels" and report["count"] == expected.max(initial=0), what
    indices = range(1, report["count"] + 1)
    areas = ndimage.sum_labels(numpy.ones_like(expected), expected, indices)
    centroids = ndimage.center_of_mass(numpy.ones_like(expected), expected, indices)
    means = ndimage.mean(picture, expected, indices)
    peaks = ndimage.maximum(picture, expected, indices)
    for i, blob in enumerate(report["blobs"]):
        assert blob["id"] == i + 1 and blob["area_px"] == areas[i], what
        assert abs(blob["x_px"] - centroids[i][1]) < 0.001, what
        assert abs(blob["y_px"] - centroids[i][0]) < 0.001, what
        assert abs(blob["mean"] - means[i]) < 0.01 and blob["peak"] == peaks[i], what


def main():
    random = numpy.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as name:
        for number in range(PICTURES):
            check_picture(sys.argv[1], pathlib.Path(name), random, number)
    print(f"{PICTURES} pictures: labels and statistics are scipy's")


if __name__ == "__main__":
    main()
