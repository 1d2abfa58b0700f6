#!/usr/bin/env python3
"""patternctl as a person meets it: help, exit codes, messages, and the way from a picture to a match."""
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import unittest

BIN = pathlib.Path(os.environ["PATTERND_BIN"])
SOURCE = pathlib.Path(os.environ.get("PATTERND_SOURCE", pathlib.Path(__file__).parents[2]))
SAMPLES = pathlib.Path("/usr/share/doc/opencv-doc/examples/data")


def run(*words, program="patternctl"):
    return subprocess.run([BIN / program, *map(str, words)], capture_output=True, text=True, timeout=120)


class Cli(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="patternd-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def sample(self, name):
        path = SAMPLES / name
        if not path.exists():
            self.skipTest("opencv-doc is not installed")
        return path

    def teach(self, picture, roi, *more):
        pattern = self.folder / "part.yaml"
        done = run("teach", picture, "--roi", roi, "-o", pattern, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pattern, done.stdout

    def test_prints_help_for_every_command(self):
        listing = run("--help").stdout
        commands = [line.split()[0] for line in listing.split("Subcommands:")[1].splitlines() if line.strip()]
        self.assertIn("match", commands)
        for command in commands:
            done = run(command, "--help")
            if done.returncode == 1 and "is not installed" in done.stderr:
                continue  # a program of a package that this build leaves out
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
            self.assertIn("Usage", done.stdout)

    def test_prints_version_commit_backends_and_images(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"patternctl \d+\.\d+\.\d+ \(commit \w+")
        self.assertIn("backends: cpu", done.stdout)
        self.assertIn("device images:", done.stdout)

    def test_fails_where_its_output_has_no_room(self):
        for words in (["--version"], ["match", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([BIN / "patternctl", *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(done.returncode, 1)
            self.assertIn("patternctl: standard output cannot be written: No space left", done.stderr)

    def test_says_in_one_line_why_there_is_no_gpu_to_measure(self):
        if not (BIN / "patternd-bench").exists():
            self.skipTest("this build has no benchmark")
        if pathlib.Path("/dev/nvidia0").exists():
            self.skipTest("there is a GPU")
        for words in (["bench", "seeds"], ["bench", "seeds", "--json"]):
            done = run(*words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertRegex(done.stderr, r"\Apatternctl bench seeds: .*\n\Z")
        self.assertEqual(run("bench", "seeds", "--table", "nonsense").returncode, 2)

    def test_ends_with_2_and_a_message_on_wrong_use(self):
        for words in ([], ["nonsense"], ["match"], ["match", "--nonsense"], ["teach", "x.png", "--roi", "1,2,3", "-o", "y"],
                      ["match", "--pattern", "/nonexistent.yaml", "x.png"],
                      ["match", "--pattern", "/nonexistent.yaml", "--threads", "-1", "x.png"]):
            done = run(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr.strip(), words)
            self.assertEqual(done.stdout, "", words)

    def test_watches_the_service_that_is_named_behind_a_pattern_and_tells_of_drift(self):
        drift = {"type": "drift", "moved": True, "found": 2, "worst_mm": 1.25, "shift_mm": [0.5, -0.75], "turn_deg": 0.125}
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(60)
            asked = []

            def serve():
                client, _ = server.accept()
                with client, client.makefile("rw") as lines:
                    asked.append(json.loads(lines.readline()))
                    lines.write(json.dumps(drift) + "\n" + json.dumps({**drift, "moved": False}) + "\n")

            service = threading.Thread(target=serve)
            service.start()
            done = run("watch", "--pattern", "bolt", "--pattern", "nut", f"127.0.0.1:{server.getsockname()[1]}")
            service.join()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(asked[0]["patterns"], ["bolt", "nut"])
        figures = "2 fiducials found, worst 1.250 mm off, shift (0.500, -0.750) mm, turn 0.125 deg"
        self.assertEqual(done.stdout, f"drift: the camera has moved: {figures}\n"
                                      f"drift: the camera is in its place again: {figures}\n")

    def test_refuses_to_write_a_picture_under_a_name_of_another_format_before_the_work(self):
        for name, words in (("out.tiff", ["rectify", "--calibration", "none.yaml", "none.png", "out.tiff"]),
                            ("f.jpg", ["match", "--pattern", "none.yaml", "--draw", "f.jpg", "none.png"]),
                            ("f.jpg", ["label", "--otsu", "--draw", "f.jpg", "none.png"]),
                            ("snap", ["snapshot", "-o", "snap", "127.0.0.1:1"])):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(f"patternctl {words[0]}: {name}: pictures are written as .png or .p", done.stderr)

    def test_writes_over_nothing_that_it_reads(self):
        photo = self.folder / "part.png"
        photo.write_bytes(self.sample("graf1.png").read_bytes())
        link = self.folder / "link.png"
        link.symlink_to(photo)
        other = self.folder / "other.png"
        other.hardlink_to(photo)
        camera = self.folder / "camera.yaml"
        camera.write_text("image_size: [800, 640]\nlens: {model: none}\n")
        points = self.folder / "points.json"
        points.write_text("100 100 0 0\n500 100 100 0\n500 400 100 75\n100 400 0 75\n")
        calibrate = ["calibrate", "--lens", camera, "--points", points]
        before = {path: path.read_bytes() for path in self.folder.iterdir()}
        for words in (["label", "--otsu", photo, link],
                      ["label", "--otsu", "--draw", other, photo],
                      ["rectify", "--calibration", camera, photo, link],
                      ["match", "--pattern", photo, "--draw", other, photo],
                      ["match", "--pattern", other, "--draw", link, self.sample("graf3.png")],
                      ["synth", "scene", "--calibration", camera, "-o", self.folder],
                      ["synth", "board", "--calibration", camera, "-o", self.folder],
                      [*calibrate, "-o", self.folder / "new.yaml", "--report", points]):
            done = run(*words)
            if words[0] == "calibrate" and "is not installed" in done.stderr:
                continue  # of a package that this build leaves out
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(": would be written over, but it is also read here", done.stderr, words)
        for output in ("part", "other"):
            done = run("teach", photo, "--roi", "300,200,120,100", "-o", self.folder / f"{output}.yaml")
            self.assertEqual((done.returncode, done.stdout), (2, ""), output)
            self.assertIn(f"{output}.png: is there already, and the pattern's picture would be written over it; give",
                          done.stderr)
        done = run(*calibrate, "-o", photo)
        if "is not installed" not in done.stderr:
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("part.png: must end in .yaml or .yml", done.stderr)
        self.assertEqual({path: path.read_bytes() for path in self.folder.iterdir()}, before)

    def test_teaches_a_pattern_anew_over_its_own_files(self):
        photo = self.sample("graf1.png")
        self.teach(photo, "300,200,120,100")
        self.teach(photo, "310,200,130,100")
        done = run("teach", self.folder / "part.png", "--roi", "0,0,100,100", "-o", self.folder / "part.yaml")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("part.png: would be written over, but it is also read here", done.stderr)
        self.assertTrue(run("match", "--pattern", self.folder / "part.yaml", photo).stdout)

    def test_finds_at_the_rim_of_the_roi_what_is_reported_there(self):
        photo = self.sample("graf1.png")
        pattern, _ = self.teach(photo, "300,200,120,100")
        for roi in ("359.5,249.5,1,1", "359,249,0.5,0.5"):
            best = json.loads(run("match", "--pattern", pattern, "--roi", roi, photo).stdout)["matches"][0]
            self.assertEqual((best["x_px"], best["y_px"]), (359.5, 249.5))

    def test_says_that_a_jpeg_ends_before_its_size(self):
        cut = self.folder / "cut.jpg"
        cut.write_bytes(self.sample("left01.jpg").read_bytes()[:12])
        done = run("label", "--otsu", cut)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("cut.jpg: is no good JPEG: ", done.stderr)

    def test_names_the_word_that_it_does_not_know_and_the_nearest_that_it_does(self):
        board = ["synth", "board", "-o", self.folder / "board"]
        for words, message in (
                (["nonsense"], 'patternctl: unknown command "nonsense". There are: teach, match, '),
                (["mach", "--pattern", "x"], 'patternctl: unknown command "mach"; did you mean match? There are: '),
                ([], "patternctl: a command is missing. There are: teach, match, "),
                (["synth"], "patternctl synth: a command is missing. There are: scene, recording, board\n"),
                (["synth", "sceen"], 'patternctl synth: unknown command "sceen"; did you mean scene? There are: scene'),
                (["match", "--min_score", "1", "x"], "patternctl match: unknown option --min_score; did you mean --min-score?\n"),
                (["match", "--jsom"], "patternctl match: unknown option --jsom; did you mean --json?\n"),
                (["label", "--thresold=3", "x"], "patternctl label: unknown option --thresold; did you mean --threshold?\n"),
                (["match", "--nonsense"], "patternctl match: unknown option --nonsense; patternctl match --help says more\n"),
                (["match"], "patternctl match: --pattern is required; patternctl match --help says more\n"),
                (["status", "here", "there"], 'patternctl status: unexpected word "there"; patternctl status --help'),
                (["match", "--pattern", "x", "--threads", "-1", "y"], "patternctl match: --threads: must be 0 to 256, not -1; "),
                (["watch", "--every", "0"], "patternctl watch: --every: must be 1 to 1000000, not 0; "),
                ([*board, "--square", "0"], "patternctl synth board: --square: must be above 0, not 0; "),
                ([*board, "--square", "nan"], "patternctl synth board: --square: must be a decimal number, such as 2.5, not nan; "),
                (["match", "--pattern", "x", "--threads", "", "y"], "patternctl match: --threads: must not be empty; "),
                (["match", "--pattern", "", "y"], "patternctl match: --pattern: must not be empty; "),
                *[(["match", "--pattern", "x", "--threads", number, "y"],
                   f"patternctl match: --threads: must be a whole number in decimal digits, such as 10, not {number}; ")
                  for number in ("010", "0x10", "1e2", "10k", "nan", " 1", "1.0", "+-1")],
                (["match", "--pattern", "x", "--max-matches", "99999999999", "y"], "patternctl match: "),
                (["match", "--pattern", "x", "--max-matches", "9" * 30, "y"], "patternctl match: --max-matches: 9999"),
                *[(["match", "--pattern", "x", "--min-score", number, "y"],
                   f"patternctl match: --min-score: must be a decimal number, such as 2.5, not {number}; ")
                  for number in ("0x1p-1", "inf", "00.5", "0,5", ".", "1e")],
                (["match", "--pattern", "x", "--roi", "0x1,2,3,4", "y"], 'patternctl match: --roi: "0x1,2,3,4" is not X,Y,W,H: 4 decimal '),
                (["record", "--frames", "-5", "x"], "patternctl record: --frames: must be 0 or above, not -5; "),
                ([*board, "--noise", "-1"], "patternctl synth board: --noise: must be 0 or above, not -1; "),
                ([*board, "--tilt", "71"], "patternctl synth board: --tilt: must be 0 to 70, not 71; ")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), words)
            self.assertTrue(done.stderr.startswith(message), (words, done.stderr))

    def test_says_for_every_program_in_one_line_what_is_wrong_with_its_words(self):
        for program, name, option in (("patternd", "patternd", "--wait-clients"), ("patternctl", "patternctl match", "--threads"),
                                      ("patternd-calibrate", "patternctl calibrate", "--every"),
                                      ("patternd-bench", "patternctl bench", "--repetitions")):
            if not (BIN / program).exists():
                continue  # this build leaves it out
            command = ["match"] if program == "patternctl" else []
            for words, message in (([option, "0x10"], f"{option}: must be a whole number in decimal digits, such as 10, not 0x10"),
                                   ([option, "-1"], f"{option}: must be "), ([option, ""], f"{option}: must not be empty"),
                                   (["--nonsense"], "unknown option --nonsense"), ([option], f"{option}: ")):
                done = run(*command, *words, program=program)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), (program, words, done.stderr))
                self.assertTrue(done.stderr.startswith(f"{name}: {message}"), (program, words, done.stderr))
                self.assertTrue("--help says more" in done.stderr or "did you mean" in done.stderr, done.stderr)
        for words in (["9x6x2"], ["0x9"], ["9x06"], ["9X6"], ["+9x6 "], ["9x201"]):
            if (BIN / "patternd-calibrate").exists():
                done = run("--chessboard", *words, "--square", "5", "-o", "x.yaml", "x.png", program="patternd-calibrate")
                self.assertIn(f"patternctl calibrate: the board's size {words[0]}: not two counts", done.stderr)

    def test_scripts_print_their_help_and_refuse_wrong_use(self):
        def script(*words):
            return subprocess.run([str(SOURCE / words[0]), *words[1:]], capture_output=True, text=True, timeout=30)
        for name in ("tools/demo", "tools/test", "tools/setup", "tools/package", "tools/tidy", "tools/cross/build"):
            done = script(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("\n  " + name, done.stdout)
        for words, message in ((["tools/demo", "--frames"], "--frames needs a number from 1 to 999999"),
                               (["tools/demo", "--frames", "x"], "--frames needs a number from 1 to 999999"),
                               (["tools/demo", "--programs", "/none"], "--programs needs the folder that "),
                               (["tools/demo", "--output"], "--output needs a folder"),
                               (["tools/demo", "--nonsense"], "unknown option '--nonsense'; --frames N, "),
                               (["tools/test", "--preset"], "--preset needs a name"),
                               (["tools/test", "-R", ""], "-R needs a regular expression"),
                               (["tools/setup", "--nonsense"], "unknown option '--nonsense'; --ci, "),
                               (["tools/cross/build", "mips"], "ARCH must be arm64 or armhf, not 'mips'"),
                               (["tools/cross/build", "arm64", "--jobs", "x"], "--jobs needs a number above 0")):
            done = script(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), (words, done.stderr))
            self.assertTrue(done.stderr.startswith(f"{SOURCE / words[0]}: {message}"), (words, done.stderr))

    def test_blames_the_option_that_asks_for_a_gpu(self):
        picture = self.folder / "p.pgm"
        picture.write_bytes(b"P5 64 64 255\n" + bytes((x * x * 7 + y * y * 3 + x * y) % 256 for y in range(64) for x in range(64)))
        part = self.folder / "part.pgm"
        part.write_bytes(b"P5 24 24 255\n" + bytes((x * x * 7 + y * y * 3 + x * y) % 256 for y in range(20, 44) for x in range(20, 44)))
        camera = self.folder / "camera.yaml"
        camera.write_text("image_size: [64, 64]\nlens: {model: none}\n")
        out = self.folder / "out.png"
        why = " is not available (no NVIDIA driver: "
        for words, start, cure in (
                (["match", "--backend", "cuda", "--pattern", part, picture], "--backend: cuda" + why, "set auto or cpu\n"),
                (["rectify", "--backend", "cuda", "--calibration", camera, picture, out], "--backend: cuda" + why, "set auto or cpu\n"),
                (["label", "--threshold", 9, "--backend", "cuda", picture], "--backend: cuda" + why, "set auto or cpu\n"),
                (["label", "--threshold", 9, "--method", "equivalence", picture], "--method: equivalence" + why, "set runs or propagation\n")):
            done = run(*words)
            if done.returncode == 0:
                continue  # there is a GPU
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertTrue(done.stderr.startswith(f"patternctl {words[0]}: {start}"), done.stderr)
            self.assertTrue(done.stderr.endswith(cure), done.stderr)
        if (BIN / "patternd-bench").exists():
            done = run("seeds", "--image", "foo", program="patternd-bench")
            self.assertEqual(done.returncode, 2)
            self.assertIn("--image: must be auto, universal, sm_NN or compute_NN, such as sm_87, not foo", done.stderr)
            images = [run("--version", program=program).stdout.split("\n", 1)[1] for program in ("patternd", "patternd-bench")]
            self.assertEqual(images[0], images[1])

    def test_shows_where_a_recording_comes_from_in_its_usage(self):
        help_text = run("record", "--help").stdout
        self.assertIn("Usage: patternctl record [OPTIONS] (--config FILE | SERVICE)\n", help_text)
        self.assertIn("or the path of its Unix socket", help_text)

    def test_names_the_subject_that_the_benchmark_does_not_know(self):
        if not (BIN / "patternd-bench").exists():
            self.skipTest("this build has no benchmark")
        done = run("bench", "sedes")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r'\Apatternctl bench: unknown command "sedes"; did you mean seeds\? There are: .*\n\Z')

    def test_blames_the_option_of_a_search_that_is_out_of_range(self):
        for words, message in ((["--min-score", "2"], "--min-score: 2; it must be over 0 and at most 1"),
                               (["--max-matches", "0"], "--max-matches: 0; it must be 1 to 1000"),
                               (["--min-score", "1.0000001"], "--min-score: 1.0000001; it must be over 0 and at most 1"),
                               (["--roi", "0,0,0,0"],
                                "--roi: [0, 0, 0, 0]; it must be [x, y, width, height] in pixels, -1e6 to 1e6, with a width and"),
                               (["--roi", "0,0,1e300,9"], "--roi: [0, 0, 1e+300, 9]; it must be [x, y, width, height] in pixels, -1e6"),
                               (["--angle", "20,10"], "--angle: [20, 10]; it must be [low, high] in degrees with -360 <= low"),
                               (["--angle", "0,1e9"], "--angle: [0, 1e+09]; it must be [low, high] in degrees with -360 <= low"),
                               (["--symmetry", "0"], "--symmetry: 0; it must be 1 to 360")):
            done = run("match", "--pattern", "none.yaml", *words, "none.png")
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn("patternctl match: " + message, done.stderr)

    def test_refuses_two_patterns_of_one_name(self):
        photo = self.sample("graf1.png")
        pattern, _ = self.teach(photo, "300,200,120,100")
        done = run("match", "--pattern", pattern, "--pattern", pattern, photo)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f'patternctl match: --pattern: {pattern}: the name "part" comes a second time', done.stderr)

    def test_teaches_a_part_of_a_photograph_and_finds_it_there(self):
        photo = self.sample("graf1.png")
        pattern, printed = self.teach(photo, "300,200,120,100")
        for word in ("levels", "angle step", "MB", "multiply-adds", "ms here on one thread"):
            self.assertIn(word, printed)
        done = run("match", "--pattern", pattern, photo)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["type"], "result")
        self.assertEqual(result["image"], str(photo))
        best = result["matches"][0]
        self.assertEqual(best["pattern"], "part")
        self.assertAlmostEqual(best["x_px"], 359.5, delta=0.02)
        self.assertAlmostEqual(best["y_px"], 249.5, delta=0.02)
        self.assertAlmostEqual(best["angle_deg"], 0, delta=0.02)
        self.assertGreater(best["score"], 0.99)
        self.assertEqual(sorted(result["latency_us"]), sorted(
            ["capture", "rectify", "pyramid", "search", "nms", "trace", "refine", "blobs", "publish", "total"]))

    def test_takes_negative_values_as_separate_words(self):
        photo = self.sample("graf1.png")
        pattern, _ = self.teach(photo, "300,200,120,100")
        done = run("match", "--pattern", pattern, "--angle", "-20,20", "--roi", "-5,-5,2000,2000", photo)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["matches"]), 1)
        done = run("match", "--pattern", pattern, "--angle", "90,180", "--angle", "-170,-100", photo)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["matches"], [])

    def test_moves_the_result_with_the_reference_point(self):
        photo = self.sample("graf1.png")
        pattern, _ = self.teach(photo, "300,200,120,100", "--ref", "0,0")
        best = json.loads(run("match", "--pattern", pattern, photo).stdout)["matches"][0]
        self.assertAlmostEqual(best["x_px"], 300, delta=0.05)
        self.assertAlmostEqual(best["y_px"], 200, delta=0.05)

    def test_prints_a_line_for_each_picture_and_stops_at_a_bad_one(self):
        photo = self.sample("graf1.png")
        other = self.sample("graf3.png")
        pattern, _ = self.teach(photo, "300,200,120,100")
        done = run("match", "--pattern", pattern, photo, other)
        self.assertEqual([json.loads(line)["seq"] for line in done.stdout.splitlines()], [0, 1])
        bad = self.folder / "cut.png"
        bad.write_bytes(photo.read_bytes()[:5000])
        done = run("match", "--pattern", pattern, photo, bad)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stdout.splitlines()), 1)
        self.assertIn("cut.png", done.stderr)

    def test_teaches_no_pattern_under_a_name_that_cannot_be_read_back(self):
        for name in (b"bad\xff.yaml", b"a" * 65 + b".yaml", b"tab\there.yaml"):
            done = run("teach", "none.png", "--roi", "0,0,9,9", "-o", os.fsdecode(os.fsencode(self.folder) + b"/" + name))
            self.assertEqual((done.returncode, done.stdout), (2, ""), name)
            self.assertRegex(done.stderr, r"\Apatternctl teach: --output: the pattern's name would be .*; it must have no control characters and be 1 to 64 bytes of UTF-8\n\Z")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_refuses_a_flat_rectangle_and_one_outside_the_picture(self):
        flat = self.folder / "flat.pgm"
        flat.write_bytes(b"P5 200 200 255\n" + bytes([128]) * 40000)
        done = run("teach", flat, "--roi", "10,10,64,64", "-o", self.folder / "a.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("contrast", done.stderr)
        self.assertFalse((self.folder / "a.yaml").exists())
        done = run("teach", flat, "--roi", "150,10,64,64", "-o", self.folder / "a.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not lie inside the picture of 200x200", done.stderr)

    def test_refuses_a_pattern_larger_than_the_picture_naming_both_sizes(self):
        photo = self.sample("graf1.png")
        pattern, _ = self.teach(photo, "100,100,600,300")
        small = self.folder / "small.pgm"
        small.write_bytes(b"P5 500 500 255\n" + os.urandom(250000))
        done = run("match", "--pattern", pattern, small)
        self.assertEqual(done.returncode, 2)
        self.assertIn("600x300", done.stderr)
        self.assertIn("500x500", done.stderr)

    def test_draws_the_matches(self):
        photo = self.sample("graf1.png")
        pattern, _ = self.teach(photo, "300,200,120,100")
        drawn = self.folder / "drawn.png"
        self.assertEqual(run("match", "--pattern", pattern, "--draw", drawn, photo).returncode, 0)
        self.assertGreater(drawn.stat().st_size, 10000)

    def test_draws_where_a_calibration_puts_them_into_the_rectified_picture(self):
        photo = self.sample("graf1.png")
        pattern, _ = self.teach(photo, "300,200,121,101")
        camera = self.folder / "camera.yaml"
        camera.write_text("image_size: [800, 640]\nlens: {model: none}\n"
                          "plane: {homography: [1, 0, 100, 0, 1, 50, 0, 0, 1], width: 600, height: 500}\n")
        drawn = self.folder / "drawn.ppm"
        done = run("match", "--pattern", pattern, "--calibration", camera, "--max-matches", 1, "--draw", drawn, photo)
        self.assertEqual(done.returncode, 0, done.stderr)
        match = json.loads(done.stdout)["matches"][0]
        self.assertAlmostEqual(match["x_px"], 260, delta=0.1)
        self.assertAlmostEqual(match["y_px"], 200, delta=0.1)
        content = drawn.read_bytes()
        header = b"P6\n600 500\n255\n"
        self.assertEqual(content[:len(header)], header)
        cross = len(header) + 3 * (200 * 600 + 260)
        self.assertEqual(content[cross:cross + 3], bytes([0, 255, 0]))


if __name__ == "__main__":
    unittest.main()
