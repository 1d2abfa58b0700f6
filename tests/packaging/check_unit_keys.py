#!/usr/bin/env python3
"""Whether systemd 249 (Ubuntu 22.04, JetPack 6) knows every key and value of unit files that systemd 255 knows too.

    check_unit_keys.py FILE...

A systemd that doesn't know a key passes over it with a warning: the unit runs, less locked down than it says. So each key
used must stand in SINCE, with the version of systemd that brought it (systemd.exec(5), .resource-control(5) and others of
255 name it); a newer one than 249 needs a fallback, and a line in FALLBACKS that says which.
"""
import re
import sys

OLDEST = 249
EARLY = 200  # before anything that matters here
SINCE = dict.fromkeys(
    "Description Documentation After Wants WantedBy Type NotifyAccess ExecStart ExecReload SyslogIdentifier TimeoutStartSec "
    "TimeoutStopSec WatchdogSec Restart RestartSec RestartPreventExitStatus User Group UMask WorkingDirectory Environment "
    "CapabilityBoundingSet NoNewPrivileges PrivateTmp SystemCallFilter ListenStream NoDelay CPUSchedulingPolicy "
    "CPUSchedulingPriority CPUAffinity".split(), EARLY)
SINCE.update({
    "DevicePolicy": 208, "DeviceAllow": 208, "SystemCallArchitectures": 209, "SystemCallErrorNumber": 209,
    "RestrictAddressFamilies": 211, "RuntimeDirectory": 211, "RuntimeDirectoryMode": 211, "ProtectHome": 214,
    "ProtectSystem": 214, "FileDescriptorName": 227, "StartLimitIntervalSec": 230, "StartLimitBurst": 230, "MemoryHigh": 231,
    "MemoryMax": 231, "MemoryDenyWriteExecute": 231, "RestrictRealtime": 231, "ProtectControlGroups": 232,
    "ProtectKernelModules": 232, "ProtectKernelTunables": 232, "RemoveIPC": 232, "RestrictNamespaces": 233,
    "CacheDirectory": 235, "IPAddressAllow": 235, "IPAddressDeny": 235, "LockPersonality": 235, "StateDirectory": 235,
    "StateDirectoryMode": 235, "ProtectHostname": 242, "RestrictSUIDSGID": 242, "TimeoutAbortSec": 243,
    "ProtectKernelLogs": 244, "ProtectClock": 245, "ProtectProc": 247,
})
# Values that came later than their keys.
VALUES_SINCE = {("Type", "notify-reload"): 253, ("Type", "exec"): 240, ("PrivateTmp", "disconnected"): 257,
                ("ProtectSystem", "strict"): 232, ("ProtectControlGroups", "private"): 257}
FALLBACKS = {}  # key: what an older systemd does instead


def faults(path):
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            setting = re.match(r"(?:# )?([A-Z]\w+)=(.*)", line)  # options that stand in comments too
            if not setting:
                continue
            key, value = setting[1], setting[2].strip()
            since = max(SINCE.get(key, 0), VALUES_SINCE.get((key, value), 0))
            if key not in SINCE:
                yield f"{path}:{number}: {key}: not in SINCE; look up which systemd brought it, and add it"
            elif since > OLDEST and key not in FALLBACKS:
                yield f"{path}:{number}: {key}={value}: new in systemd {since}; {OLDEST} passes over it"


def main():
    found = [fault for path in sys.argv[1:] for fault in faults(path)]
    print("\n".join(found) if found else f"{len(sys.argv) - 1} units: nothing newer than systemd {OLDEST}")
    return 1 if found or len(sys.argv) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
