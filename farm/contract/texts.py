"""Makes texts of nodes, models and members safe: control characters are replaced by U+FFFD where such a text arrives.

`replace_controls` leaves tabs and line ends, and replaces characters that turn the direction of writing too.
"""

import re
from collections.abc import Iterable, Mapping

# These match control characters other than tab and line ends, and characters that turn the direction of the text after
# them. An escaped one begins with a backslash that no other backslash escapes; raw ones are UTF-8.
_ESCAPED = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\(?:[bf]|u(?:00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF]|[89][0-9a-fA-F])|20(?:2[a-eA-E]|6[6-9])))"
)
_RAW = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SIGNS = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")

_SPELLED = str.maketrans({"\t": r"\t", "\n": r"\n", "\r": r"\r", "\u2028": r"\u2028", "\u2029": r"\u2029"})


def replace_controls_in_json(text: bytes) -> bytes:
    """Replace the control characters in the strings of a JSON text, escaped or not, by U+FFFD.

    Tabs and line ends stay. Characters that turn the direction of writing are replaced too. A hostile model or node may
    have such characters in its names, but PostgreSQL stores no NUL, and terminals obey escape sequences.
    """
    text = _RAW.sub(b"\xef\xbf\xbd", text)
    return _ESCAPED.sub(rb"\1\\ufffd", text) if b"\\" in text else text


def describe_unstorable(value: object) -> str | None:
    """Describe the first character that no database stores, in a text or anywhere in a JSON value.

    These are NUL and half of a surrogate pair. Return None where there is neither.
    """
    if isinstance(value, str):
        match = _UNSTORABLE.search(value)
        if match is None:
            return None
        return "NUL" if match[0] == "\0" else f"{match[0]!r}, which is half a character"
    parts: Iterable[object] = ()
    if isinstance(value, Mapping):
        parts = (*value.keys(), *value.values())
    elif isinstance(value, list | tuple):
        parts = value
    return next(filter(None, map(describe_unstorable, parts)), None)


def strip_pydantic_prefix(message: str) -> str:
    return message.removeprefix("Value error, ")


def replace_controls(text: str) -> str:
    return _SIGNS.sub("\ufffd", text)


def escape_line_breaks(text: str) -> str:
    """Replace line ends and tabs by `\\n`, `\\t` and so on, so that no text begins a line that CI takes for a command.

    Other control characters become U+FFFD.
    """
    return replace_controls(text).translate(_SPELLED)
