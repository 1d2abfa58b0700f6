"""Help and tables as roff, for man."""
import re


def escape(text):
    """Plain text as roff prints it back."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return "\\&" + text if text.startswith(".") else text


def _items(items):
    return "".join(f".TP\n.B {escape(item.head)}\n{escape(item.text) or chr(92) + '&'}\n" for item in items)


def options(command):
    """The options of a command, and of its option groups."""
    notes = "".join(f".PP\n{escape(note)}\n" for note in command.notes)
    return (_items(command.positionals) + _items(command.options) + notes).rstrip("\n")


def commands(program):
    """Every command of a program with its options, as subsections; a command's own commands follow it."""
    text = ""
    for command in program.commands:
        text += f".SS {escape(' '.join(command.words[1:]))}\n{escape(command.summary)}\n"
        if command.commands:
            text += commands(command) + "\n"
        else:
            usage = f".PP\n.B {escape(command.usage)}\n" if command.usage else ""
            text += usage + options(command) + "\n"
    return text.rstrip("\n")


def _plain(markdown):
    return re.sub(r"[*`]|\[([^]]*)\]\([^)]*\)", lambda m: m[1] or "", markdown).replace("\\|", "|").strip()


def key_table(markdown):
    """The Markdown table whose first column is headed `key` and whose last says what it means, as a list."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in markdown.splitlines() if line.startswith("|")]
    start = next((n for n, row in enumerate(rows) if _plain(row[0]).lower() == "key"), None)
    if start is None:
        raise ValueError("no table with a column `key`")
    heads = [_plain(cell).capitalize() for cell in rows[start][1:-1]]
    text = ""
    for row in rows[start + 2:]:
        key, *cells, meaning = (_plain(cell) for cell in row)
        told = [meaning, *(f"{head}: {cell}" for head, cell in zip(heads, cells) if cell)]
        text += f".TP\n.B {escape(key)}\n{escape('. '.join(told))}.\n"
    return text.rstrip("\n")
