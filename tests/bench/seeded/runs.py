"""Runs in bulk: those that the services made, again and again under other numbers, models, nodes and latencies."""

import json
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp
from typing import Any

from django.db import models

from farm.contract.base import digest_json
from farm.fleet.models import Node
from farm.registry.models import Preparation, Variant, Version
from farm.rules.planning.blocks import TWIN
from farm.runs.models import Arm, Attempt, Block, Cell, CellDocument, Comparison, Event, Report, Run
from tests.bench.seeded.writing import Writer

# what a latency is in these places of a cell's document
TIMES = ("p50_ms", "mean_ms", "std_ms", "min_ms", "max_ms", "session_ms", "first_ms")
# figures of an arm that by which the size of a farm is told
FIGURES = 8
SMALL = 0.02


@dataclass
class Template:
    """A finished run as the services left it. `bodies`, `compared`: parsed parts of its document, by row."""

    run: Run
    cells: list[Cell]
    blocks: list[Block]
    arms: list[Arm]
    attempts: list[Attempt]
    facts: list[Report]
    events: list[Event]
    documents: dict[int, CellDocument]
    bodies: dict[int, dict[str, Any]]
    comparisons: list[Comparison]
    compared: dict[int, dict[str, Any]]

    @property
    def measurements(self) -> int:
        """How many figures a copy has."""
        return FIGURES * len(self.arms)


def template_of(run: Run) -> Template:
    """Reads a run once. Of its reports only the facts are kept: others are read of blocks measured now alone."""
    documents = {row.arm_id: row for row in CellDocument.objects.filter(arm__block__run=run)}
    comparisons = list(Comparison.objects.filter(run=run))
    return Template(
        run=run,
        cells=list(run.cells.all()),
        blocks=list(run.blocks.all()),
        arms=list(Arm.objects.filter(block__run=run)),
        attempts=list(Attempt.objects.filter(block__run=run)),
        facts=list(Report.objects.filter(attempt__block__run=run, kind="facts")),
        events=list(run.events.all()),
        documents=documents,
        bodies={arm: json.loads(row.body) for arm, row in documents.items()},
        comparisons=comparisons,
        compared={row.pk: json.loads(row.body) for row in comparisons},
    )


def copied(row: models.Model, **changes: Any) -> Any:
    """A new row with the columns of another one, those apart that are named by their column."""
    values = {field.attname: row.__dict__[field.attname] for field in row._meta.concrete_fields}
    values |= changes
    values["id"] = None
    return type(row)(**values)


@dataclass
class Place:
    """Where a copy belongs: whose model and node it is, when it was, and what its recipes and workloads became."""

    version: Version
    node: Node
    by: int
    at: datetime
    variants: dict[str, Variant]
    preparations: dict[str, Preparation]


class Copier:
    """Writes copies of templates. The same seed writes the same rows."""

    def __init__(self, writer: Writer, dice: random.Random) -> None:
        self._writer = writer
        self._dice = dice

    def copy(self, template: Template, place: Place) -> Run:
        """One run with everything that belongs to it."""
        run = self._run(template, place)
        later = place.at - template.run.created_at
        cells = self._cells(template, run, place)
        blocks = {
            row.pk: self._add(
                row, run_id=run.pk, node_id=place.node.pk, only_node_id=None, **_moved(row, later, BLOCK_TIMES)
            )
            for row in template.blocks
        }
        arms = {
            row.pk: self._add(row, block_id=blocks[row.block_id].pk, cell_id=cells[row.cell_id].pk)
            for row in template.arms
        }
        self._attempts(template, blocks, place, later)
        for event in template.events:
            block = blocks[event.block_id].pk if event.block_id else None
            self._add(event, run_id=run.pk, block_id=block, at=event.at + later)
        speed = exp(self._dice.gauss(1.0, 1.2))
        for old, arm in arms.items():
            self._measured(template, old, arm, place, speed)
        for row in template.comparisons:
            self._comparison(template, row, run, blocks, arms)
        return run

    def _add(self, row: models.Model, **changes: Any) -> Any:
        return self._writer.add(copied(row, **changes))

    def _run(self, template: Template, place: Place) -> Run:
        old = template.run
        told = {name: getattr(old, name).replace(old.version.model.name, place.version.model.name) for name in WORDS}
        later = place.at - old.created_at
        ids = {"team_id": place.version.model.team_id, "version_id": place.version.pk, "requested_by_id": place.by}
        return self._add(old, **ids, **told, **_moved(old, later, ("created_at", "started_at", "finished_at")))

    def _cells(self, template: Template, run: Run, place: Place) -> dict[int, Cell]:
        sha256 = place.version.artifact.sha256
        found = {}
        for row in template.cells:
            spec = {**row.spec_json, "artifact_sha256": sha256}
            variant = place.variants[row.precision].pk if row.variant_id else None
            prepared = place.preparations[str(row.batch)].pk if row.preparation_id else None
            found[row.pk] = self._add(
                row,
                run_id=run.pk,
                digest=digest_json([sha256, row.digest]),
                spec_json=spec,
                variant_id=variant,
                preparation_id=prepared,
            )
        return found

    def _attempts(self, template: Template, blocks: dict[int, Block], place: Place, later: timedelta) -> None:
        attempts = {}
        for row in template.attempts:
            block = blocks[row.block_id].pk
            token = digest_json([block, row.number])
            times = _moved(row, later, ("claimed_at", "ended_at"))
            attempts[row.pk] = self._add(row, block_id=block, node_id=place.node.pk, token_digest=token, **times)
        for report in template.facts:
            self._add(report, attempt_id=attempts[report.attempt_id].pk, received_at=report.received_at + later)

    def _measured(self, template: Template, old: int, arm: Arm, place: Place, speed: float) -> None:
        body = self.numbers(template.bodies[old], speed)
        body |= {
            "model": place.version.model.name,
            "model_sha256": place.version.artifact.sha256,
            "node": place.node.name,
        }
        self.write_numbers(arm, body, template.documents[old].operators)

    def numbers(self, body: dict[str, Any], speed: float) -> dict[str, Any]:
        """A cell's document with other latencies."""
        factor = speed * exp(self._dice.gauss(0, 0.04))
        found = dict(body)
        for name in TIMES:
            if found[name] is not None:
                found[name] = found[name] * factor
        found["p90_ms"], found["p99_ms"] = found["p50_ms"] * 1.06, found["p50_ms"] * 1.21
        found["p50_ci_ms"] = [found["p50_ms"] * 0.99, found["p50_ms"] * 1.011]
        found["samples_ms"] = [one * factor for one in body["samples_ms"]]
        found["throughput"] = body["throughput"] / factor
        found["peak_memory_bytes"] = int(body["peak_memory_bytes"] * exp(self._dice.gauss(0, 0.5)))
        return found

    def write_numbers(self, arm: Arm, body: dict[str, Any], operators: str) -> None:
        """What a block's end leaves of one arm: its document."""
        self._writer.add(CellDocument(arm_id=arm.pk, body=json.dumps(body, separators=(",", ":")), operators=operators))

    def _comparison(
        self, template: Template, row: Comparison, run: Run, blocks: dict[int, Block], arms: dict[int, Arm]
    ) -> None:
        body = self.judged(template.compared[row.pk])
        self._add(
            row,
            run_id=run.pk,
            block_id=blocks[row.block_id].pk,
            baseline_id=arms[row.baseline_id].pk,
            candidate_id=arms[row.candidate_id].pk,
            verdict=body["verdict"],
            is_tested=body["axis"] != TWIN,
            body=json.dumps(body, separators=(",", ":")),
        )

    def judged(self, body: dict[str, Any]) -> dict[str, Any]:
        """A comparison with another outcome: along runtimes mostly nothing changed, along others as it was."""
        if body["axis"] != "runtime":
            return body
        is_changed = self._dice.random() < 0.2
        ratio = exp(self._dice.gauss(0, 0.15 if is_changed else 0.008))
        low, high = ratio * 0.985, ratio * 1.015
        slower, faster = low > 1 + SMALL, high < 1 / (1 + SMALL)
        inside = low > 1 / (1 + SMALL) and high < 1 + SMALL
        verdict = "slower" if slower else "faster" if faster else "equal" if inside else "undecided"
        p = 1e-6 if slower or faster else 0.2
        return body | {"ratio": ratio, "ci_low": low, "ci_high": high, "verdict": verdict, "p": p, "reason": None}


WORDS = ("sentence", "headline")
BLOCK_TIMES = ("queued_at", "leased_at", "ended_at", "rung_at")


def _moved(row: models.Model, later: timedelta, names: tuple[str, ...]) -> dict[str, Any]:
    """Moments of a row, so much later."""
    return {name: value + later for name in names if (value := getattr(row, name)) is not None}
