#!/usr/bin/env python3
"""tools/demo's client: prints patternd's result lines as they come and the truth beside them.

Exit code 0 only when every frame of the recording was received and every match agrees with the truth.
Frames are told apart by captured_mono_ns, which a replay takes from the recording.
"""
import argparse
import json
import math
import pathlib
import socket
import sys
import time

# What counts as agreement. The scene's Cramér–Rao bound is about 0.01 px and 0.01 degrees; rectification
# interpolates once more. A tenth is far inside what a robot or a gauge asks for, and far outside of chance.
POSITION_PX = 0.1
ANGLE_DEG = 0.1
CONNECT_S = 30
SILENCE_S = 30
READY = "client.ready"


def read_truth(folder):
    """captured_mono_ns -> instances."""
    stamps = {}
    for line in (folder / "recording" / "index.jsonl").read_text().splitlines():
        entry = json.loads(line)
        stamps[entry["seq"]] = entry["captured_mono_ns"]
    truth = {}
    for line in (folder / "truth.jsonl").read_text().splitlines():
        entry = json.loads(line)
        truth[stamps[entry["seq"]]] = entry["instances"]
    return truth


def connect(port):
    deadline = time.monotonic() + CONNECT_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=SILENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                sys.exit(f"demo: nothing listens on port {port} after {CONNECT_S} s")
            time.sleep(0.001)


def received_lines(connection):
    with connection.makefile("r", encoding="utf-8") as lines:
        try:
            yield from lines
        except TimeoutError:
            sys.exit(f"demo: no line from patternd for {SILENCE_S} s; its log follows")


def angle_difference(a, b):
    return (a - b + 180) % 360 - 180


def compare(result, instances):
    """Prints each instance beside its match; returns the position and angle errors, None for what does not agree."""
    left = list(result["matches"])
    errors = []
    for truth in instances:
        def distance(match):
            return math.hypot(match["x_px"] - truth["x_px"], match["y_px"] - truth["y_px"])
        same = [match for match in left if match["pattern"] == truth["pattern"]]
        match = min(same, key=distance, default=None)
        place = f'  {truth["pattern"]:4} truth {truth["x_px"]:9.3f} {truth["y_px"]:9.3f} px {truth["angle_deg"]:9.3f} deg'
        if match is None or distance(match) > 10:
            print(f"{place}   NOT FOUND")
            errors.append(None)
            continue
        left.remove(match)
        turn = angle_difference(match["angle_deg"], truth["angle_deg"])
        agrees = distance(match) <= POSITION_PX and abs(turn) <= ANGLE_DEG
        print(f'{place}   found off by {match["x_px"] - truth["x_px"]:+.3f} {match["y_px"] - truth["y_px"]:+.3f} px '
              f'{turn:+.3f} deg, score {match["score"]:.3f}{"" if agrees else "   TOO FAR"}')
        errors.append((distance(match), abs(turn)) if agrees else None)
    for match in left:
        print(f'  {match["pattern"]:4} FALSE at {match["x_px"]:.3f} {match["y_px"]:.3f} px, score {match["score"]:.3f}')
        errors.append(None)
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    truth = read_truth(arguments.folder)
    errors = []
    unseen = set(truth)
    # Says that the service may start: from here on the client only waits for it.
    (arguments.folder / READY).touch()
    with connect(arguments.port) as connection:
        for line in received_lines(connection):
            print(line, end="", flush=True)
            message = json.loads(line)
            if message["type"] == "dropped":
                print(f'demo: this client was too slow for {message["count"]} results')
            if message["type"] != "result":
                continue
            unseen.discard(message["captured_mono_ns"])
            errors += compare(message, truth[message["captured_mono_ns"]])
    good = [error for error in errors if error is not None]
    bad = len(errors) - len(good)
    print(f"== {len(truth) - len(unseen)} of {len(truth)} frames received, {len(good)} matches agree "
          f"(within {POSITION_PX} px and {ANGLE_DEG} deg), {bad} do not")
    if good:
        mean_square = [sum(error[i] ** 2 for error in good) / len(good) for i in (0, 1)]
        print(f"   root mean square error {math.sqrt(mean_square[0]):.4f} px, {math.sqrt(mean_square[1]):.4f} deg; "
              f"largest {max(error[0] for error in good):.4f} px, {max(error[1] for error in good):.4f} deg")
    sys.exit(0 if good and not bad and not unseen else 1)


if __name__ == "__main__":
    main()
