"""Searches as classes: what each measures next, what it makes of an outcome that is missing, and what it answers."""

from dataclasses import replace

import pytest

from farm.contract.cells import CellSpec, Runtime
from farm.contract.document import Document
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.contract.verdicts import Verdict
from farm.rules.changes.watch_rounds import Rule
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.points import expand
from farm.rules.searches import sweeps, targets
from farm.rules.searches.bisection import Outcome
from farm.rules.searches.gate import Checks, Gate
from farm.rules.searches.search import Measured, SearchProblem, carry_out
from farm.rules.searches.since_when import LOST, SinceWhen, narrow
from farm.rules.searches.targets import FindingTarget, MetricTarget, make_step
from farm.rules.searches.watching import Watching
from farm.rules.searches.work_around import WorkAround
from onnxfarm.here.workbench import Machine
from tests.documents import NEW, OLD, make_comparison, make_document
from tests.unit.commands.made_up import MadeUpBench
from tests.unit.rules.test_beside import FAR
from tests.unit.rules.test_beside import document as document_of_models
from tests.unit.rules.test_watching import pair, told

SIDES = Runtime.of(OLD), Runtime.of(NEW)
MATRIX = matrices.from_options(runtime="1.29.0,1.31.1")
PLACES = {"c1": {"runtime": 0}, "c2": {"runtime": 1}}


def measured(document: Document, *, reviewed: frozenset[str] = frozenset()) -> Measured:
    return Measured(MATRIX, document, PLACES.__getitem__, reviewed)


def watching(*documents: Document, reviewed: frozenset[str] = frozenset()) -> Watching:
    """A round whose blocks were measured as these documents say."""
    search = Watching(lambda: MATRIX, SIDES, Rule())
    for document in documents:
        assert search.next() is not None
        search.record(measured(document, reviewed=reviewed))
    return search


def failing(code: ReasonCode) -> Document:
    return pair(status=CellStatus.FAILED, reason=Reason(code=code, text="It was not to be."))


def test_a_round_without_a_change_is_quiet_and_needs_no_fresh_block() -> None:
    search = watching(pair())
    assert search.next() is None
    answer = search.answer()
    assert (answer.outcome, answer.sentence) == ("quiet", "1 pair compared, no changes to report.")
    assert not search.is_undecided(search.measured[0])


@pytest.mark.parametrize(
    ("outcomes", "between"),
    [
        ({}, ("1.29.0", "1.32.0")),
        ({"1.31.0": "bad"}, ("1.29.0", "1.31.0")),
        ({"1.31.0": "bad", "1.30.0": "good"}, ("1.30.0", "1.31.0")),
        ({"1.31.0": "skipped", "1.30.0": "good"}, ("1.30.0", "1.32.0")),
        ({"1.31.0": "good", "1.30.0": "bad"}, ("1.29.0", "1.30.0")),
        ({"1.32.0": "good"}, ("1.29.0", "1.32.0")),
    ],
)
def test_each_step_of_a_bisection_narrows_since_when(outcomes: dict[str, str], between: tuple[str, str]) -> None:
    probes = {version: Runtime.of(f"onnxruntime=={version}") for version in outcomes}
    steps = [make_step(probes[version], Outcome(outcome), "") for version, outcome in outcomes.items()]
    assert narrow(steps, good="1.29.0", bad="1.32.0") == between


def test_what_alerts_is_shown_again_on_its_node_with_a_verdict_on_each_operator() -> None:
    search = watching(pair("slower", 1.3))
    fresh = search.next()
    assert fresh is not None
    assert (fresh.matrix.axes["hardware"], fresh.matrix.operators) == (("node:bench-1",), True)
    search.record(measured(pair("slower", 1.25)))
    answer = search.answer()
    assert (answer.outcome, len(answer.findings), answer.unconfirmed) == ("alert", 1, [])
    assert search.next() is None
    assert answer.sentence == answer.findings[0].text


def test_several_findings_are_counted_behind_the_worst() -> None:
    answer = watching(pair("slower", 1.3, metrics=[told("session_ms", 300.0, "slower")])).answer()
    assert answer.sentence.endswith(" 1 more finding.")


def test_what_a_fresh_block_does_not_show_is_no_alert() -> None:
    answer = watching(pair("slower", 1.3), pair()).answer()
    assert (answer.outcome, answer.findings, len(answer.unconfirmed)) == ("unconfirmed", [], 1)
    assert answer.sentence.endswith(answer.unconfirmed[0].text)


def short(ratio: float, **how: object) -> Document:
    """Six rounds of a busy machine, with an interval to five hundredths each way."""
    document = pair("undecided", ratio, metrics=[told("session_ms", 300.0, "undecided")])
    known = {"ci_low": ratio - 0.05, "ci_high": ratio + 0.05, "rounds": 6, "verdict_from": "processor"}
    document.comparisons[0] = document.comparisons[0].model_copy(update=known | how)
    return document


@pytest.mark.parametrize(
    ("again", "told_as"),
    [
        (short(1.36), "measured 31–41 % slower, but in 6 of the 8 rounds a verdict takes: the machine was busy."),
        (short(1.36, rounds=16, verdict_from="wall"), "measured 31–41 % slower in 16 rounds."),
        (failing(ReasonCode.CRASHED), "could not compare it: It was not to be."),
        (make_document(), "could not compare it: it has no such pair."),
    ],
)
def test_what_a_fresh_block_leaves_open_is_undecided_and_says_why(again: Document, told_as: str) -> None:
    search = watching(pair("slower", 1.34), again)
    assert search.is_undecided(search.measured[-1])
    answer = search.answer()
    assert (answer.outcome, answer.findings, answer.unconfirmed) == ("undecided", [], [])
    assert answer.sentence.endswith(f"A fresh block {told_as}"), answer.sentence


def test_a_metric_that_a_fresh_block_leaves_open_is_undecided_too() -> None:
    answer = watching(pair(metrics=[told("session_ms", 300.0, "slower")]), short(1.0, ci_high=1.01)).answer()
    assert answer.outcome == "undecided"
    assert "A fresh block does not tell, but in 6 of the 8 rounds a verdict takes" in answer.sentence


def test_a_fresh_block_with_an_answer_asks_for_no_more_rounds() -> None:
    search = watching(pair("slower", 1.3), pair())
    assert not search.is_undecided(search.measured[-1])


def test_an_undecided_series_beside_one_that_was_not_confirmed_keeps_the_round_undecided() -> None:
    first = pair("slower", 1.3, metrics=[told("session_ms", 300.0, "undecided")])
    assert watching(first, pair()).answer().outcome == "undecided"


def test_a_fresh_block_that_fails_on_the_pipeline_says_so() -> None:
    answer = watching(pair("slower", 1.3), failing(ReasonCode.NODE_LOST)).answer()
    assert answer.outcome == "infra"
    assert answer.judgement.infra


def test_where_no_fresh_block_can_be_measured_only_what_is_no_noise_counts() -> None:
    search = watching(pair("slower", 1.3))
    answer = search.answer_unconfirmed("the node left")
    assert (answer.findings, answer.outcome) == ([], "infra")
    assert "It could not be confirmed: the node left" in answer.sentence


def test_what_a_node_under_review_measured_does_not_count_and_undecided_is_said() -> None:
    answer = watching(pair("slower", 1.3), reviewed=frozenset({"bench-1"})).answer()
    assert answer.findings == ()
    assert "the node is under review" in answer.sentence
    undecided = watching(pair(metrics=[told("session_ms", 300.0, "undecided")]))
    assert undecided.is_undecided(undecided.measured[0])
    assert undecided.answer().sentence == undecided.judgements[0].undecided[0]


def test_a_metric_that_never_alerts_is_no_finding() -> None:
    later = told("session_ms").model_copy(update={"name": "p99_ms", "verdict": "slower", "ratio": 2.0})
    document = pair()
    document.comparisons[0].metrics.append(later)
    assert watching(document).answer().outcome == "quiet"


def around(p50_ms: float) -> tuple[WorkAround, MadeUpBench]:
    """A search of which the new runtime takes twice as long, and `p50_ms` without the optimizer SlowFusion."""

    def latency(spec: CellSpec) -> float:
        if spec.runtime == SIDES[0]:
            return 1.0
        return p50_ms if "SlowFusion" in spec.session.disabled_optimizers else 2.0

    point = next(each for each in expand(MATRIX).points if each.values["runtime"] == SIDES[1])
    names = ["SlowFusion", "OtherFusion", "ThirdFusion"]
    return WorkAround(lambda: (MATRIX, point, 12), *SIDES, lambda: names), MadeUpBench(p50_ms=latency)


def test_a_work_around_is_found_by_its_blocks_and_told_as_code() -> None:
    search, bench = around(1.0)
    answer = carry_out(search, Machine(bench, lambda block: block))
    assert answer.plain["is_found"]
    assert "SlowFusion" in str(answer.plain["code"])
    assert "SlowFusion" in answer.sentence


def test_where_nothing_undoes_the_change_that_is_said_after_a_few_steps() -> None:
    search, bench = around(2.0)
    answer = carry_out(search, Machine(bench, lambda block: block))
    assert not answer.plain["is_found"]
    assert answer.sentence.startswith(f"None of {answer.plain['tried']} sets of session options")
    assert 1 < len(search.steps) <= 4


def test_a_lost_block_of_candidates_has_no_trials() -> None:
    search, _ = around(1.0)
    experiment = search.next()
    assert experiment is not None
    step = search.read(experiment.asked, None)
    assert (step["trials"], search.is_undecided(step)) == ([], False)


def test_a_lost_probe_is_skipped_and_one_that_nobody_asked_for_ends_the_search() -> None:
    versions = ["1.29.0", "1.30.0", "1.31.0", "1.31.1"]
    search = SinceWhen(lambda: MATRIX, versions, *SIDES, target=FindingTarget(Rule(), "slower", "series"))
    experiment = search.next()
    assert experiment is not None
    step = search.read(experiment.asked, None)
    assert (step["outcome"], step["text"]) == ("skipped", LOST)
    with pytest.raises(SearchProblem, match="were published in the meantime"):
        search.record({**step, "version": "1.30.9"})


def test_what_the_pipeline_spoilt_is_no_question_and_a_metric_has_its_own_ratio() -> None:
    with pytest.raises(SearchProblem, match="could not be measured") as problem:
        targets.find_worst_change(failing(ReasonCode.NODE_LOST), Rule(), good=SIDES[0], bad=SIDES[1])
    assert problem.value.is_infra
    assert MetricTarget("series", told("session_ms", 150.0)).ratio == 1.5


@pytest.mark.parametrize(("fits", "parts"), [(True, 1), (False, 2)])
def test_a_sweep_is_cut_into_parts_of_one_block_each_where_that_can_be(fits: bool, parts: int) -> None:
    versions = ["1.29.0", "1.30.0", "1.31.0", "1.31.1"]
    sweep = sweeps.Sweep(matrices.from_options(), "onnxruntime", versions, "1.29.0", lambda matrix: fits)
    first = sweep.next()
    assert first is not None
    assert (f"of {parts}:" in first.title) == fits


@pytest.mark.parametrize("named", [{"runtime": "1.31.1"}, {}], ids=["named", "the newest"])
def test_a_gate_of_two_models_shows_a_slower_one_again_on_its_runtimes(named: dict[str, object]) -> None:
    matrix = matrices.from_options(**named)
    place = dict.fromkeys(named, 0)
    slower = Measured(matrix, document_of_models(FAR), lambda cell: place | {"model": int(cell == "c2")})
    gate = Gate(lambda: matrix, None, Checks(fail_on=("slower",)))
    gate.record(slower)
    fresh = gate.next()
    assert fresh is not None
    assert fresh.matrix.axes["runtime"] == (SIDES[1],)
    gate.record(slower)
    assert not gate.answer().answer.is_passed
    calm = replace(slower, document=document_of_models(FAR, medians=(1.0, 1.0)))
    once = Gate(lambda: matrix, None, Checks(fail_on=("slower",)), measured=[slower, calm])
    assert once.next() is None
    assert once.answer().answer.is_passed


@pytest.mark.parametrize(("last", "is_passed"), [("slower", False), ("equal", True), ("undecided", True)])
def test_a_fresh_block_that_decides_nothing_is_measured_once_more(last: Verdict, is_passed: bool) -> None:
    matrix = matrices.parse({"runtime": [OLD, NEW]})

    def measured(verdict: Verdict) -> Measured:
        return Measured(matrix, pair(verdict, 1.34), lambda cell: {"runtime": int(cell == "c2")})

    gate = Gate(lambda: matrix, SIDES, Checks(fail_on=("slower",)), measured=[measured("slower")])
    for verdict in ("undecided", last):
        assert gate.next() is not None
        gate.record(measured(verdict))
    assert gate.next() is None
    assert gate.answer().answer.is_passed == is_passed


@pytest.mark.parametrize("is_timed", [True, False])
def test_a_metric_that_a_fresh_block_does_not_decide_is_measured_once_more_and_left_open(is_timed: bool) -> None:
    """The gate said that the fresh block did not show it again, which had timed nothing of it."""
    matrix = matrices.parse({"runtime": [OLD, NEW]})
    session = told("session_ms", 300.0, "undecided")
    left_open = [session] if is_timed else [told("first_ms")]
    known = [[told("session_ms", 300.0, "slower")], left_open, [told("session_ms")]]
    documents = [
        make_document(*pair().cells, comparisons=[make_comparison("equal", 1.0, metrics=changes)]) for changes in known
    ]
    first, again, calm = (Measured(matrix, found, lambda cell: {"runtime": int(cell == "c2")}) for found in documents)
    checks = Checks(fail_on=("slower",), metrics=("session_ms",))
    gate = Gate(lambda: matrix, SIDES, checks, measured=[first, again])
    assert gate.next() is not None
    gate.record(again)
    assert gate.next() is None
    [finding] = gate.answer().answer.findings
    assert (finding.check, finding.metric, finding.is_failure) == ("undecided", "session_ms", False)
    assert Gate(lambda: matrix, SIDES, checks, measured=[first, calm]).next() is None
