"""The judge: which releases are slower or faster by a bare loop on the same wheels. Knows nothing of the product.

In each round every release is one fresh process, in random order. A change holds here where processor time at the two
reported releases differs by `LEAST` at least, in the reported direction, in all rounds but one.
"""

import json
import math
import os
import random
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOP = Path(__file__).with_name("loop.py")
ROUNDS, SECONDS, LEAST = 8, 0.25, 1.05
TIMEOUT_S = 120.0
# without these ONNX Runtime 1.29 starts a thread of its own
QUIET = {"ORT_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Times:
    """Processor microseconds of an inference by release, one number a round; the share of a core that processes got."""

    us: dict[str, list[float]]
    share: float


class JudgeProblem(Exception):
    """A release cannot be judged; the message is its last line."""


@dataclass(frozen=True)
class Ruling:
    """`ratio`: of the later reported release to the earlier one. `alike`: rounds on the side of the ratio, of `rounds`.

    `since`: the first release that lies nearer to the later one than to the earlier; empty where nothing changed.
    `ratios`: of every release to the first one. `us`: processor time of an inference at the first one.
    """

    ratio: float
    alike: int
    rounds: int
    since: str
    ratios: dict[str, float]
    us: float

    def holds(self, verdict: str) -> bool:
        """Whether the releases differ as the verdict says, here."""
        size = self.ratio if verdict == "slower" else 1.0 / self.ratio
        return size >= LEAST and self.alike >= self.rounds - 1

    @property
    def is_quiet(self) -> bool:
        """Whether they do not differ, either way."""
        return not (self.holds("slower") or self.holds("faster"))


def measured(pythons: Mapping[str, Path], *, model: Path, inputs: Path, rounds: int = ROUNDS, seed: int = 1) -> Times:
    """Every release in every round, in random order."""
    dice = random.Random(seed)
    found: dict[str, list[float]] = {version: [] for version in pythons}
    shares = []
    for _ in range(rounds):
        for version in dice.sample(list(pythons), len(pythons)):
            cpu_us, share = _one(pythons[version], model=model, inputs=inputs, version=version)
            found[version].append(cpu_us)
            shares.append(share)
    return Times(found, statistics.median(shares))


def ruled(found: Mapping[str, Sequence[float]], *, before: str, after: str) -> Ruling:
    """What the numbers say of two releases, and since when, among all that were measured, in the order given."""
    pairs = [new / old for old, new in zip(found[before], found[after], strict=True)]
    ratio = statistics.median(pairs)
    ratios = {
        version: statistics.median([new / old for old, new in zip(found[before], times, strict=True)])
        for version, times in found.items()
    }
    alike = sum((one > 1.0) == (ratio > 1.0) for one in pairs)
    ruling = Ruling(ratio, alike, len(pairs), "", ratios, statistics.median(found[before]))
    since = "" if ruling.is_quiet else _since(ratios, ratio)
    return Ruling(ratio, alike, len(pairs), since, ratios, ruling.us)


def _since(ratios: Mapping[str, float], ratio: float) -> str:
    """The first release that has more than half of the change, on the log scale."""
    share = ((version, math.log(one) / math.log(ratio)) for version, one in ratios.items())
    return next(version for version, part in share if part >= 0.5)


def _one(python: Path, *, model: Path, inputs: Path, version: str) -> tuple[float, float]:
    words = [str(python), "-I", str(LOOP), str(model), str(inputs), str(SECONDS)]
    asked = subprocess.run(
        words, env=os.environ | QUIET, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )  # fmt: skip
    if asked.returncode != 0:
        last = [line for line in asked.stderr.splitlines() if line.strip()][-1:]
        raise JudgeProblem(f"ONNX Runtime {version} does not run it: {last[0][:300] if last else asked.returncode}")
    said = json.loads(asked.stdout.splitlines()[-1])
    if said["runtime"] != version:
        raise JudgeProblem(f"{python} has ONNX Runtime {said['runtime']}, not {version}.")
    return float(said["cpu_us"]), float(said["share"])
