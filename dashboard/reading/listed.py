"""What a row of each list is in a file: plain values by name, units in the names."""

from typing import Any

from dashboard.reading.alerts import because, kinds_of, state_of
from dashboard.reading.watches import sentence

Row = dict[str, Any]


def model(one: Any, last: Any = None) -> Row:
    """A model; `last`: its last run."""
    return {
        "id": one.pk,
        "model": one.name,
        "team": one.team.name,
        "labels": " ".join(one.labels),
        "versions": one.version_count,
        "created_at": one.created_at,
        "last_run": last.pk if last else None,
        "last_verdict": (last.headline or last.sentence) if last else "",
    }


def run(one: Any) -> Row:
    """A run."""
    return {
        "id": one.pk,
        "model": one.version.model.name,
        "version": one.version.number,
        "state": one.outcome or one.state,
        "verdict": one.headline or one.sentence,
        "cells": one.cell_count,
        "created_at": one.created_at,
        "by": one.requested_by.username if one.requested_by else "",
    }


def alert(one: Any) -> Row:
    """An alert."""
    return {
        "id": one.pk,
        "state": state_of(one),
        "kinds": " ".join(kinds_of(one)),
        "model": one.model.name,
        "node": one.node,
        "distribution": one.distribution,
        "good": one.good,
        "bad": one.bad,
        "first_bad": one.first_bad,
        "sentence": one.sentence,
        "because": because(one),
        "opened_at": one.opened_at,
        "assignee": one.assignee.username if one.assignee else "",
    }


def watch(one: Any) -> Row:
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


def node(one: Any) -> Row:
    """A node of the fleet; `one` has the node, its false alarms and what it measures."""
    node, alarms = one["node"], one["alarms"]
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


def release(one: Any, columns: Any) -> Row:
    """A release with, for each provider, on how many nodes it is installed and on how many it would be."""
    found: Row = {"release": one.version, "opset": one.opset, "is_gone": one.is_gone}
    for name, place in zip(columns, one.places, strict=True):
        found[f"{name}: installed on"] = len(place.installed) + place.more
        found[f"{name}: on demand on"] = place.on_demand
    return found


def spot(line: Any, one: Any) -> Row:
    """One value of a long series, as a ratio to the pinned release of the same block."""
    return {
        "series": line.label,
        "node": line.node,
        "at": one.at,
        "release": one.version,
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high,
        "run": one.run,
    }


def event(one: Any) -> Row:
    """An event of the audit log."""
    return {
        "at": one.at,
        "actor": one.actor.username if one.actor else "",
        "verb": one.verb,
        "subject": one.subject,
        "team": one.team.name if one.team else "",
        "facts": str(one.facts or ""),
    }
