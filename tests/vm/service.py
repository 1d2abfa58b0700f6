#!/usr/bin/env python3
"""Inside the VM, as root, with the package installed: the service as a machine meets it.

A unit of systemd captures from the kernel's virtual camera while its driver, its disk, its clock, its configuration and
its own process are tampered with, and the machine is booted again. A client stays connected throughout each case; what
it was sent is the evidence. Prints a line a check, ends with "N passed, N failed", and exits 1 where one failed.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

CONFIG = pathlib.Path("/etc/patternd/patternd.yaml")
VIVID = pathlib.Path("/sys/bus/platform/drivers/vivid")
DEVICE = "/dev/video0"
PORT = 5577
COUNTS = pathlib.Path("/root/counts.json")  # what the boots before have counted
# The camera's inputs, as load_camera makes them.
HDMI, WEBCAM, TV = 0, 1, 2
# Emulated without KVM, everything is slow; nothing here depends on how slow.
PATIENCE_S = 40

passed = failed = 0


def check(what, good, evidence=""):
    """Counts and prints one check; returns whether it passed."""
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok' if good else 'FAILED'}: {what}" + (f": {evidence}" if not good and evidence != "" else ""), flush=True)
    return bool(good)


def run(*command, fail_ok=False):
    """A command's stdout; its failure is the test's own, unless fail_ok."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0 and not fail_ok:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def wait_for(condition, patience_s=PATIENCE_S):
    """The condition's first true value, or its last false one."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.05)


class Client(threading.Thread):
    """A client that reads everything, and never speaks unless asked to."""

    def __init__(self, port=PORT, unix=None):
        super().__init__(daemon=True)
        if unix is None:
            self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(unix)
        self.socket.settimeout(None)
        self.messages = []
        self.closed = False
        self.start()

    def run(self):
        with self.socket.makefile("rb") as stream:
            try:
                for line in stream:
                    self.messages.append(json.loads(line))
            except OSError:
                pass
        self.closed = True

    def of_type(self, kind, since=0):
        return [message for message in self.messages[since:] if message["type"] == kind]

    def more_results(self, count, patience_s=PATIENCE_S):
        """Whether so many further results come."""
        start = len(self.messages)
        return wait_for(lambda: len(self.of_type("result", start)) >= count, patience_s)

    def ask(self, **command):
        start = len(self.messages)
        self.socket.sendall(json.dumps(command).encode() + b"\n")
        replies = wait_for(lambda: self.of_type("reply", start))
        return replies[0] if replies else {"ok": False, "error": "no reply"}

    def told(self, state, since):
        """Whether the client is told that the camera is lost or back."""
        return wait_for(lambda: [m for m in self.of_type("camera", since) if m["state"] == state])

    def sequence_rises(self):
        numbers = [message["seq"] for message in self.of_type("result")]
        return all(a < b for a, b in zip(numbers, numbers[1:]))

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.join(timeout=5)
        self.socket.close()


def connect():
    """A client of the service as soon as it listens."""
    def attempt():
        try:
            return Client()
        except OSError:
            return None
    client = wait_for(attempt)
    if client is None:
        raise RuntimeError("nobody listens on port 5577: " + run("journalctl", "-u", "patternd", "-n", "20", "-o", "cat"))
    return client


def configure(path=CONFIG, extra="", device=DEVICE, fmt="GREY", size=(320, 180), port=PORT, unix=None):
    also = f", unix: {{path: {unix}}}" if unix else ""
    path.write_text(f"""\
camera: {{name: {path.stem}, source: v4l2, device: {device}, format: {fmt}, width: {size[0]}, height: {size[1]}}}
blobs: {{threshold: 128, max_blobs: 5}}
publish: {{tcp: {{listen: "127.0.0.1:{port}"}}{also}}}
{extra}""")


def property_of(name, unit="patternd"):
    return run("systemctl", "show", "--value", "-p", name, unit)


def main_pid():
    return int(property_of("MainPID"))


def restart():
    run("systemctl", "reset-failed", "patternd", fail_ok=True)
    run("systemctl", "restart", "patternd")
    return connect()


def log_since(cursor):
    return run("journalctl", "-u", "patternd", "-o", "cat", "--after-cursor", cursor)


def log_cursor():
    return run("journalctl", "-n", "0", "--show-cursor").rsplit("cursor: ", 1)[-1]


def inject(control, value=1):
    run("v4l2-ctl", "-d", DEVICE, "-c", f"{control}={value}")


def load_camera():
    run("modprobe", "vivid", "n_devs=1", "node_types=0x1", "num_inputs=3", "input_types=0x13")
    run("udevadm", "settle")


# --- the cases -------------------------------------------------------------------------------------------------------


def installs_as_promised():
    check("the user patternd is there, in group video", "video" in run("id", "-nG", "patternd").split())
    check("nothing is enabled by itself", run("systemctl", "is-enabled", "patternd", fail_ok=True) == "disabled")
    for program in ("patternd", "patternctl"):
        check(f"{program} --version runs", "0.1.0" in run(program, "--version"))
    score = run("systemd-analyze", "security", "--no-pager", "patternd").splitlines()[-1]
    exposure = float(score.split(":")[-1].split()[0])
    check("exposure under 2.5", exposure < 2.5, score)


def refuses_a_wrong_configuration_once():
    CONFIG.write_text("camera: {source: v4l2, devise: /dev/video0}\n")
    cursor = log_cursor()
    run("systemctl", "start", "patternd", fail_ok=True)
    wait_for(lambda: property_of("ActiveState") == "failed")
    check("a wrong configuration ends with exit 2", property_of("ExecMainStatus") == "2", property_of("ExecMainStatus"))
    check("and is not restarted", property_of("NRestarts") == "0", property_of("NRestarts"))
    log = log_since(cursor)
    check("the journal says where and what", "patternd.yaml:1:24: camera.devise" in log and "device" in log, log)


def waits_for_a_late_camera():
    configure()
    run("systemctl", "enable", "--quiet", "patternd")
    run("systemctl", "reset-failed", "patternd", fail_ok=True)
    run("systemctl", "start", "multi-user.target")  # as a boot pulls it in
    run("systemctl", "start", "patternd")
    check("the service is up without a camera", property_of("ActiveState") == "active")
    client = connect()
    told = wait_for(lambda: "waiting for the camera" in property_of("StatusText"))
    check("and says that it waits for it", told, property_of("StatusText"))
    load_camera()
    check("results come once the camera has come", client.more_results(5), client.messages[-3:])
    check("on the connection from before", not client.closed)
    check("the camera is a unit that others can wait for",
          wait_for(lambda: property_of("ActiveState", "dev-video0.device") == "active"))
    client.close()


def captures_by_mmap(formats):
    """The driver is made to refuse our buffers: the next REQBUFS fails, and the one after it, by MMAP, does not."""
    paths = {}
    for fmt in formats:
        run("systemctl", "stop", "patternd")
        configure(fmt=fmt)
        inject("inject_vidioc_reqbufs_error")
        client = restart()
        if client.more_results(3):
            paths[fmt] = client.ask(command="status")["data"]["camera"]["capture_path"]
        client.close()
    check(f"captures {' '.join(sorted(formats))} by MMAP where the driver refuses USERPTR",
          set(paths) == set(formats) and set(paths.values()) == {"one_copy"}, paths)


def captures_every_format():
    offered = [line.split("'")[1].strip() for line in run("v4l2-ctl", "-d", DEVICE, "--list-formats").splitlines()
               if "'" in line]
    captured, refused = {}, {}
    client = connect()
    for fmt in offered:
        configure(fmt=fmt)
        reply = client.ask(command="reload")
        if not reply["ok"]:
            refused[fmt] = reply["error"]
            continue
        if client.more_results(3):
            status = client.ask(command="status")["data"]
            captured[fmt] = (status["frame"]["format"], status["camera"]["capture_path"])
    wanted = {"GREY", "Y10", "Y12", "Y16", "YUYV", "UYVY", "NV12", "RGB3", "BGR3", "YU12"} & set(offered)
    check(f"captures {' '.join(sorted(captured))}", wanted <= set(captured), (sorted(wanted - set(captured)), refused))
    check("into its own memory (USERPTR)", {path for _, path in captured.values()} == {"user_pointer"}, captured)
    check("a format that it can't read is refused by name", all("format" in text for text in refused.values()), refused)
    check("numbers rise over all changes of format", client.sequence_rises())
    client.close()
    captures_by_mmap(sorted(captured))


def survives_injected_errors():
    configure()
    client = restart()
    check("results come", client.more_results(5))
    for control in ("inject_v4l2_buf_flag_error", "inject_vidioc_qbuf_error", "inject_fatal_streaming_error",
                    "wrap_sequence_number"):
        inject(control)
        check(f"{control}: results go on", client.more_results(10), client.messages[-3:])
    for control in ("inject_vidioc_reqbufs_error", "inject_vidioc_streamon_error"):  # met when it is opened again
        since = len(client.messages)
        inject(control)
        inject("inject_fatal_streaming_error")
        good = client.told("lost", since) and client.told("back", since) and client.more_results(5)
        check(f"{control} on top of a fatal error: lost, back, results", good, client.messages[-3:])
    for value in (60, 0):
        inject("percentage_of_dropped_buffers", value)
        check(f"{value} % of the buffers dropped: results go on", client.more_results(5), client.messages[-3:])
    since = len(client.messages)
    inject("percentage_of_dropped_buffers", 100)
    check("a stalled camera is told as lost", client.told("lost", since), client.messages[-3:])
    inject("percentage_of_dropped_buffers", 0)
    check("and as back", client.told("back", since), client.messages[-3:])
    check("results go on", client.more_results(5))
    check("the client stayed connected through all of it", not client.closed)
    check("numbers rise through all of it", client.sequence_rises())
    client.close()


def survives_signal_and_size_changes():
    client = connect()
    for mode in (1, 2, 0):  # no signal, no lock, well again
        inject("dv_timings_signal_mode", mode)
        check(f"HDMI signal mode {mode}: results go on", client.more_results(5), client.messages[-3:])
    for size in ((640, 360), (320, 180)):
        configure(size=size)
        reply = client.ask(command="reload")
        check(f"{size[0]}x{size[1]} is taken over by reload", reply["ok"] and client.more_results(3), reply)
        frame = client.ask(command="status")["data"]["frame"]
        check("and is what comes", (frame["width"], frame["height"]) == size, frame)
    check("the client stayed connected", not client.closed)
    check("numbers rise", client.sequence_rises())
    client.close()


def changed_while_let_go(client, *settings, size):
    """The camera is let go for a picture, set otherwise from outside, and taken again; the size of its frames then."""
    still = pathlib.Path("/srv/still")
    still.mkdir(exist_ok=True)
    (still / "1.pgm").write_bytes(b"P5 64 64 255\n" + bytes(64 * 64))
    CONFIG.write_text(f"""\
camera: {{source: replay, path: {still}, loop: true, fps: 5}}
publish: {{tcp: {{listen: "127.0.0.1:{PORT}"}}}}
""")
    reply = client.ask(command="reload")
    if not reply["ok"]:
        return reply
    run("v4l2-ctl", "-d", DEVICE, *settings)
    configure(size=size)
    reply = client.ask(command="reload")
    if not reply["ok"] or not client.more_results(5):
        return reply
    frame = client.ask(command="status")["data"]["frame"]
    return frame["width"], frame["height"]


def survives_changes_of_standard():
    """A TV input, whose lines follow the standard that somebody else sets; in mid-stream the driver lets nobody."""
    client = connect()
    for standard, size in (("pal", (720, 576)), ("ntsc", (720, 480)), ("secam", (720, 576))):
        frame = changed_while_let_go(client, f"--set-input={TV}", f"--set-standard={standard}", size=("auto", "auto"))
        check(f"{standard}: comes as {size[0]}x{size[1]}", frame == size, frame)
    run("v4l2-ctl", "-d", DEVICE, "--set-standard=ntsc", fail_ok=True)
    run("v4l2-ctl", "-d", DEVICE, f"--set-input={WEBCAM}", fail_ok=True)
    check("changed in mid-stream: results go on", client.more_results(5), client.messages[-3:])
    for mode in (1, 2, 0):
        inject("standard_signal_mode", mode)
        check(f"TV signal mode {mode}: results go on", client.more_results(5), client.messages[-3:])
    frame = changed_while_let_go(client, f"--set-input={HDMI}", size=(320, 180))
    check("another input: results go on", frame == (320, 180) and client.more_results(3), frame)
    check("the client stayed connected", not client.closed)
    check("numbers rise", client.sequence_rises())
    client.close()


def survives_unplugging():
    client = connect()
    check("results come", client.more_results(3))
    since = len(client.messages)
    inject("disconnect")
    check("disconnect: told as lost", client.told("lost", since), client.messages[-3:])
    (VIVID / "unbind").write_text("vivid.0")
    wait_for(lambda: not os.path.exists(DEVICE))
    (VIVID / "bind").write_text("vivid.0")
    check("told as back once the driver is there again", client.told("back", since), client.messages[-3:])
    check("results go on", client.more_results(5))
    for round_number in range(3):
        since = len(client.messages)
        (VIVID / "unbind").write_text("vivid.0")
        lost = client.told("lost", since)
        (VIVID / "bind").write_text("vivid.0")
        good = lost and client.told("back", since) and client.more_results(3)
        check(f"unplugged in mid-stream, round {round_number + 1}: lost, back, results", good, client.messages[-3:])
    check("the client stayed connected", not client.closed)
    check("numbers rise", client.sequence_rises())
    check("systemd had nothing to do", property_of("NRestarts") == "0", property_of("NRestarts"))
    client.close()


def is_restarted():
    restart().close()
    before = main_pid()
    os.kill(before, 9)
    check("kill -9: restarted", wait_for(lambda: main_pid() not in (0, before)))
    client = connect()
    check("and results come", client.more_results(3), client.messages)
    before = main_pid()
    client.close()
    os.kill(before, 19)  # SIGSTOP
    check("a hang (SIGSTOP): the watchdog has it restarted", wait_for(lambda: main_pid() not in (0, before), 90))
    check("by its own word", property_of("Result") in ("watchdog", "success") and
          "Watchdog timeout" in run("journalctl", "-u", "patternd", "-n", "60", "-o", "cat"))
    client = connect()
    check("and results come", client.more_results(3), client.messages)
    client.close()


def survives_bad_disks():
    state = "/var/lib/patternd"
    run("systemctl", "stop", "patternd")
    run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", state)
    run("chown", "patternd:patternd", state)
    configure(extra=f"latency: {{log: {state}/latency.csv}}\n")
    client = restart()
    check("results come", client.more_results(3))
    run("sh", "-c", f"dd if=/dev/zero of={state}/full bs=1k 2>/dev/null || true")
    check("full disk: results go on", client.more_results(200, 120), client.messages[-1:])
    lost = wait_for(lambda: client.ask(command="status")["data"]["latency_log"]["lost"] > 0)
    check("and status counts the lines that were lost", lost, client.ask(command="status"))
    pathlib.Path(state, "full").unlink()
    run("mount", "-o", "remount,ro", state, fail_ok=True)
    check("results go on", client.more_results(5))
    client.close()
    run("systemctl", "stop", "patternd")
    run("mount", "-o", "remount,ro", state)
    configure()
    client = restart()
    check("a read-only state directory: results come", client.more_results(5))
    client.close()
    run("systemctl", "stop", "patternd")
    run("umount", state)


def survives_clock_jumps():
    client = restart()
    check("results come", client.more_results(3))
    for jump in ("+1 day", "-2 days", "+1 day"):
        run("date", "-s", jump)
        start = len(client.messages)
        good = client.more_results(5)
        latencies = [m["latency_us"]["total"] for m in client.of_type("result", start)]
        check(f"clock set by {jump}: results go on, with sane latencies",
              good and all(0 <= value < 60e6 for value in latencies), latencies)
        day = time.strftime("%Y-%m-%d", time.gmtime())
        check("and stamps follow the clock", client.of_type("result")[-1]["captured_at"].startswith(day),
              client.of_type("result")[-1]["captured_at"])
    check("the client stayed connected", not client.closed)
    check("the watchdog stayed calm", property_of("NRestarts") == "0")
    client.close()


def survives_a_thousand_reloads():
    configure()
    client = restart()
    check("results come", client.more_results(3))
    pid = main_pid()

    def resident_kb():
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    good_text = CONFIG.read_text()
    memory = []
    for number in range(1000):
        if number % 2 == 0:
            CONFIG.write_text(good_text.replace("threshold: 128", f"threshold: {1 + number % 250}"))
        else:
            CONFIG.write_text(good_text.replace("threshold", ("treshold", "threshold: [", "threshold: -")[number % 3]))
        os.kill(pid, 1)
        time.sleep(0.01)
        if number in (199, 999):
            client.more_results(2)
            time.sleep(3)  # what the last reloads replaced is given up
            memory.append(resident_kb())
    CONFIG.write_text(good_text)
    reply = client.ask(command="reload")
    check("a thousand rapid reloads, half of them of bad files: the last, good one counts", reply["ok"], reply)
    check("results go on", client.more_results(5))
    check("the process is the same", main_pid() == pid)
    # One frame's buffer kept by each of the 400 good reloads would be 23 MB.
    check("memory stays within 4 MB", memory[1] - memory[0] < 4096, memory)
    check("the client stayed connected", not client.closed)
    check("numbers rise", client.sequence_rises())
    CONFIG.write_text(good_text.replace("threshold", "treshold"))
    refused = subprocess.run(["systemctl", "reload", "patternd"], capture_output=True).returncode
    check("systemctl reload fails for a bad file", refused != 0)
    CONFIG.write_text(good_text)
    run("systemctl", "reload", "patternd")
    check("and results go on", client.more_results(5))
    client.close()


def serves_instances_and_sockets():
    run("systemctl", "stop", "patternd")
    unix = "/run/patternd-left/results.sock"
    configure(pathlib.Path("/etc/patternd/left.yaml"), port=5601, unix=unix)
    run("systemctl", "start", "patternd@left")
    client = wait_for(lambda: Client(5601) if property_of("ActiveState", "patternd@left") == "active" else None)
    check("patternd@left serves /etc/patternd/left.yaml", client and client.more_results(3))
    check("under its own name", client and client.messages[0]["camera"] == "left", client.messages[:1])
    client.close()
    access = run("stat", "-c", "%a %U:%G", unix)
    check("its Unix socket is for its group alone", access == "660 patternd:patternd", access)
    client = Client(unix=unix)
    check("and gives results", client.more_results(3))
    client.close()
    run("systemctl", "stop", "patternd@left")
    run("systemctl", "start", "patternd.socket")
    early = Client()
    good = check("patternd.socket: the first client starts the service, and gets results", early.more_results(3),
                 early.messages)
    early.close()
    if good:
        os.kill(main_pid(), 9)
        later = Client()  # nobody is refused meanwhile
        check("and a client that comes between two runs of the service is served", later.more_results(3), later.messages)
        later.close()
    run("systemctl", "stop", "patternd.socket", "patternd")


def boots_again():
    """Ends this run of the script: main() goes on after the boot."""
    configure()
    run("systemctl", "enable", "--quiet", "patternd")
    COUNTS.write_text(json.dumps([passed, failed]))
    print("-- the machine boots again", flush=True)
    subprocess.run(["vm-reboot"])


def comes_up_with_the_machine():
    check("booted: the service runs, without a camera", property_of("ActiveState") == "active" and
          not os.path.exists(DEVICE), property_of("ActiveState"))
    check("the boot had not to wait for it", run("systemctl", "is-active", "multi-user.target") == "active")
    client = connect()
    check("it says that it waits for the camera",
          wait_for(lambda: "waiting for the camera" in property_of("StatusText")), property_of("StatusText"))
    load_camera()
    check("results come once the camera has come", client.more_results(5), client.messages[-3:])
    check("on the connection from before", not client.closed)
    check("and systemd had nothing to do", property_of("NRestarts") == "0", property_of("NRestarts"))
    client.close()


def leaves_when_told():
    state = pathlib.Path("/var/lib/patternd")
    state.mkdir(exist_ok=True)
    (state / "kept").write_text("a recording\n")
    client = restart()
    check("results come", client.more_results(1))
    started = time.monotonic()
    run("systemctl", "stop", "patternd")
    check("SIGTERM ends it in good order", property_of("Result") == "success" and wait_for(lambda: client.closed),
          property_of("Result"))
    print(f"stopped within {time.monotonic() - started:.1f} s")
    run("systemctl", "start", "patternd")
    run("dpkg", "--purge", "patternd")
    check("removing the package stops the service", property_of("ActiveState") != "active")
    check("what it recorded stays", (state / "kept").exists())
    check("its programs are gone", not os.path.exists("/usr/bin/patternd"))


def watchdog_soon():
    """A short watchdog, so that the test need not wait for the real one."""
    folder = pathlib.Path("/etc/systemd/system/patternd.service.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test.conf").write_text("[Unit]\nStartLimitIntervalSec=0\n[Service]\nWatchdogSec=10\nTimeoutAbortSec=2\n")
    run("systemctl", "daemon-reload")


FIRST_BOOT = [installs_as_promised, refuses_a_wrong_configuration_once, watchdog_soon, waits_for_a_late_camera,
              captures_every_format, survives_injected_errors, survives_signal_and_size_changes,
              survives_changes_of_standard, survives_unplugging, is_restarted, survives_bad_disks, survives_clock_jumps,
              survives_a_thousand_reloads, serves_instances_and_sockets, boots_again]
SECOND_BOOT = [comes_up_with_the_machine, leaves_when_told]


def main():
    global passed, failed
    cases = FIRST_BOOT
    if os.environ["VM_BOOT"] != "1":
        passed, failed = json.loads(COUNTS.read_text())
        cases = SECOND_BOOT
    for case in cases:
        print(f"-- {case.__name__.replace('_', ' ')} ({time.monotonic():.0f} s)", flush=True)
        try:
            case()
        except Exception as fault:  # the other cases go on
            check(f"{case.__name__} ran to its end", False, repr(fault))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
