"""The signs and tones of all verdicts and states, in the order in which pages list them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True)
class Sign:
    """A word with its mark, which are always shown together. `tone` is the key of their colour."""

    mark: str
    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class Verdict(Sign):
    """The sign of a verdict. `opposite` is the verdict with swapped sides; empty where it stays the same."""

    opposite: str = ""


# Verdicts are listed in this order: those that somebody must look at come first.
VERDICTS: Mapping[str, Verdict] = {
    "slower": Verdict("▲", "slower", "slower", "faster"),
    # on items per second
    "fewer": Verdict("▼", "fewer items/s", "slower", "more"),
    # on rates
    "lower": Verdict("▼", "lower", "slower", "higher"),
    # on memory
    "bigger": Verdict("▲", "bigger", "slower", "smaller"),
    "faster": Verdict("▼", "faster", "faster", "slower"),
    "more": Verdict("▲", "more items/s", "faster", "fewer"),
    "higher": Verdict("▲", "higher", "faster", "lower"),
    "smaller": Verdict("▼", "smaller", "faster", "bigger"),
    "undecided": Verdict("?", "undecided", "quiet"),
    "equal": Verdict("=", "equal", "quiet"),
    "not comparable": Verdict("≠", "not comparable", "quiet"),
}
LOSSES = tuple(word for word, sign in VERDICTS.items() if sign.tone == "slower")
GAINS = tuple(word for word, sign in VERDICTS.items() if sign.tone == "faster")
CHANGES = LOSSES + GAINS
_RANKS = {word: {"slower": 0, "faster": 1}.get(sign.tone, place) for place, (word, sign) in enumerate(VERDICTS.items())}

# Results that are shown before any verdict on speed.
WRONG, ELSEWHERE = "wrong outputs", "placed differently"
# shown where only the baseline of a comparison has wrong outputs
WRONG_BASE = f"base: {WRONG}"

STATES = {
    WRONG: Sign("✕", WRONG, "bad"),
    ELSEWHERE: Sign("≠", ELSEWHERE, "warn"),
    # cells
    "done": Sign("✓", "done", "good"),
    "refused": Sign("⊘", "refused", "quiet"),
    "failed": Sign("✕", "failed", "bad"),
    "timeout": Sign("✕", "timeout", "bad"),
    "crashed": Sign("✕", "crashed", "bad"),
    "cancelled": Sign("–", "cancelled", "quiet"),
    "waiting": Sign("·", "waiting", "quiet"),
    # runs and blocks
    "planned": Sign("·", "planned", "quiet"),
    "preparing": Sign("·", "preparing", "quiet"),
    "queued": Sign("·", "queued", "quiet"),
    "leased": Sign("●", "measuring", "active"),
    "reported": Sign("●", "settling", "active"),
    "settling": Sign("●", "settling", "active"),
    "running": Sign("●", "running", "active"),
    "finished": Sign("✓", "finished", "good"),
    "complete": Sign("✓", "complete", "good"),
    "partial": Sign("✕", "partial", "bad"),
    # versions
    "pending": Sign("·", "pending", "quiet"),
    "inspecting": Sign("●", "inspecting", "active"),
    "ready": Sign("✓", "ready", "good"),
    "rejected": Sign("✕", "rejected", "bad"),
    # nodes
    "online": Sign("●", "online", "good"),
    "offline": Sign("○", "offline", "quiet"),
    "active": Sign("✓", "active", "good"),
    "draining": Sign("●", "draining", "warn"),
    "drained": Sign("–", "drained", "quiet"),
    "quarantined": Sign("✕", "quarantined", "bad"),
    "retired": Sign("–", "retired", "quiet"),
    # alerts, and how the rounds of a watch ended
    "open": Sign("●", "open", "warn"),
    "acknowledged": Sign("●", "acknowledged", "quiet"),
    "snoozed": Sign("–", "snoozed", "quiet"),
    "resolved": Sign("✓", "resolved", "good"),
    "invalid": Sign("–", "false positive", "quiet"),
    "infra": Sign("✕", "could not measure", "bad"),
    "alert": Sign("▲", "alert", "warn"),
    "unconfirmed": Sign("?", "not confirmed", "quiet"),
    "news": Sign("▼", "better", "faster"),
    "quiet": Sign("=", "no change", "quiet"),
    "measuring": Sign("●", "measuring", "active"),
    "confirming": Sign("●", "confirming", "active"),
    "answered": Sign("✓", "answered", "good"),
    "good": Sign("✓", "good", "good"),
    "bad": Sign("✕", "bad", "bad"),
    "skipped": Sign("–", "skipped", "quiet"),
    "paused": Sign("–", "paused", "quiet"),
    # steps of setting up
    "to do": Sign("○", "to do", "quiet"),
    # share links
    "shown": Sign("●", "active", "good"),
    "closed": Sign("–", "revoked", "quiet"),
    "ended": Sign("–", "expired", "quiet"),
    # messages to channels
    "sending": Sign("●", "being sent", "active"),
    "sent": Sign("✓", "sent", "good"),
    # findings of an inspection
    "warning": Sign("▲", "warning", "warn"),
    "advice": Sign("→", "advice", "quiet"),
    "note": Sign("·", "note", "quiet"),
    # parity
    "pass": Sign("✓", "pass", "good"),
    "fail": Sign("✕", "fail", "bad"),
    "not_measured": Sign("·", "not measured", "quiet"),
}

# verbs that end a sentence about a cell without figures, by the cell's status
ENDINGS = {
    "refused": "is refused",
    "failed": "fails",
    "timeout": "takes too long",
    "crashed": "crashes",
    "cancelled": "was cancelled",
}


def sign_of(word: str) -> Sign:
    return VERDICTS.get(word) or STATES.get(word) or Sign("·", word.replace("_", " "), "quiet")


def with_mark(word: str) -> str:
    """Put the mark before a verdict or state: `▲ slower`; `done` stays without one."""
    return word if word == "done" else f"{sign_of(word).mark} {word}"


def is_change(word: str | None) -> bool:
    return word in CHANGES


def rank(word: str) -> int:
    """Return a sort key: 0 for losses, 1 for gains, then the other verdicts as listed; other words come last."""
    return _RANKS.get(word, len(VERDICTS))


def opposite_of(word: Word) -> Word:
    verdict = VERDICTS.get(word)
    return cast(Word, verdict.opposite) if verdict is not None and verdict.opposite else word
