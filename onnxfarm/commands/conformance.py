"""`onnxfarm conformance --ort VERSIONS`: runs the operator tests of the ONNX package on each runtime."""

import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypedDict

import typer
from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table

from farm.contract.cells import Runtime
from farm.rules.presenting import refusals
from farm.sandbox import child
from farm.sandbox.policy import Policy
from onnxfarm.commands.bench_options import parse_ort_option
from onnxfarm.commands.options import DocumentOption, HomeOption
from onnxfarm.here.home import default_home
from onnxfarm.outputs import write_json
from onnxfarm.problems import Infrastructure, Usage, exit_with_problem
from worker.agent.installation import stages
from worker.agent.installation.runtimes import RuntimeStore, RuntimeUnavailableError
from worker.agent.measurement import conformance as suites

SCHEMA = "onnxfarm.conformance/1"
OUTCOMES: tuple[suites.Outcome, ...] = ("pass", "refused", "wrong", "crashed")


@exit_with_problem()
def conformance(
    ort: Annotated[str, typer.Option(help="ONNX Runtime versions, separated by commas.")],
    json_file: DocumentOption = None,
    home: HomeOption = None,
    quiet: Annotated[bool, typer.Option(help="Counts only, without the cases.")] = False,
) -> None:
    """Run the ONNX backend node tests with plain tensors on each runtime, and say which pass and why others do not."""
    runtimes = [parse_ort_option(text) for text in ort.split(",") if text.strip()]
    if not runtimes:
        raise Usage("--ort names no version: write it like 1.24.4,1.31.1.")
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="onnxfarm-conformance-") as folder:
        suite, counts = _make_suite(Path(folder))
        console.print(f"{counts['cases']} cases with plain tensors; {counts['left_out']} others left out.")
        place = home or default_home()
        work = Path(folder)
        reports = [_run_suite(runtime, suite=suite, home=place, work=work, console=console) for runtime in runtimes]
    document = {"schema": SCHEMA, **counts, "runtimes": reports}
    _print_reports(reports, console=console, quiet=quiet)
    write_json(document, json_file)


class Report(TypedDict):
    """The outcomes of the suite on a runtime. `counts`: by outcome. `cases`: plain values of each CaseOutcome."""

    runtime: str
    seconds: float
    counts: dict[str, int]
    cases: list[dict[str, str]]


def _make_suite(folder: Path) -> tuple[Path, dict[str, int]]:
    suite = folder / "suite"
    suite.mkdir()
    ending = child.run_function(
        "farm.workshop.child.conformance:write_suite", str(suite), policy=Policy(read_write=(folder,)), timeout_s=300
    )
    if not ending.is_done:
        raise Infrastructure(f"The suite could not be written. {ending.describe()}")
    return suite, TypeAdapter(dict[str, int]).validate_json(ending.reply)


def _run_suite(runtime: Runtime, *, suite: Path, home: Path, work: Path, console: Console) -> Report:
    store = RuntimeStore(home / "runtimes", say=lambda text: console.print(text))
    try:
        installed = store.provide(runtime)
    except RuntimeUnavailableError as error:
        raise Usage(refusals.describe_reason(error.reason)) from error
    stage = stages.stage_runner(home)
    folder = work / str(runtime)
    folder.mkdir()
    began = time.monotonic()
    outcomes = suites.run_suite(suite, runtime=installed, stage=stage, work=folder)
    return {
        "runtime": str(runtime),
        "seconds": round(time.monotonic() - began, 1),
        "counts": {name: sum(case.outcome == name for case in outcomes) for name in OUTCOMES},
        "cases": [asdict(case) for case in outcomes],
    }


def _print_reports(reports: list[Report], *, console: Console, quiet: bool) -> None:
    table = Table("runtime", *OUTCOMES, "seconds")
    for report in reports:
        table.add_row(report["runtime"], *(str(report["counts"][name]) for name in OUTCOMES), str(report["seconds"]))
    console.print(table)
    for report in () if quiet else reports:
        _print_cases(report, console=console)


def _print_cases(report: Report, *, console: Console) -> None:
    for case in report["cases"]:
        if case["outcome"] in ("wrong", "crashed"):
            console.print(f"{report['runtime']} {case['outcome']} {case['case']}: {case['text']}", highlight=False)
    reasons = Counter(case["text"] for case in report["cases"] if case["outcome"] == "refused")
    for text, count in reasons.most_common(10):
        console.print(f"{report['runtime']} refused {count}×: {text}", highlight=False)
