"""How well level shifts are found: F1 on labelled series, beside E-divisive (Apache Otava) and PELT (ruptures).

    python -m tests.bench.changepoints --series 1000 --seed 2026

A shift counts as found when an index within three rows of it is reported, each of both used once. The two others run
in environments of their own, made with uv in a temporary folder, on the same series; where one cannot be installed the
reason stands in its place. Otava runs with its defaults and with our thresholds; PELT, which leaves the penalty to the
user, with three of them in units of robust variance × ln n, on the logarithms.

The same is then asked of public series that people labelled (tests/bench/public_series.py), and of the generated ones
rounded to coarse units, where neighbours are often equal.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farm.rules.comparing import changepoints
from tests.bench import figure, public_series
from tests.bench.series import Labelled, labelled_series, rounded
from tests.options import read_options

TOLERANCE = 3
INSTALL_TIMEOUT_S = 600
RUN_TIMEOUT_S = 3600

OTAVA = """
import json, sys
from otava.analysis import compute_change_points
given = json.load(sys.stdin)
settings = {"defaults": {}, "our thresholds": {"max_pvalue": 1e-5, "min_magnitude": 0.02}}
json.dump({
    name: [[int(point.index) for point in compute_change_points(values, **chosen)[0]] for values in given]
    for name, chosen in settings.items()
}, sys.stdout)
"""

PELT = """
import json, sys
import numpy, ruptures
def cuts(values, penalty):
    values = numpy.asarray(values)
    logs = numpy.log(values) if (values > 0).all() else values
    sigma = 1.4826 / 2 ** 0.5 * numpy.median(numpy.abs(numpy.diff(logs)))
    search = ruptures.Pelt(model="l2", min_size=3, jump=1).fit(logs / sigma)
    return search.predict(pen=penalty * numpy.log(len(logs)))[:-1]
given = json.load(sys.stdin)
json.dump({
    f"penalty {penalty} ln n": [[int(cut) for cut in cuts(values, penalty)] for values in given]
    for penalty in (3, 10, 30)
}, sys.stdout)
"""

RIVALS = {"apache-otava": OTAVA, "ruptures": PELT}
# units of rounding, as a share of the series' median
UNITS = (0.005, 0.01, 0.02, 0.05)
Values = Sequence[Sequence[float]]


def score(series: Sequence[Labelled], found: Sequence[Sequence[int]]) -> dict[str, dict[str, float | int | None]]:
    """Precision, recall and F1 over all series and over each kind; None where there is nothing to find."""
    kinds = ["all", *dict.fromkeys(one.kind for one in series)]
    scores = {}
    for kind in kinds:
        chosen = [(one, indices) for one, indices in zip(series, found, strict=True) if kind in ("all", one.kind)]
        hits = sum(_hits(one.shifts, indices) for one, indices in chosen)
        reported = sum(len(indices) for _, indices in chosen)
        labelled = sum(len(one.shifts) for one, _ in chosen)
        scores[kind] = {
            "labelled": labelled,
            "found": hits,
            "false": reported - hits,
            "precision": hits / reported if reported else None,
            "recall": hits / labelled if labelled else None,
            "f1": 2 * hits / (reported + labelled) if labelled else None,
        }
    return scores


def ours(series: Values) -> list[list[int]]:
    """The indices that the product reports."""
    return [[point.index for point in changepoints.find_changepoints(values)] for values in series]


def delays(seed: int) -> dict[str, dict[str, float]]:
    """How many of 500 shifts in noise of 1 % are reported when they have lasted so many rows, after 40 rows before."""
    rng = np.random.default_rng([seed, 40])
    shares: dict[str, dict[str, float]] = {}
    for shift in (0.03, 0.05, 0.10):
        found = {rows: sum(_is_reported(shift, rows, rng) for _ in range(500)) for rows in (3, 5, 10)}
        shares[f"{100 * shift:g} %"] = {f"{rows} rows": hits / 500 for rows, hits in found.items()}
    return shares


def of_rounded(series: Sequence[Labelled]) -> dict[str, dict[str, float | int | None]]:
    """Our score over all series, each rounded to a unit."""
    coarse = {f"{100 * unit:g} %": [rounded(one, unit=unit) for one in series] for unit in UNITS}
    return {unit: score(some, ours(_values(some)))["all"] for unit, some in coarse.items()}


def rival(package: str, program: str, series: Values) -> dict[str, list[list[int]]] | str:
    """The indices by setting that another package reports, or why it could not be asked."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        return "uv was not found."
    with tempfile.TemporaryDirectory(prefix="onnxfarm-changepoints-") as folder:
        python = str(Path(folder) / "bin" / "python")
        made = _run([uv, "venv", "--quiet", "--python", sys.executable, folder], timeout_s=INSTALL_TIMEOUT_S)
        failed = made or _run(
            [uv, "pip", "install", "--quiet", "--python", python, package], timeout_s=INSTALL_TIMEOUT_S
        )
        if failed:
            return f"{package} could not be installed: {failed}"
        asked = json.dumps(series)
        answered = subprocess.run(
            [python, "-c", program], input=asked, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
        )
    if answered.returncode:
        return f"{package} failed: {answered.stderr.strip().splitlines()[-1]}"
    by_setting: dict[str, list[list[int]]] = json.loads(answered.stdout)
    return by_setting


def main() -> None:
    given = read_options(__doc__, series=1000, seed=2026, alone=(False, "leave the other packages out"))
    series = labelled_series(given.series, seed=given.seed)
    found, seconds = _timed(lambda: ours(_values(series)))
    public = public_series.public_series()
    rivals: dict[str, Any] = {}
    for package, program in {} if given.alone else RIVALS.items():
        answers = rival(package, program, [*_values(series), *(one.values for one in public)])
        rivals[package] = answers if isinstance(answers, str) else _scores_of(answers, series, public)
    figure.publish(
        claim="Level shifts are told apart from drifts, spikes and noise that remembers.",
        seed=given.seed,
        figures={
            "series": given.series,
            "tolerance_rows": TOLERANCE,
            "onnxfarm": score(series, found),
            "onnxfarm_ms_a_series": 1000.0 * seconds / given.series,
            "rounded": of_rounded(series),
            "delays": delays(given.seed),
            "public": {
                "onnxfarm": public_series.scored(public, ours([one.values for one in public])),
                "published": public_series.published(public),
            },
            "others": rivals,
        },
    )


def _scores_of(
    answers: Mapping[str, list[list[int]]], series: Sequence[Labelled], public: Sequence[public_series.PublicSeries]
) -> dict[str, Any]:
    return {
        setting: score(series, cuts[: len(series)]) | {"public": public_series.scored(public, cuts[len(series) :])}
        for setting, cuts in answers.items()
    }


def _values(series: Sequence[Labelled]) -> list[list[float]]:
    return [one.values.tolist() for one in series]


def _is_reported(shift: float, rows: int, rng: np.random.Generator) -> bool:
    values = np.exp(0.01 * rng.normal(size=40 + rows))
    values[40:] *= 1.0 + shift
    return any(abs(point.index - 40) <= TOLERANCE for point in changepoints.find_changepoints(values.tolist()))


def _hits(shifts: Sequence[int], indices: Sequence[int]) -> int:
    """Pairs each reported index with the nearest shift that is free and within the tolerance."""
    free = list(shifts)
    for index in sorted(indices):
        near = [shift for shift in free if abs(shift - index) <= TOLERANCE]
        if near:
            free.remove(min(near, key=lambda shift: abs(shift - index)))
    return len(shifts) - len(free)


def _run(command: Sequence[str], *, timeout_s: float) -> str:
    """Empty, or why the command failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {timeout_s} s"
    return done.stderr.strip() if done.returncode else ""


def _timed(call: Callable[[], list[list[int]]]) -> tuple[list[list[int]], float]:
    start = time.process_time()
    answer = call()
    return answer, time.process_time() - start


if __name__ == "__main__":
    main()
