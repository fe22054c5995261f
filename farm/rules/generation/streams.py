"""Compares generated tokens: of a cell's launches with one another, and of two cells."""

from collections.abc import Sequence
from itertools import zip_longest

Tokens = Sequence[int]


def find_first_difference(tokens: Tokens, other: Tokens) -> int | None:
    """Return the place, from 1, of the first token that differs or that one side lacks; None where they are equal."""
    pairs = zip_longest(tokens, other)
    return next((place for place, (token, other_token) in enumerate(pairs, start=1) if token != other_token), None)


def describe_launch_difference(launches: Sequence[Tokens]) -> str:
    """Name the first launch whose tokens differ from those of launch 1, and the token where they begin to differ.

    Empty where none differs.
    """
    for number, tokens in enumerate(launches[1:], start=2):
        if (place := find_first_difference(launches[0], tokens)) is not None:
            return f"Launch {number} of {len(launches)} differs from the first from token {place} on."
    return ""


def describe_difference(tokens: Tokens, baseline: Tokens, *, baseline_name: str, gaps: Sequence[float] = ()) -> str:
    """Say in one sentence where tokens first differ from those of the cell `baseline_name`, or that none does.

    If only their numbers differ, the sentence has these.
    `gaps` has for each token of the baseline how far its best score was above the second; empty where that is not known
    or does not matter.
    """
    place = find_first_difference(baseline, tokens)
    if place is None:
        return f"All {len(tokens)} tokens are those of {baseline_name}."
    if place > min(len(tokens), len(baseline)):
        return f"It has {len(tokens)} tokens, {baseline_name} {len(baseline)}."
    text = f"Token {place} of {len(tokens)} is {tokens[place - 1]}, where {baseline_name} chose {baseline[place - 1]}"
    return f"{text}: its two best scores were {gaps[place - 1]:.2g} apart." if len(gaps) >= place else f"{text}."
