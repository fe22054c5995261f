"""Defines the problem that a child returns instead of an answer, and helpers that write its sentence."""

import functools
import re
from collections.abc import Callable
from typing import TypeVar

# parts of other libraries' messages that are removed: places in their source code, and folders of this child
_NOISE = (
    re.compile(r"^\[\w+Error\] : \d+ : \w+ : "),
    re.compile(r"^Load model from \S+ failed: ?"),
    re.compile(r"(?:/onnxruntime_src|/project|/home|/root|/tmp)/\S+?:\d+:? (?:[\w:~<>,&* ]+\([^)]*\)(?: const)? )?"),
)


Payload = TypeVar("Payload")
Answer = TypeVar("Answer")


class Problem(Exception):
    """A problem that a child returns: `code` is for programs, and `text` tells people what is wrong and what to do."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def answer_problems(function: Callable[[Payload], Answer]) -> Callable[[Payload], dict[str, object]]:
    """Decorate a function of a payload: it returns `{"answer": …}`, or `{"problem": {code, text}}` for a Problem."""

    @functools.wraps(function)
    def answer(payload: Payload) -> dict[str, object]:
        try:
            return {"answer": function(payload)}
        except Problem as problem:
            return {"problem": {"code": problem.code, "text": problem.text}}

    return answer


def printable(name: str | bytes, *, limit: int = 80) -> str:
    """Cut a name from a model to `limit` characters and replace unprintable ones, so that a sentence can hold it.

    Bytes are taken too, since protobuf returns them for names that are not UTF-8.
    """
    name = name.decode("utf-8", errors="replace") if isinstance(name, bytes) else name
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def first_line(error: BaseException, *, limit: int = 300) -> str:
    """Extract the first line of another library's message, cut to `limit` characters and without its full stop.

    Places in source code are removed. Without a message, the name of the error's class is returned.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    words = lines[0] if lines else type(error).__name__
    for noise in _NOISE:
        words = noise.sub("", words)
    return printable(words, limit=limit).rstrip(".")
