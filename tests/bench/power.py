"""How often a real change is called, and after how many rounds: simulated blocks with one arm made slower.

    python -m tests.bench.power --simulations 20000 --seed 1
    python -m tests.bench.power --recorded FILE.json

s is the standard deviation of ln(new / old) over the rounds of a block. Noise is normal; bimodal with the same s; or
normal with that s and, on top, one or two launches in ten that take 1.7 times as long. `smallest` and `wished` test
what the product says beforehand: the power at exactly the `smallest_detectable` of 8, 12, 16 and 24 rounds, and within
the rounds that `rounds_for` names.

A recorded file has real A/A launches, {"comparisons": [{"model": …, "pairs": [[old, new], …]}, …]}, as
`tests.bench.real_aa` writes it; the new ones are multiplied and nothing is simulated. Blocks of 24 rounds are three
consecutive ones of a model.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farm.rules.comparing import look_levels, power, verdicts
from farm.rules.comparing.comparisons import MARGIN
from tests.bench import figure, noise
from tests.options import read_options

SHIFTS = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20, 0.40)
DEVIATIONS = (0.007, 0.015, 0.03, 0.056)
# (s, shift) → the least power that is promised
TARGETS = {(0.015, 0.05): 0.95, (0.015, 0.03): 0.90}
SHAPES = ("normal", "bimodal", "slow launches", "two slow in ten")


def launches(shape: str, count: int, *, deviation: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Logarithms of the launches of two equal arms, with ln(new / old) of that standard deviation.

    Bimodal ones keep a tenth of slow launches and get their factor from s, with half the variance in it. For `slow
    launches` s is that of the other nine tenths, and the factor 1.7.
    """
    if shape == "normal":
        return noise.normal(count, deviation / np.sqrt(2.0), rng)
    if shape == "slow launches":
        return noise.bimodal(count, deviation / np.sqrt(2.0), rng)
    if shape == "two slow in ten":
        return noise.bimodal_twice(count, deviation / np.sqrt(2.0), rng)
    everyday = noise.normal(count, deviation / 2.0, rng)
    slow = rng.random(everyday.shape) < noise.SLOW_SHARE
    step = deviation / 2.0 / np.sqrt(noise.SLOW_SHARE * (1.0 - noise.SLOW_SHARE))
    return np.asarray(everyday + np.where(slow, step, 0.0))


def power_of(shape: str, shift: float, *, deviation: float, simulations: int, seed: int) -> dict[str, Any]:
    """The share called slower, and the mean rounds until any verdict."""
    rng = np.random.default_rng([seed, *shape.encode(), round(1e6 * deviation), round(1e6 * shift)])
    pairs = np.exp(launches(shape, simulations, deviation=deviation, rng=rng))
    pairs[:, :, 1] *= 1.0 + shift
    judged = verdicts.judge_many(list(pairs))
    found = [comparison for comparison in judged if comparison.verdict == "slower"]
    return {
        "slower": len(found) / simulations,
        "equal": sum(comparison.verdict == "equal" for comparison in judged) / simulations,
        "faster": sum(comparison.verdict == "faster" for comparison in judged) / simulations,
        "mean_rounds": sum(comparison.rounds_used for comparison in judged) / simulations,
    }


def promised(rounds: int, change: float, *, deviation: float, simulations: int, seed: int) -> dict[str, float]:
    """How often blocks of so many rounds at most call that change."""
    rng = np.random.default_rng([seed, rounds, round(1e6 * deviation), round(1e6 * change)])
    pairs = np.exp(launches("normal", simulations, deviation=deviation, rng=rng))[:, :rounds]
    pairs[:, :, 1] *= 1.0 + change
    return {"change": change, "rounds": rounds, "slower": verdicts.count_verdicts(list(pairs))["slower"] / simulations}


def recorded_power(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The share called slower of real A/A blocks whose new launches are made so much slower, and their real s."""
    blocks = [np.asarray(entry["pairs"], dtype=np.float64) for entry in entries if len(entry["pairs"]) > 1]
    deviations = [float(np.std(np.log(block[:, 1] / block[:, 0]), ddof=1)) for block in blocks]
    shares, rounds = {}, {}
    for shift in (0.0, *SHIFTS):
        judged = verdicts.judge_many([block * [1.0, 1.0 + shift] for block in blocks])
        shares[f"{100 * shift:g} %"] = round(sum(one.verdict == "slower" for one in judged) / len(judged), 4)
        rounds[f"{100 * shift:g} %"] = round(sum(one.rounds_used for one in judged) / len(judged), 1)
    quartiles = [round(float(share), 4) for share in np.percentile(deviations, [25, 50, 75])]
    return {"blocks": len(blocks), "s_quartiles": quartiles, "slower": shares, "mean_rounds": rounds}


def chained(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Blocks of as many rounds as the last look, each from consecutive blocks of one model; what is left over goes."""
    pairs: dict[str, list[Any]] = {}
    for entry in entries:
        pairs.setdefault(entry.get("model", ""), []).extend(entry["pairs"])
    most = look_levels.PLANNED_LOOKS[-1]
    return [
        {"model": model, "pairs": of[start : start + most]}
        for model, of in pairs.items()
        for start in range(0, len(of) - most + 1, most)
    ]


def recorded_figures(path: Path) -> dict[str, Any]:
    """The curves of a file's blocks as they are and chained to the last look, and of each of its models."""
    entries = json.loads(path.read_text())["comparisons"]
    models = {entry.get("model", "") for entry in entries}
    long = chained(entries)
    return {
        "as recorded": recorded_power(entries),
        "24 rounds": recorded_power(long) if long else None,
        "models": {
            model: {
                "as recorded": recorded_power([entry for entry in entries if entry.get("model", "") == model]),
                "24 rounds": recorded_power(of) if (of := [one for one in long if one["model"] == model]) else None,
            }
            for model in sorted(models)
        },
    }


def main() -> None:
    given = read_options(__doc__, simulations=20_000, seed=1, recorded=Path)
    if given.recorded:
        claim = "What real launches of this machine, made slower by a factor, are called."
        figure.publish(claim=claim, seed=given.seed, figures=recorded_figures(given.recorded))
        return
    settings = {"simulations": given.simulations, "seed": given.seed}
    curves = {
        shape: {
            f"s = {100 * deviation:g} %": {
                f"{100 * shift:g} %": power_of(shape, shift, deviation=deviation, **settings) for shift in SHIFTS
            }
            for deviation in DEVIATIONS
        }
        for shape in SHAPES
    }
    smallest = {
        f"s = {100 * s:g} %": [
            promised(rounds, power.smallest_detectable(s, rounds, MARGIN), deviation=s, **settings)
            for rounds in look_levels.PLANNED_LOOKS
        ]
        for s in DEVIATIONS
    }
    wished = {
        f"s = {100 * s:g} %": [
            promised(rounds, change, deviation=s, **settings)
            for change in SHIFTS
            if (rounds := power.rounds_for(change, s, MARGIN))
        ]
        for s in DEVIATIONS
    }
    held = {
        f"{100 * shift:g} % at s = {100 * s:g} %": curves["normal"][f"s = {100 * s:g} %"][f"{100 * shift:g} %"][
            "slower"
        ]
        >= least
        for (s, shift), least in TARGETS.items()
    }
    figure.publish(
        claim="At s = 1.5 % a change of 5 % is called in 95 of 100 blocks, and one of 3 % in 90.",
        seed=given.seed,
        figures={
            "simulations": given.simulations,
            "holds": held,
            "power": curves,
            "smallest": smallest,
            "wished": wished,
        },
    )


if __name__ == "__main__":
    main()
