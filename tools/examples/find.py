#!/usr/bin/env python3
"""Teaches a pattern and finds it, through patternd's C API by ctypes; needs nothing but Python.

usage: find.py [LIBPATTERND.SO]
"""
import ctypes
import sys

GRAY8 = 1


class Image(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("width", ctypes.c_int32), ("height", ctypes.c_int32),
                ("stride_bytes", ctypes.c_size_t), ("format", ctypes.c_int32)]


class Match(ctypes.Structure):
    _fields_ = [("pattern", ctypes.c_int32), ("inverted", ctypes.c_int32)] + [
        (name, ctypes.c_double) for name in ("x_px", "y_px", "angle_deg", "scale", "score", "runner_up", "visible",
                                             "x_std_px", "y_std_px", "angle_std_deg")]


def load(path):
    library = ctypes.CDLL(path)
    library.patternd_last_error.restype = ctypes.c_char_p
    pointer = ctypes.c_void_p
    image = ctypes.POINTER(Image)
    library.patternd_pattern_teach.argtypes = [ctypes.c_char_p, image, image, ctypes.POINTER(ctypes.c_double),
                                               ctypes.POINTER(pointer)]
    library.patternd_matcher_create.argtypes = [ctypes.c_int32, ctypes.c_int32, ctypes.c_int, ctypes.POINTER(pointer),
                                                pointer, ctypes.c_size_t, ctypes.c_int32, ctypes.POINTER(pointer)]
    library.patternd_find.argtypes = [pointer, image, ctypes.POINTER(Match), ctypes.c_size_t,
                                      ctypes.POINTER(ctypes.c_size_t)]
    library.patternd_pattern_free.argtypes = [pointer]
    library.patternd_matcher_free.argtypes = [pointer]
    return library


def draw(width, height, left, top, side):
    """A grey ramp with an L of bright pixels on a dark square."""
    pixels = bytearray(60 + x // 8 for _ in range(height) for x in range(width))
    for v in range(side):
        for u in range(side):
            bright = (8 < u < 20 and 6 < v < 40) or (28 < v < 40 and 8 < u < 42)
            pixels[(top + v) * width + left + u] = 220 if bright else 40
    return (ctypes.c_uint8 * len(pixels)).from_buffer(pixels)


def main():
    library = load(sys.argv[1] if len(sys.argv) > 1 else "libpatternd.so.0")

    def check(status):
        if status:
            sys.exit("patternd: " + library.patternd_last_error().decode())

    width, height, left, top, side = 320, 240, 190, 90, 48
    pixels = draw(width, height, left, top, side)
    start = ctypes.addressof(pixels)
    scene = Image(start, width, height, width, GRAY8)
    part = Image(start + top * width + left, side, side, width, GRAY8)

    pattern = ctypes.c_void_p()
    check(library.patternd_pattern_teach(b"corner", part, None, None, pattern))
    patterns = (ctypes.c_void_p * 1)(pattern)
    matcher = ctypes.c_void_p()
    check(library.patternd_matcher_create(width, height, GRAY8, patterns, None, 1, 1, matcher))
    matches = (Match * 10)()
    count = ctypes.c_size_t()
    check(library.patternd_find(matcher, scene, matches, len(matches), count))
    for match in matches[:count.value]:
        print(f"x {match.x_px:.2f} y {match.y_px:.2f} angle {match.angle_deg:.2f} score {match.score:.3f}")
    library.patternd_matcher_free(matcher)
    library.patternd_pattern_free(pattern)

    centre = (side - 1) / 2
    good = count.value == 1 and abs(matches[0].x_px - left - centre) < 0.05 and abs(matches[0].y_px - top - centre) < 0.05
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
