"""The texts of messages in C++ sources: string literals that read as sentences, comments and #include lines passed over."""
import re

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"                      # comments
    r"|^[ \t]*#[^\n]*"                         # the preprocessor's lines
    r"|'(?:\\.|[^'\\\n])+'"                    # characters ('"' among them)
    r"|(?P<digits>\d'\d)"                      # 1'000
    r"|(?P<text>\"(?:\\.|[^\"\\\n])*\"(?:\s*\"(?:\\.|[^\"\\\n])*\")*)",  # literals, joined where they follow each other
    re.DOTALL | re.MULTILINE)
ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}


def unescaped(literal):
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), literal)


def literals(source):
    """The string literals of a source, as the compiler reads them."""
    for match in TOKEN.finditer(source):
        if match["text"]:
            parts = re.findall(r'"((?:\\.|[^"\\\n])*)"', match["text"])
            yield unescaped("".join(parts))


def is_sentence(text):
    """Whether a literal is (a part of) a message: three words or more."""
    return len(re.findall(r"(?<![\w.])[A-Za-z][a-z']*(?![\w.])", text)) >= 3
