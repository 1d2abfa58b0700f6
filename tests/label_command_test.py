#!/usr/bin/env python3
"""`patternctl label` as a user meets it: files in and out, exit codes, messages.

Usage: label_command_test.py PATTERNCTL
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PATTERNCTL = str(pathlib.Path(sys.argv.pop(1)).resolve())

# Two components with connectivity 8, four with 4.
SMALL = "P2\n5 3\n255\n0 9 9 0 0\n0 0 0 9 0\n9 0 0 0 9\n"


def read_png(data):
    """Rows of samples of a PNG that has no filter but 0 to 2, which libpng may choose."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
        elif kind == b"IDAT":
            body += data[at + 8:at + 8 + length]
        at += 12 + length
    pixel = (3 if colour == 2 else 1) * depth // 8
    raw, row_bytes, rows, above = zlib.decompress(body), width * pixel, [], bytes(width * pixel)
    for y in range(height):
        kind, line = raw[y * (row_bytes + 1)], bytearray(raw[y * (row_bytes + 1) + 1:][:row_bytes])
        for i in range(row_bytes):
            left = line[i - pixel] if i >= pixel else 0
            corner = above[i - pixel] if i >= pixel else 0
            up = above[i]
            guess = left + up - corner
            nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up),
                          (abs(guess - corner), 2, corner))[2]
            line[i] = (line[i] + [0, left, up, (left + up) // 2, nearest][kind]) & 255
        rows.append(bytes(line))
        above = line
    return width, height, depth, rows


class Label(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)
        (self.folder / "small.pgm").write_text(SMALL)

    def tearDown(self):
        self.holder.cleanup()

    def run_label(self, *arguments, json_lines=False):
        words = [PATTERNCTL, *(["--json"] if json_lines else []), "label", *map(str, arguments)]
        return subprocess.run(words, capture_output=True, text=True, cwd=self.folder, check=False)

    def labelled(self, *arguments):
        done = self.run_label(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, code, message, *arguments):
        done = self.run_label(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""))
        self.assertIn(message, done.stderr)

    def test_writes_plain_text(self):
        self.labelled("--threshold", "8", "small.pgm", "out.pgm")
        self.assertEqual((self.folder / "out.pgm").read_text(),
                         "P2\n5 3\n2\n0 1 1 0 0\n0 0 0 1 0\n2 0 0 0 1\n")

    def test_connectivity_4_separates_diagonals(self):
        self.labelled("--threshold", "8", "--connectivity", "4", "small.pgm", "out.pgm")
        self.assertEqual((self.folder / "out.pgm").read_text(),
                         "P2\n5 3\n4\n0 1 1 0 0\n0 0 0 2 0\n3 0 0 0 4\n")

    def test_writes_npy(self):
        self.labelled("--threshold", "8", "small.pgm", "out.npy")
        data = (self.folder / "out.npy").read_bytes()
        self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
        start = 10 + struct.unpack("<H", data[8:10])[0]
        self.assertEqual(start % 64, 0)
        self.assertIn(b"'descr': '<i4'", data[:start])
        self.assertIn(b"'shape': (3, 5)", data[:start])
        self.assertEqual(struct.unpack("<15i", data[start:]),
                         (0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1))

    def test_writes_16_bit_png(self):
        self.labelled("--threshold", "8", "small.pgm", "out.png")
        width, height, depth, rows = read_png((self.folder / "out.png").read_bytes())
        self.assertEqual((width, height, depth), (5, 3, 16))
        self.assertEqual([struct.unpack(">5H", row) for row in rows],
                         [(0, 1, 1, 0, 0), (0, 0, 0, 1, 0), (2, 0, 0, 0, 1)])

    def test_says_when_labels_do_not_fit_a_png(self):
        side = 514  # 257 × 257 = 66049 dots
        rows = [" ".join("9" if x % 2 == 0 and y % 2 == 0 else "0" for x in range(side))
                for y in range(side)]
        (self.folder / "dots.pgm").write_text(f"P2\n{side} {side}\n255\n" + "\n".join(rows) + "\n")
        self.refused(1, "66049 labels do not fit a 16-bit PNG (65535 at most)",
                     "--threshold", "8", "dots.pgm", "out.png")
        self.assertFalse((self.folder / "out.png").exists())
        self.labelled("--threshold", "8", "dots.pgm", "out.npy")
        self.assertEqual((self.folder / "out.npy").read_bytes()[-8 * side:][:4], struct.pack("<i", 65793))

    def test_prints_json_as_the_contract_says(self):
        done = self.run_label("--threshold", "8", "small.pgm", json_lines=True)
        self.assertEqual(done.stdout.count("\n"), 1)
        self.assertTrue(done.stdout.startswith('{"type":"labels","count":2,"blobs":[{"id":1,"area_px":4,'))
        first = json.loads(done.stdout)["blobs"][0]
        for key, value in {"x_px": 2.5, "y_px": 0.75, "left": 1, "top": 0, "width": 4, "height": 3,
                           "mean": 9.0, "peak": 9}.items():
            self.assertEqual(first[key], value, key)

    def test_colours_by_similarity(self):
        # The second pixel differs by 9 in blue alone, the third by 11.
        (self.folder / "colour.ppm").write_text("P3\n3 1\n255\n10 20 30 10 20 39 10 20 50\n")
        self.assertEqual(self.labelled("--similarity", "9", "colour.ppm", "out.pgm"), "2 components\n")
        self.assertEqual((self.folder / "out.pgm").read_text(), "P2\n3 1\n2\n1 1 2\n")

    def test_draws_the_remainders(self):
        self.labelled("--threshold", "8", "--draw", "out.png", "--colours", "hash", "small.pgm")
        rows = read_png((self.folder / "out.png").read_bytes())[3]
        # First pixels 1 and 10 are dark: plus 128.
        self.assertEqual(rows[0], bytes([0, 0, 0, *[129] * 6, *[0] * 6]))
        self.assertEqual(rows[2], bytes([*[138] * 3, *[0] * 9, *[129] * 3]))
        (self.folder / "wide.pgm").write_text("P2\n1000 1\n9\n" + "0 " * 999 + "9\n")
        self.labelled("--threshold", "8", "--draw", "wide.png", "--colours", "hash", "wide.pgm")
        row = read_png((self.folder / "wide.png").read_bytes())[3][0]
        self.assertEqual(row[-3:], bytes([999 % 256, (999 - 537) % 256, 999 % 256]))

    def test_draws_what_lies_apart_in_visible_colours_of_its_own(self):
        side = 60  # 25 dots, none within two pixels of another
        rows = [" ".join("9" if x % 12 == 5 and y % 12 == 5 else "0" for x in range(side)) for y in range(side)]
        (self.folder / "dots.pgm").write_text(f"P2\n{side} {side}\n9\n" + "\n".join(rows) + "\n")
        for colours in ("distinct", "hash"):
            self.labelled("--threshold", "8", "--draw", "out.png", "--colours", colours, "dots.pgm")
            drawn = read_png((self.folder / "out.png").read_bytes())[3]
            seen = {drawn[y][3 * x:3 * x + 3] for y in range(5, side, 12) for x in range(5, side, 12)}
            self.assertEqual(len(seen), 25, colours)
            self.assertGreaterEqual(min(max(colour) for colour in seen), 96, colours)

    def test_draws_neighbours_in_different_colours(self):
        size = 40
        rows = [" ".join(str((x * 7 + y * 13) % 97 * 2) for x in range(size)) for y in range(size)]
        (self.folder / "many.pgm").write_text(f"P2\n{size} {size}\n255\n" + "\n".join(rows) + "\n")
        self.labelled("--similarity", "5", "--draw", "out.png", "many.pgm", "out.pgm")
        labels = list(map(int, (self.folder / "out.pgm").read_text().split()[4:]))
        colours = read_png((self.folder / "out.png").read_bytes())[3]
        self.assertGreater(max(labels), 100)
        for y in range(size):
            for x in range(size - 1):
                same_label = labels[y * size + x] == labels[y * size + x + 1]
                same_colour = colours[y][3 * x:3 * x + 3] == colours[y][3 * x + 3:3 * x + 6]
                self.assertEqual(same_label, same_colour)

    def test_refuses_what_the_configuration_refuses(self):
        for message, *words in (
                ("--adaptive: the radius must be a whole number, 1 to 1000", "--adaptive", "0,5"),
                ("--adaptive: the radius must be a whole number, 1 to 1000", "--adaptive", "1.5,5"),
                ("--adaptive: the offset must be -65535 to 65535 grey levels", "--adaptive", "1,65536"),
                ("--threshold: must be 0 to 65535, not 70000", "--threshold", "70000"),
                ("--threshold: must be 0 to 65535, not -1", "--threshold", "-1"),
                ("--threshold: must be a decimal number, such as 2.5, not nan", "--threshold", "nan"),
                ("--roi: has no area; it must be X,Y,W,H with a width and height above 0", "--otsu", "--roi", "0,0,0,0"),
                ("--similarity: must be 0 to 65535, not -1", "--similarity", "-1"),
                ("--below: stands beside --similarity", "--similarity", "3", "--below"),
                ("--min-area: must be 1 to 1000000000, not 0", "--otsu", "--min-area", "0"),
                ("--max-area: is less than the least", "--otsu", "--min-area", "5", "--max-area", "4"),
                ("--max-elongation: is less than the least", "--otsu", "--min-elongation", "3", "--max-elongation", "2")):
            self.refused(2, "patternctl label: " + message, *words, "small.pgm")

    def test_keeps_the_largest(self):
        self.assertEqual(self.labelled("--threshold", "8", "--largest", "1", "--connectivity", "4",
                                       "small.pgm", "out.pgm"), "1 component\n")
        self.assertEqual((self.folder / "out.pgm").read_text(),
                         "P2\n5 3\n1\n0 1 1 0 0\n0 0 0 0 0\n0 0 0 0 0\n")

    def test_finds_nothing_and_that_is_good(self):
        self.assertEqual(self.labelled("--threshold", "200", "small.pgm"), "0 components\n")

    def test_takes_negative_values_as_words(self):
        self.labelled("--adaptive", "1,-2.5", "small.pgm")

    def test_refuses_broken_pictures_with_one_message(self):
        for name, text in {"cut": SMALL[:-9], "word": SMALL.replace("9 9", "9 x"),
                           "large": SMALL.replace("9 9", "9 999"), "empty": "",
                           "size": SMALL.replace("5 3", "0 3")}.items():
            with self.subTest(name):
                (self.folder / "bad.pgm").write_text(text)
                done = self.run_label("--threshold", "8", "bad.pgm", "out.pgm")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn("bad.pgm: ", done.stderr)
                self.assertFalse((self.folder / "out.pgm").exists())

    def test_refuses_wrong_use(self):
        self.refused(2, "Exactly 1 option", "small.pgm")
        self.refused(2, "Exactly 1 option", "--threshold", "1", "--otsu", "small.pgm")
        self.refused(2, "nowhere.png", "--threshold", "1", "nowhere.png")
        self.refused(2, "labels are written as .npy, .png (16 bit) or .pgm (plain text)",
                     "--threshold", "1", "small.pgm", "out.tif")
        self.refused(2, "--connectivity", "--threshold", "1", "--connectivity", "6", "small.pgm")
        self.refused(2, "the radius must be a whole number", "--adaptive", "1.5,0", "small.pgm")
        self.refused(2, "--method texture runs on the GPU",
                     "--threshold", "1", "--method", "texture", "--backend", "cpu", "small.pgm")
        self.refused(2, "--similarity: must be 0 to 65535, not -1", "--similarity", "-1", "small.pgm")


if __name__ == "__main__":
    unittest.main()
