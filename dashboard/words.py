"""Words and signs of kinds of change that alert."""

from farm.rules.wording.vocabulary import VERDICTS, Sign, sign_of

KINDS = {
    "slower": VERDICTS["slower"],
    "parity": Sign("✕", "wrong outputs", "bad"),
    "failed": Sign("✕", "fails", "bad"),
    "placement": Sign("≠", "placed differently", "warn"),
    "session": Sign("▲", "slower to load", "slower"),
    "first": Sign("▲", "slower first inference", "slower"),
    "memory": Sign("▲", "more memory", "slower"),
    "growth": Sign("▲", "growing memory", "slower"),
    "ttft": Sign("▲", "slower first token", "slower"),
}


def kind_of(name: str) -> Sign:
    """The sign of a kind of change; an unknown one is shown as it is."""
    return KINDS.get(name) or sign_of(name)
