"""The form of a watch: what is typed into it, what a service is given of that, and which field a refusal belongs to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dashboard.words import KINDS
from farm.accounts.refusals import Invalid, Refusal
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix_text import write_text
from farm.rules.runtimes.releases import newest

if TYPE_CHECKING:
    from farm.alerts.models import Watch

TEXTS = ("name", "label", "team", "distribution", "reference", "matrix", "schedule")
LIMITS = ("latency", "session", "first", "memory")
TICKS = ("on_release", "on_version", "with_prereleases")
FIELD_OF_CODE = {
    "bad_name": "name",
    "name_taken": "name",
    "too_many": "name",
    "no_models": "models",
    "foreign_model": "models",
    "bad_label": "label",
    "unknown_runtime": "reference",
    "matrix": "matrix",
    "schedule": "schedule",
    "foreign_channel": "channels",
    "not_found": "team",
    "not_allowed": "team",
}
Typed = dict[str, Any]


def matrix_text(plain: Mapping[str, Any]) -> str:
    """A watch's matrix as people write it."""
    return write_text(dict(plain))


def empty() -> Typed:
    """What a new watch starts from: the default matrix without its runtimes, every kind, the newest release pinned."""
    plain = matrices.default().as_plain()
    plain["matrix"].pop("runtime", None)
    return {
        "name": "", "label": "", "team": "", "distribution": "onnxruntime", "reference": newest().version,
        "matrix": matrix_text(plain), "schedule": "", "models": [], "channels": [], "kinds": list(KINDS),
        "on_release": True, "on_version": True, "with_prereleases": False,
        "latency": "5", "session": "50", "first": "50", "memory": "20",
    }  # fmt: skip


def of_watch(watch: "Watch") -> Typed:
    """What the form shows of a watch that is there."""
    rule = watch.rule
    limits = {name: f"{100 * getattr(rule, name):g}" for name in LIMITS}
    return {
        **{name: str(getattr(watch, name)) for name in TEXTS if name not in ("matrix", "team")},
        **{name: getattr(watch, name) for name in TICKS},
        **limits,
        "team": watch.team.name,
        "matrix": matrix_text(watch.matrix),
        "kinds": list(rule.kinds),
        "models": [str(model.pk) for model in watch.watched.all()],
        "channels": [str(channel.pk) for channel in watch.channels.all()],
    }


def typed(post: Any) -> Typed:
    """What was sent, as it was typed."""
    return {
        **{name: post.get(name, "").replace("\x00", "") for name in (*TEXTS, *LIMITS)},
        **{name: bool(post.get(name)) for name in TICKS},
        **{name: post.getlist(name) for name in ("models", "channels", "kinds")},
    }


def rule_of(given: Typed) -> dict[str, Any]:
    """The rule for the service: limits as fractions. Raises Invalid whose code names the field."""
    rule: dict[str, Any] = {name: _fraction(name, given[name]) for name in LIMITS}
    kinds = [kind for kind in given["kinds"] if kind in KINDS]
    if not kinds:
        raise Invalid("Choose at least one kind of change: a rule without any would never alert.", code="kinds")
    return {**rule, "kinds": kinds}


def _fraction(name: str, text: str) -> float:
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0.0 <= percent <= 10_000.0:
        raise Invalid(f"“{text[:20]}” is no limit: write a number of percent from 0 to 10000.", code=name)
    return percent / 100.0


def field_of(refusal: Refusal) -> str:
    """The field that a refusal speaks of; the name's, which is the first, when it names none."""
    return FIELD_OF_CODE.get(refusal.code) or (refusal.code if refusal.code in (*LIMITS, "kinds") else "name")
