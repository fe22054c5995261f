"""What a row of each list is in a file: plain values by name, units in the names."""

from datetime import datetime
from typing import TYPE_CHECKING

from dashboard.figures.trends import Line, Spot
from dashboard.reading.alerts import because, kinds_of, state_of
from dashboard.reading.alerts import lead_of as leading
from dashboard.reading.runs import lead_of
from dashboard.reading.watches import sentence
from farm.rules.presenting.hardware import loss_of
from farm.rules.presenting.hardware_words import setting
from farm.rules.presenting.headlines import Lead
from farm.rules.presenting.lines import outputs_of
from farm.rules.presenting.times import title_of

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    from farm.accounts.models import AuditEvent
    from farm.alerts.models import Alert, Watch
    from farm.fleet.models import Node
    from farm.registry.models import Model
    from farm.registry.selectors import Counted
    from farm.rules.comparing.margins import FalseAlarms
    from farm.rules.presenting.hardware import Target
    from farm.runs.models import Run

Row = dict[str, str | int | float | datetime | None]


def model(one: "WithAnnotations[Model, Counted]", last: "Run | None" = None) -> Row:
    """A model; `last`: its last run."""
    return {
        "id": one.pk,
        "model": one.name,
        "team": one.team.name,
        "labels": " ".join(one.labels),
        "versions": one.version_count,
        "created_at": one.created_at,
        "last_run": last.pk if last else None,
        **{f"last_{name}": value for name, value in _figures(lead_of(last)).items()},
        "last_sentence": (last.headline or last.sentence) if last else "",
    }


def run(one: "Run", state: str) -> Row:
    """A run; `state`: the word that pages show."""
    return {
        "id": one.pk,
        "model": one.version.model.name,
        "version": one.version.number,
        "state": state,
        **_figures(lead_of(one)),
        "sentence": one.headline or one.sentence,
        "cells": one.cell_count,
        "created_at": one.created_at,
        "by": one.requested_by.username if one.requested_by else "",
    }


def _figures(lead: Lead) -> Row:
    """What a run leads with: `change` is new against old."""
    return {
        "verdict": lead.verdict,
        "what": lead.step,
        "change": lead.ratio,
        "low": lead.low,
        "high": lead.high,
        "rounds": lead.rounds or None,
    }


def alert(one: "Alert") -> Row:
    """An alert."""
    lead = leading(one)
    return {
        "id": one.pk,
        "state": state_of(one),
        "kinds": " ".join(kinds_of(one)),
        "model": one.model.name,
        "node": " ".join(one.nodes),
        "distribution": one.distribution,
        "good": one.good,
        "bad": one.bad,
        "first_bad": one.first_bad,
        "change": lead.ratio,
        "low": lead.low,
        "high": lead.high,
        "rounds": lead.rounds or None,
        "sentence": one.sentence,
        "because": because(one),
        "opened_at": one.opened_at,
        "assignee": one.assignee.username if one.assignee else "",
    }


def watch(one: "Watch") -> Row:
    """A watch."""
    return {
        "id": one.pk,
        "watch": one.name,
        "team": one.team.name,
        "is_active": one.is_active,
        "distribution": one.distribution,
        "reference": one.reference,
        "schedule": one.schedule,
        "what": sentence(one),
    }


def node(node: "Node", alarms: "FalseAlarms | None") -> Row:
    """A node of the fleet with its false alarms."""
    return {
        "id": node.pk,
        "node": node.name,
        "team": node.team.name,
        "state": node.state,
        "health": node.health,
        "tags": " ".join(node.all_tags),
        "processor": node.facts_json.get("cpu_model") or "",
        "logical_cores": node.facts_json.get("logical_cores"),
        "runtimes": " ".join(node.runtimes),
        "sandbox": node.sandbox,
        "aa_pairs": alarms.comparisons if alarms else 0,
        "false_alarms": alarms.alarms if alarms else 0,
        "seen_at": node.seen_at,
    }


def spot(line: Line, one: Spot) -> Row:
    """One value of a long series, as a ratio to the pinned release of the same block."""
    return {
        "series": line.label,
        "node": line.node,
        "at": one.at,
        "release": one.version,
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high,
        "verdict": line.verdict(one),
        "run": one.run,
    }


def target(one: "Target") -> Row:
    """A version on a target, with the best of its settings."""
    best, cell = one.best, one.best.cell if one.best else None
    interval = cell.p50_ci_ms if cell and cell.p50_ci_ms else (None, None)
    judged = cell.accuracy if cell else None
    loss = loss_of(cell) if cell else None
    return {
        "version": one.version,
        "nodes": " ".join(one.nodes),
        "tag": one.tag,
        "hardware": one.machine,
        "keeps": one.keeping if best else "",
        "setting": setting(best) if best else "",
        "run": best.run if best else None,
        "cell": cell.id if cell else "",
        "time": title_of([best.is_processor]) if best else "",
        "p50_ms": cell.p50_ms if cell else None,
        "p50_low_ms": interval[0],
        "p50_high_ms": interval[1],
        "items_s": cell.throughput if cell else None,
        "accuracy_metric": judged.metric if judged and judged.value is not None else "",
        "accuracy": judged.value if judged else None,
        "loss_percent": 100 * loss.value if loss else None,
        "loss_worst_percent": 100 * loss.worst if loss else None,
        "parity": outputs_of(cell) if cell else "",
        "peak_memory_bytes": cell.peak_memory_bytes if cell else None,
        "energy_mj": cell.energy_mj if cell else None,
        "measured_at": best.at if best else None,
        "settings": one.settings,
        "left_out": sum(one.left_out.values()),
    }


def event(one: "AuditEvent") -> Row:
    """An event of the audit log."""
    return {
        "at": one.at,
        "actor": one.actor.username if one.actor else "",
        "verb": one.verb,
        "subject": one.subject,
        "team": one.team.name if one.team else "",
        "facts": str(one.facts or ""),
    }
