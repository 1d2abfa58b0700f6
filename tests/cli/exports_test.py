#!/usr/bin/env python3
"""What libpatternd.so shows to a linker: its versioned C functions, each of the header, and nothing else."""
import os
import pathlib
import re
import subprocess
import unittest

LIBRARY = pathlib.Path(os.environ["PATTERND_BIN"]).parent / "pipeline" / "libpatternd.so"
HEADER = pathlib.Path(os.environ["PATTERND_SOURCE"]) / "pipeline" / "patternd.h"


class Exports(unittest.TestCase):
    def test_exports_exactly_the_functions_of_the_header_with_a_version(self):
        listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
        exported = {line.split()[2] for line in listed.stdout.splitlines() if line.split()[1] != "A"}
        declared = set(re.findall(r"PATTERND_API [\w\s\*]+?\b(patternd_\w+)\(", HEADER.read_text()))
        self.assertTrue(declared)
        self.assertEqual(exported, {name + "@@PATTERND_0" for name in declared})


if __name__ == "__main__":
    unittest.main()
