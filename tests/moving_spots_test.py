#!/usr/bin/env python3
"""The service as a spot finder: a recording with moving spots goes in, blobs on TCP match the truth.

Usage: moving_spots_test.py PATTERND
"""
import json
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

SEED = 7
WIDTH, HEIGHT, FRAMES, SPOTS = 320, 240, 12, 6
PATIENCE_S = 60


def make_frames(folder):
    """Discs that move on straight lines in lanes of their own over a dim, noisy ground; returns the truth of each frame."""
    draw = random.Random(SEED)
    spots = [{"radius": 2 + 2 * i, "x": draw.randint(40, 120), "y": 20 + 40 * i, "dx": draw.randint(3, 12),
              "value": 150 + 10 * i} for i in range(SPOTS)]
    truth = []
    for frame in range(FRAMES):
        pixels = bytearray(draw.randrange(100) for _ in range(WIDTH * HEIGHT))
        blobs = []
        for spot in spots:
            cx, cy, r = spot["x"] + frame * spot["dx"], spot["y"], spot["radius"]
            inside = [(x, y) for y in range(cy - r, cy + r + 1) for x in range(cx - r, cx + r + 1)
                      if (x - cx) ** 2 + (y - cy) ** 2 <= r * r and 0 <= x < WIDTH and 0 <= y < HEIGHT]
            values = [spot["value"] + (5 if at == len(inside) // 2 else 0) for at in range(len(inside))]
            for (x, y), value in zip(inside, values):
                pixels[y * WIDTH + x] = value
            xs, ys = [x for x, _ in inside], [y for _, y in inside]
            blobs.append({"area_px": len(inside), "x_px": sum(xs) / len(xs), "y_px": sum(ys) / len(ys), "left": min(xs),
                          "top": min(ys), "width": max(xs) - min(xs) + 1, "height": max(ys) - min(ys) + 1,
                          "mean": sum(values) / len(values), "peak": max(values)})
        truth.append(sorted(blobs, key=lambda blob: -blob["area_px"]))
        (folder / f"{frame:03}.pgm").write_bytes(f"P5\n{WIDTH} {HEIGHT}\n255\n".encode() + pixels)
    return truth


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(port, service):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        except OSError:
            assert service.poll() is None, f"patternd ended with {service.returncode}"
            assert time.monotonic() < deadline, "patternd does not listen"
            time.sleep(0.05)


def check(line, truth):
    expected = truth[line["seq"] % FRAMES]
    what = f"seed {SEED}, seq {line['seq']}"
    assert line["matches"] == [], what
    assert len(line["blobs"]) == SPOTS, f"{what}: {len(line['blobs'])} blobs"
    for number, (blob, want) in enumerate(zip(line["blobs"], expected), 1):
        assert blob["id"] == number, what
        for key, value in want.items():
            limit = {"x_px": 0.0006, "y_px": 0.0006, "mean": 0.006}.get(key, 0)
            assert abs(blob[key] - value) <= limit, f"{what}: blob {number}: {key} is {blob[key]}, truth {value}"
    assert line["latency_us"]["blobs"] >= 0, what


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "frames").mkdir()
        truth = make_frames(folder / "frames")
        port = free_port()
        (folder / "p.yaml").write_text(
            "camera: {source: replay, path: frames, loop: true, fps: 50}\n"
            "blobs: {threshold: 120, min_area: 5}\n"
            f'publish: {{tcp: {{listen: "127.0.0.1:{port}"}}}}\n')
        service = subprocess.Popen([sys.argv[1], "--config", str(folder / "p.yaml")])
        try:
            seen = set()
            deadline = time.monotonic() + PATIENCE_S
            with connect(port, service) as client, client.makefile("r", encoding="utf-8") as lines:
                assert json.loads(next(lines))["type"] == "hello"
                while len(seen) < FRAMES:
                    assert time.monotonic() < deadline, f"only frames {sorted(seen)} came"
                    line = json.loads(next(lines))
                    if line["type"] == "result":
                        check(line, truth)
                        seen.add(line["seq"] % FRAMES)
            service.send_signal(signal.SIGTERM)
            assert service.wait(PATIENCE_S) == 0, f"patternd ended with {service.returncode}"
        finally:
            if service.poll() is None:
                service.kill()
                service.wait()
    print(f"{FRAMES} frames of {SPOTS} moving spots: all blobs as made")


if __name__ == "__main__":
    main()
