#!/usr/bin/env python3
"""patternd as its users meet it: started, spoken to over its sockets, signalled, ended."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

BIN = pathlib.Path(os.environ["PATTERND_BIN"])
PATIENCE = 60
# A driver whose GPU is emulated, where the tests' programs are built.
EMULATED = BIN.parent / "tests/libpatternd_emulated_driver.so"
# A log line behind its time and level: key=value, in quotes where it is no plain word.
LOG_LINE = re.compile(r'[\w.]+=(?:"(?:\\.|[^"\\])*"|[^\s"=]+)(?: [\w.]+=(?:"(?:\\.|[^"\\])*"|[^\s"=]+))*')
STAGES = ["capture", "rectify", "pyramid", "search", "nms", "trace", "refine", "blobs", "publish", "total"]


def ctl(*words):
    return subprocess.run([BIN / "patternctl", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)


class Patternd:
    """A running service whose log is read as it comes."""

    def __init__(self, *words, **options):
        self.process = subprocess.Popen([BIN / "patternd", *map(str, words)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **options)
        self.log = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self.changed:
                self.log.append(line)
                self.changed.notify_all()
        with self.changed:
            self.log.append(None)
            self.changed.notify_all()

    def wait_for(self, pattern):
        """The first log line that matches, now or later."""
        def found():
            for line in self.log:
                if line is None:
                    raise AssertionError("patternd ended without " + pattern + ":\n" + self.text())
                match = re.search(pattern, line)
                if match:
                    return match
            return None
        with self.changed:
            result = self.changed.wait_for(found, PATIENCE)
        if result is None:
            raise AssertionError("no line " + pattern + " in:\n" + self.text())
        return result

    def text(self):
        return "".join(line for line in self.log if line is not None)

    def port(self):
        return int(self.wait_for(r"listen=[0-9.]+:(\d+)").group(1))

    def end(self, signal_number=None):
        if signal_number is not None:
            self.process.send_signal(signal_number)
        code = self.process.wait(PATIENCE)
        self.reader.join()
        for line in self.log:
            stamped = re.match(r"\d{4}-\S+Z \w+ (.*)\n", line or "")
            if stamped and not LOG_LINE.fullmatch(stamped.group(1)):
                raise AssertionError("not key=value: " + line)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class Client:
    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(address if isinstance(address, str) else ("127.0.0.1", address))
        self.lines = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else (json.dumps(data) + "\n").encode())

    def next(self, kind=None):
        """The next line, or the next of this type; None at the end."""
        while True:
            line = self.lines.readline()
            if not line:
                return None
            value = json.loads(line.decode("utf-8"))
            if kind in (None, value["type"]):
                return value

    def close(self):
        self.lines.close()
        self.socket.close()


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory(prefix="patternd-service-")
        made = ctl("synth", "recording", "--size", "320,240", "--pattern-size", "48,64", "--instances", 2, "--frames",
                   12, "--seed", 3, "-o", cls.shared.name + "/made")
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="patternd-service-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.made = pathlib.Path(self.shared.name) / "made"

    def write(self, patterns="[]", camera="{source: replay, path: RECORDING, loop: true}", more="",
              publish='{tcp: {listen: "127.0.0.1:0"}}', name="patternd.yaml"):
        text = f"camera: {camera}\npatterns: {patterns}\npublish: {publish}\n{more}"
        path = self.folder / name
        path.write_text(text.replace("RECORDING", str(self.made / "recording")))
        return path

    def part(self):
        return "[{name: part, pattern: %s, max_matches: 2}]" % (self.made / "patterns/p1.png")

    def start(self, *words, **options):
        service = Patternd(*words, **options)
        self.addCleanup(lambda: service.process.poll() is None and service.end(signal.SIGKILL))
        return service

    def connect(self, address):
        client = Client(address)
        self.addCleanup(client.close)
        return client

    def play(self, *words, more=""):
        """All lines of the recording, and the service's log."""
        config = self.write(self.part(), '{source: replay, path: RECORDING, realtime: false}', more)
        service = self.start("--config", config, "--wait-clients", 1, *words)
        client = self.connect(service.port())
        lines = []
        while (line := client.next()) is not None:
            lines.append(line)
        self.assertEqual(service.end(), 0, service.text())
        return lines, service.text()

    def test_replay_finds_the_truth_in_every_frame_and_ends(self):
        lines, log = self.play()
        hello, results = lines[0], lines[1:]
        self.assertEqual(list(hello), ["type", "protocol", "server", "camera", "frame", "backend", "patterns"])
        self.assertEqual(hello["frame"], {"width": 320, "height": 240})
        truth = [json.loads(line) for line in (self.made / "truth.jsonl").read_text().splitlines()]
        self.assertEqual([r["seq"] for r in results], [t["seq"] for t in truth])
        for result, expected in zip(results, truth):
            self.assertEqual(list(result["latency_us"]), STAGES)
            self.assertEqual(result["dropped"], 0)
            found = sorted((m["x_px"], m["y_px"]) for m in result["matches"])
            planted = sorted((i["x_px"], i["y_px"]) for i in expected["instances"])
            self.assertEqual(len(found), len(planted))
            for (x, y), (tx, ty) in zip(found, planted):
                self.assertLess(abs(x - tx) + abs(y - ty), 0.5)
        self.assertRegex(log, r"latency, since start\nstage +count")
        self.assertRegex(log, r"total +12 ")

    def test_replay_gives_the_same_bytes_on_any_number_of_threads(self):
        runs = []
        for threads in (1, 3):
            lines, _ = self.play(more="compute: {threads: %d}\n" % threads)
            for line in lines:
                line.pop("latency_us", None)
            runs.append(json.dumps(lines))
        self.assertEqual(runs[0], runs[1])

    def test_writes_a_latency_line_a_frame(self):
        log = self.folder / "latency.csv"
        self.play(more="latency: {log: latency.csv}\n")
        rows = log.read_text().splitlines()
        self.assertEqual(rows[0], "seq,captured_mono_ns," + ",".join(STAGES))
        self.assertEqual(len(rows), 13)
        self.assertEqual({len(row.split(",")) for row in rows}, {12})

    def test_check_prints_the_effective_configuration_and_starts_nothing(self):
        config = self.write(self.part())
        done = subprocess.run([BIN / "patternd", "--config", config, "--check"], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("min_score: 0.7", done.stdout)
        again = self.folder / "again.yaml"
        again.write_text(done.stdout)
        second = subprocess.run([BIN / "patternd", "--config", again, "--check"], capture_output=True, text=True,
                                timeout=PATIENCE)
        self.assertEqual(second.stdout, done.stdout)

    def test_check_tells_where_the_rectified_corners_land(self):
        (self.folder / "camera.yaml").write_text(
            "image_size: [320, 240]\nlens: {model: none}\nplane: {homography: [1, 0, 10, 0, 1, 20, 0, 0, 1], width: 301, "
            "height: 201, mm_per_px: 0.5}\n")
        config = self.write(more="calibration: camera.yaml\n")
        done = subprocess.run([BIN / "patternd", "--config", config, "--check"], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# rectified (0, 0) = (0.00, 0.00) mm comes from camera (10.00, 20.00)\n", done.stdout)
        self.assertIn("# rectified (300, 200) = (150.00, 100.00) mm comes from camera (310.00, 220.00)\n", done.stdout)

    def test_check_refuses_what_a_start_refuses_with_the_same_words(self):
        flat = lambda width, height, value: b"P5 %d %d 255\n" % (width, height) + bytes([value]) * (width * height)
        (self.folder / "dark.pgm").write_bytes(flat(100, 80, 3))
        (self.folder / "empty").mkdir()
        (self.folder / "text.png").write_text("no picture")
        (self.folder / "camera.yaml").write_text("image_size: [640, 480]\nlens: {model: none}\n")
        (self.folder / "small.pgm").write_bytes(flat(20, 20, 5))
        part = self.made / "patterns/p1.png"
        searched = lambda more: "[{name: part, pattern: %s, %s}]" % (part, more)
        replay = lambda name: "{source: replay, path: %s}" % (self.folder / name)
        dark = "blobs: {threshold: 9, reference: dark, dark_frame: dark.pgm}\n"
        absent = "{source: v4l2, device: /dev/none%s}"
        cases = [
            (dict(camera=replay("gone")), 2, "gone: no such file or folder to replay"),
            (dict(camera=replay("empty")), 2, "holds no pictures"),
            (dict(camera=replay("text.png")), 2, "text.png: is no picture"),
            (dict(camera="{source: replay, path: RECORDING, width: 640}"), 2, "the configuration asks for width 640;"),
            (dict(camera=replay("small.pgm"), patterns=searched("max_matches: 1")), 2, "larger than the searched picture, 20x20"),
            (dict(patterns=searched("levels: 9")), 2, "a pattern of this size has 0 to"),
            (dict(patterns=searched("levels: 0, scale: [0.1, 10]")), 2, "the coarsest level would hold"),
            (dict(more="calibration: camera.yaml\n"), 2, "the calibration is for pictures of 640x480, the frames are 320x240"),
            (dict(more=dark), 2, "the dark frame is 100x80 gray8; the camera gives 320x240"),
            (dict(more="latency: {log: none/latency.csv}\n"), 1, "the latency log cannot be written"),
            (dict(camera=absent % "", patterns=searched("levels: 9")), 2, "a pattern of this size has 0 to"),
            (dict(camera=absent % ", width: 40, height: 30", patterns=searched("levels: auto")), 2, "larger than the searched picture, 40x30"),
            (dict(camera=absent % ", width: 40", patterns=searched("levels: auto")), 2, "larger than the searched picture, 40x"),
            (dict(camera=absent % ", width: 40, height: 30", more=dark), 2, "the dark frame is 100x80"),
        ]
        for number, (parts, code, message) in enumerate(cases):
            config = self.write(name="case%d.yaml" % number, **parts)
            with self.subTest(parts=parts):
                said = [subprocess.run([BIN / "patternd", "--config", config, *words], capture_output=True, text=True,
                                       timeout=PATIENCE) for words in (["--check"], [])]
                self.assertIn(message, said[0].stderr)
                self.assertEqual(said[0].stderr, said[1].stderr)
                self.assertEqual([done.returncode for done in said], [code, code])
                self.assertEqual([done.stdout for done in said], ["", ""])

    def test_notes_a_pattern_that_was_taught_with_another_calibration(self):
        (self.folder / "camera.yaml").write_text("image_size: [320, 240]\nlens: {model: none}\n")
        (self.folder / "part.yaml").write_text("picture: %s\ncalibration: camera.yaml\n" % (self.made / "patterns/p1.png"))
        config = self.write("[{name: part, pattern: part.yaml}]")
        note = "pattern part was taught with calibration %s/camera.yaml, but is searched without one" % self.folder
        done = subprocess.run([BIN / "patternd", "--config", config, "--check"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{config}: note: {note}", done.stderr)
        service = self.start("--config", config)
        service.wait_for(re.escape(f'configuration="{config}" note="{note}'))
        self.write("[{name: part, pattern: part.yaml}]", more="calibration: camera.yaml\n")
        self.assertIn("accepted", ctl("reload", f"127.0.0.1:{service.port()}").stdout)
        self.assertEqual(service.end(signal.SIGTERM), 0)
        self.assertEqual(service.text().count("note="), 1)

    def test_refuses_to_start_and_says_why(self):
        held = socket.socket()
        self.addCleanup(held.close)
        held.bind(("127.0.0.1", 0))
        held.listen()
        taken = held.getsockname()[1]
        cases = [
            (["--config", "no.yaml"], 2, "no.yaml: no such file"),
            ([], 2, "--config FILE is missing"),
            (["--config", self.write(more="unknown: 1\n")], 2, ":4:1: unknown: unknown key"),
            (["--config", self.write(name="b.yaml"), "--backend", "cuda"], 1, "patternd: --backend: cuda is not available"),
            (["--config", self.write(name="c.yaml"), "--replay", "/no/such"], 2, "/no/such"),
            (["--config", self.write(name="d.yaml"), "--fast"], 2, "--replay"),
            (["--config", self.write(publish='{tcp: {listen: "127.0.0.1:%d"}}' % taken, name="e.yaml")], 1,
             "another program"),
            (["--config", self.write(publish='{tcp: {listen: "0.0.0.0:1"}}', name="f.yaml")], 2, "loopback"),
        ]
        for words, code, message in cases:
            with self.subTest(words=list(map(str, words))):
                done = subprocess.run([BIN / "patternd", *map(str, words)], capture_output=True, text=True,
                                      timeout=PATIENCE)
                if "--backend" in words and done.returncode == 0:
                    continue  # there is a GPU
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(message, done.stderr)

    def write_secret(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def test_other_machines_need_a_list_and_a_token_to_change_something(self):
        token = self.write_secret("token", "0123456789abcdef0123456789abcdef\n")
        wrong = self.write_secret("wrong", "fedcba9876543210fedcba9876543210\n")
        publish = '{tcp: {listen: "0.0.0.0:0", allow: [%s], token_file: token}}'
        config = self.write(publish=publish % "127.0.0.0/8")
        service = self.start("--config", config)
        address = f"127.0.0.1:{service.port()}"
        client = self.connect(service.port())
        self.assertEqual(client.next()["type"], "hello")
        self.assertIn('needs a "token"', ctl("reload", address).stderr)
        self.assertIn("the token is wrong", ctl("reload", address, "--token-file", wrong).stderr)
        self.assertIn("accepted", ctl("reload", address, "--token-file", token).stdout)
        publish_status = json.loads(ctl("--json", "status", address).stdout)["publish"]
        self.assertEqual(publish_status["wrong_tokens"], 2)
        service.wait_for(r"client=denied peer=127\.0\.0\.1 reason=\"reload without the right token\"")
        # A list that loses this machine closes its clients; what is wrong changes nothing.
        self.write(publish=publish % "10.1.2.3/8")
        self.assertIn("must be 10.0.0.0/8", ctl("reload", address, "--token-file", token).stderr)
        self.write(publish=publish % "10.0.0.0/8")
        service.process.send_signal(signal.SIGHUP)
        self.assertIn("no longer in publish.tcp.allow", client.next("reply")["error"])
        self.assertIsNone(client.next())
        denied = self.connect(service.port())
        self.assertIn("127.0.0.1 is not in publish.tcp.allow", denied.next()["error"])
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_does_not_start_for_other_machines_without_list_token_or_certificates(self):
        token = self.write_secret("token", "0123456789abcdef0123456789abcdef\n")
        reachable = 'which other machines can reach'
        cases = [
            ("", [reachable, "allow with the networks", "token_file or tls.client_ca"]),
            (", allow: [10.0.0.0/8]", [reachable, "must have beside it token_file or tls.client_ca"]),
            (", token_file: token", [reachable, "must have beside it allow with the networks that may connect;"]),
            (", allow: [10.0.0.0/8], token_file: none", ["none: no such file"]),
            (", allow: [10.0.0.0/8], tls: {client_ca: token}", ["tls.cert: missing", "tls.key: missing", "holds no certificate"]),
        ]
        for more, messages in cases:
            with self.subTest(more):
                config = self.write(publish='{tcp: {listen: "0.0.0.0:0"%s}}' % more)
                done = subprocess.run([BIN / "patternd", "--config", config], capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(done.returncode, 2, done.stderr)
                for message in messages:
                    self.assertIn(message, done.stderr)
        token.chmod(0o644)
        config = self.write(publish='{tcp: {listen: "0.0.0.0:0", allow: [10.0.0.0/8], token_file: token}}')
        done = subprocess.run([BIN / "patternd", "--config", config, "--check"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is open to every user of this machine; take that away with chmod o=", done.stderr)

    def openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], cwd=self.folder, check=True, capture_output=True)

    def test_speaks_tls_with_those_whom_its_authority_signed(self):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self.openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", 1, "-subj", "/CN=plant")
        for name in ("server", "client"):
            self.openssl("req", "-x509", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", 1, "-subj",
                         f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE", "-CA",
                         "ca.pem", "-CAkey", "ca.key")
        config = self.write(publish='{tcp: {listen: "0.0.0.0:0", allow: [127.0.0.1], '
                                    'tls: {cert: server.pem, key: server.key, client_ca: ca.pem}}}')
        service = self.start("--config", config)
        address = f"127.0.0.1:{service.port()}"
        known = ["--tls-ca", self.folder / "ca.pem", "--tls-cert", self.folder / "client.pem", "--tls-key", self.folder / "client.key"]
        self.assertIn("accepted", ctl("reload", address, *known).stdout)
        watched = ctl("--json", "watch", address, "--count", 5, *known)
        self.assertEqual(watched.stdout.count('"type":"result"'), 5, watched.stderr)
        refused = ctl("status", address, *known[:2])
        self.assertEqual(refused.returncode, 1)
        self.assertIn("wants a certificate of ours", refused.stderr)
        service.wait_for(r"client=denied peer=127\.0\.0\.1 reason=\"TLS handshake: it showed no certificate")
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_gives_its_unix_socket_the_mode_and_group_that_are_set(self):
        group = os.getgid()
        publish = '{unix: {path: p.sock, mode: "%s", group: %d}}'
        config = self.write(publish=publish % ("0600", group))
        service = self.start("--config", config)
        service.wait_for("listen=.*p.sock")
        path = self.folder / "p.sock"
        self.assertEqual((path.stat().st_mode & 0o777, path.stat().st_gid), (0o600, group))
        self.write(publish=publish % ("0666", group))
        self.assertIn("accepted", ctl("reload", path).stdout)
        self.assertEqual(path.stat().st_mode & 0o777, 0o666)
        self.write(publish='{unix: {path: p.sock, group: no-such-group}}')
        self.assertIn('this machine has no group "no-such-group"', ctl("reload", path).stderr)
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_sends_to_a_client_whose_input_is_closed(self):
        service = self.start("--config", self.write())
        client = self.connect(service.port())
        client.socket.shutdown(socket.SHUT_WR)
        first = client.next("result")["seq"]
        for seq in range(first + 1, first + 20):
            self.assertEqual(client.next("result")["seq"], seq)
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_numbers_rise_over_the_loops_of_a_recording(self):
        service = self.start("--config", self.write(camera="{source: replay, path: RECORDING, loop: true, realtime: false}"))
        client = self.connect(service.port())
        last = -1
        for _ in range(100):
            seq = client.next("result")["seq"]
            self.assertGreater(seq, last)
            last = seq
        self.assertEqual(service.end(signal.SIGINT), 0)

    def test_flushes_the_last_results_on_sigterm(self):
        service = self.start("--config", self.write())
        client = self.connect(service.port())
        client.next("result")
        self.assertEqual(service.end(signal.SIGTERM), 0)
        while client.next() is not None:
            pass  # whole lines up to the end: json.loads would throw
        self.assertIn("state=stopping", service.text())

    def test_reloads_on_sighup_whole_or_not_at_all(self):
        config = self.write()
        service = self.start("--config", config)
        client = self.connect(service.port())
        client.next("result")
        good = config.read_text()
        config.write_text(good + "unknown: 1\n")
        service.process.send_signal(signal.SIGHUP)
        service.wait_for(r"reload=refused .*:4:1: unknown: unknown key.*the running configuration stays")
        config.write_text(good.replace("patterns: []", "patterns: " + self.part()))
        service.process.send_signal(signal.SIGHUP)
        first = int(service.wait_for(r"configuration=2 state=running first_seq=(\d+)").group(1))
        while True:
            result = client.next("result")
            self.assertEqual(len(result["matches"]) > 0, result["seq"] >= first)
            if result["seq"] >= first:
                break
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_escapes_quotes_in_the_logs_values(self):
        config = self.write(camera='{name: line 3, source: replay, path: RECORDING, loop: true}')
        service = self.start("--config", config)
        service.wait_for('camera="line 3" state=running')
        config.write_text(config.read_text() + "compute: {memory: foo, image: bar}\n")
        service.process.send_signal(signal.SIGHUP)
        line = service.wait_for("reload=refused.*").group(0)
        values = dict(re.findall(r'([\w.]+)=("(?:\\.|[^"\\])*"|\S+)', line))
        self.assertEqual(set(values), {"reload", "file", "reason", "consequence"})
        reason = re.sub(r"\\(.)", r"\1", values["reason"][1:-1])
        self.assertIn('compute.memory: is "foo"; must be auto, copy, mapped or managed | ', reason)
        self.assertIn('compute.image: is "bar"; must be auto, universal, sm_NN or compute_NN', reason)
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def check(self, *words, gpu=False):
        environment = dict(os.environ)
        if gpu:
            if not EMULATED.exists():
                self.skipTest("the emulated driver is not built")
            shutil.copy(EMULATED, self.folder / "libcuda.so.1")
            environment["LD_LIBRARY_PATH"] = str(self.folder)
        return subprocess.run([BIN / "patternd", *map(str, words), "--check"], capture_output=True, text=True,
                              timeout=PATIENCE, env=environment)

    def test_check_says_which_backend_would_run_and_why(self):
        config = self.write(self.part(), more="compute: {backend: cpu}\n")
        done = self.check("--config", config)
        self.assertEqual((done.returncode, done.stderr), (0, f"{config}: backend: cpu (as configured)\n"))
        done = self.check("--config", config, "--backend", "cpu")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        live = "{source: v4l2, device: /dev/none%s}"
        for camera in ("{source: replay, path: RECORDING}", live % "", live % ", width: 320, height: 240"):
            config = self.write(self.part(), camera=camera)
            done = self.check("--config", config)
            if "backend: cuda" in done.stderr or "GPU that is there" in done.stderr:
                continue  # there is a GPU
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stderr.startswith(f"{config}: backend: cpu (no NVIDIA driver: "), done.stderr)
            self.assertIn("backend: auto", done.stdout)
            done = self.check("--config", config, "--backend", "cuda")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertTrue(done.stderr.startswith("patternd: --backend: cuda is not available (no NVIDIA driver: "), done.stderr)

    def test_check_says_which_key_misses_the_gpu_that_is_there(self):
        cases = [
            ("device: 5", " compute.device: is 5; must be 0, this machine's only GPU"),
            ("image: sm_53", " compute.image: is sm_53, of which this build has nothing for this GPU"),
        ]
        for key, words in cases:
            with self.subTest(key=key):
                config = self.write(more="compute: {backend: cuda, %s}\n" % key)
                column = len("compute: {backend: cuda, ") + len(key.split(" ")[0]) + 2
                done = self.check("--config", config, gpu=True)
                if "no device image" in done.stderr:
                    self.skipTest("this build has no device images")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertTrue(done.stderr.startswith(f"{config}:4:{column}:{words}"), done.stderr)
                config.write_text(config.read_text().replace("backend: cuda", "backend: auto"))
                done = self.check("--config", config, gpu=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stderr.startswith(
                    f"{config}: backend: cpu, not the GPU that is there ({config}:4:{column}:{words}"), done.stderr)
                environment = dict(os.environ, LD_LIBRARY_PATH=str(self.folder))
                service = self.start("--config", config, env=environment)
                service.wait_for("warning backend=cpu chosen_by=auto reason=\".*" + re.escape(words)
                                 + ".*\" consequence=\"the GPU is not used\"")
                self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_reports_a_missing_gpu_and_what_no_backend_could_search_at_once(self):
        big = self.folder / "big.pgm"
        big.write_bytes(b"P5 400 300 255\n" + bytes((x * x + 3 * x * y + y * y * 7) % 251 for y in range(300) for x in range(400)))
        for camera in ("{source: replay, path: RECORDING}", "{source: v4l2, device: /dev/none, width: 320}"):
            config = self.write("[{name: big, pattern: big.pgm}]", camera=camera, more="compute: {backend: cuda}\n")
            done = self.check("--config", config)
            if done.stderr.count("\n") == 1:
                continue  # there is a GPU
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 2, done.stderr)
            self.assertIn(f"{config}:4:20: compute.backend: cuda is not available (", done.stderr)
            self.assertIn(f"{config}: cannot run: pattern big is 400x300 pixels, larger than the searched picture, 320x", done.stderr)

    def test_commands_of_patternctl(self):
        config = self.write(self.part())
        service = self.start("--config", config)
        address = f"127.0.0.1:{service.port()}"
        service.wait_for("state=running")
        status = json.loads(ctl("--json", "status", address).stdout)
        self.assertEqual(status["camera"]["state"], "running")
        self.assertEqual(status["compute"]["backend"], "cpu")
        self.assertIn("  state: running", ctl("status", address).stdout)
        latency = json.loads(ctl("--json", "latency", address).stdout)
        self.assertEqual(list(latency["since_start"]), STAGES)
        self.assertIn("p99", ctl("latency", address).stdout)
        self.assertRegex(ctl("reload", address).stdout, r"^accepted; frame \d+ is the first under it\n$")
        watched = ctl("--json", "watch", address, "--count", 3, "--every", 2).stdout.splitlines()
        results = [json.loads(line) for line in watched if '"type":"result"' in line]
        self.assertEqual(len(results), 3)
        self.assertIn("part (", ctl("watch", address, "--count", 1, "--pattern", "part").stdout)
        refused = ctl("watch", address, "--pattern", "nothing")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("there are: part", refused.stderr)
        config.write_text("nonsense\n")
        bad = ctl("reload", address)
        self.assertEqual(bad.returncode, 1)
        self.assertIn("the running configuration stays", bad.stderr)
        self.assertEqual(service.end(signal.SIGTERM), 0)
        nobody = ctl("status", address)
        self.assertEqual(nobody.returncode, 1)
        self.assertIn("no patternd answers there", nobody.stderr)

    def frames_of(self, folder):
        """Bytes of each frame of a recording by its number, as patternctl wrote them."""
        stamps = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
        return {stamp["seq"]: (folder / ("%08d.pgm" % i)).read_bytes() for i, stamp in enumerate(stamps)}

    def test_records_what_its_camera_gives(self):
        camera = "{source: replay, path: RECORDING, loop: true}"
        service = self.start("--config", self.write(self.part(), camera))
        address = f"127.0.0.1:{service.port()}"
        done = ctl("--json", "record", address, "--frames", 20, "-o", self.folder / "rec")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["frames"], 20)
        original = list(self.frames_of(self.made / "recording").values())
        recorded = self.frames_of(self.folder / "rec")
        self.assertEqual(len(recorded), 20)
        for seq, frame in recorded.items():  # numbers count from 1, and on over the loops
            self.assertEqual(frame, original[(seq - 1) % len(original)])
        timed = ctl("--json", "record", address, "--seconds", 0.3, "-o", self.folder / "timed")
        self.assertLess(json.loads(timed.stdout)["seconds"], 0.3)
        shot = ctl("--json", "snapshot", address, "-o", self.folder / "shot.pgm")
        self.assertEqual(shot.returncode, 0, shot.stderr)
        self.assertIn((self.folder / "shot.pgm").read_bytes(), original)
        again = ctl("record", address, "--frames", 1, "-o", self.folder / "rec")
        self.assertEqual(again.returncode, 2)
        self.assertIn("not empty", again.stderr)
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_keeps_a_sound_recording_where_the_disk_is_full(self):
        service = self.start("--config", self.write(self.part()))

        def small_files():  # writing past this fails as on a full disk
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = subprocess.run([BIN / "patternctl", "record", f"127.0.0.1:{service.port()}", "-o", self.folder / "rec"],
                              capture_output=True, text=True, timeout=PATIENCE, preexec_fn=small_files)
        self.assertEqual(done.returncode, 1)
        self.assertIn("00000000.pgm", done.stderr)
        self.assertEqual((self.folder / "rec/index.jsonl").read_text(), "")
        client = self.connect(service.port())
        self.assertIsNotNone(client.next("result"))
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_ends_a_recording_with_the_service(self):
        service = self.start("--config", self.write(self.part()))
        recorder = subprocess.Popen([BIN / "patternctl", "--json", "record", f"127.0.0.1:{service.port()}", "-o",
                                     self.folder / "rec"], stdout=subprocess.PIPE, text=True)
        while not (self.folder / "rec/00000003.pgm").exists():
            self.assertIsNone(recorder.poll())
            time.sleep(0.01)
        self.assertEqual(service.end(signal.SIGTERM), 0)
        summary = json.loads(recorder.communicate(timeout=PATIENCE)[0])
        self.assertEqual(recorder.returncode, 0)
        self.assertEqual(len(self.frames_of(self.folder / "rec")), summary["frames"])

    def write_knocked(self, camera):
        """A recording of a camera that is knocked before frame 31, with a drift watch; the truth before, places in mm."""
        (self.folder / "truth.yaml").write_text(
            "image_size: [400, 300]\nlens: {model: none}\nplane: {homography: [0.9, 0.05, 20, -0.02, 0.85, 15, 0.0001, "
            "0.0002, 1], width: 380, height: 280, mm_per_px: 0.5, origin_px: [100, 50]}\n")
        knocked = self.folder / "knocked"
        made = ctl("synth", "recording", "--calibration", self.folder / "truth.yaml", "--frames", 60, "--patterns", 2,
                   "--instances", 2, "--pattern-size", "64,72", "--speed", "0,0", "--noise", 2, "--seed", 4, "--knock",
                   "30,2,-1", "-o", knocked)
        self.assertEqual(made.returncode, 0, made.stderr)
        truth = json.loads((knocked / "truth.jsonl").read_text().splitlines()[0])["instances"]
        places = [[(i["x_px"] - 100) * 0.5, (i["y_px"] - 50) * 0.5] for i in truth]
        names = [i["pattern"] for i in truth]
        config = knocked / "watch.yaml"
        config.write_text(f"camera: {camera}\ncalibration: camera.yaml\npatterns:\n"
                          + "".join("  - {name: %s, pattern: patterns/%s.png, max_matches: 1}\n" % (n, n) for n in names)
                          + 'publish: {tcp: {listen: "127.0.0.1:0"}}\n'
                          + "fiducials: {patterns: %s, places_mm: %s, limit_mm: 0.5, every: 5}\n"
                          % (json.dumps(names), json.dumps(places)))
        return config, truth, places

    def test_shows_in_its_status_that_the_camera_has_been_knocked(self):
        config, _, _ = self.write_knocked("{source: replay, path: recording, loop: true}")
        service = self.start("--config", config)
        client = self.connect(service.port())
        seen = set()
        while len(seen) < 2:  # in each loop it is in its place first, then not
            client.send({"command": "status"})
            fiducials = client.next("reply")["data"]["fiducials"]
            if fiducials["compared"] > 0:
                seen.add(fiducials["moved"])
            if fiducials["moved"]:
                self.assertEqual(fiducials["found"], 2)
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_tells_when_the_camera_has_been_knocked(self):
        config, truth, places = self.write_knocked("{source: replay, path: recording, realtime: false}")
        service = self.start("--config", config, "--wait-clients", 1)
        client = self.connect(service.port())
        lines = []
        while (line := client.next()) is not None:
            lines.append(line)
        self.assertEqual(service.end(), 0, service.text())
        drifts = [(i, line) for i, line in enumerate(lines) if line["type"] == "drift"]
        self.assertEqual(len(drifts), 1, drifts)
        at, drift = drifts[0]
        # Compared at frames 35, 40 and 45: the third in a row that is over the limit tells.
        self.assertEqual([line["seq"] for line in lines[:at] if line["type"] == "result"][-1], 45)
        self.assertTrue(drift["moved"])
        self.assertEqual(drift["found"], 2)
        self.assertAlmostEqual(drift["shift_mm"][0], 1.0, delta=0.05)
        self.assertAlmostEqual(drift["shift_mm"][1], -0.5, delta=0.05)
        self.assertAlmostEqual(drift["turn_deg"], 0, delta=0.05)
        self.assertRegex(service.text(), r"camera=moved worst_mm=1\.1")
        self.assert_millimetres_agree(lines, truth, places)

    def assert_millimetres_agree(self, lines, truth, places):
        """Results before the knock against the truth, in their own standard deviations."""
        errors, shares = [], []
        for line in lines:
            if line["type"] != "result" or line["seq"] > 30:
                continue
            self.assertEqual(len(line["matches"]), len(truth))
            for match in line["matches"]:
                index = [i["pattern"] for i in truth].index(match["pattern"])
                for axis, place in zip("xy", places[index]):
                    errors.append(match[axis + "_mm"] - place)
                    shares.append(errors[-1] / match[axis + "_std_mm"])
                    self.assertAlmostEqual(match[axis + "_std_mm"], match[axis + "_std_px"] * 0.5, delta=1e-4)
                self.assertAlmostEqual(match["angle_deg"], truth[index]["angle_deg"], delta=0.1)
        self.assertLess(max(map(abs, errors)), 0.03)
        rms = (sum(s * s for s in shares) / len(shares)) ** 0.5
        self.assertTrue(0.3 < rms < 3, rms)

    def test_lives_through_garbage_of_every_kind(self):
        service = self.start("--config", self.write())
        port = service.port()
        steady = self.connect(port)
        for garbage in (b"\x00" * 1000 + b"\n", b"\xff\xfe\n", b"[" * 60000 + b"\n", b'{"command":"status"' + b"\n",
                        b'{"command":"' + b"x" * 60000 + b'"}\n', b"\n\n\n", b'{"command":null}\n', b"GET / HTTP/1.1\r\n\r\n"):
            client = self.connect(port)
            client.send(garbage)
            client.send({"command": "status"})
            reply = client.next("reply")
            while not reply["ok"]:
                reply = client.next("reply")
            self.assertEqual(reply["command"], "status")
        oversized = self.connect(port)
        oversized.send(b"x" * 70000)
        self.assertFalse(oversized.next("reply")["ok"])
        while oversized.next() is not None:
            pass
        self.assertIsNotNone(steady.next("result"))
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_keeps_file_descriptors_for_its_own_work_however_many_clients_come(self):
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
        service = self.start("--config", self.write(), preexec_fn=few_files)
        port = service.port()
        steady = self.connect(port)
        self.assertIsNotNone(steady.next("hello"))
        crowd = [self.connect(port) for _ in range(80)]
        service.wait_for("client=refused .*LimitNOFILE")
        first = steady.next("result")["seq"]
        for seq in range(first + 1, first + 10):
            self.assertEqual(steady.next("result")["seq"], seq)
        for client in crowd:
            client.close()
        steady.send({"command": "status"})
        self.assertGreater(steady.next("reply")["data"]["publish"]["refused"], 0)
        late = None
        while late is None:  # accepted as soon as the service has seen the others go
            late = self.connect(port).next("hello")
        self.assertEqual(service.end(signal.SIGTERM), 0)

    def test_tells_systemd_how_it_is(self):
        path = str(self.folder / "notify")
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.settimeout(PATIENCE)
        manager.bind(path)

        def told(start):
            while True:
                message = manager.recv(4096).decode()
                if message.startswith(start):
                    return message
        environment = dict(os.environ, NOTIFY_SOCKET=path, WATCHDOG_USEC="400000", JOURNAL_STREAM="1:1")
        service = self.start("--config", self.write(), env=environment)
        self.assertIn("STATUS=", told("READY=1"))
        told("WATCHDOG=1")
        service.process.send_signal(signal.SIGHUP)
        self.assertRegex(told("RELOADING=1"), r"\nMONOTONIC_USEC=\d+$")
        told("READY=1")
        told("WATCHDOG=1")
        service.process.send_signal(signal.SIGTERM)
        told("STOPPING=1")
        self.assertEqual(service.end(), 0)
        self.assertRegex(service.text(), r"(?m)^<6>listen=")

    def test_listens_where_systemd_listens_for_it(self):
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        config = self.write(publish='{tcp: {listen: "127.0.0.1:%d"}}' % port)
        waiting = self.connect(port)  # before the service is there
        # The socket must be number 3 in a process whose own number is known only once it runs.
        script = 'exec 3<&%d; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$0" "$@"' % listener.fileno()
        process = subprocess.Popen(["bash", "-c", script, BIN / "patternd", "--config", config],
                                   pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
        self.assertEqual(waiting.next()["type"], "hello")
        self.assertIsNotNone(waiting.next("result"))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_ends_in_the_midst_of_a_long_search(self):
        made = ctl("synth", "recording", "--size", "1600,1200", "--pattern-size", "90,96", "--instances", 1, "--frames", 2,
                   "--seed", 3, "-o", self.folder / "large")
        self.assertEqual(made.returncode, 0, made.stderr)
        part = "[{name: part, pattern: %s, scale: [0.5, 1.5], min_visible: 0.5}]" % (self.folder / "large/patterns/p1.png")
        service = self.start("--config", self.write(part, "{source: replay, path: large/recording, realtime: false, loop: true}"))
        client = self.connect(service.port())
        self.assertEqual(client.next()["type"], "hello")
        self.assertIsNotNone(client.next("result"))
        self.assertEqual(service.end(signal.SIGTERM), 0)
        self.assertIn("a frame takes too long and is given up", service.text())

    def test_serves_a_unix_socket_beside_tcp(self):
        path = str(self.folder / "p.sock")
        service = self.start("--config", self.write(publish='{tcp: {listen: "127.0.0.1:0"}, unix: {path: p.sock}}'))
        service.wait_for("listen=" + re.escape(path))
        client = self.connect(path)
        self.assertIsNotNone(client.next("result"))
        self.assertIn("camera", ctl("status", path).stdout)
        self.assertEqual(service.end(signal.SIGTERM), 0)
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
