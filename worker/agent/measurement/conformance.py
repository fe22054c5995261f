"""Runs a conformance suite on a runtime, in one process, which is restarted after a case that ends it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from farm.sandbox.ending import Ending
from worker.agent.installation.runtimes import Installed
from worker.agent.measurement.checks import RUNNER_ORDER_VERSION
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.runner_process import run_without_arm

Outcome = Literal["pass", "refused", "wrong", "crashed"]

# the time limit of a process, after which its current case counts as crashed
PROCESS_TIMEOUT_S = 60.0
MEMORY_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a case. `text` says why it did not pass."""

    case: str
    outcome: Outcome
    text: str = ""


def run_suite(
    suite: Path, *, runtime: Installed, stage: Path, work: Path, on_progress: Callable[[int], None] = lambda _: None
) -> list[CaseOutcome]:
    """Run every case of the folder `suite` on the CPU provider, and return the outcomes, ordered by case name.

    `stage` is the staged runner, `work` a folder for the ledger: cases that a ledger there names are not run again.
    `on_progress` is called after each process, at the end and after a case that ended one, with the number of finished
    cases. Raises RuntimeError when the process ends outside of a case, and SandboxError where the sandbox cannot be
    made.
    """
    ledger = work / "ledger.jsonl"
    ledger.touch()
    total = sum(1 for _ in suite.iterdir())
    while True:
        ending = _run_process(suite, runtime=runtime, stage=stage, ledger=ledger)
        outcomes, unfinished = _read_ledger(ledger)
        if unfinished is None and not ending.is_done:
            raise RuntimeError(f"The conformance process of {runtime.runtime} ended early. {ending.describe()}")
        if unfinished is not None:
            crash = {"case": unfinished, "outcome": "crashed", "text": ending.describe()}
            with ledger.open("a") as lines:
                lines.write(json.dumps(crash) + "\n")
            outcomes[unfinished] = CaseOutcome(**crash)  # type: ignore[arg-type]
        on_progress(len(outcomes))
        if len(outcomes) >= total:
            return [outcomes[name] for name in sorted(outcomes)]


def _run_process(suite: Path, *, runtime: Installed, stage: Path, ledger: Path) -> Ending:
    order: RunnerOrder = {
        "version": RUNNER_ORDER_VERSION,
        "kind": "conformance",
        "model": str(suite),
        "inputs": str(ledger),
        "provider": "CPUExecutionProvider",
    }
    return run_without_arm(
        order,
        runtime=runtime,
        stage=stage,
        reads=suite,
        work=ledger.parent,
        memory_bytes=MEMORY_BYTES,
        timeout_s=PROCESS_TIMEOUT_S,
    )


def _read_ledger(ledger: Path) -> tuple[dict[str, CaseOutcome], str | None]:
    """Read the outcomes by case, and the case that was started and has not ended, or None."""
    outcomes: dict[str, CaseOutcome] = {}
    started: str | None = None
    for line in ledger.read_text().splitlines():
        entry = json.loads(line)
        started = entry["case"] if entry["outcome"] == "started" else None
        if started is None:
            outcomes[entry["case"]] = CaseOutcome(**entry)
    return outcomes, started
