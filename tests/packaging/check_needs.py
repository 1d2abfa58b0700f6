#!/usr/bin/env python3
"""What programs and libraries of a package need from the system that they are installed on.

    check_needs.py FILE...

Fails where one needs a shared library beside those that Debian 12, Ubuntu 22.04 and 24.04 have with the same ABI, a
symbol of glibc newer than 2.35, or a function newer than GLib 2.72 or GStreamer 1.20 (Ubuntu 22.04's). The functions'
versions come from Debian's own .symbols files of the libraries installed here.
"""
import glob
import re
import subprocess
import sys

# Of glibc and of GCC 12's standard library.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
# Shared library -> the newest version of it whose functions may be used.
ALLOWED = {
    "libc.so.6": None, "libm.so.6": None, "libgcc_s.so.1": None,
    "ld-linux-x86-64.so.2": None, "ld-linux-aarch64.so.1": None, "ld-linux-armhf.so.3": None,
    "libglib-2.0.so.0": (2, 72), "libgobject-2.0.so.0": (2, 72),
    "libgstreamer-1.0.so.0": (1, 20), "libgstbase-1.0.so.0": (1, 20),
    "libgstapp-1.0.so.0": (1, 20), "libgstvideo-1.0.so.0": (1, 20),
}
# Of the two programs with OpenCV.
OPENCV_ALLOWED = {"libtbb.so.12": None, "liblapack.so.3": None, "libblas.so.3": None, "libGL.so.1": None,
                  "libstdc++.so.6": None}
# Of libpatternd.so alone: Debian's archives of these can't go into a shared library.
LIBRARY_ALLOWED = {"libpng16.so.16": None, "libturbojpeg.so.0": None}
OWN = re.compile(r"libpatternd\.so\.\d+(\.\d+)*$")


def numbers(text):
    return tuple(int(part) for part in re.findall(r"\d+", text))


def version(text):
    return numbers(text)[:2]


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True, text=True).stdout


def debian_symbols():
    """{library: {function: version that introduced it}}, of the libraries that ALLOWED bounds."""
    found = {}
    for path in glob.glob("/var/lib/dpkg/info/lib*.symbols"):
        library = None
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                head = re.match(r"(lib\S+\.so\.\d+) ", line)
                if head:
                    library = head[1] if ALLOWED.get(head[1]) else None
                elif library and (entry := re.match(r" (\w+)@Base (\S+)", line)):
                    found.setdefault(library, {})[entry[1]] = version(entry[2].split("-")[0])
    return found


def faults(path, symbols):
    allowed = dict(ALLOWED)
    if path.endswith(("patternd-calibrate", "patternd-bench")):
        allowed.update(OPENCV_ALLOWED)
    if OWN.search(path):
        allowed.update(LIBRARY_ALLOWED)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))
    for library in needed:
        if library not in allowed and not OWN.match(library):
            yield f"needs {library}, which not every supported system has with this ABI; link its archive"
    for name, kind, text in sorted(set(re.findall(r"UND (\w+)@([A-Z]+)_([\d.]+)", readelf("--dyn-syms", path)))):
        if kind in NEWEST and numbers(text) > NEWEST[kind]:
            yield f"uses {name} of {kind} {text}; nothing newer than {'.'.join(map(str, NEWEST[kind]))} may be used"
    undefined = set(re.findall(r"UND (g\w+)$", readelf("--dyn-syms", path), re.MULTILINE))
    for library in needed:
        for name in sorted(undefined & symbols.get(library, {}).keys()):
            since = symbols[library][name]
            if since > ALLOWED[library]:
                newest, wanted = ('.'.join(map(str, v)) for v in (ALLOWED[library], since))
                yield f"uses {name} of {library} {wanted}; Ubuntu 22.04 has {newest}"


def main():
    symbols = debian_symbols()
    for library, newest in ALLOWED.items():
        if newest and library not in symbols:
            sys.exit(f"no .symbols file of {library} here: its functions can't be checked; install its package")
    failed = 0
    for path in sys.argv[1:]:
        found = list(faults(path, symbols))
        for fault in found:
            print(f"{path}: {fault}")
        failed += bool(found)
    print(f"{len(sys.argv) - 1 - failed} passed, {failed} failed")
    return 1 if failed or len(sys.argv) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
