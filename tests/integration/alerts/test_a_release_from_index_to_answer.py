"""The main road: a release appears, is measured, confirmed, told of, looked into, and a later one resolves it."""

from collections.abc import Callable

import pytest

from farm.accounts.models import User
from farm.alerts.models import Alert, Investigation, Point, Watch, WatchRound
from farm.alerts.selectors.badges import describe_model_status
from farm.alerts.selectors.origins import explain_origin
from farm.alerts.selectors.release_cards import read_card
from farm.alerts.services.causes import call_watch
from farm.alerts.states import AlertState, InvestigationState, RoundOutcome, RoundState
from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.changes.release_card import OF_SEARCH
from farm.rules.runtimes.order import release_order
from farm.runs.models import Event, Run
from tests.integration.alerts.driving import MATRIX, Lab, make_watch, offer, slower_from

pytestmark = pytest.mark.django_db


def test_nothing_is_measured_while_the_index_has_nothing_newer(watch: Watch, lab: Lab) -> None:
    lab.live()
    assert WatchRound.objects.count() == 0


def test_nothing_is_measured_before_the_index_has_answered(version: Version, member: User, lab: Lab) -> None:
    make_watch(version, member)
    lab.live()
    assert WatchRound.objects.count() == 0


def test_a_pre_release_is_measured_by_watches_that_ask_for_them_alone(version: Version, member: User, lab: Lab) -> None:
    make_watch(version, member)
    early = make_watch(version, member, name="early", matrix={**MATRIX, "pre": True})
    assert (early.with_prereleases, early.matrix.get("pre")) == (True, None)
    offer("1.29.0", "1.33.0rc1")
    lab.live()
    one = WatchRound.objects.get()
    assert (one.watch, one.new, one.outcome) == (early, "1.33.0rc1", RoundOutcome.QUIET)
    offer("1.29.0", "1.33.0rc1", "1.33.0")
    lab.live()
    assert sorted(WatchRound.objects.values_list("watch__name", "old", "new")) == [
        ("early", "1.29.0", "1.33.0rc1"),
        ("early", "1.33.0rc1", "1.33.0"),
        ("upgrades", "1.29.0", "1.33.0"),
    ]


def test_a_release_that_is_equal_opens_nothing(watch: Watch, lab: Lab) -> None:
    offer("1.29.0", "1.30.0")
    lab.live()
    one = WatchRound.objects.get()
    assert (one.old, one.new, one.outcome) == ("1.29.0", "1.30.0", RoundOutcome.QUIET)
    assert Alert.objects.count() == 0
    assert Run.objects.count() == 1
    lab.live()
    assert WatchRound.objects.count() == 1


@pytest.mark.slow
def test_a_slower_release_ends_in_one_alert_with_cause_release_and_operator(watch: Watch, node: Node) -> None:
    lab = Lab(node, p50_ms=slower_from("1.31.0"))
    lab.slow = {f"onnxruntime=={version}": 1.24 for version in ("1.31.0", "1.31.1")}
    offer("1.29.0", "1.30.0", "1.31.0", "1.31.1")
    lab.live()
    one = WatchRound.objects.get()
    assert (one.outcome, one.old, one.new) == (RoundOutcome.ALERT, "1.29.0", "1.31.1")
    # whoever reads the alert asks which operator it was
    assert one.confirming.matrix["operators"] is True
    assert "operators" not in one.run.matrix
    alert = Alert.objects.get()
    assert (alert.state, alert.node, alert.good, alert.bad) == (AlertState.OPEN, "bench-1", "1.29.0", "1.31.1")
    assert alert.sentence.startswith("ONNX Runtime 1.31.1 runs encoder (CPU, fp32, batch 1, 1 thread) 23 % slower")
    assert "slower than 1.29.0 on bench-1" in alert.sentence
    assert alert.symptoms.get().explanation.startswith("SkipLayerNormalization: 2 nodes")
    since = alert.investigations.get(kind="since_when")
    assert since.state == InvestigationState.ANSWERED
    assert since.answer["first_bad"] == "1.31.0"
    assert since.sentence.startswith("1.31.0 is the first bad release; 1.30.0 was still good")
    alert.refresh_from_db()
    assert (alert.first_bad, alert.last_good, alert.earliest_bad) == ("1.31.0", "1.30.0", "1.31.0")
    assert list(alert.events.values_list("kind", flat=True)) == ["opened", "explained"]
    assert_every_run_says_why(one, alert)
    # a release that the bisection alone measured has a place on its card
    (row,) = read_card(watch.created_by, "onnxruntime", "1.30.0").card.rows
    assert (row.on_node("bench-1").sign.word, row.on_node("bench-1").text) == ("equal", OF_SEARCH)


def assert_every_run_says_why(one: WatchRound, alert: Alert) -> None:
    assert one.run is not None
    assert (one.run.reason, one.confirming.reason) == ("watch", "confirmation")
    why = {run.reason: explain_origin(run) for run in Run.objects.all()}
    assert set(why) == {"watch", "confirmation", "bisection", "work-around"}
    assert [getattr(why[reason], "watch", None) for reason in ("watch", "confirmation")] == [one.watch_id] * 2
    assert [getattr(why[reason], "alert", None) for reason in ("bisection", "work-around")] == [alert.pk] * 2
    assert "to confirm a finding of watch" in str(why["confirmation"])


@pytest.mark.slow
def test_a_work_around_is_found_by_name_measured_and_offered(watch: Watch, node: Node) -> None:
    wanted = "BiasSoftmaxFusion"

    def latency(spec: CellSpec) -> float:
        is_slow = spec.runtime.version == "1.30.0" and wanted not in spec.session.disabled_optimizers
        return 1.24 if is_slow and spec.session.optimization == "all" else 1.0 if not is_slow else 1.1

    lab = Lab(node, p50_ms=latency)
    offer("1.29.0", "1.30.0")
    lab.live()
    found = Investigation.objects.get(kind="work_around")
    assert found.state == InvestigationState.ANSWERED, found.sentence
    assert found.answer["candidate"]["names"] == [wanted]
    assert found.answer["comparison"]["verdict"] == "faster"
    assert found.answer["undone"] == pytest.approx(1.0, abs=0.15)
    assert "disabled_optimizers=['BiasSoftmaxFusion']" in found.answer["code"]


@pytest.mark.slow
def test_a_change_that_no_switch_undoes_is_said(watch: Watch, node: Node) -> None:
    lab = Lab(node, p50_ms=slower_from("1.30.0"))
    offer("1.29.0", "1.30.0")
    lab.live()
    found = Investigation.objects.get(kind="work_around")
    assert found.answer["is_found"] is False
    assert "session options recovers as much" in found.sentence


def test_a_release_next_to_the_good_one_needs_no_bisection(watch: Watch, node: Node) -> None:
    offer("1.29.0", "1.30.0")
    Lab(node, p50_ms=slower_from("1.30.0")).live()
    since = Investigation.objects.get(kind="since_when")
    assert (since.answer["first_bad"], since.steps) == ("1.30.0", [])


def test_a_step_whose_rounds_do_not_tell_goes_on_to_the_last_look(watch: Watch, node: Node) -> None:
    offer("1.29.0", "1.30.0", "1.31.0")
    first_rounds = iter([1.0, 1.5, 1.05, 1.4, 1.0, 1.5, 1.05, 1.4])

    def latency(spec: CellSpec) -> float:
        if spec.runtime.version == "1.30.0" and Investigation.objects.filter(kind="since_when").exists():
            return next(first_rounds, 1.24)
        return 1.0 if spec.runtime.version == "1.29.0" else 1.24

    Lab(node, p50_ms=latency).live()
    since = Investigation.objects.get(kind="since_when")
    assert [(step["version"], step["outcome"]) for step in since.steps] == [("1.30.0", "bad")]
    assert since.answer["first_bad"] == "1.30.0"
    assert "continues for 16 more rounds" in " ".join(Event.objects.values_list("text", flat=True))


def test_a_candidate_older_than_the_good_release_is_not_asked_since_when(watch: Watch, node: Node, member: User):
    reason = Reason(code=ReasonCode.CRASHED, text="It died.")
    lab = Lab(node, checks=lambda spec: {"reason": reason} if spec.runtime.version == "1.27.0" else {})
    call_watch(watch=watch, by=member, candidate="1.27.0")
    lab.live()
    alert = Alert.objects.get()
    assert (alert.state, alert.good, alert.bad) == (AlertState.OPEN, "1.29.0", "1.27.0")
    assert not alert.investigations.exists()
    assert list(alert.events.values_list("kind", flat=True)) == ["opened"]


def test_what_a_fresh_block_does_not_show_again_is_no_alert(watch: Watch, node: Node) -> None:
    offer("1.29.0", "1.30.0")
    seen: set[str] = set()

    def latency(spec: CellSpec) -> float:
        return 1.24 if spec.runtime.version == "1.30.0" and not seen else 1.0

    lab = Lab(node, p50_ms=latency)
    measure = lab.measure
    lab.measure = lambda run, **how: (measure(run, **how), seen.add("once"))[0]  # type: ignore[method-assign]
    lab.live()
    one = WatchRound.objects.get()
    assert one.outcome == RoundOutcome.UNCONFIRMED
    assert one.sentence.startswith("Not confirmed by a fresh block: ")
    assert Alert.objects.count() == 0


def fresh(*first: float, later: float) -> Callable[[CellSpec], float]:
    """1.30.0 is a quarter slower, and takes these times in the block that confirms it."""
    times = iter(first)

    def latency(spec: CellSpec) -> float:
        is_fresh = WatchRound.objects.filter(state=RoundState.CONFIRMING).exists()
        return 1.0 if spec.runtime.version != "1.30.0" else next(times, later) if is_fresh else 1.24

    return latency


WIDE = (1.0, 1.5, 1.05, 1.4, 1.0, 1.5, 1.05, 1.4)


def test_a_fresh_block_that_does_not_tell_goes_on_once_and_confirms(watch: Watch, node: Node) -> None:
    offer("1.29.0", "1.30.0")
    Lab(node, p50_ms=fresh(*WIDE, later=1.24)).live()
    one = WatchRound.objects.get()
    assert (one.outcome, one.is_extended, Alert.objects.count()) == (RoundOutcome.ALERT, True, 1)
    told = Event.objects.filter(run=one.confirming, kind="more_rounds").values_list("text", flat=True)
    assert list(told) == ["Watch “upgrades” asked for 8 more rounds of 1 block."]


def test_an_alert_and_the_point_of_its_release_show_one_figure(watch: Watch, node: Node) -> None:
    """The alert was of the fresh block, and the series beside it of the block that found the change."""
    offer("1.29.0", "1.30.0")
    Lab(node, p50_ms=fresh(later=1.15)).live()
    (symptom,) = Alert.objects.get().symptoms.all()
    point = Point.objects.get(runtime="onnxruntime==1.30.0")
    assert point.ratio == symptom.comparison["ratio"] == pytest.approx(1.15, rel=0.02)


def test_a_fresh_block_that_never_tells_leaves_the_round_undecided(watch: Watch, node: Node) -> None:
    offer("1.29.0", "1.30.0")
    Lab(node, p50_ms=fresh(*[0.8, 1.5] * 20, later=1.0)).live()
    one = WatchRound.objects.get()
    assert (one.outcome, Alert.objects.count()) == (RoundOutcome.UNDECIDED, 0)
    assert one.sentence.startswith("Undecided: ONNX Runtime 1.30.0 runs encoder ")
    assert Event.objects.filter(run=one.confirming, kind="more_rounds").count() == 1
    assert describe_model_status(one.version.model)[1:] == ("1.30.0 undecided", "unsure")


@pytest.mark.slow
def test_a_later_release_that_is_well_again_resolves_the_alert(watch: Watch, node: Node) -> None:
    def latency(spec: CellSpec) -> float:
        return 1.24 if spec.runtime.version in ("1.30.0", "1.31.0") else 1.0

    lab = Lab(node, p50_ms=latency)
    for newest in ("1.30.0", "1.31.0", "1.31.1"):
        offer(*[one for one in ("1.29.0", "1.30.0", "1.31.0", "1.31.1") if release_order(one) <= release_order(newest)])
        lab.live()
    alert = Alert.objects.get()
    assert (alert.bad, alert.state, alert.resolved_in) == ("1.30.0", AlertState.RESOLVED, "1.31.1")
    assert [one.outcome for one in WatchRound.objects.order_by("pk")] == ["alert", "quiet", "news"]
    assert list(alert.events.values_list("kind", flat=True)) == ["opened", "explained", "seen_again", "resolved"]


@pytest.mark.slow
def test_a_second_step_in_a_later_release_is_another_alert(watch: Watch, node: Node) -> None:
    by_version = {"1.29.0": 1.0, "1.30.0": 1.2, "1.31.0": 1.5}
    lab = Lab(node, p50_ms=lambda spec: by_version[spec.runtime.version])
    offer("1.29.0", "1.30.0")
    lab.live()
    offer("1.29.0", "1.30.0", "1.31.0")
    lab.live()
    assert [(one.good, one.bad) for one in Alert.objects.order_by("pk")] == [("1.29.0", "1.30.0"), ("1.30.0", "1.31.0")]


@pytest.mark.slow
def test_what_comes_back_opens_the_same_alert_again(watch: Watch, node: Node) -> None:
    by_version = {"1.29.0": 1.0, "1.30.0": 1.24, "1.31.0": 1.0, "1.31.1": 1.24}
    lab = Lab(node, p50_ms=lambda spec: by_version[spec.runtime.version])
    for newest in range(2, 5):
        offer(*list(by_version)[:newest])
        lab.live()
    alert = Alert.objects.get()
    assert alert.state == AlertState.OPEN
    assert list(alert.events.values_list("kind", flat=True)) == ["opened", "explained", "resolved", "reopened"]


@pytest.mark.slow
def test_every_release_is_a_point_of_the_long_series(watch: Watch, node: Node) -> None:
    lab = Lab(node, p50_ms=slower_from("1.31.0"))
    offer("1.29.0", "1.30.0")
    lab.live()
    offer("1.29.0", "1.30.0", "1.31.0")
    lab.live()
    points = {(one.round.new, one.runtime): one.ratio for one in Point.objects.all()}
    assert points["1.30.0", "onnxruntime==1.30.0"] == pytest.approx(1.0, rel=0.05)
    assert points["1.31.0", "onnxruntime==1.31.0"] == pytest.approx(1.24, rel=0.05)
    assert points["1.31.0", "onnxruntime==1.30.0"] == pytest.approx(1.0, rel=0.05)


@pytest.mark.slow
def test_the_alerts_of_two_models_stand_under_one_release(node: Node, owner: User, version: Version) -> None:
    from tests.integration.dashboard.rows import make_version

    other = make_version(version.model.team, owner, name="decoder")
    make_watch(version, owner, watched=[version.model, other.model])
    offer("1.29.0", "1.30.0")
    Lab(node, p50_ms=slower_from("1.30.0")).live()
    alerts = Alert.objects.order_by("model__name")
    assert [one.model.name for one in alerts] == ["decoder", "encoder"]
    assert {one.release for one in alerts} == {"onnxruntime==1.30.0"}


@pytest.mark.slow
def test_several_series_of_one_model_are_one_alert(node: Node, owner: User, version: Version) -> None:
    make_watch(version, owner, matrix={"batch": [1, 8], "precision": ["fp32", "int8-dynamic"]})
    offer("1.29.0", "1.30.0")
    Lab(node, p50_ms=slower_from("1.30.0")).live()
    assert Alert.objects.get().symptoms.count() == 4
