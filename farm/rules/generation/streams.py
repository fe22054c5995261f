"""Compares generated tokens: of a cell's launches with one another, and of two cells."""

from collections.abc import Sequence

Tokens = Sequence[int]


def first_difference(tokens: Tokens, other: Tokens) -> int | None:
    """Return the place, from 1, of the first token that differs or that one side lacks; None where they are equal."""
    places = zip(tokens, other, strict=False)
    place = next((place for place, (a, b) in enumerate(places, start=1) if a != b), None)
    return place if place is not None or len(tokens) == len(other) else min(len(tokens), len(other)) + 1


def launch_difference(launches: Sequence[Tokens]) -> str:
    """Say which launch chose another token than the first launch did; empty where none did."""
    for number, tokens in enumerate(launches[1:], start=2):
        if (place := first_difference(launches[0], tokens)) is not None:
            return f"Launch {number} of {len(launches)} differs from the first from token {place} on."
    return ""


def difference_sentence(tokens: Tokens, baseline: Tokens, *, named: str, gaps: Sequence[float] = ()) -> str:
    """Say in one sentence where tokens differ from those of the baseline, the cell `named`.

    `gaps` says for each token of the baseline how far its best score was above the second.
    """
    place = first_difference(baseline, tokens)
    if place is None:
        return f"All {len(tokens)} tokens are those of {named}."
    if place > min(len(tokens), len(baseline)):
        return f"It has {len(tokens)} tokens, {named} {len(baseline)}."
    text = f"Token {place} of {len(tokens)} is {tokens[place - 1]}, where {named} chose {baseline[place - 1]}"
    return f"{text}: its two best scores were {gaps[place - 1]:.2g} apart." if len(gaps) >= place else f"{text}."
