"""The conformance pass: runs many tiny models in one process, which the agent restarts after a case that crashes it.

The suite is a folder with a folder for each case: `model.onnx`, `tolerance.json` with `rtol` and `atol`, and
`data_0.npz`, `data_1.npz`, …, whose arrays are named `in.<input>` and `out.<output>`. A JSON line is appended to the
ledger before and after each case, so that it names the case of a crash. `order.model` is the suite, and `order.inputs`
the ledger. Cases that the ledger names are not run again.
"""

import json
import os
from pathlib import Path

import numpy as np
import onnxruntime

from worker.runner import faults
from worker.runner.judges.judge import Array
from worker.runner.order import Order, PhaseTimer
from worker.runner.session import make_session_options

IN, OUT = "in.", "out."


def run_conformance(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Run every case that the ledger does not name yet, in the order of names, and append the outcomes to it.

    Return the number of cases that were run now, under `cases`.
    """
    names_in_ledger = {json.loads(line)["case"] for line in Path(order.inputs).read_text().splitlines()}
    cases = [name for name in sorted(os.listdir(order.model)) if name not in names_in_ledger]
    with timer.phase("cases"), open(order.inputs, "a", buffering=1) as ledger:
        for name in cases:
            ledger.write(json.dumps({"case": name, "outcome": "started"}) + "\n")
            outcome, text = _run_case(Path(order.model) / name, order=order)
            ledger.write(json.dumps({"case": name, "outcome": outcome, "text": text}) + "\n")
    return {"cases": len(cases)}


def _run_case(folder: Path, *, order: Order) -> tuple[str, str]:
    """Run one case. Return `pass`, `refused` or `wrong`, and a text that says why, empty for `pass`."""
    tolerance = json.loads((folder / "tolerance.json").read_text())
    try:
        with faults.translate_errors("session"):
            options = make_session_options(order.session, tune={"log_severity_level": 4})
            session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=[order.provider])
        for path in sorted(folder.glob("data_*.npz")):
            with np.load(path, allow_pickle=False) as data:
                difference = _find_difference(session, dict(data), **tolerance)
            if difference:
                return "wrong", difference
    except faults.Refusal as refusal:
        return "refused", refusal.text
    return "pass", ""


def _find_difference(session: onnxruntime.InferenceSession, data: dict[str, Array], *, rtol: float, atol: float) -> str:
    feeds = {name.removeprefix(IN): array for name, array in data.items() if name.startswith(IN)}
    names = [node.name for node in session.get_outputs()]
    with faults.translate_errors("run"):
        values = dict(zip(names, session.run(None, feeds), strict=True))
    for name, array in data.items():
        if name.startswith(OUT):
            text = _describe_difference(values.get(name.removeprefix(OUT)), array, rtol=rtol, atol=atol)
            if text:
                return f"output {name.removeprefix(OUT)}: {text}"
    return ""


def _describe_difference(value: object, expected: Array, *, rtol: float, atol: float) -> str:
    """Say how an output differs; empty where it does not. NaN equals NaN, as in the ONNX package's own runner."""
    if not isinstance(value, np.ndarray):
        return f"is a {type(value).__name__}, expected an array"
    if value.shape != expected.shape:
        return f"has shape {list(value.shape)}, expected {list(expected.shape)}"
    if expected.dtype.kind in "OSU" or value.dtype.kind in "OSU":
        return "" if bool(np.all(value.astype(str) == expected.astype(str))) else "has other strings"
    if value.dtype != expected.dtype:
        return f"has type {value.dtype}, expected {expected.dtype}"
    with np.errstate(all="ignore"):
        is_close = np.isclose(value, expected, rtol=rtol, atol=atol, equal_nan=True)
        if is_close.all():
            return ""
        largest = float(np.nanmax(np.abs(value.astype(np.float64) - expected.astype(np.float64)), initial=0.0))
    return f"{int((~is_close).sum())} of {value.size} elements differ, by up to {largest:.3g}"
