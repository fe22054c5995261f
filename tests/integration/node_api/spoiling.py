"""Spoils the body of a request in one place or several, as a broken or hostile node might."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

# deep enough for a parser that calls itself, and under the limit of every body
DEPTH = 60_000
LONG = 100_000


@dataclass(frozen=True)
class Raw:
    """Text that stands in the body as it is, whether it is JSON or not."""

    text: str

    def __repr__(self) -> str:
        return f"Raw({self.text[:40]!r} of {len(self.text)})"


NUMBERS = (
    *(-1, 0, 1, 99, 2**15, 2**31 - 1, 2**31, 2**32, 2**38, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1),
    *(0.5, -0.0, 1e-320, 1e308, 253402300800, 253402300799.9999),
    *map(Raw, ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400, "9" * 5000, "1e5000", "0" * 50)),
)
TEXTS = (
    *(
        "",
        " ",
        ".",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "~",
        "\0",
        "\x1b[2J",
        "\r\nX-Header: 1",
        "\u202eabc",
        "\ufeff",
    ),
    *("\ud800", "😀" * 40, "٣", "1", "-1", "1e9", "9" * 5000, "2026-11-22", "%s%n", "{0}", "{{7*7}}", "$(id)", "`id`"),
    *(
        "' OR 1=1 --",
        "<script>alert(1)</script>",
        "-r evil.txt",
        "--extra-index-url=http://evil",
        "a" * LONG,
        "\x01" * 1000,
    ),
    *("0" * 64, "f" * 64, "x" * 64 + "\n"),
)
KINDS = (None, True, False, [], {}, [[]], {"": None}, [None] * 1000, {"a": {"b": {}}}, {str(n): n for n in range(300)})
DEEP = (Raw("[" * DEPTH + "]" * DEPTH), Raw('{"a":' * (DEPTH // 3) + "1" + "}" * (DEPTH // 3)), Raw("[" * DEPTH))
BROKEN = (
    Raw(""),
    Raw("]"),
    Raw("'x'"),
    Raw('"\t"'),
    Raw('"\\ud800"'),
    Raw('"\\x"'),
    Raw("tru"),
    Raw("//"),
    Raw('"\udcff"'),
)
REPLACEMENTS = st.one_of(*map(st.sampled_from, (NUMBERS, TEXTS, KINDS, DEEP, BROKEN)))
Path = tuple[str | int, ...]


@st.composite
def spoiled(draw: st.DrawFn, body: Any, *, times: int) -> Any:
    """The body with so many of its places spoilt."""
    for _ in range(times):
        places = list(_places(body))
        path = draw(st.sampled_from(places)) if places else ()
        body = _with(body, path, draw(st.sampled_from(WAYS))(draw, _at(body, path)))
    return body


def _replaced(draw: st.DrawFn, value: Any) -> Any:
    return draw(REPLACEMENTS)


def _of_another_kind(draw: st.DrawFn, value: Any) -> Any:
    """The same, said in another type."""
    return draw(st.sampled_from([str(value)[:200], [value], {"value": value}, None]))


def _taken_away(draw: st.DrawFn, value: Any) -> Any:
    return GONE


def _with_more(draw: st.DrawFn, value: Any) -> Any:
    """An object with a key that nobody knows, a list with its entries again, a text with more in it."""
    if isinstance(value, dict):
        key = draw(st.sampled_from(["force", "__class__", "id", "team", "", "\0", "a" * LONG, "\ud800", *value]))
        return Doubled(value, key, draw(REPLACEMENTS))
    if isinstance(value, list):
        return value * draw(st.sampled_from([2, 17, 500])) or draw(REPLACEMENTS)
    if isinstance(value, str):
        return value + draw(st.sampled_from(TEXTS))
    return [value]


WAYS = (_replaced, _replaced, _of_another_kind, _taken_away, _with_more)
GONE = object()


@dataclass(frozen=True)
class Doubled:
    """An object with one more entry behind the others, under a name that may be there already."""

    entries: dict[str, Any]
    key: str
    value: Any


def _places(body: Any, path: Path = ()) -> Any:
    """Every place of a body, itself first; the first few of long lists."""
    yield path
    if isinstance(body, dict):
        for key, value in body.items():
            yield from _places(value, (*path, key))
    if isinstance(body, list):
        for number, value in enumerate(body[:5]):
            yield from _places(value, (*path, number))


def _at(body: Any, path: Path) -> Any:
    for step in path:
        body = body[step]
    return body


def _with(body: Any, path: Path, value: Any) -> Any:
    """A copy of the body with another value at a place, or without it."""
    if not path:
        return {} if value is GONE else value
    step, rest = path[0], path[1:]
    changed = _with(body[step], rest, value) if rest else value
    if isinstance(body, dict):
        return {key: one for key, one in (body | {step: changed}).items() if one is not GONE}
    return [
        changed if number == step else one for number, one in enumerate(body) if number != step or changed is not GONE
    ]


def written(value: Any) -> bytes:
    """The body as it is sent; what is no Unicode goes as it is."""
    return _text(value).encode("utf-8", "surrogateescape" if "\ud800" not in _text(value) else "surrogatepass")


def _text(value: Any) -> str:
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Doubled):
        entries = [*value.entries.items(), (value.key, value.value)]
        return "{" + ", ".join(f"{json.dumps(key)}: {_text(one)}" for key, one in entries) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value)
