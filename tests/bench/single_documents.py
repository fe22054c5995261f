"""Runs `onnxfarm bench` of the tree on PYTHONPATH: `record FILE` keeps its reports, `replay FILE` puts them back.

What follows are bench's own words. Facts of the machine are those of the record, so that two trees say them alike.
"""

import json
import sys
from pathlib import Path
from typing import Any

from farm.contract import reports
from onnxfarm.here import bench
from onnxfarm.main import app

mode, kept, *words = sys.argv[1:]
record: dict[str, Any] = json.loads(Path(kept).read_text()) if mode == "replay" else {"blocks": [], "facts": None}
measure, read_facts, execute_block = bench.Run.measure, bench.read_facts, bench.execute_block  # type: ignore[attr-defined]


def facts(**given: Any) -> Any:
    if record["facts"] is None:
        record["facts"] = read_facts(**given).model_dump(mode="json")
    return reports.Facts.model_validate(record["facts"])


def recording(order: Any, *, report: Any, **given: Any) -> None:
    told: list[list[Any]] = []

    def taken(message: Any) -> Any:
        told.append([type(message).__name__, message.model_dump(mode="json")])
        return report(message)

    record["blocks"].append(told)
    execute_block(order, report=taken, **given)


def replaying(order: Any, *, report: Any, **given: Any) -> None:
    given["environment"].read_facts()
    for name, message in record["blocks"].pop(0):
        report(getattr(reports, name).model_validate(message))


def measured(self: Any, plan: Any) -> Any:
    self.execute = recording if mode == "record" else replaying
    try:
        return measure(self, plan)
    finally:
        if mode == "record":
            Path(kept).write_text(json.dumps(record))


bench.Run.measure, bench.read_facts = measured, facts  # type: ignore[attr-defined,method-assign]
sys.argv = ["onnxfarm", "bench", *words]
app()
