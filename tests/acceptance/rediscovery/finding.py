"""A claim through the product's own commands: bench, then the date, and what the change was put down to."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from farm.contract.cells import Runtime
from farm.contract.reasons import ReasonedError
from onnxfarm.here.home import default_home
from tests.acceptance.rediscovery import judging
from tests.acceptance.rediscovery.claims import Claim, Kind
from tests.acceptance.rediscovery.judging import JudgeProblem, Ruling
from tests.acceptance.rediscovery.making import written
from tests.acceptance.rediscovery.rows import Row
from tests.bench import figure
from worker.agent.installation.runtimes import RuntimeStore
from worker.agent.machine import host_lock

TIMEOUT_S = 1800
# the exit code of a machine, or a farm, that cannot measure now
INFRASTRUCTURE, TRIES, PAUSE_S = 3, 20, 30.0
# the second one where the first does not decide
BUDGETS = ("quick", "standard")
Said = Mapping[str, Any]
Judge = Callable[[Claim, Path, Path], tuple[Ruling, float]]


class CannotMeasureError(Exception):
    """This machine cannot measure now; the message is what the product said."""


def row_of(claim: Claim, folder: Path, *, budgets: tuple[str, ...] = BUDGETS, judge: Judge | None = None) -> Row:
    """Judge and product on the same model. Raises CannotMeasureError, which is no row."""
    row = Row(claim.name, claim.kind, str(figure.machine()["cpu"]))
    model, inputs = written(claim.name, claim.maker, folder)
    try:
        ruling, row.core_share = (judge or _ruling)(claim, model, inputs)
    except host_lock.BusyError as problem:
        raise CannotMeasureError(str(problem)) from problem
    except (JudgeProblem, ReasonedError, subprocess.TimeoutExpired) as problem:
        row.why = f"The judge: {problem}"
        return row
    _note(row, ruling, claim)
    began = time.monotonic()
    # where the judge sees nothing there is nothing to decide with more rounds
    enough = budgets if row.holds and claim.verdict else budgets[:1]
    _bench(row, claim, (model, inputs), folder=folder, budgets=enough)
    # what does not hold here has no date
    if row.is_found:
        _date(row, claim, (model, inputs), folder=folder)
        row.is_dated = row.since == row.judge_since and row.since in claim.releases[1:] and _in_report(claim, row.since)
    row.minutes = round((time.monotonic() - began) / 60.0, 2)
    return row


def _in_report(claim: Claim, version: str) -> bool:
    """Whether the release lies after the earlier reported one, up to the later one."""
    releases = claim.releases
    return releases.index(version) <= releases.index(claim.after)


def _ruling(claim: Claim, model: Path, inputs: Path) -> tuple[Ruling, float]:
    """The judge's word, and the share of a core that it had. An unchanged pair needs no date."""
    store = RuntimeStore(default_home() / "runtimes", say=lambda text: print(f"  {text}", file=sys.stderr))
    versions = [claim.before, claim.after] if claim.kind is Kind.SAME else claim.releases
    pythons = {
        version: store.provide(Runtime(distribution="onnxruntime", version=version)).python for version in versions
    }
    with host_lock.hold_machine(patience_s=TIMEOUT_S):
        times = judging.measured(pythons, model=model, inputs=inputs)
    return judging.ruled(times.us, before=claim.before, after=claim.after), round(times.share, 2)


def _note(row: Row, ruling: Ruling, claim: Claim) -> None:
    row.holds = ruling.is_quiet if claim.kind is Kind.SAME else ruling.holds(claim.verdict)
    said = asdict(ruling)
    row.judge_ratio, row.judge_since = round(said["ratio"], 4), said["since"]
    row.judge_alike = f"{ruling.alike} of {ruling.rounds}"
    row.judge_ratios = {version: round(one, 4) for version, one in ruling.ratios.items()}
    row.judge_us = round(ruling.us, 2)


def _bench(row: Row, claim: Claim, files: tuple[Path, Path], *, folder: Path, budgets: tuple[str, ...]) -> None:
    """The verdict on the two reported releases, and the operator."""
    model, inputs = files
    for budget in budgets:
        out = folder / f"{claim.name}.bench.json"
        out.unlink(missing_ok=True)
        words = ("--ort", f"{claim.before},{claim.after}", "--inputs", str(inputs), "--budget", budget)
        ended = _onnxfarm("bench", str(model), *words, "--json", str(out))
        document = json.loads(out.read_text()) if out.exists() else {}
        pairs = [one for one in document.get("comparisons", []) if one["axis"] == "runtime"]
        if not pairs:
            row.why = _last_line(ended.stderr)
            return
        _read(row, claim, pairs[0], document["sentence"])
        if row.verdict != "undecided":
            return


def _read(row: Row, claim: Claim, pair: Said, sentence: str) -> None:
    """What the comparison says."""
    row.verdict, row.verdict_from = pair["verdict"], pair["verdict_from"]
    row.ratio, row.low, row.high = pair["ratio"], pair["ci_low"], pair["ci_high"]
    row.rounds, row.said = pair["rounds"], sentence
    row.why = "" if row.verdict == claim.verdict else (pair["reason"] or "")
    if row.verdict in ("slower", "faster") and pair["operators"]:
        first = pair["operators"][0]
        row.operator = f"{first['op_type']} {first['node']}"
        row.is_explained = claim.names(first["node"], first["op_type"], first["covers"])


def _date(row: Row, claim: Claim, files: tuple[Path, Path], *, folder: Path) -> None:
    """Since when: by bisection what became worse, by a sweep what became better."""
    model, inputs = files
    out = folder / f"{claim.name}.date.json"
    out.unlink(missing_ok=True)
    last = claim.releases[-1]
    if claim.verdict == "slower":
        words = ["bisect", str(model), "--good", claim.before, "--bad", last, "--for", "slower"]
    else:
        words = ["sweep", str(model), "--ort", ",".join(claim.releases), "--reference", claim.before]
    ended = _onnxfarm(*words, "--inputs", str(inputs), "--json", str(out))
    if not out.exists():
        row.why = _last_line(ended.stderr)
        return
    said = json.loads(out.read_text())
    row.since = said["first_bad"] if claim.verdict == "slower" else _fastest(said)
    row.why = said["sentence"] if row.since != row.judge_since else ""


def _fastest(said: Said) -> str:
    """The release with the largest gain over the one before it."""
    turns = [turn for line in said["lines"] for turn in line["turns"] if turn["verdict"] == "faster"]
    return str(min(turns, key=lambda turn: turn["ratio"])["after"]) if turns else ""


def _onnxfarm(*words: str) -> "subprocess.CompletedProcess[str]":
    """The command, again while something else measures on this machine. Raises CannotMeasureError after TRIES."""
    for _ in range(TRIES):
        ended = _called(*words)
        if ended.returncode != INFRASTRUCTURE:
            return ended
        time.sleep(PAUSE_S)
    raise CannotMeasureError(_last_line(ended.stderr))


def _called(*words: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            [sys.executable, "-m", "onnxfarm.main", *words],
            capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"{words[0]} did not end within {TIMEOUT_S} s.")


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing was said"
