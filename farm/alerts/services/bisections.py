"""Since when, as a search over the releases that the farm knows; the alert's own evidence is its first step."""

from farm.alerts.models import Investigation
from farm.alerts.selectors.releases import between
from farm.alerts.services import measurements
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.subsets import narrowed
from farm.rules.searches.bisection import Outcome
from farm.rules.searches.since_when import SinceWhen
from farm.rules.searches.sought import SoughtKind


def search_of(one: Investigation) -> SinceWhen:
    """The search before its first step. Raises SearchProblem when the question itself is wrong."""
    alert, symptom, asked = one.alert, one.symptom, one.asked or {}
    good, bad = str(asked.get("good") or alert.good), str(asked.get("bad") or alert.bad)
    search = SinceWhen(
        lambda: _point(one, good=good, bad=bad),
        between(alert.distribution, good=good, bad=bad),
        good=alert.watch.runtime(good),
        bad=alert.watch.runtime(bad),
        sought=SoughtKind(alert.watch.rule, symptom.kind, symptom.series, symptom.size),
    )
    if (good, bad) == (alert.good, alert.bad):
        search.bisection.record(bad, Outcome.BAD)
    return search


def _point(one: Investigation, *, good: str, bad: str) -> Matrix:
    run = measurements.run_of(one)
    runtimes = [one.alert.watch.runtime(version) for version in (good, bad)]
    positions = measurements.positions_of(run, [one.symptom.cell])
    return narrowed(measurements.parsed(run), positions, runtimes=runtimes, hardware=[f"node:{one.symptom.node}"])
