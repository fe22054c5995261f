"""What is not latency in the same court: real A/A blocks of every metric, and a farm that sees no release change.

    python -m tests.bench.metrics_aa --comparisons 60 --pairs 4 --seed 1 --json FILE [--minutes 30] [--runtimes DIR]
    python -m tests.bench.metrics_aa --json FILE --simulate [--releases 1000]

Real: as `tests.bench.real_aa`, a comparison is eight rounds of one model and its A/A twin by the product's own path,
with short windows. Each metric that a comparison judges is called by the product's rule, and its pairs are a line of
FILE.jsonl; where the machine is busy session creation and first inference are processor times.

Both judge the recorded pairs anew, by the rule as it is today.

Simulated: a farm of 12 models, 3 nodes and 4 settings watches releases that change nothing. The rounds of each of its
comparisons are drawn, with replacement and with sides at random, from one recorded block, so that every pair keeps what
its two launches shared. Then comes the product's order: verdicts, Benjamini-Hochberg over the latencies of a run, the
rule of a watch, a fresh confirming block, and one alert for a model's kind of change over settings and nodes. `strict`
leaves the rule's thresholds out: whatever is called worse twice is an alert. Power: the candidate of session creation
is made 20 % slower, which the eight rounds of `quick` have to call.
"""

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farm.rules.cells.metrics import ALERTING, BY_NAME, JUDGED
from farm.rules.changes.watch_rounds import Rule
from farm.rules.comparing import fastest, margins, multiplicity, repeats, verdicts
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.judging import metric_verdicts
from farm.rules.wording.vocabulary import is_change
from tests.bench import blocks, figure
from tests.bench.ledger import Ledger, Line

ROUNDS = 8
MODELS, NODES, SETTINGS, RELEASES = 12, 3, 4, 10
MAX_CALLED, MAX_ALERTS, MIN_POWER, SLOWER = 2, 1.0, 0.9, 1.2
Pairs = Sequence[Sequence[float]]


def measure(place: blocks.Workplace, number: int, *, seed: int, pairs: int) -> list[Line]:
    """The comparisons of a block, each with every metric that it judges: its verdict, its clock and its pairs."""
    load = os.getloadavg()[0]
    subject, measured = place.measure_twins(number, seed=seed, pairs=pairs)
    judge = measured.judge
    judged = judge.judge(judge.block.comparisons)
    block = {"block": number, "model": subject.name, "load_1m": round(load, 2), "wall_s": round(measured.wall_s, 1)}
    lines = []
    for slot, (one, changes) in enumerate(zip(judged, metric_verdicts.judge_metrics(judge, judged), strict=True)):
        found = {
            change.name: {
                "verdict": change.verdict,
                "is_processor": change.is_processor or (change.name == JUDGED.name and one.verdict_from == "processor"),
                "pairs": [
                    [round(old, 6), round(new, 6)] for old, new in metric_verdicts.find_pairs(judge, one, change)
                ],
            }
            for change in changes
        }
        lines.append({"number": number * pairs + slot, **block, "metrics": found})
    return lines


def called(lines: Sequence[Line]) -> dict[str, dict[str, Any]]:
    """Of each metric how many real A/A comparisons were called, and by which clock."""
    found: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for line in lines for name in line["metrics"]):
        told = [line["metrics"][name] for line in lines if name in line["metrics"]]
        judged = verdicts_on(name, [one["pairs"] for one in told])
        found[name] = {
            "comparisons": len(told),
            "called": sum(is_change(verdict) for verdict, _ in judged),
            "by_processor_time": sum(one["is_processor"] for one in told),
            "verdicts": dict(Counter(verdict for verdict, _ in judged)),
        }
    return found


def verdicts_on(name: str, blocks: Sequence[Pairs]) -> list[tuple[str, float]]:
    """What the product's rule for the metric says of each block's pairs, and the ratio."""
    judging = BY_NAME[name].judging
    assert judging is not None
    if judging.by == "repeat":
        repeated = [repeats.judge([(old, new) for old, new in some], margin=judging.margin) for some in blocks]
        words = {"more": "bigger", "less": "smaller"}
        return [(words.get(one.direction, one.direction), one.ratio) for one in repeated if one is not None]
    judge_many = fastest.judge_many if judging.by == "fastest" else verdicts.judge_many
    judged = judge_many(blocks, margin=max(judging.margin, margins.MIN_MARGIN))
    holds = [True] * len(judged)
    if name == JUDGED.name:
        holds = multiplicity.benjamini_hochberg([one.p_total for one in judged])
    return [
        (one.verdict if held or not is_change(one.verdict) else "undecided", one.ratio)
        for one, held in zip(judged, holds, strict=True)
    ]


class Farm:
    """Comparisons of releases drawn from recorded ones: unchanged, unless all that is new is so many times the old."""

    def __init__(self, lines: Sequence[Line], *, seed: int, factor: float = 1.0) -> None:
        self._factor = factor
        self._dice = np.random.default_rng(seed)
        self._lines = [line for line in lines if JUDGED.name in line["metrics"]]
        self.metrics = [name for name in called(lines) if name == JUDGED.name or name in ALERTING]

    def alerts(self, *, rule: Rule | None) -> int:
        """How many alerts one release raises. `rule`: None for whatever is called worse."""
        places = [
            (model, node, setting, self._lines[self._dice.integers(len(self._lines))])
            for model in range(MODELS)
            for node in range(NODES)
            for setting in range(SETTINGS)
        ]
        causes = set()
        for name in self.metrics:
            known = [place for place in places if name in place[3]["metrics"]]
            first = self._worse(name, [line for *_, line in known], rule=rule)
            doubtful = [place for place, is_worse in zip(known, first, strict=True) if is_worse]
            again = self._worse(name, [line for *_, line in doubtful], rule=rule)
            # one cause of a model is one alert, over settings and nodes
            causes |= {(place[0], name) for place, is_worse in zip(doubtful, again, strict=True) if is_worse}
        return len(causes)

    def _worse(self, name: str, lines: Sequence[Line], *, rule: Rule | None) -> list[bool]:
        drawn = [self.drawn(line["metrics"][name]["pairs"], factor=self._factor) for line in lines]
        return [_is_worse(verdict, ratio, name, rule) for verdict, ratio in verdicts_on(name, drawn)]

    def drawn(
        self, pairs: Pairs, *, factor: float = 1.0, rounds: int = ROUNDS
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Rounds of these, sides at random, the candidate's times so much."""
        chosen = np.asarray(pairs)[self._dice.integers(len(pairs), size=rounds)]
        swapped = np.where(self._dice.random((rounds, 1)) < 0.5, chosen, chosen[:, ::-1])
        return swapped * np.array([1.0, factor])

    def power(self, name: str, *, times: int, rounds: int) -> float:
        """How often a change of SLOWER in a metric is called, over the recorded comparisons in turn."""
        known = [line for line in self._lines if name in line["metrics"]]
        drawn = [
            self.drawn(known[number % len(known)]["metrics"][name]["pairs"], factor=SLOWER, rounds=rounds)
            for number in range(times)
        ]
        return sum(verdict == "slower" for verdict, _ in verdicts_on(name, drawn)) / times


def _is_worse(verdict: str, ratio: float, name: str, rule: Rule | None) -> bool:
    if verdict not in ("slower", "bigger"):
        return False
    # what a repeat decides has no threshold of a rule
    if rule is None or verdict == "bigger":
        return True
    kind = "slower" if name == JUDGED.name else ALERTING[name].alerts_as
    return kind is not None and ratio > 1.0 + rule.allowed(kind)


def simulated(lines: Sequence[Line], *, releases: int, seed: int) -> dict[str, Any]:
    """Alerts in ten releases without a change, as a mean over so many, and the power of session creation."""
    farm = Farm(lines, seed=seed)
    by_rule, strict = ([farm.alerts(rule=rule) for _ in range(releases)] for rule in (Rule(), None))
    return {
        "metrics": farm.metrics,
        "comparisons_a_release": MODELS * NODES * SETTINGS * len(farm.metrics),
        "releases": releases,
        "alerts_in_ten": round(RELEASES * float(np.mean(by_rule)), 3),
        "alerts_in_ten_strict": round(RELEASES * float(np.mean(strict)), 3),
        "power_session_20_percent": {
            rounds: round(farm.power("session_ms", times=releases, rounds=rounds), 3) for rounds in PLANNED_LOOKS
        },
    }


def main() -> None:
    given = _options()
    path = given.json.with_suffix(".jsonl")
    head = {"seed": given.seed, "windows": blocks.SHORT, "runtime": blocks.RUNTIME, "pairs_a_block": given.pairs}
    if given.simulate:
        head = json.loads(path.read_text().splitlines()[0])
    ledger = Ledger(path, head=head)
    if not given.simulate:
        _go_on(ledger, given)
    lines = ledger.lines()
    found: dict[str, Any] = {"called": called(lines), "loads": _loads(lines), "machine": figure.machine()}
    if given.simulate:
        found |= simulated(lines, releases=given.releases, seed=given.seed)
    given.json.write_text(json.dumps(found, indent=1))
    claim = "Of 60 real A/A comparisons a metric at most 2 are called, and ten releases raise at most one false alert."
    holds = all(one["called"] <= MAX_CALLED for one in found["called"].values())
    if given.simulate:
        holds &= found["alerts_in_ten"] <= MAX_ALERTS and found["power_session_20_percent"][ROUNDS] >= MIN_POWER
    figure.publish(claim=claim, seed=head["seed"], figures={"holds": holds, **head, **found})


def _loads(lines: Sequence[Line]) -> list[float]:
    return [min(line["load_1m"] for line in lines), max(line["load_1m"] for line in lines)]


def _go_on(ledger: Ledger, given: argparse.Namespace) -> None:
    """Measures until there are as many comparisons as asked for, or the minutes are over."""
    ends_at = time.monotonic() + 60.0 * given.minutes
    with tempfile.TemporaryDirectory() as folder, blocks.shortened_windows():
        place = blocks.Workplace(Path(folder).resolve(), runtimes=given.runtimes)
        for number in _numbers(ledger, given, ends_at):
            ledger.add(*measure(place, number, seed=given.seed, pairs=given.pairs))


def _numbers(ledger: Ledger, given: argparse.Namespace, ends_at: float) -> Iterator[int]:
    while len(lines := ledger.lines()) < given.comparisons and time.monotonic() < ends_at:
        yield 1 + max((line["block"] for line in lines), default=-1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=1, help="comparisons of a block")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no block after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--simulate", action="store_true", help="measure nothing, draw from what there is")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    parser.add_argument("--runtimes", type=Path, default=blocks.runtimes_of_bench(), metavar="DIR")
    return parser.parse_args()


if __name__ == "__main__":
    main()
