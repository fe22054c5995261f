"""Words and signs for verdicts and states: always a word with its sign, never colour alone."""

from dataclasses import dataclass
from typing import Protocol

from dashboard import numbers
from farm.rules.cells.axes import runtime_name
from farm.rules.runtimes import frameworks, plugins, providers


@dataclass(frozen=True)
class Sign:
    """`tone` names a class of the stylesheet; the word says the same without it."""

    mark: str
    word: str
    tone: str


VERDICTS = {
    "slower": Sign("▲", "slower", "slower"),
    "faster": Sign("▼", "faster", "faster"),
    "equal": Sign("=", "equal", "quiet"),
    "undecided": Sign("?", "undecided", "quiet"),
    "not comparable": Sign("≠", "not comparable", "quiet"),
    "bigger": Sign("▲", "bigger", "slower"),
    "smaller": Sign("▼", "smaller", "faster"),
    "higher": Sign("▲", "higher", "faster"),
    "lower": Sign("▼", "lower", "slower"),
    "more": Sign("▲", "more items/s", "faster"),
    "fewer": Sign("▼", "fewer items/s", "slower"),
}

STATES = {
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
    "leased": Sign("●", "measuring", "warn"),
    "running": Sign("●", "running", "warn"),
    "finished": Sign("✓", "finished", "good"),
    "complete": Sign("✓", "complete", "good"),
    "partial": Sign("✕", "partial", "bad"),
    # versions
    "pending": Sign("·", "pending", "quiet"),
    "inspecting": Sign("●", "inspecting", "warn"),
    "ready": Sign("✓", "ready", "good"),
    "rejected": Sign("✕", "rejected", "bad"),
    # nodes
    "online": Sign("●", "online", "good"),
    "offline": Sign("○", "offline", "quiet"),
    "active": Sign("✓", "active", "good"),
    "draining": Sign("●", "draining", "warn"),
    "quarantined": Sign("✕", "quarantined", "bad"),
    "retired": Sign("–", "retired", "quiet"),
    # alerts, and how the rounds of a watch ended
    "open": Sign("▲", "open", "warn"),
    "acknowledged": Sign("●", "acknowledged", "quiet"),
    "snoozed": Sign("–", "snoozed", "quiet"),
    "resolved": Sign("✓", "resolved", "good"),
    "invalid": Sign("–", "false positive", "quiet"),
    "infra": Sign("✕", "could not measure", "bad"),
    "alert": Sign("▲", "alert", "warn"),
    "unconfirmed": Sign("?", "not confirmed", "quiet"),
    "news": Sign("▼", "better", "faster"),
    "quiet": Sign("=", "no change", "quiet"),
    "measuring": Sign("●", "measuring", "warn"),
    "confirming": Sign("●", "confirming", "warn"),
    "answered": Sign("✓", "answered", "good"),
    "good": Sign("✓", "good", "good"),
    "bad": Sign("✕", "bad", "bad"),
    "skipped": Sign("–", "skipped", "quiet"),
    "paused": Sign("–", "paused", "quiet"),
    # share links
    "shown": Sign("●", "active", "warn"),
    "closed": Sign("–", "revoked", "quiet"),
    "ended": Sign("–", "expired", "quiet"),
    # messages to channels
    "sending": Sign("●", "being sent", "warn"),
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

# kinds of change that alert
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


def sign_of(word: str) -> Sign:
    """The sign of a verdict or state; an unknown one is shown as it is."""
    return VERDICTS.get(word) or STATES.get(word) or Sign("·", word.replace("_", " "), "quiet")


def kind_of(name: str) -> Sign:
    """The sign of a kind of change; an unknown one is shown as it is."""
    return KINDS.get(name) or sign_of(name)


# what people call a provider, and a runtime: `CPU`, `1.31.1`, `openvino 1.24.1`
provider, runtime = providers.title, runtime_name


def runtime_in_words(requirement: str) -> str:
    """`ONNX Runtime 1.31.1`, `ONNX Runtime 1.24.1 (onnxruntime-openvino)`, `PyTorch 2.13.0 (eager)`."""
    distribution, _, version = requirement.partition("==")
    if not version:
        return requirement
    if plugins.parted(version)[1]:
        return f"{distribution} {plugins.in_words(version)}"
    if distribution == frameworks.DISTRIBUTION:
        return frameworks.in_words(version)
    return f"ONNX Runtime {version}" + ("" if distribution == "onnxruntime" else f" ({distribution})")


class Setting(Protocol):
    """What tells one measured setting of a model from another."""

    @property
    def runtime(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def precision(self) -> str: ...
    @property
    def batch(self) -> int | None: ...
    @property
    def threads(self) -> int | None: ...


def setting(one: Setting) -> str:
    """A setting as one says it: `1.31.1, CPU, int8-dynamic, batch 8, 1 thread`."""
    batch = [f"batch {one.batch}"] if one.batch is not None else []
    threads = [numbers.count(one.threads, "thread")] if one.threads is not None else []
    return ", ".join([runtime(one.runtime), provider(one.provider), one.precision, *batch, *threads])
