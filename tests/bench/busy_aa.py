"""False alarms on a busy machine, by wall time, by processor time, and by the product's choice between them.

    python -m tests.bench.busy_aa --comparisons 125 --seed 1 --json FILE [--loops 2] [--minutes 30] [--runtimes DIR]

Real: a comparison is a block of eight rounds of one model and its A/A twin by the product's own path, with the
windows of `tests.bench.real_aa`, beside `--loops` processes that do nothing but run (`sh -c 'while :; do :; done'`);
they end with the call, however it ends. Each comparison is a line of FILE.jsonl, and a second call goes on where the
first one ended.

Simulated: blocks drawn from the recorded rounds of one comparison, each round with a random sign, so that there is no
difference. `quiet_share` mixes undisturbed rounds in, so that the choice between both times is tried where it may
change from look to look.
"""

import argparse
import contextlib
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farm.contract.reports import RoundReport
from farm.rules.comparing import statistics, verdicts
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.judging.counted_rounds import BUSY_SHARE
from tests.bench import blocks, figure
from tests.bench.ledger import Ledger, Line
from tests.bench.real_aa import ROUNDS, alarms

LOOP = ("sh", "-c", "while :; do :; done")
MOST_ROUNDS = 24
SIMULATIONS = 4_000
QUIET_SHARES = (0.0, 0.5, 0.75, 0.9)
WAYS = ("wall", "processor", "chosen")


@contextlib.contextmanager
def beside(loops: int) -> Iterator[None]:
    """So many busy processes, until the `with` ends."""
    running = [subprocess.Popen(LOOP) for _ in range(loops)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def measure(place: blocks.Workplace, number: int, *, seed: int) -> Line:
    """One comparison: each round with both times of both arms, and whether it was disturbed."""
    load = os.getloadavg()[0]
    subject, measured = place.measure_twins(number, seed=seed)
    (judged,) = measured.judge.comparisons()
    return {
        "number": number,
        "model": subject.name,
        "load_1m": round(load, 2),
        "wall_s": round(measured.wall_s, 1),
        "verdict": judged.verdict,
        "verdict_from": judged.verdict_from,
        **measured.sample_counts(),
        "rounds": [_round(report) for _, report in sorted(measured.judge.evidence.rounds.items())],
    }


def _round(report: RoundReport) -> dict[str, Any]:
    old, new = (place.sample for place in sorted(report.samples, key=lambda place: place.arm))
    assert old is not None
    assert new is not None
    return {
        "wall": [old.p50_ms, new.p50_ms],
        "processor": [old.cpu_p50_ms, new.cpu_p50_ms],
        "is_disturbed": old.is_disturbed or new.is_disturbed,
        "core_share": [old.cpu_share, new.cpu_share],
    }


def figures_of(lines: Sequence[Line]) -> dict[str, Any]:
    """False alarms of the real comparisons, and how much launches of each model differ by either time."""
    rounds = [one for line in lines for one in line["rounds"]]
    return {
        "comparisons": len(lines),
        "rounds": len(rounds),
        "disturbed_rounds": sum(one["is_disturbed"] for one in rounds),
        "load_1m": [min(line["load_1m"] for line in lines), max(line["load_1m"] for line in lines)],
        "seconds_a_comparison": round(float(np.median([line["wall_s"] for line in lines])), 1),
        "product": dict(Counter(f"{line['verdict']} by {line['verdict_from']}" for line in lines)),
        **{
            way: {
                "shipped": alarms([_pairs(line, way) for line in lines], margin=MARGIN),
                "strict": alarms([_pairs(line, way) for line in lines], margin=0.0),
            }
            for way in ("wall", "processor")
        },
        "s_percent": {
            name: {
                way: _spread([line for line in lines if line["model"] == name], way) for way in ("wall", "processor")
            }
            for name in dict.fromkeys(line["model"] for line in lines)
        },
    }


def simulated(lines: Sequence[Line], *, seed: int, count: int) -> list[dict[str, Any]]:
    """False alarms of blocks drawn from recorded rounds, at shares of quiet rounds."""
    dice = np.random.default_rng(seed)
    rounds = [_logs(line) for line in lines]
    return [
        {"quiet_share": share, "rounds": most} | _alarms_at(rounds, share, most, count=count, dice=dice)
        for share in QUIET_SHARES
        for most in (ROUNDS, MOST_ROUNDS)
    ]


def _alarms_at(
    rounds: Sequence[np.ndarray], share: float, most: int, *, count: int, dice: np.random.Generator
) -> dict[str, Any]:
    pairs: dict[str, list[np.ndarray]] = {way: [] for way in WAYS}
    for _ in range(count):
        own = rounds[int(dice.integers(len(rounds)))]
        drawn = own[dice.integers(len(own), size=most)] * dice.choice((-1.0, 1.0), size=(most, 1))
        is_quiet = dice.random(most) < share
        # an undisturbed round's wall time differs by what its processor time does
        wall = np.where(is_quiet, drawn[:, 1], drawn[:, 0])
        by = {"wall": wall, "processor": drawn[:, 1], "chosen": _chosen(wall, drawn[:, 1], is_quiet)}
        for way, logs in by.items():
            pairs[way].append(np.exp(np.stack([np.zeros(len(logs)), logs], axis=1)))
    return {
        f"{way}_{name}": _rate(verdicts.count_verdicts(some, margin=margin))
        for way, some in pairs.items()
        for name, margin in (("strict", 0.0), ("shipped", MARGIN))
    }


def _chosen(wall: np.ndarray, processor: np.ndarray, is_quiet: np.ndarray) -> np.ndarray:
    """As `farm.rules.judging.counted_rounds` chooses, at the first look at which the rule decides, else at the last.

    The choice is made anew at every look, by the rounds that there are.
    """
    for look in (rounds for rounds in PLANNED_LOOKS if rounds <= len(wall)):
        quiet = is_quiet[:look]
        calm = int(quiet.sum())
        is_busy = calm < look and (calm < ROUNDS or look - calm > BUSY_SHARE * look)
        logs = processor[:look] if is_busy else wall[:look][quiet]
        counts = verdicts.count_verdicts([np.exp(np.stack([np.zeros(len(logs)), logs], axis=1))], margin=0.0)
        if counts["slower"] + counts["faster"]:
            break
    return logs


def _rate(counts: Counter[Any]) -> dict[str, float]:
    hits, total = counts["slower"] + counts["faster"], counts.total()
    low, high = statistics.clopper_pearson(hits, total)
    return {"rate": hits / total, "low": low, "high": high}


def _logs(line: Line) -> np.ndarray:
    """Rounds by (wall, processor): ln(new / old)."""
    return np.array(
        [[np.log(one[way][1] / one[way][0]) for way in ("wall", "processor")] for one in line["rounds"]], dtype=float
    )


def _pairs(line: Line, way: str) -> list[list[float]]:
    return [one[way] for one in line["rounds"]]


def _spread(lines: Sequence[Line], way: str) -> float:
    each = [float(np.std(_logs(line)[:, ("wall", "processor").index(way)], ddof=1)) for line in lines]
    return round(100 * float(np.median(each)), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=125)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    parser.add_argument("--simulations", type=int, default=SIMULATIONS, help="blocks drawn for each simulated figure")
    parser.add_argument("--loops", type=int, default=2, help="busy processes beside it; 0: what else the machine does")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no comparison after so long")
    parser.add_argument("--runtimes", type=Path, default=blocks.runtimes_of_bench(), metavar="DIR")
    given = parser.parse_args()
    head = {"seed": given.seed, "windows": blocks.SHORT, "loops": given.loops, "runtime": blocks.RUNTIME}
    ledger = Ledger(given.json.with_suffix(".jsonl"), head=head)
    ends_at = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as folder, blocks.shortened_windows(), beside(given.loops):
        place = blocks.Workplace(Path(folder).resolve(), runtimes=given.runtimes)
        for number in range(len(ledger.lines()), given.comparisons):
            if time.monotonic() >= ends_at:
                break
            ledger.add(measure(place, number, seed=given.seed))
    lines = ledger.lines()
    found = {"real": figures_of(lines), "simulated": simulated(lines, seed=given.seed, count=given.simulations)}
    claim = "At most 1 % of comparisons of a thing with itself are called slower or faster on a busy machine."
    figure.publish(claim=claim, seed=given.seed, figures={**head, **found})


if __name__ == "__main__":
    main()
