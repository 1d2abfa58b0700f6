#!/usr/bin/env python3
"""Prints the names of skipped and failed test cases of JUnit files, then one line that counts all of them.

usage: test_summary.py REPORT.xml [REPORT.xml ...]; exit 1 where a case failed or none ran.
"""
import sys
import xml.etree.ElementTree


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for path in sys.argv[1:]:
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            if case.find("failure") is not None or case.get("status") == "fail":
                outcome = "failed"
            elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
                outcome = "skipped"
            else:
                outcome = "passed"
            counts[outcome] += 1
            if outcome != "passed":
                print(f"{outcome}: {case.get('name')}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
