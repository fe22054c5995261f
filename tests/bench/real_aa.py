"""How often two arms of the same thing are called slower or faster on this machine: real processes, nothing simulated.

    python -m tests.bench.real_aa --comparisons 125 --seed 1 --json FILE [--pairs 4] [--minutes 20] [--ungated]
    python -m tests.bench.real_aa --json FILE --summary

A comparison is eight rounds of one model and its A/A twin, 16 process launches, by the product's own path
(tests/bench/blocks.py) with short windows: 0.1 s after a warm-up of 0.1 s or more. A block has --pairs of them, which
share its minutes and no launch. The models take turns. Each comparison is a line of FILE.jsonl as soon as its block is
measured, so that a second call goes on where the first one ended; FILE is written at the end, in the form that
`tests.bench.power --recorded` and `onnxfarm verdict` read.

Pairs are those that the product's verdict rests on: on a machine where other programs work, all rounds count by
processor time. With --ungated no launch counts as disturbed, as for cells of several threads, and wall time speaks.

Two counts: `shipped` with the margin of 2 %, and `strict` with a margin of 0, where everything significant is an alarm.
`chained` joins three consecutive blocks of a model into one of 24 rounds, for the later looks.
"""

import argparse
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farm.rules.comparing import margins, statistics, verdicts
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.judging.counted_rounds import Paired
from tests.bench import blocks, figure
from tests.bench.ledger import Ledger, Line

TARGET = 0.01
ROUNDS = 8
CHAINED = 3


def measure(place: blocks.Workplace, number: int, *, seed: int, pairs: int = 1) -> list[Line]:
    """The comparisons of a block, which share no launch. Model and order of the rounds follow from number and seed."""
    load = os.getloadavg()[0]
    subject, measured = place.measure_twins(number, seed=seed, pairs=pairs)
    counts = measured.sample_counts() | {"launches": measured.launches}
    block = {
        "block": number,
        "model": subject.name,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load_1m": round(load, 2),
        "runner": blocks.digest_of_runner(),
        "wall_s": round(measured.wall_s / pairs, 1),
    }
    nothing = dict.fromkeys(counts, 0)
    return [
        # the launches of the block stand in its first line, so that sums are right
        {"number": number * pairs + slot, "slot": slot, **block, **(nothing if slot else counts)}
        | {"verdict": judged.verdict, **_pairs_of(measured.deciding(slot))}
        for slot, judged in enumerate(measured.judge.comparisons())
    ]


def _pairs_of(paired: Paired) -> Line:
    return {
        "verdict_from": paired.verdict_from,
        "disturbed_rounds": len(paired.disturbed),
        "pairs": [[round(old, 7), round(new, 7)] for old, new in paired.deciding],
    }


def figures_of(lines: Sequence[Line]) -> dict[str, Any]:
    """The false alarms, and what each model's launches differ by."""
    pairs = [line["pairs"] for line in lines]
    by_model = {name: [line for line in lines if line["model"] == name] for name in blocks.SUBJECTS}
    return {
        "comparisons": len(lines),
        "blocks": len({line.get("block", line["number"]) for line in lines}),
        "launches": sum(line["launches"] for line in lines),
        "rounds": ROUNDS,
        "by_processor_time": sum(line.get("verdict_from") == "processor" for line in lines),
        "shipped": alarms(pairs, margin=MARGIN),
        "strict": alarms(pairs, margin=0.0),
        "chained": {
            "rounds": CHAINED * ROUNDS,
            "shipped": alarms(chained(lines), margin=MARGIN),
            "strict": alarms(chained(lines), margin=0.0),
        },
        "models": {name: _model(of) for name, of in by_model.items() if of},
        **{key: sum(line[key] for line in lines) for key in ("samples", "remeasured", "disturbed", "unstable")},
        "short_of_pairs": sum(len(some) < ROUNDS for some in pairs),
        "seconds_a_comparison": round(float(np.median([line["wall_s"] for line in lines])), 1),
        "load_1m": [min(line["load_1m"] for line in lines), max(line["load_1m"] for line in lines)],
        "from": lines[0]["at"],
        "to": lines[-1]["at"],
        "runners": sorted({line["runner"] for line in lines}),
    }


def alarms(pairs: Sequence[Sequence[Sequence[float]]], *, margin: float) -> dict[str, Any] | None:
    """Verdicts, and the rate of alarms with its 95 % Clopper-Pearson interval; None without any comparison."""
    if not pairs:
        return None
    judged = [one.verdict for one in verdicts.judge_many([np.asarray(some) for some in pairs], margin=margin)]
    count = sum(verdict in ("slower", "faster") for verdict in judged)
    low, high = statistics.clopper_pearson(count, len(judged))
    verdict_counts = {verdict: judged.count(verdict) for verdict in sorted(set(judged))}
    return {"alarms": count, "of": len(judged), "low": low, "high": high, "verdicts": verdict_counts}


def chained(lines: Sequence[Line]) -> list[list[list[float]]]:
    """Blocks of 24 rounds, each from three consecutive comparisons of a model; the rest of a model is left out.

    Those of a block are of the same minute: each of its pairs is joined with the pair in its place of the next blocks.
    """
    series: dict[tuple[str, int], list[list[list[float]]]] = {}
    for line in lines:
        if len(line["pairs"]) == ROUNDS:
            series.setdefault((line["model"], line.get("slot", 0)), []).append(line["pairs"])
    found = []
    for of in series.values():
        for start in range(0, len(of) - CHAINED + 1, CHAINED):
            found.append([pair for some in of[start : start + CHAINED] for pair in some])
    return found


def _model(lines: Sequence[Line]) -> dict[str, Any]:
    logs = [np.diff(np.log(np.asarray(line["pairs"])), axis=1)[:, 0] for line in lines if len(line["pairs"]) > 1]
    each = [float(np.std(some, ddof=1)) for some in logs]
    floor = margins.estimate_noise_floor([some.tolist() for some in logs])
    return {
        "comparisons": len(lines),
        "p50_ms": round(float(np.median([pair for line in lines for pair in line["pairs"]])), 4),
        "s": round(floor.deviation, 4),
        "s_quartiles": [round(float(value), 4) for value in np.percentile(each, [25, 50, 75])],
        "largest_estimate": round(max(float(abs(np.median(some))) for some in logs), 4),
    }


def main() -> None:
    given = _options()
    path = given.json.with_suffix(".jsonl")
    head = {
        "seed": given.seed,
        "windows": blocks.SHORT,
        "is_gated": not given.ungated,
        "runtime": blocks.RUNTIME,
        "models": list(blocks.SUBJECTS),
        "pairs_a_block": given.pairs,
    }
    if given.summary:
        head = json.loads(path.read_text().splitlines()[0])
    ledger = Ledger(path, head=head)
    if not given.summary:
        _go_on(ledger, given)
    lines = ledger.lines()
    kept = [{"model": line["model"], "pairs": line["pairs"]} for line in lines]
    given.json.write_text(json.dumps({**head, "machine": figure.machine(), "comparisons": kept}))
    found = figures_of(lines)
    claim = f"At most {100 * TARGET:g} % of real comparisons of a thing with itself are called slower or faster."
    holds = found["shipped"]["alarms"] <= TARGET * found["shipped"]["of"]
    figure.publish(claim=claim, seed=head["seed"], figures={"holds": holds, **head, **found})


def _go_on(ledger: Ledger, given: argparse.Namespace) -> None:
    """Measures until there are as many comparisons as asked for, or the minutes are over."""
    ends_at = time.monotonic() + 60.0 * given.minutes
    gate = blocks.without_gate() if given.ungated else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, blocks.shortened_windows(), gate:
        place = blocks.Workplace(Path(folder).resolve(), runtimes=given.runtimes)
        while len(lines := ledger.lines()) < given.comparisons and time.monotonic() < ends_at:
            number = 1 + max((line["block"] for line in lines), default=-1)
            ledger.add(*measure(place, number, seed=given.seed, pairs=given.pairs))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=125)
    parser.add_argument("--pairs", type=int, default=1, help="comparisons of a block")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no block after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    parser.add_argument("--ungated", action="store_true", help="count disturbed launches too")
    parser.add_argument("--summary", action="store_true", help="measure nothing, print the figures of what there is")
    parser.add_argument("--runtimes", type=Path, default=blocks.runtimes_of_bench(), metavar="DIR")
    return parser.parse_args()


if __name__ == "__main__":
    main()
