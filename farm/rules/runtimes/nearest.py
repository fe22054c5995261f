"""Finds the nearest valid word to a wrong one, for messages."""

import difflib
from collections.abc import Iterable

MAX_SHOWN = 60


def nearest_word(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid word that is most like this one, in any case; None where none is like it."""
    by_lower = {valid_word.lower(): valid_word for valid_word in valid}
    matches = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[matches[0]] if matches else None


def describe_nearest_word(word: str, valid: Iterable[str]) -> str:
    """Return ` (the nearest is 'cpu')`, or an empty string where no valid word is like this one."""
    nearest = nearest_word(word, valid)
    return "" if nearest is None else f" (the nearest is {nearest!r})"


def choice_sentence(kind: str, word: str, valid: Iterable[str]) -> str:
    """Say which word is wrong, with the nearest valid one where one is close, and otherwise with all valid ones."""
    options = list(valid)
    close = nearest_word(word, options)
    if close is not None:
        return f"Unknown {kind} {word!r}: did you mean {close!r}?"
    return f"Unknown {kind} {word!r}: choose one of {', '.join(options)}."


def shorten_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "…"
