#!/usr/bin/env python3
"""From a made camera to millimetres, as a user goes: renders a board series, calibrates, looks at a
scene on the same plane, finds its patterns, and compares millimetres with the truth.

    tests/calibration_end_to_end.py build/release/bin
"""
import json
import math
import re
import subprocess
import sys
import tempfile

MOST_MM = 0.06  # at 1.25 mm a pixel
MOST_DEG = 0.05


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nexit {done.returncode}: {done.stderr}")
    return done.stdout


def plane_of(path):
    """width, height, mm_per_px and origin of a calibration file that patternctl wrote."""
    text = open(path, encoding="utf-8").read()
    number = lambda key: float(re.search(rf"^  {key}: (\S+)$", text, re.M).group(1))
    origin = re.search(r"^  origin_px: \[(\S+), (\S+)\]$", text, re.M)
    return (int(number("width")), int(number("height")), number("mm_per_px"),
            float(origin.group(1)), float(origin.group(2)))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: calibration_end_to_end.py FOLDER_OF_PROGRAMS")
    patternctl = sys.argv[1] + "/patternctl"
    with tempfile.TemporaryDirectory() as folder:
        run(patternctl, "synth", "board", "--size", "800,600", "--count", "10", "--seed", "5",
            "--mm-per-px", "1.25", "-o", folder + "/series")
        truth_file = folder + "/series/camera.yaml"
        width, height, mm_per_px, origin_x, origin_y = plane_of(truth_file)
        report = json.loads(run(
            patternctl, "calibrate", "--json", "--chessboard", "9x6", "--square", "30",
            "--plane", folder + "/series/plane.png", folder + "/series/board",
            "--mm-per-px", repr(mm_per_px), "--size", f"{width},{height}",
            "--origin", f"{origin_x},{origin_y}", "-o", folder + "/camera.yaml"))
        print(f"calibrated: RMS {report['rms_px']:.3f} px, fx "
              f"{report['parameters']['fx']['value']:.2f} +- {report['parameters']['fx']['std']:.2f}"
              " (truth 800)")
        run(patternctl, "synth", "scene", "--calibration", truth_file, "--seed", "6",
            "--instances", "5", "--pattern-size", "70,110", "--noise", "2", "--light", "0",
            "-o", folder + "/scene")
        truth = json.loads(open(folder + "/scene/truth.jsonl", encoding="utf-8").readline())
        run(patternctl, "rectify", "--calibration", folder + "/camera.yaml",
            folder + "/scene/picture.png", folder + "/flat.png")
        result = json.loads(run(
            patternctl, "--json", "match", "--calibration", folder + "/camera.yaml",
            "--pattern", folder + "/scene/patterns/p1.png", folder + "/scene/picture.png"))

        failures = 0
        whole = [i for i in truth["instances"] if i["visible"] == 1]
        if len(result["matches"]) != len(whole) or len(whole) < 2:
            print(f"{len(result['matches'])} found, {len(whole)} are there")
            failures += 1
        for instance in whole:
            x_mm = (instance["x_px"] - origin_x) * mm_per_px
            y_mm = (instance["y_px"] - origin_y) * mm_per_px
            near = min(result["matches"], default=None,
                       key=lambda m: math.hypot(m["x_mm"] - x_mm, m["y_mm"] - y_mm))
            if near is None:
                break
            off = math.hypot(near["x_mm"] - x_mm, near["y_mm"] - y_mm)
            turn = abs((near["angle_deg"] - instance["angle_deg"] + 180) % 360 - 180)
            good = off <= MOST_MM and turn <= MOST_DEG
            failures += not good
            print(f"truth {x_mm:9.3f} {y_mm:9.3f} mm, found {near['x_mm']:9.3f} "
                  f"{near['y_mm']:9.3f} mm, off {off:.3f} mm, {turn:.3f} degrees"
                  f"{'' if good else '  TOO MUCH'}")
        sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
