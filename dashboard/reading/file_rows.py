"""The rows of each list as a file has them: plain values by column name. Names of columns carry the unit."""

from datetime import datetime
from typing import TYPE_CHECKING

from dashboard.figures.trends import Line, Point
from dashboard.reading.alerts import describe_cause, kinds_of, make_lead, state_of
from dashboard.reading.leads import read_lead
from dashboard.reading.watches import describe_watch
from farm.rules.presenting.hardware import find_loss
from farm.rules.presenting.hardware_words import format_setting
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.lines import judge_outputs
from farm.rules.presenting.times import clock_title

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


def model_row(row: "WithAnnotations[Model, Counted]", last: "Run | None" = None) -> Row:
    """Make the row of a model with the headline figures of its run `last`; these are empty where it is None."""
    return {
        "id": row.pk,
        "model": row.name,
        "team": row.team.name,
        "labels": " ".join(row.labels),
        "versions": row.version_count,
        "created_at": row.created_at,
        "last_run": last.pk if last else None,
        **{f"last_{name}": value for name, value in _lead_figures(read_lead(last)).items()},
        "last_sentence": (last.headline or last.sentence) if last else "",
    }


def run_row(row: "Run", state: str) -> Row:
    """Make the row of a run with its headline figures. `state`: the run's state in the word that pages show."""
    return {
        "id": row.pk,
        "model": row.version.model.name,
        "version": row.version.number,
        "state": state,
        **_lead_figures(read_lead(row)),
        "sentence": row.headline or row.sentence,
        "cells": row.cell_count,
        "created_at": row.created_at,
        "by": row.requested_by.username if row.requested_by else "",
    }


def _lead_figures(lead: KeyResult) -> Row:
    """Make the columns of a run's headline figures; `change` is the ratio new / old."""
    return {
        "verdict": lead.verdict,
        "what": lead.step,
        "change": lead.ratio,
        "low": lead.low,
        "high": lead.high,
        "rounds": lead.rounds or None,
    }


def alert_row(row: "Alert") -> Row:
    """Make the row of an alert with the figures of its leading symptom; `change` is the ratio new / old."""
    lead = make_lead(row)
    return {
        "id": row.pk,
        "state": state_of(row),
        "kinds": " ".join(kinds_of(row)),
        "model": row.model.name,
        "node": " ".join(row.nodes),
        "distribution": row.distribution,
        "good": row.good,
        "bad": row.bad,
        "first_bad": row.first_bad,
        "change": lead.ratio,
        "low": lead.low,
        "high": lead.high,
        "rounds": lead.rounds or None,
        "sentence": row.sentence,
        "because": describe_cause(row),
        "opened_at": row.opened_at,
        "assignee": row.assignee.username if row.assignee else "",
    }


def watch_row(row: "Watch") -> Row:
    """Make the row of a watch: its settings, and a sentence that says what it watches."""
    return {
        "id": row.pk,
        "watch": row.name,
        "team": row.team.name,
        "is_active": row.is_active,
        "distribution": row.distribution,
        "reference": row.reference,
        "schedule": row.schedule,
        "what": describe_watch(row),
    }


def node_row(node: "Node", alarms: "FalseAlarms | None") -> Row:
    """Make the row of a node. `alarms`: how often verdicts called its A/A pairs different; None is written as 0 false
    alarms of 0 pairs."""
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


def point_row(line: Line, row: Point) -> Row:
    """Make the row of one value of a watched series. The ratio is against the pinned release in the same block."""
    return {
        "series": line.label,
        "node": line.node,
        "at": row.at,
        "release": row.version,
        "ratio": row.ratio,
        "low": row.low,
        "high": row.high,
        "verdict": line.verdict(row),
        "run": row.run,
    }


def target_row(row: "Target") -> Row:
    """Make the row of a version on a target with its best setting, whose values are empty where every setting was left
    out. `accuracy` is a fraction or the metric's own unit; losses are in percent."""
    best, cell = row.best, row.best.cell if row.best else None
    interval = cell.p50_ci_ms if cell and cell.p50_ci_ms else (None, None)
    judged = cell.accuracy if cell else None
    loss = find_loss(cell) if cell else None
    return {
        "version": row.version,
        "nodes": " ".join(row.nodes),
        "tag": row.tag,
        "hardware": row.machine,
        "keeps": row.limit_check if best else "",
        "setting": format_setting(best) if best else "",
        "run": best.run if best else None,
        "cell": cell.id if cell else "",
        "time": clock_title([best.is_processor]) if best else "",
        "p50_ms": cell.p50_ms if cell else None,
        "p50_low_ms": interval[0],
        "p50_high_ms": interval[1],
        "items_s": cell.throughput if cell else None,
        "accuracy_metric": judged.metric if judged and judged.value is not None else "",
        "accuracy": judged.value if judged else None,
        "loss_percent": 100 * loss.value if loss else None,
        "loss_worst_percent": 100 * loss.worst if loss else None,
        "parity": judge_outputs(cell) if cell else "",
        "peak_memory_bytes": cell.peak_memory_bytes if cell else None,
        "energy_mj": cell.energy_mj if cell else None,
        "measured_at": best.at if best else None,
        "settings": row.settings,
        "left_out": sum(row.left_out.values()),
    }


def event_row(row: "AuditEvent") -> Row:
    """Make the row of an event of the audit log."""
    return {
        "at": row.at,
        "actor": row.actor.username if row.actor else "",
        "verb": row.verb,
        "subject": row.subject,
        "team": row.team.name if row.team else "",
        "facts": str(row.facts or ""),
    }
