"""The documents of arms and comparisons hold every figure: what repeats them is emptied.

A measurement or a parity report of an arm without a document is left alone, since nothing else has it.
"""

import json
from collections.abc import Iterator
from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

BATCH = 200
OF_TASKS = ("top1", "top5", "mse")
# metric, its key in a document's cell, unit, whether lower is better
METRICS = (
    ("p50", "p50_ms", "ms", True),
    ("mean", "mean_ms", "ms", True),
    ("p90", "p90_ms", "ms", True),
    ("p99", "p99_ms", "ms", True),
    ("throughput", "throughput", "items/s", False),
    ("session", "session_ms", "ms", True),
    ("first", "first_ms", "ms", True),
    ("peak_memory", "peak_memory_bytes", "bytes", True),
)


def empty(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Notes what was asked of the repeated figures, then removes them."""
    arm, cell, comparison, measurement, parity = _models(apps)
    judged = measurement.objects.filter(metric__in=OF_TASKS)
    arm.objects.filter(pk__in=judged.values("arm")).update(is_evaluated=True)
    untested = {"axis": "twin"}, {"verdict": "not comparable"}
    tested = comparison.objects.filter(ratio__isnull=False).exclude(**untested[0]).exclude(**untested[1])
    tested.update(is_tested=True)
    for table in (measurement, parity):
        table.objects.filter(arm__document__isnull=False).delete()
    documented = arm.objects.filter(document__isnull=False)
    cell.objects.filter(pk__in=documented.values("cell")).update(p50_ms=None, parity="")
    comparison.objects.update(ratio=None, ci_low=None, ci_high=None)


def fill(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Writes them again from the documents."""
    _, cell, comparison, measurement, parity = _models(apps)
    for row in _batched(apps.get_model("runs", "CellDocument").objects.select_related("arm__cell").defer("operators")):
        body = json.loads(row.body)
        measurement.objects.filter(arm=row.arm).delete()
        measurement.objects.bulk_create(measurement(arm=row.arm, **plain) for plain in _measurements(body))
        said = {name: body["parity"].get(name) for name in ("verdict", "text", "atol", "rtol", "outputs")}
        parity.objects.update_or_create(
            arm=row.arm, defaults={**said, "reference": body["parity"].get("reference") or ""}
        )
        if row.arm.name == row.arm.cell.name:
            cell.objects.filter(pk=row.arm.cell_id).update(p50_ms=body["p50_ms"], parity=body["parity"]["verdict"])
    for row in _batched(comparison.objects.defer("operators")):
        body = json.loads(row.body)
        figures = {name: body.get(name) for name in ("ratio", "ci_low", "ci_high")}
        comparison.objects.filter(pk=row.pk).update(**figures)


def _measurements(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for metric, key, unit, lower in METRICS:
        if body.get(key) is not None:
            plain = {"metric": metric, "unit": unit, "lower_is_better": lower, "value": body[key]}
            low, high = (body.get("p50_ci_ms") if metric == "p50" else None) or (None, None)
            yield plain | {"low": low, "high": high, "samples": body["samples_ms"] if metric == "p50" else []}
    found = body.get("accuracy") or {}
    if found.get("value") is not None:
        unit = "share" if found["higher_is_better"] else "squared error"
        plain = {"metric": found["metric"], "unit": unit, "lower_is_better": not found["higher_is_better"]}
        yield plain | {"value": found["value"], "low": found["ci_low"], "high": found["ci_high"]}


def _models(apps: StateApps) -> tuple[Any, ...]:
    return tuple(apps.get_model("runs", name) for name in ("Arm", "Cell", "Comparison", "Measurement", "ParityReport"))


def _batched(rows: Any) -> Iterator[Any]:
    numbers = list(rows.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(numbers), BATCH):
        yield from rows.filter(pk__in=numbers[start : start + BATCH])


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_say_what_is_evaluated_and_tested")]

    operations = [migrations.RunPython(empty, fill)]
