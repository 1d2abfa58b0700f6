"""Reads what our programs (CLI11) print for --help: the one place where options are described."""
import re
import subprocess
from dataclasses import dataclass, field


@dataclass
class Item:
    """One line of help: an option, a positional or a subcommand."""
    head: str  # "--connectivity INT:{4,8}=8"
    text: str  # "Neighbours of a pixel"

    def names(self):
        """The option's names: ["-h", "--help"]."""
        return [name for name in self.head.split(" ")[0].split(",") if name.startswith("-")]

    def takes_value(self):
        return " " in self.head

    def choices(self):
        """What the option accepts, where that is a list: ["4", "8"]."""
        listed = re.search(r"\{([^}]*)\}", self.head)
        return [choice.split("->")[0] for choice in listed[1].split(",")] if listed else []


@dataclass
class Command:
    words: list  # ["patternctl", "synth", "scene"]
    summary: str = ""
    usage: str = ""
    notes: list = field(default_factory=list)
    positionals: list = field(default_factory=list)
    options: list = field(default_factory=list)
    commands: list = field(default_factory=list)  # of Command


_SECTION = re.compile(r"^ *(Positionals|Options|Subcommands):$|^\[Option Group: (.*)\]$")
_ITEM = re.compile(r"^ {2,4}(?=\S)(.*)$")
_TEXT_COLUMN = 28  # of an item behind its indentation; a longer head has its text on the next line
_CONTINUED = re.compile(r"^ {20,}(\S.*)$")


def parse(text, words):
    """The Command that help text describes, and its subcommands as Items."""
    command = Command(words)
    section = "summary"
    items = {"Positionals": command.positionals, "Options": command.options, "Subcommands": []}
    for line in text.splitlines():
        heading = _SECTION.match(line)
        if heading:
            section = heading[1] or "group"
        elif line.startswith("Usage:"):
            command.usage = line.removeprefix("Usage:").strip()
            section = "after usage"
        elif section == "summary":
            command.summary = (command.summary + " " + line.strip()).strip()
        elif section == "group" and line.strip():
            command.notes.append(line.strip())
        elif section in items:
            _add(items[section], line)
    return command, items["Subcommands"]


def _add(items, line):
    continued = _CONTINUED.match(line)
    found = None if continued else _ITEM.match(line)
    if continued and items:
        items[-1].text = (items[-1].text + " " + continued[1]).strip()
    elif found:
        head, text = found[1], ""
        if len(head) > _TEXT_COLUMN and head[_TEXT_COLUMN - 1] == " ":
            head, text = head[:_TEXT_COLUMN], head[_TEXT_COLUMN:]
        items.append(Item(head.strip(), text.strip()))


def outside_program(command):
    """The program that does a command's work, where the command's summary names one: "… (patternd-bench)"."""
    named = re.search(r"\((patternd-[a-z]+)\)$", command.summary)
    return named[1] if named else None


def read(words, start):
    """The whole tree of a program's commands, less what other programs do. `start`: the words that start the program."""
    text = subprocess.run([*start, *words[1:], "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
    command, items = parse(text, words)
    for item in items:
        inner = Command([*words, item.head.split(" ")[0]], item.text)
        command.commands.append(inner if outside_program(inner) else read(inner.words, start))
    return command
