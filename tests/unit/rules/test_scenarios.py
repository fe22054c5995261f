"""Scenarios: read from texts and mappings into one text, told in words, apart in blocks; old spellings are the same."""

from typing import Any

import pytest

from farm.contract.cells import CellSpec, Runtime, Workload
from farm.contract.document_cells import Cell, CellPhase, Figure, Parity
from farm.contract.reports import Phase, Sample
from farm.rules.cells import growth, scenarios, threads
from farm.rules.cells.fresh import Fresh
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.scenario_metrics import DIFFERING, GOODPUT, GROWTH, MAX_RATE
from farm.rules.cells.single import Single
from farm.rules.findings import cell_pairs
from farm.rules.judging.summaries import summarise_cell
from farm.rules.matrices import matrix
from farm.rules.planning import estimates, planner
from farm.rules.planning.plans import NodeOffer, PlannedBlock
from farm.rules.reporting import phases
from farm.rules.runtimes.models import SourceFacts
from farm.rules.wording.numbers import MIB
from tests.unit.rules.making import make_model, make_sample
from tests.unit.rules.test_cell_axes import cell
from tests.unit.rules.test_cell_matrices import cells_of


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("single", "single"),
        ({"single": None}, "single"),
        ("load:closed=4", "load:closed=4"),
        ({"load": {"closed": "4"}}, "load:closed=4"),
        ("load:closed=1", "single"),
        ("load:rate=50", "load:rate=50"),
        ({"load": {"rate": 50, "bound": "0.02s"}}, "load:rate=50:bound=20ms"),
        ("load:bound=20:sessions=each:streams=2", "load:bound=20ms:streams=2:sessions=each"),
        ("load:rate=0.5:sessions=shared:streams=1", "load:rate=0.5"),
        ("fresh", "fresh"),
        ({"fresh": None}, "fresh"),
        ("fresh:sets=8", "fresh"),
        ({"fresh": {"sets": 16, "shapes": {"seq": [16, "random"]}}}, "fresh:sets=16:seq=16+random"),
        ({"fresh": {"seq": 64}}, "fresh:seq=64"),
        ("fresh:b=1+2:a=3", "fresh:a=3:b=1+2"),
        ("sustained:10", "sustained:10"),
        ("sustained: 0.5", "sustained:0.5"),
        ({"sustained": 10}, "sustained:10"),
    ],
)
def test_a_scenario_has_one_text_however_it_is_written(written: object, text: str) -> None:
    assert scenarios.normalise_text(written) == text
    assert scenarios.normalise_text(text) == text


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("singel", "Unknown scenario 'singel': did you mean 'single'?"),
        (7, "scenario has 7: write a name such as fresh"),
        ({"single": {}, "load": {}}, "scenario has {'single'"),
        ("fresh:sets=7", "sets of fresh is '7': write a whole number from 8 to 64."),
        ("fresh:seq=sixteen", "seq of fresh is 'sixteen': write a whole number from 1 to"),
        ("fresh:seq=random", "The sizes of 'seq' are random alone"),
        ({"fresh": {"seq": []}}, "The sizes of 'seq' are 0: fresh takes 1 to 16"),
        ({"fresh": {"a b": 4}}, "The scenario fresh has the option 'a b'"),
        ({"fresh": {"shapes": 4}}, "The shapes of fresh are 4"),
        # its text would be read as 16 sets
        ({"fresh": {"shapes": {"sets": 16}}}, "The scenario fresh cannot size a dimension called 'sets'"),
        ({"fresh": 8}, "The scenario fresh has 8: write its options"),
        ("single:fast=1", "The scenario single has no options"),
        ("load", "The scenario load needs a rate or a bound: write `load:rate=50`"),
        ("load:closed=4:rate=5", "A closed load has no arrivals: write `load:closed=4` alone"),
        ("load:rate=50ms", "rate of load is '50ms': write a number from 0.1 to 1e+06 per second"),
        ("load:rate=0", "rate of load is '0'"),
        ({"load": {"rate": True}}, "rate of load is True"),
        ("load:bound=1us", "bound of load is '1us': below 0.1 ms the clock of a shared machine"),
        ("load:bound=2min", "bound of load is '2min': write a number from 0.1 to 60000 in ms, such as 20ms."),
        ("load:rate=50:sessions=none", "Unknown sessions of load 'none': choose one of shared, each."),
        ("load:rate=50:streams=65", "streams of load is '65': write a whole number from 1 to 64."),
        ({"load": 4}, "The scenario load has 4: write its options"),
        ("load:closd=4", "Unknown option of load 'closd': did you mean 'closed'?"),
        ("load:closed", "The scenario 'load:closed' has 'closed': write each option once, as name=value."),
        ("load:closed=4:closed=5", "has 'closed=5': write each option once"),
        ("load:closed=65", "closed of load is '65': write a whole number from 1 to 64."),
        ("load:closed=four", "closed of load is 'four'"),
        ({"load": {"closed": True}}, "closed of load is True"),
        ("sustained", "sustained is {}: write minutes from 0.05 to 30, such as 10."),
        ("sustained:31", "sustained is '31': write minutes"),
        ({"sustained": True}, "sustained is True: write minutes"),
        ({"sustained": "long"}, "sustained is 'long': write minutes"),
    ],
)
def test_what_is_no_scenario_is_refused_in_one_sentence(written: object, words: str) -> None:
    with pytest.raises(MatrixProblem) as refused:
        scenarios.normalise_text(written)
    assert words in str(refused.value)
    with pytest.raises(MatrixProblem):
        matrix.parse({"runtime": "1.31.1", "scenario": [written]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("single", "single"),
        ("load:closed=4", "closed loop of 4"),
        ("sustained:0.5", "sustained 0.5 min"),
        ("fresh", "fresh inputs"),
        ("load:rate=50", "load of 50 per s"),
        ("load:bound=20ms:streams=2:sessions=each", "highest load, p99 within 20 ms, 2 streams, a session each"),
        ("fresh:b=1+2:a=3", "fresh inputs (a 3; b 1, 2)"),
        ("of a later release", "of a later release"),
    ],
)
def test_a_scenario_is_told_in_words(text: str, words: str) -> None:
    assert scenarios.describe(text) == words


def spec(**work: Any) -> CellSpec:
    runtime = Runtime(distribution="onnxruntime", version="1.31.1")
    return CellSpec(artifact_sha256="0" * 64, runtime=runtime, workload=Workload(**work))


def test_streams_are_a_closed_loop_and_the_same_cell_however_they_are_spelled() -> None:
    (old,) = cells_of({"runtime": "1.31.1", "concurrency": 4})
    (new,) = cells_of({"runtime": "1.31.1", "scenario": "load:closed=4"})
    assert old == new
    assert scenarios.of_cell(new).text == scenarios.recorded_text(new.workload) == "load:closed=4"
    assert (scenarios.runner_settings(new), scenarios.is_plain(new)) == ({"kind": "closed"}, False)
    assert (scenarios.runner_settings(spec()), scenarios.is_plain(spec())) == ({"kind": "single"}, True)


def test_streams_are_said_once() -> None:
    for declared in (
        {"concurrency": [1, 2], "scenario": "load:closed=4"},
        {"scenario": "load:closed=4", "include": [{"concurrency": 2}]},
    ):
        with pytest.raises(MatrixProblem, match="leave one of the two out"):
            matrix.parse(declared)
    assert matrix.parse({"concurrency": [1, 2], "scenario": "sustained:1"})


def test_minutes_beside_the_axes_are_a_scenario_and_not_said_twice() -> None:
    (old,) = cells_of({"runtime": "1.31.1", "sustained": 10})
    (new,) = cells_of({"runtime": "1.31.1", "scenario": [{"sustained": 10}]})
    assert old == new
    with pytest.raises(MatrixProblem, match="sustained is a scenario"):
        matrix.parse({"sustained": 10, "scenario": "single"})


def test_a_document_of_before_says_what_its_block_worked_on_for() -> None:
    assert scenarios.recorded_text(Workload(), sustained_s=600.0) == "sustained:10"
    assert scenarios.recorded_text(Workload()) == "single"


def test_single_changes_no_digest_and_no_message() -> None:
    assert spec(scenario="single").digest == spec().digest
    assert "scenario" not in spec().model_dump_json()
    assert CellSpec.model_validate_json(spec(scenario="sustained:1").model_dump_json()) == spec(scenario="sustained:1")


SEVERAL = ["single", "load:closed=2", "load:rate=50", "fresh", "sustained:1"]


def test_cells_of_different_scenarios_stand_in_blocks_of_their_own_and_are_never_compared() -> None:
    declared = matrix.parse({"runtime": ["1.29.0", "1.31.1"], "scenario": SEVERAL})
    plan = planner.plan(declared, make_model())
    kinds = [{scenarios.of_cell(arm.spec).kind for arm in block.arms} for block in plan.blocks]
    assert kinds == [{"single", "load"}, {"load"}, {"fresh"}, {"sustained"}]
    assert [block.sustained_s for block in plan.blocks] == [0.0, 0.0, 0.0, 60.0]
    # one release with more streams is compared as it always was
    assert {one.axis for one in plan.blocks[0].comparisons} == {"runtime", "concurrency"}
    assert {one.axis for one in plan.blocks[1].comparisons} == {"runtime"}


def test_a_series_is_that_of_before_where_nothing_new_is_said() -> None:
    def series(**changes: Any) -> str:
        return cell_pairs.series_digest(Cell.model_validate(cell().model_dump() | changes))

    assert series() == series(scenario="single")
    assert series(concurrency=4) == series(concurrency=4, scenario="load:closed=4")
    assert series() != series(scenario="sustained:10")


def test_a_plan_knows_the_minutes_of_fresh_inputs() -> None:
    declared = {"runtime": ["1.29.0", "1.31.1"]}
    plans = [
        planner.plan(matrix.parse({**declared, "scenario": one}), make_model(latency_ms=5.0))
        for one in ("single", "fresh")
    ]
    # of 1,000 inferences those beyond the window of 0.3 s, and three of each set alone, in 8 rounds of both arms
    assert plans[1].minutes - plans[0].minutes == pytest.approx(16 * (5.0 - 0.3 + 0.12) / 60.0)


def test_the_runner_is_told_the_sets_and_which_inputs_follow_from_sizes() -> None:
    made = {"ids": "0..99", "places": "positions", "length": "size:seq"}
    order = scenarios.runner_settings(spec(scenario="fresh:sets=16:seq=16+random", seed=7, inputs=made))
    assert order == {
        "kind": "fresh", "sets": 16, "seed": 7, "shapes": {"seq": [16, "random"]},
        "made": {"places": "positions", "length": "size:seq"},
    }  # fmt: skip
    assert (scenarios.is_plain(spec(scenario="fresh")), scenarios.is_single_stream(spec(scenario="fresh"))) == (
        False,
        True,
    )
    assert not scenarios.is_single_stream(spec(concurrency=2))


@pytest.mark.parametrize(
    ("declared", "facts", "words"),
    [
        ({"concurrency": 2}, {}, "The scenario fresh has streams of its own: leave out concurrency 2."),
        ({"runtime": "onnxruntime-web==1.31.0", "provider": "wasm"}, {}, "scenario single alone: leave fresh out"),
        ({"scenario": "fresh:sequnce=16"}, {"dims": {"sequence": None}}, "the nearest is 'sequence'"),
        ({"scenario": "fresh:sequence=16"}, {"dims": {"sequence": 8}}, "is fixed at 8"),
        (
            {"scenario": "fresh:sequence=16", "provider": "tensorrt", "runtime": "onnxruntime-gpu==1.26.0"},
            {},
            "builds an engine for the shapes that it is given",
        ),
        ({"scenario": "load:rate=0.5"}, {}, "At 0.5 per s the 700 arrivals of a p99 take 23.3 minutes in each launch"),
        ({"scenario": "load:rate=50"}, {"latency_ms": 90.0}, "too many for 1 stream: ask for 5 streams or"),
        ({"scenario": "load:bound=5ms"}, {"latency_ms": 9.0}, "below the latency of one inference alone, 9 ms"),
        ({"scenario": "load:rate=50"}, {"latency_ms": 9.0, "quickest_ms": 90.0}, "requests of 90 ms come in a second"),
        (
            {"scenario": "load:bound=200ms"},
            {"latency_ms": 50.0, "quickest_ms": 20.0},
            "take about 169 s in each launch of a model of 20 ms, and a block at most 38 s: write one rate, such as "
            "`load:rate=19:bound=200ms`, or more streams.",
        ),
        ({"scenario": "load:rate=50", "concurrency": 2}, {}, "The scenario load has streams of its own"),
        (
            {"scenario": "load:rate=50", "runtime": "torch==2.13.0"},
            {"source": SourceFacts(name="model.pt2")},
            "torch==2.13.0 runs one inference at a time",
        ),
    ],
)
def test_what_fresh_cannot_do_is_refused_in_one_sentence(declared: dict[str, Any], facts: dict[str, Any], words: str):
    given = {"runtime": "1.31.1", "scenario": "fresh", **declared}
    fleet = [NodeOffer(id="1", tags=frozenset({"cpu", "wasm", "tensorrt"}))]
    (point,) = planner.plan(matrix.parse(given), make_model(**facts), fleet).refused
    assert words in point.reason.text


def test_fresh_takes_dynamic_dimensions_and_the_batch_by_its_name() -> None:
    model = make_model(batch="n", dims={"sequence": None})
    plan = planner.plan(matrix.parse({"runtime": "1.31.1", "scenario": "fresh:n=1+8:sequence=16"}), model)
    assert not plan.refused


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ({"value": 1.0 * MIB, "low": 0.9 * MIB, "high": 1.1 * MIB}, "Memory grows by 1.00 MiB in 1,000 inferences ("),
        ({"value": -10.0, "low": -20.0, "high": 10.0}, "Memory settles: 0.00 MiB in 1,000 inferences (95 % interval"),
        ({"value": 0.0}, "Memory settles: 0.00 MiB in 1,000 inferences."),
        ({"value": 50.0 * MIB}, "Whether memory grows is undecided: 50.00 MiB in 1,000 inferences."),
        ({"value": 0.5 * MIB, "low": 0.0, "high": 1.0 * MIB}, "Whether memory grows is undecided: 0.50 MiB"),
    ],
)
def test_growth_is_told_with_its_interval(figure: dict[str, float], words: str) -> None:
    assert growth.describe_growth(Figure.model_validate(figure)).startswith(words)


def test_phases_are_medians_over_launches_and_other_answers_fail_parity() -> None:
    def launch(p50_ms: float, differing: float) -> Sample:
        phase = Phase(name="seq=4", metrics={"p50_ms": p50_ms})
        plain = make_sample(1.0)
        told = {GROWTH: 2.0 * MIB, DIFFERING: differing}
        return plain.model_copy(update={"phases": (phase,), "metrics": told})

    samples = [launch(1.0, 0.0), launch(3.0, 2.0), launch(2.0, 0.0)]
    (found,) = phases.summarise_phases(samples)
    assert (found.name, found.launches, found.metrics) == ("seq=4", 3, {"p50_ms": 2.0})
    summary = summarise_cell(samples)
    more = summarise_cell([*samples, *samples])
    assert phases.describe_result(more, Fresh(), []).startswith("Memory grows by 2.00 MiB")
    judged = phases.fail_on_answers(Parity(verdict="pass", text="Within."), summary, what=Fresh().differing_phrase)
    assert (judged.verdict, judged.text) == ("fail", "2 of 8 input sets were answered otherwise than alone. Within.")
    quiet = summarise_cell([launch(1.0, 0.0)])
    assert (
        phases.fail_on_answers(Parity(), quiet, what="") == phases.fail_on_answers(Parity(), None, what="") == Parity()
    )
    assert (
        phases.describe_result(None, Fresh())
        == phases.describe_result(summarise_cell([make_sample(1.0)]), Single())
        == ""
    )


def test_the_runner_is_told_the_load_and_its_streams_take_threads() -> None:
    loaded = spec(scenario="load:bound=20ms:streams=4:sessions=each", seed=3)
    assert scenarios.runner_settings(loaded) == {
        "kind": "load", "rate": None, "bound_ms": 20.0, "streams": 4, "sessions": "each", "rates": [], "seed": 3,
        "made": {},
    }  # fmt: skip
    assert scenarios.of_cell(loaded).looks_for_a_rate
    assert not scenarios.of_cell(spec(scenario="load:rate=5:bound=20ms")).looks_for_a_rate
    assert (scenarios.is_plain(loaded), scenarios.is_single_stream(loaded)) == (False, False)
    refused = threads.refusal(loaded, cores=2)
    assert refused.text.startswith("4 streams of 1 thread on a machine of 2 cores")


def test_each_scenario_answers_for_itself() -> None:
    loaded, generating, plain = map(scenarios.parse, ("load:bound=20ms", "generate:new=8", "single"))
    assert (loaded.bound_ms, generating.bound_ms, plain.bound_ms) == (20.0, None, None)
    assert generating.differing_phrase == "of the later generations of a launch"
    assert generating.short == "prompt 128, 8 new"
    assert (loaded.new_tokens, generating.new_tokens, plain.new_tokens) == (0, 8, 0)
    drawing = scenarios.parse("generate:new=8:sampling=top-k=40")
    assert [(one.draws_tokens, one.drawn_tokens) for one in (plain, generating, drawing)] == [
        (False, 0),
        (False, 0),
        (True, 56),
    ]


def test_a_plan_knows_the_minutes_of_a_load() -> None:
    def minutes(scenario: str) -> float:
        declared = matrix.parse({"runtime": ["1.29.0", "1.31.1"], "scenario": scenario})
        return planner.plan(declared, make_model(latency_ms=1.0)).minutes

    # 700 arrivals in place of a window of 0.3 s, in 8 rounds of both arms
    assert minutes("load:rate=100") - minutes("single") == pytest.approx(16 * (7.0 - 0.3) / 60.0)
    assert minutes("load:bound=20ms") > minutes("single") + 16 * 6 * 700 / 1000.0 / 60.0


def test_a_load_of_an_unknown_model_is_planned_by_its_bound_and_searched_once() -> None:
    def block(bound: str, **facts: Any) -> PlannedBlock:
        declared = matrix.parse({"runtime": ["1.29.0", "1.31.1"], "scenario": f"load:bound={bound}"})
        return planner.plan(declared, make_model(**facts)).blocks[0]

    assert block("20ms").minutes == pytest.approx(block("20ms", latency_ms=2.0).minutes, rel=0.01)
    assert block("20ms").minutes < block("2s").minutes / 4
    # a search beside the checks and traces, and limits that leave room for rates that are driven again
    launch_s = scenarios.parse("load:bound=20ms").search_s(2.0)
    plain = planner.plan(matrix.parse({"runtime": ["1.29.0", "1.31.1"]}), make_model(latency_ms=2.0)).blocks[0]
    loaded = block("20ms", latency_ms=2.0)
    assert loaded.once_s - plain.once_s == pytest.approx(launch_s + estimates.LAUNCH_S)
    assert loaded.runner_timeout_s - plain.runner_timeout_s == pytest.approx(4 * 3 * launch_s)


@pytest.mark.parametrize(
    ("text", "told", "p99_ms", "words"),
    [
        ("load:bound=20ms", {MAX_RATE: (812.0, 790.0, 830.0)}, None, "up to 812 requests per s (95 % interval 790 to"),
        ("load:bound=20ms", {MAX_RATE: (812.0, None, None)}, None, "p99 within 20 ms up to 812 requests per s."),
        ("load:bound=20ms", {}, None, "No rate that was tried kept its p99 within 20 ms."),
        ("load:rate=50:bound=20ms", {GOODPUT: (49.6, 49, 50)}, 12.3, "p99 12.3 ms at 50 per s, 49.6 per s answered"),
        ("load:rate=50", {GOODPUT: (49.6, 49, 50)}, None, "50 per s are held, 49.6 per s answered."),
        ("load:rate=50:bound=20ms", {GOODPUT: (31.0, 30, 32)}, 90.0, "50 per s are not held: 31.0 per s were answered"),
        ("load:rate=50", {}, 12.3, "p99 12.3 ms at 50 per s."),
    ],
)
def test_a_load_is_told_in_a_sentence(text: str, told: dict[str, Any], p99_ms: float | None, words: str) -> None:
    figures = {name: Figure(value=value, low=low, high=high) for name, (value, low, high) in told.items()}
    assert words in scenarios.parse(text).describe_result(figures, p99_ms=p99_ms)
    assert scenarios.parse("load:rate=50").describe_result({}, p99_ms=None) == ""


def test_a_load_s_throughput_is_what_was_answered_and_not_what_a_latency_would_allow() -> None:
    sample = make_sample(2.0).model_copy(update={"throughput": 50.0})
    assert summarise_cell([sample], batch=4, is_loaded=True).throughput == 200.0
    assert summarise_cell([sample], batch=4).throughput == 2000.0


def test_what_a_load_found_reaches_the_document() -> None:
    summary = summarise_cell([make_sample(1.0).model_copy(update={"metrics": {MAX_RATE: 812.0}})])
    driven = [CellPhase(name="", launches=8, metrics={"rate_per_s": rate}) for rate in (400.0, 812.0, 900.0)]
    searched = scenarios.parse("load:bound=20ms")
    for rates, words in [
        ([], "up to"),
        (driven, "up to"),
        (driven[:2], "up to at least"),
        (driven[:1], "up to at least"),
    ]:
        assert (
            phases.describe_result(summary, searched, rates)
            == f"Keeps its p99 within 20 ms {words} 812 requests per s."
        )
    assert phases.describe_result(summary, scenarios.parse("single"), driven) == ""
    assert phases.describe_result(None, searched, []) == ""
