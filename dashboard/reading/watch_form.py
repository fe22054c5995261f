"""The form of a watch: what is typed into it, what a service is given of that, and which field a refusal belongs to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from django.http import QueryDict

from farm.base.refusals import Invalid, Refusal
from farm.rules.findings.kinds import KEYS
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix_text import write_text
from farm.rules.runtimes.releases import newest

if TYPE_CHECKING:
    from farm.alerts.models import Watch

LIMITS = ("latency", "session", "first", "memory")
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
    "team_not_named": "team",
}


class Typed(TypedDict):
    """What stands in the fields. `models` and `channels` are row numbers, limits are percent."""

    name: str
    label: str
    team: str
    distribution: str
    reference: str
    matrix: str
    schedule: str
    models: list[str]
    channels: list[str]
    kinds: list[str]
    on_release: bool
    on_version: bool
    with_prereleases: bool
    limits: dict[str, str]


def matrix_text(plain: Mapping[str, object]) -> str:
    return write_text(dict(plain))


def empty() -> Typed:
    """What a new watch starts from: the default matrix without its runtimes, every kind, the newest release pinned."""
    plain = matrices.default().as_plain()
    plain["matrix"].pop("runtime", None)
    return {
        "name": "", "label": "", "team": "", "distribution": "onnxruntime", "reference": newest().version,
        "matrix": matrix_text(plain), "schedule": "", "models": [], "channels": [], "kinds": list(KEYS),
        "on_release": True, "on_version": True, "with_prereleases": False,
        "limits": {"latency": "5", "session": "50", "first": "50", "memory": "20"},
    }  # fmt: skip


def of_watch(watch: "Watch") -> Typed:
    """What the form shows of a watch that is there."""
    return {
        "name": watch.name,
        "label": watch.label,
        "team": watch.team.name,
        "distribution": watch.distribution,
        "reference": watch.reference,
        "matrix": matrix_text(watch.matrix),
        "schedule": watch.schedule,
        "models": [str(model.pk) for model in watch.watched.all()],
        "channels": [str(channel.pk) for channel in watch.channels.all()],
        "kinds": list(watch.rule.kinds),
        "on_release": watch.on_release,
        "on_version": watch.on_version,
        "with_prereleases": watch.with_prereleases,
        "limits": {name: f"{100 * getattr(watch.rule, name):g}" for name in LIMITS},
    }


def typed(post: QueryDict) -> Typed:
    """What was sent, as it was typed."""

    def text(name: str) -> str:
        return str(post.get(name, "")).replace("\x00", "")

    return {
        "name": text("name"),
        "label": text("label"),
        "team": text("team"),
        "distribution": text("distribution"),
        "reference": text("reference"),
        "matrix": text("matrix"),
        "schedule": text("schedule"),
        "models": post.getlist("models"),
        "channels": post.getlist("channels"),
        "kinds": post.getlist("kinds"),
        "on_release": bool(post.get("on_release")),
        "on_version": bool(post.get("on_version")),
        "with_prereleases": bool(post.get("with_prereleases")),
        "limits": {name: text(name) for name in LIMITS},
    }


def rule_of(given: Typed) -> dict[str, float | list[str]]:
    """The rule for the service: limits as fractions. Raises Invalid whose code names the field."""
    kinds: list[str] = [kind for kind in given["kinds"] if kind in KEYS]
    if not kinds:
        raise Invalid("Select at least one kind of change: otherwise the watch would never alert.", code="kinds")
    return {"kinds": kinds, **{name: _fraction(name, text) for name, text in given["limits"].items()}}


def _fraction(name: str, text: str) -> float:
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0.0 <= percent <= 10_000.0:
        raise Invalid(f"“{text[:20]}” is not a valid limit: enter a percentage from 0 to 10000.", code=name)
    return percent / 100.0


def field_of(refusal: Refusal) -> str:
    """The field that a refusal speaks of; the name's, which is the first, when it names none."""
    return FIELD_OF_CODE.get(refusal.code) or (refusal.code if refusal.code in (*LIMITS, "kinds") else "name")
