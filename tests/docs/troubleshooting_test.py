#!/usr/bin/env python3
"""daemon/TROUBLESHOOTING.md against the sources: every message that the service can print stands there."""
import os
import pathlib
import re
import unittest

from messages import is_sentence, literals

SOURCE = pathlib.Path(os.environ.get("PATTERND_SOURCE", pathlib.Path(__file__).parents[2]))
FOLDERS = ("daemon", "pipeline", "pipeline/sources", "calibration", "cuda")
# What the service is linked with but never calls, or whose texts are documented elsewhere (--help, config/README.md).
ELSEWHERE = {
    "daemon/configuration_keys.cpp", "daemon/frame_client.cpp", "daemon/frame_line.cpp", "daemon/service_client.cpp",
    "pipeline/patternd.cpp", "pipeline/pattern_teach.cpp", "pipeline/sources/recording.cpp",
    "pipeline/sources/video_writer.cpp", "calibration/camera_fit.cpp", "calibration/homography.cpp",
    "calibration/plane_output.cpp", "cuda/propagation_study.cpp",
}
# Literals with three words that nobody is shown: formats, GStreamer's language, --help.
NO_MESSAGE = re.compile(r"deep-element-added|%Y-%m-%d|video/x-raw| ! |# output \(plane\)")
HELP = re.compile(r'add_(?:option|flag)\(.*?\)(?=\n|;)|CLI::App program\{.*?\}', re.DOTALL)


def plain(text):
    """Placeholders of printf and of fmt as the page writes them, white space and quotation of code and of values apart."""
    text = re.sub(r"%[-+0-9.]*(?:l|z)?[a-z]|\{(?::[^}]*)?\}|`", lambda match: "" if match[0] == "`" else "…", text)
    return re.sub(r"\s+", " ", text).replace('="…"', "=…")  # (log_quoted adds the quotes)


def fragments():
    """(file, fragment): the parts of messages between what is put in."""
    for folder in FOLDERS:
        for path in sorted((SOURCE / folder).glob("*.cpp")):
            name = str(path.relative_to(SOURCE))
            if name in ELSEWHERE:
                continue
            for literal in literals(HELP.sub("", path.read_text(encoding="utf-8"))):
                if is_sentence(literal) and not NO_MESSAGE.search(literal):
                    yield name, plain(literal).strip(" :;,.()\n")


class Troubleshooting(unittest.TestCase):
    def test_names_every_message_of_the_service(self):
        page = plain((SOURCE / "daemon/TROUBLESHOOTING.md").read_text(encoding="utf-8"))
        found = list(fragments())
        self.assertGreater(len(found), 300, "the sources were not read")
        missing = sorted({f"{name}: {text}" for name, text in found if text not in page})
        self.assertEqual(missing, [], "not in daemon/TROUBLESHOOTING.md:\n" + "\n".join(missing))

    def test_names_nothing_that_no_source_prints(self):
        """The first column of its tables, between what is put in."""
        page = (SOURCE / "daemon/TROUBLESHOOTING.md").read_text(encoding="utf-8")
        texts = "\n".join(plain(literal) for folder in FOLDERS for path in (SOURCE / folder).glob("*.cpp")
                          for literal in literals(path.read_text(encoding="utf-8")))
        unknown = []
        for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE):
            for span in re.findall(r"`([^`]+)`", row):
                parts = [part for piece in span.replace('="…"', "=…").split("…") for part in piece.split("; ")]
                unknown += [part for part in parts if is_sentence(part) and part.strip(" :;,.()") not in texts]
        self.assertEqual(unknown, [])


if __name__ == "__main__":
    unittest.main()
