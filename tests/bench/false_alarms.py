"""How often two arms of the same thing are called slower or faster: simulated blocks under several noises.

    python -m tests.bench.false_alarms --simulations 100000 --seed 1 [--ledger FILE.jsonl]

Two counts for every noise: `strict` with a margin of 0, where everything significant is an alarm, whatever its size,
and `shipped` with the default margin, at a small and a large everyday spread of the launches. With a ledger every
noise and setting is a line as soon as it is simulated, and a second call simulates those that are missing.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from farm.rules.comparing import statistics, verdicts
from farm.rules.comparing.comparisons import MARGIN
from tests.bench import figure, noise
from tests.bench.ledger import Ledger
from tests.options import read_options

TARGET = 0.01
SMALL_SPREAD = 0.01
LARGE_SPREAD = 0.05
CHUNK = 10_000
SETTINGS: dict[str, dict[str, float]] = {
    "strict": {"spread": LARGE_SPREAD, "margin": 0.0},
    "shipped, 1 % spread": {"spread": SMALL_SPREAD, "margin": MARGIN},
    "shipped, 5 % spread": {"spread": LARGE_SPREAD, "margin": MARGIN},
}


def count_verdicts(name: str, simulations: int, *, spread: float, margin: float, seed: int) -> Counter[str]:
    """The verdicts on so many blocks of A/A launches."""
    rng = np.random.default_rng([seed, *name.encode(), round(1e6 * spread), round(1e6 * margin)])
    counts: Counter[str] = Counter()
    for size in _chunks(simulations):
        pairs = np.exp(noise.ALL[name](size, spread, rng))
        counts.update(verdicts.count_verdicts(list(pairs), margin=margin))
    return counts


def summed_up(counts: Counter[str]) -> dict[str, Any]:
    """The rate of alarms with its 95 % Clopper-Pearson interval."""
    alarms, total = counts["slower"] + counts["faster"], counts.total()
    low, high = statistics.clopper_pearson(alarms, total)
    return {"rate": alarms / total, "low": low, "high": high, "verdicts": dict(counts)}


def main() -> None:
    given = read_options(__doc__, simulations=100_000, seed=1, ledger=Path)
    with tempfile.TemporaryDirectory() as folder:
        head = {"simulations": given.simulations, "seed": given.seed}
        ledger = Ledger(given.ledger or Path(folder) / "ledger.jsonl", head=head)
        _simulate(ledger, given.simulations, seed=given.seed)
        rates: dict[str, dict[str, Any]] = {name: {} for name in noise.ALL}
        for line in ledger.lines():
            rates[line["noise"]][line["setting"]] = line["rate"]
    held = {name: max(rate["rate"] for rate in by.values()) <= TARGET for name, by in rates.items()}
    figure.publish(
        claim=f"At most {100 * TARGET:g} % of comparisons of a thing with itself are called slower or faster.",
        seed=given.seed,
        figures={"simulations": given.simulations, "holds": held, "rates": rates},
    )


def _simulate(ledger: Ledger, simulations: int, *, seed: int) -> None:
    done = {(line["noise"], line["setting"]) for line in ledger.lines()}
    for name in noise.ALL:
        for setting, values in SETTINGS.items():
            if (name, setting) not in done:
                rate = summed_up(count_verdicts(name, simulations, seed=seed, **values))
                ledger.add({"noise": name, "setting": setting, "rate": rate})


def _chunks(total: int) -> Iterator[int]:
    for start in range(0, total, CHUNK):
        yield min(CHUNK, total - start)


if __name__ == "__main__":
    main()
