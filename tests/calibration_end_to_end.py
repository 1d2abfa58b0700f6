#!/usr/bin/env python3
"""From a made camera to millimetres, as a user goes: renders a board series, calibrates (from its
pictures, from a recording of them, from a service that plays it), finds the plane (from a board that
lies on it, from a rectangle's corners, from typed pairs with a slip among them), looks at a scene on
the same plane, finds its patterns, and compares millimetres and angles with the truth. Then real
pictures: opencv-doc's chessboard series.

    tests/calibration_end_to_end.py build/release/bin [--only made|inputs|boards|real]
"""
import argparse
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile

SKIPPED = 77  # what ctest counts as skipped, not as passed

MOST_MM = 0.06  # at 1.25 mm a pixel
MOST_DEG = 0.05
CHESSBOARD = ("--chessboard", "9x6", "--square", "30")
SCENE = ("--seed", "6", "--instances", "6", "--pattern-size", "70,110", "--noise", "2", "--light", "0")


class Failures:
    def __init__(self):
        self.count = 0

    def check(self, good, text):
        self.count += not good
        print(text + ("" if good else "  WRONG"), flush=True)


class Camera:
    """The numbers of a calibration file that patternctl wrote, and its formulas once more."""

    def __init__(self, path):
        text = open(path, encoding="utf-8").read()

        def numbers(key):
            found = re.search(rf"^  {key}: \[(.*)\]", text, re.M)
            return [float(n) for n in found.group(1).split(",")]

        def number(key):
            return float(re.search(rf"^  {key}: (\S+)$", text, re.M).group(1))
        self.matrix = numbers("camera_matrix")
        named = re.search(r"^  distortion: \{(.*)\}$", text, re.M)
        listed = dict(pair.split(": ") for pair in named.group(1).split(", ")) if named else {}
        self.distortion = [float(listed.get(k, 0)) for k in ("k1", "k2", "p1", "p2", "k3")]
        self.homography = numbers("homography")
        self.width, self.height = int(number("width")), int(number("height"))
        self.mm_per_px = number("mm_per_px")
        self.origin = numbers("origin_px")

    def same_plane(self):
        return ("--mm-per-px", repr(self.mm_per_px), "--size", f"{self.width},{self.height}",
                "--origin", f"{self.origin[0]},{self.origin[1]}")

    def mm(self, x_px, y_px):
        return (x_px - self.origin[0]) * self.mm_per_px, (y_px - self.origin[1]) * self.mm_per_px

    def picture_px(self, x_mm, y_mm):
        """Where the camera sees a point of the plane (contract: brown_conrady)."""
        x, y = x_mm / self.mm_per_px + self.origin[0], y_mm / self.mm_per_px + self.origin[1]
        h = self.homography
        w = h[6] * x + h[7] * y + h[8]
        u, v = (h[0] * x + h[1] * y + h[2]) / w, (h[3] * x + h[4] * y + h[5]) / w
        fx, cx, fy, cy = self.matrix[0], self.matrix[2], self.matrix[4], self.matrix[5]
        x, y = (u - cx) / fx, (v - cy) / fy
        k1, k2, p1, p2, k3 = self.distortion
        r2 = x * x + y * y
        radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
        xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
        yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
        return fx * xd + cx, fy * yd + cy


class Bench:
    def __init__(self, programs, folder):
        self.programs, self.folder, self.failures = programs, folder, Failures()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def ctl(self, *words):
        words = (os.path.join(self.programs, "patternctl"), *map(str, words))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}\nexit {done.returncode}: {done.stderr}")
        return done.stdout

    def calibrate(self, *words):
        return json.loads(self.ctl("calibrate", "--json", *words))

    def series(self):
        self.ctl("synth", "board", "--size", "800,600", "--count", "10", "--seed", "5", "--mm-per-px", "1.25",
                 "-o", self.path("series"))
        return Camera(self.path("series/camera.yaml"))

    def judge_lens(self, report, what, fx=800):
        parameter = report["parameters"]["fx"]
        off = abs(parameter["value"] - fx)
        self.failures.check(off <= max(4 * parameter["std"], 1e-4 * fx) and off <= 0.01 * fx,
                            f"{what}: RMS {report['rms_px']:.3f} px, fx {parameter['value']:.2f} +- "
                            f"{parameter['std']:.2f} (truth {fx})")

    def scene(self):
        self.ctl("synth", "scene", "--calibration", self.path("series/camera.yaml"), *SCENE, "-o", self.path("scene"))
        truth = json.loads(open(self.path("scene/truth.jsonl"), encoding="utf-8").readline())
        return [i for i in truth["instances"] if i["visible"] == 1]

    def judge_scene(self, what, calibration, truth, instances):
        """Finds the scene's patterns through this calibration; millimetres against the truth's."""
        self.ctl("rectify", "--calibration", calibration, self.path("scene/picture.png"), self.path("flat.png"))
        result = json.loads(self.ctl("--json", "match", "--calibration", calibration, "--pattern",
                                     self.path("scene/patterns/p1.png"), self.path("scene/picture.png")))
        matches = result["matches"]
        good = len(matches) == len(instances) >= 4
        most_mm = most_deg = 0
        for instance in instances if good else []:
            x, y = truth.mm(instance["x_px"], instance["y_px"])
            near = min(matches, key=lambda m: math.hypot(m["x_mm"] - x, m["y_mm"] - y))
            most_mm = max(most_mm, math.hypot(near["x_mm"] - x, near["y_mm"] - y))
            most_deg = max(most_deg, abs((near["angle_deg"] - instance["angle_deg"] + 180) % 360 - 180))
            good = good and 0 < near["x_std_mm"] < 0.1 and 0 < near["y_std_mm"] < 0.1
        self.failures.check(good and most_mm <= MOST_MM and most_deg <= MOST_DEG,
                            f"{what}: {len(matches)} patterns of {len(instances)}, at most {most_mm:.3f} mm and "
                            f"{most_deg:.3f} degrees off")


def made(bench):
    """The whole way, with the plane found in three ways."""
    truth = bench.series()
    instances = bench.scene()
    lens = bench.path("camera.yaml")
    report = bench.calibrate(*CHESSBOARD, "--plane", bench.path("series/plane.png"), bench.path("series/board"),
                             *truth.same_plane(), "-o", lens, "--to-opencv", bench.path("opencv.yml"), "--draw",
                             bench.path("drawn"))
    bench.judge_lens(report, "from pictures")
    bench.failures.check(len(os.listdir(bench.path("drawn"))) == 11, "drawn: 10 with residuals, and the plane")
    bench.judge_scene("plane from a board", lens, truth, instances)

    plane = (*CHESSBOARD, "--plane", bench.path("series/plane.png"), *truth.same_plane())
    bench.calibrate("--from-opencv", bench.path("opencv.yml"), *plane, "-o", bench.path("opencv.yaml"))
    bench.judge_scene("the lens by way of OpenCV's file", bench.path("opencv.yaml"), truth, instances)
    fitted = Camera(lens)
    with open(bench.path("ros.yaml"), "w", encoding="utf-8") as text:
        text.write("image_width: 800\nimage_height: 600\ncamera_name: made\ncamera_matrix: {rows: 3, cols: 3, data: "
                   f"{fitted.matrix}}}\ndistortion_model: plumb_bob\ndistortion_coefficients: {{rows: 1, cols: 5, data: "
                   f"{fitted.distortion}}}\n")
    bench.calibrate("--from-ros", bench.path("ros.yaml"), *plane, "-o", bench.path("from_ros.yaml"))
    bench.judge_scene("the lens by way of ROS's file", bench.path("from_ros.yaml"), truth, instances)

    corners_mm = [(0, 0), (200, 0), (200, 140), (0, 140)]
    corners = ",".join(f"{c:.4f}" for corner in corners_mm for c in truth.picture_px(*corner))
    bench.calibrate("--lens", lens, "--corners", corners, "--rectangle", "200,140", *truth.same_plane(), "-o",
                    bench.path("corners.yaml"))
    bench.judge_scene("plane from a rectangle's corners", bench.path("corners.yaml"), truth, instances)

    pairs = []
    for x_mm in (-20, 60, 140, 220):
        for y_mm in (-10, 70, 150):
            x, y = truth.picture_px(x_mm, y_mm)
            pairs += ["--pair", f"{x:.4f},{y:.4f},{x_mm},{y_mm}"]
    x, y = truth.picture_px(100, 100)
    pairs += ["--pair", f"{x:.4f},{y:.4f},100,110"]  # a slip of the finger
    report = bench.calibrate("--lens", lens, *pairs, *truth.same_plane(), "-o", bench.path("pairs.yaml"))
    bench.failures.check(report["plane"]["outliers"] == [13], f"outliers {report['plane']['outliers']}: {report['warnings']}")
    bench.judge_scene("plane from typed pairs", bench.path("pairs.yaml"), truth, instances)


def inputs(bench):
    """A recording that shows each board twenty times, and a service that plays it."""
    bench.series()
    recording = bench.path("recording")
    os.mkdir(recording)
    pictures = sorted(glob.glob(bench.path("series/board/*.png")))
    with open(recording + "/index.jsonl", "w", encoding="utf-8") as index:
        for frame in range(20 * len(pictures)):
            os.link(pictures[frame // 20], recording + f"/{frame:08d}.png")
            index.write(json.dumps({"seq": frame + 1, "captured_mono_ns": 1 + 40_000_000 * frame,
                                    "captured_at": "2026-01-01T00:00:00Z"}) + "\n")
    report = bench.calibrate(*CHESSBOARD, recording, "-o", bench.path("recorded.yaml"))
    stream = report["streams"][0]
    bench.failures.check(stream["frames"] == 200 and stream["taken"] == len(pictures),
                         f"recording: {stream['taken']} views of {stream['frames']} frames")
    bench.judge_lens(report, "from a recording")
    config = bench.path("patternd.yaml")
    with open(config, "w", encoding="utf-8") as text:
        text.write("camera: {source: replay, path: recording, loop: true}\npublish: {tcp: {listen: \"127.0.0.1:0\"}}\n")
    service = subprocess.Popen([os.path.join(bench.programs, "patternd"), "--config", config], stderr=subprocess.PIPE,
                               text=True)
    try:
        address = None
        while address is None:
            found = re.search(r"listen=(127\.0\.0\.1:\d+)", service.stderr.readline())
            address = found.group(1) if found else None
        report = bench.calibrate(*CHESSBOARD, address, "--seconds", "12", "-o", bench.path("live.yaml"))
        bench.failures.check(report["streams"][0]["taken"] == len(pictures),
                             f"service: {report['streams'][0]['taken']} views of {report['streams'][0]['frames']} frames")
        bench.judge_lens(report, "from the service")
        bench.ctl("snapshot", address, "-o", bench.path("shot.png"))
    finally:
        service.terminate()
        service.communicate()
    report = bench.calibrate("--lens", bench.path("recorded.yaml"), *CHESSBOARD, "--plane", bench.path("series/plane.png"),
                             "-o", bench.path("plane.yaml"))
    bench.failures.check(report["plane"]["rms_px"] < 0.2, f"plane for a known lens: {report['plane']['rms_px']:.3f} px")


def boards(bench):
    """The other kinds of boards, printed by us, through a tilted camera."""
    kinds = {"charuco": ("--charuco", "8x6", "--square", "30"),
             "circles": ("--circles", "8x6", "--square", "30"),
             "asymmetric circles": ("--asymmetric-circles", "4x11", "--square", "40")}
    for kind, board in kinds.items():
        folder = bench.path(kind.split()[0])
        printed = folder + ".png"
        bench.ctl("calibrate", *board, "--print-board", printed, "--print-fineness", "5")
        bench.ctl("synth", "board", "--picture", printed, "--picture-mm-per-px", "0.2", "--size", "800,600", "--count",
                  "12", "--seed", "7", "-o", folder)
        report = bench.calibrate(*board, folder + "/board", "--plane", folder + "/plane.png", "-o", folder + ".yaml")
        fx = report["parameters"]["fx"]["value"]
        bench.failures.check(abs(fx / 800 - 1) < 0.005 and report["rms_px"] < 0.3,
                             f"{kind}: RMS {report['rms_px']:.3f} px, fx {fx:.2f} (truth 800), plane to "
                             f"{report['plane']['rms_px']:.3f} px")


def real(bench):
    """opencv-doc's left and right series of a 9x6 board."""
    found = sorted(glob.glob("/usr/share/doc/opencv-doc/**/left01.jpg*", recursive=True))
    if not found:
        print("real series: skipped, opencv-doc is not installed")
        return SKIPPED
    folder = os.path.dirname(found[0])
    for side in ("left", "right"):
        pictures = sorted(p for p in glob.glob(f"{folder}/{side}[0-9][0-9].jpg"))
        report = bench.calibrate("--chessboard", "9x6", "--square", "25", *pictures, "-o", bench.path(side + ".yaml"))
        bench.failures.check(len(pictures) == 13 and report["rms_px"] <= 0.21,
                             f"real series {side}: {len(pictures)} pictures, RMS {report['rms_px']:.3f} px, fx "
                             f"{report['parameters']['fx']['value']:.2f}")


def main():
    parts = {"made": made, "inputs": inputs, "boards": boards, "real": real}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", help="folder of patternctl and patternd")
    parser.add_argument("--only", choices=parts, help="one part of it")
    words = parser.parse_args()
    failures, skipped = 0, False
    for name, part in parts.items():
        if words.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="patternd-calibration-") as folder:
                bench = Bench(words.programs, folder)
                skipped = part(bench) is SKIPPED or skipped
                failures += bench.failures.count
    sys.exit(1 if failures else SKIPPED if skipped else 0)


if __name__ == "__main__":
    main()
