#!/usr/bin/env python3
"""Makes the manual pages and bash completions.

    make_pages.py --source tools/man --config config/README.md --output FOLDER --version V --date D
                  --program patternctl="[EMULATOR;…]PATH" …

A page NAME.S.in is written by hand as far as a person has something to say; in it, a line @OPTIONS@ or @COMMANDS@ becomes
what NAME --help says, and @KEYS@ the table of keys of config/README.md. Completions come from the same help.
"""
import argparse
import pathlib
import re
import sys

import completion
import help_text
import roff


def pages(arguments, programs):
    """(file name, text) of every page whose program was given."""
    values = {"VERSION": arguments.version, "DATE": arguments.date}
    for source in sorted(arguments.source.glob("*.in")):
        program = programs.get(source.name.split(".")[0])
        is_program_page = not source.name.endswith(".5.in")
        if is_program_page and program is None:
            continue
        blocks = {"KEYS": lambda: roff.key_table(arguments.config.read_text(encoding="utf-8"))}
        if is_program_page:
            blocks["OPTIONS"] = lambda: roff.options(program)
            blocks["COMMANDS"] = lambda: roff.commands(program)
        text = re.sub(r"^@(\w+)@$", lambda m: blocks[m[1]](), source.read_text(encoding="utf-8"), flags=re.MULTILINE)
        yield source.name.removesuffix(".in"), re.sub(r"@(VERSION|DATE)@", lambda m: values[m[1]], text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--config", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--program", action="append", default=[])
    arguments = parser.parse_args()
    programs = {}
    for pair in arguments.program:
        name, start = pair.split("=", 1)
        programs[name] = help_text.read([name], start.split(";"))
    for program in list(programs.values()):
        for command in program.commands:
            other = programs.get(help_text.outside_program(command))
            if other:
                command.usage, command.positionals, command.options = other.usage, other.positionals, other.options
                command.commands = other.commands
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, text in pages(arguments, programs):
        (arguments.output / name).write_text(text, encoding="utf-8")
    for name, program in programs.items():
        (arguments.output / f"{name}.bash").write_text(completion.script(program), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
