"""Generating as a scenario: spelled, refused, told, and its tokens held against those of other cells."""

from collections.abc import Sequence
from typing import Any

import pytest

from farm.contract.document_cells import Cell
from farm.contract.reports import Report
from farm.rules.cells import scenarios
from farm.rules.cells.problems import MatrixProblem
from farm.rules.generation import streams
from farm.rules.judging.block_verdicts import BlockJudge
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import NodeOffer, PlannedBlock
from farm.rules.reporting.documents import assemble
from farm.rules.reporting.records import BlockRecord, RunRecord
from tests.unit.rules.making import make_check, make_model, make_output, make_round, make_rounds, make_sample
from tests.unit.rules.test_scenarios import spec

TOLD = {"tpot_ms": 0.25, "ttft_ms": 4.0, "tokens_per_s": 1234.0}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("generate", "generate:new=64"),
        ({"generate": None}, "generate:new=64"),
        ("generate:new=8:prompt=16:sampling=greedy", "generate:prompt=16:new=8"),
        ({"generate": {"prompt": 16, "new": "8"}}, "generate:prompt=16:new=8"),
        (
            {"generate": {"sampling": "top-p=0.90", "temperature": 0.8, "seed": 3}},
            "generate:new=64:sampling=top-p=0.9:temperature=0.8:seed=3",
        ),
        ("generate:batch=4:sampling=top-k=40:temperature=1", "generate:new=64:sampling=top-k=40:batch=4"),
    ],
)
def test_generating_has_one_text_however_it_is_written(written: object, text: str) -> None:
    assert scenarios.normalise_text(written) == scenarios.normalise_text(text) == text


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("generate:new=1", "new of generate is '1': write a whole number from 2 to 4096."),
        ("generate:prompt=0", "prompt of generate is '0': write a whole number from 1 to 32768."),
        ("generate:sampling=top-p", "sampling of generate is 'top-p': write greedy, top-p=0.9 (up to 1) or top-k=40"),
        ("generate:sampling=top-p=0.0", "sampling of generate is 'top-p=0.0': write greedy"),
        ("generate:sampling=top-k=1025", "sampling of generate is 'top-k=1025': write greedy"),
        ("generate:temperature=0.5", "temperature of generate changes nothing for greedy: leave it out"),
        ("generate:sampling=top-k=4:temperature=0", "temperature of generate is '0': write a number from 0.01 to 10."),
        ("generate:sampling=top-k=4:temperature=nan", "temperature of generate is 'nan': write a number"),
        ("generate:seed=-1", "seed of generate is '-1': write a whole number from 0 to 2147483647."),
        ("generate:batch=65", "batch of generate is '65': write a whole number from 1 to 64."),
        ("generate:promt=8", "Unknown option of generate 'promt': did you mean 'prompt'?"),
        ({"generate": 8}, "The scenario generate has 8: write its options"),
    ],
)
def test_other_options_are_refused_in_one_sentence(written: object, words: str) -> None:
    with pytest.raises(MatrixProblem) as refused:
        scenarios.normalise_text(written)
    assert words in str(refused.value)


def test_the_runner_is_told_what_to_generate_and_traces_its_phases_apart() -> None:
    cell = spec(scenario="generate:prompt=16:new=8", seed=7)
    assert scenarios.runner_settings(cell) == {"kind": "generate", "prompt": 16, "new": 8, "seed": 7}
    assert scenarios.describe("generate:prompt=16:new=8") == "prompt 16, 8 new"
    assert (scenarios.is_plain(cell), scenarios.is_single_stream(cell), scenarios.of_cell(cell).takes_prompts) == (
        False,
        True,
        True,
    )


def test_the_runner_is_told_how_tokens_are_drawn_and_for_how_many_sequences() -> None:
    cell = spec(scenario="generate:prompt=16:new=8:sampling=top-p=0.9:temperature=0.8:seed=3", seed=7, batch=4)
    drawn = {"sampling": "top-p", "limit": 0.9, "temperature": 0.8}
    assert scenarios.runner_settings(cell) == {
        "kind": "generate",
        "prompt": 16,
        "new": 8,
        "seed": 3,
        **drawn,
        "batch": 4,
    }
    label = "prompt 128, 64 new, top-p 0.9, temperature 0.8, seed 3"
    assert scenarios.describe("generate:sampling=top-p=0.9:temperature=0.8:seed=3") == label
    assert scenarios.describe("generate:sampling=top-k=40") == "prompt 128, 64 new, top-k 40"


def test_sequences_at_once_are_the_batch_of_the_cell() -> None:
    given = scenarios.workload_fields({"scenario": "generate:prompt=16:new=8:batch=4"})
    assert given == {"scenario": "generate:prompt=16:new=8", "batch": 4}
    declared = {"runtime": "1.31.1", "scenario": ["generate", "generate:batch=4"]}
    assert matrix.parse(declared).axes["scenario"][1] == "generate:new=64:batch=4"
    with pytest.raises(MatrixProblem, match="batch says the sequences of the scenario generate too"):
        matrix.parse({**declared, "batch": [4]})
    matrix.parse({**declared, "scenario": "generate", "batch": [4]})


@pytest.mark.parametrize(
    ("declared", "facts", "words"),
    [
        ({}, {"generation_problem": "The model has no past."}, "The model has no past."),
        ({"concurrency": 2}, {}, "The scenario generate has streams of its own"),
        ({"runtime": "onnxruntime-web==1.31.0", "provider": "wasm"}, {}, "leave generate out for browsers"),
        (
            {"provider": "openvino", "runtime": "onnxruntime-openvino==1.24.1"},
            {},
            "on the CPU provider alone yet, not on OpenVINOExecutionProvider",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_sentence(declared: dict[str, Any], facts: dict[str, Any], words: str):
    fleet = [NodeOffer(id="1", tags=frozenset({"cpu", "wasm", "openvino"}))]
    given = {"runtime": "1.31.1", "scenario": "generate", **declared}
    (point,) = planner.plan(matrix.parse(given), make_model(**facts), fleet).refused
    assert words in point.reason.text


def test_a_plan_knows_the_minutes_of_generating() -> None:
    plans = [
        planner.plan(matrix.parse({"runtime": ["1.29.0", "1.31.1"], "scenario": one}), make_model(latency_ms=20.0))
        for one in ("single", "generate:new=64")
    ]
    # seven times the prompt and 64 tokens at a quarter of an inference, beyond the window of 0.3 s
    assert plans[1].minutes - plans[0].minutes == pytest.approx(16 * (7 * (1 + 16) * 0.02 - 0.3) / 60.0)


@pytest.mark.parametrize(
    ("one", "other", "place"), [([1, 2], [1, 2], None), ([1, 2], [1, 3], 2), ([1], [1, 2], 2), ([], [], None)]
)
def test_the_first_difference_is_the_first_token_that_one_lacks_or_has_otherwise(
    one: Sequence[int], other: Sequence[int], place: int | None
) -> None:
    assert streams.find_first_difference(one, other) == streams.find_first_difference(other, one) == place


def block_of(**axes: Any) -> PlannedBlock:
    declared = {"runtime": ["1.29.0", "1.31.1"], "scenario": "generate:prompt=4:new=3", **axes}
    (block,) = planner.plan(matrix.parse(declared), make_model()).blocks
    return block


def cells_of(block: PlannedBlock, *launches: dict[int, Sequence[int]]) -> list[Cell]:
    """The cells after rounds in which each arm chose these tokens."""
    rounds = [
        make_round(
            number,
            {arm: make_sample(0.25, tokens=tuple(some), metrics=TOLD if some else {}) for arm, some in chosen.items()},
        )
        for number, chosen in enumerate(launches)
    ]
    checks = [make_check(arm.arm, outputs=(make_output(),)) for arm in block.arms]
    reports: list[Report] = [*checks, *rounds]
    return assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block, reports, is_over=True)])).cells


def test_a_rate_that_its_own_times_do_not_make_is_told_as_one_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOLD, "tokens_per_s", 72.1)
    first, _ = cells_of(block_of(), {0: [7, 8, 9], 1: [7, 8, 9]})
    assert first.scenario_text.startswith(
        "The first token after 4.00 ms, then 0.250 ms a token; 72.1 tokens/s over whole answers by the clock"
    )


@pytest.mark.parametrize(("choosing_ms", "is_slowed"), [(0.0, True), (2.0, False)])
def test_choosing_the_token_is_part_of_a_cell_s_own_time(
    monkeypatch: pytest.MonkeyPatch, choosing_ms: float, is_slowed: bool
) -> None:
    # 3 tokens in 4 + 2 × 0.25 ms are 667 a second, and 353 with 2 ms of choosing behind each
    monkeypatch.setitem(TOLD, "tokens_per_s", 340.0)
    monkeypatch.setitem(TOLD, "outside_ms", choosing_ms)
    first, _ = cells_of(block_of(), {0: [7, 8, 9], 1: [7, 8, 9]})
    assert ("by the clock" in first.scenario_text) == is_slowed


@pytest.mark.parametrize(
    ("told", "said"),
    [
        # 3 tokens in 4 + 2 × (0.25 + 2) ms are 353 a second
        ({"outside_ms": 2.0, "tokens_per_s": 353.0}, "then 0.250 ms a token and 2.00 ms to choose it; 353"),
        ({"tokens_per_s": 580.0}, "580 tokens/s over whole answers, 13 % of the time between the calls."),
        ({"tokens_per_s": 664.0}, "664 tokens/s over whole answers."),
        ({"outside_ms": 2.0, "outside_cpu_ms": 2.0, "tokens_per_s": 664.0}, "0.250 ms a token; 664 tokens/s over"),
    ],
)
def test_whoever_adds_up_a_generation_gets_its_rate_or_is_told_what_else_took_time(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, float], said: str
) -> None:
    for name, value in told.items():
        monkeypatch.setitem(TOLD, name, value)
    first, _ = cells_of(block_of(), {0: [7, 8, 9], 1: [7, 8, 9]})
    assert said in first.scenario_text


def test_tokens_are_those_of_the_first_cell() -> None:
    first, second = cells_of(block_of(), {0: [7, 8, 9], 1: [7, 8, 9]}, {0: [7, 8, 9], 1: [7, 8, 9]})
    assert (
        first.scenario_text == "The first token after 4.00 ms, then 0.250 ms a token; "
        "1\N{NARROW NO-BREAK SPACE}234 tokens/s over whole answers."
    )
    assert second.scenario_text == f"{first.scenario_text} All 3 tokens are those of {first.id}."
    assert (second.tokens, second.parity.verdict) == ([7, 8, 9], first.parity.verdict)


def test_the_first_other_token_is_named_and_fails_parity() -> None:
    first, second = cells_of(block_of(), {0: [7, 8, 9], 1: [7, 5, 9]})
    said = f"Token 2 of 3 is 5, where {first.id} chose 8."
    assert second.scenario_text.endswith(said)
    assert (second.parity.verdict, second.parity.text.startswith(said)) == ("fail", True)
    _, shorter = cells_of(block_of(), {0: [7, 8, 9], 1: [7, 8]})
    assert shorter.scenario_text.endswith(f"It has 2 tokens, {first.id} 3.")


def test_a_launch_that_chose_otherwise_is_named_and_fails_parity() -> None:
    first, _ = cells_of(block_of(), {0: [7, 8, 9], 1: [7, 8, 9]}, {0: [7, 8, 1], 1: [7, 8, 9]})
    assert first.parity.verdict == "fail"
    assert first.scenario_text.endswith("Launch 2 of 2 differs from the first from token 3 on.")


def test_another_precision_may_choose_other_tokens_which_is_told() -> None:
    block = block_of(runtime="1.31.1", precision=["fp32", "int8-dynamic"])
    first, second = cells_of(block, {0: [7, 8, 9], 1: [7, 5, 9]})
    said = f"Token 2 of 3 is 5, where {first.id} chose 8. int8-dynamic may choose otherwise: that fails nothing."
    assert second.scenario_text.endswith(said)
    assert second.parity.verdict == first.parity.verdict


def test_a_given_text_is_as_likely_as_to_the_first_cell_or_not() -> None:
    block = block_of(runtime="1.31.1", precision=["fp32", "int4"])
    told = [(0, 12.0), (1, 12.6)]
    samples = {arm: make_sample(0.25, tokens=(7, 8, 9), metrics={**TOLD, "perplexity": value}) for arm, value in told}
    reports: list[Report] = [*(make_check(arm, outputs=(make_output(),)) for arm in (0, 1)), make_round(0, samples)]
    first, second = assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block, reports, is_over=True)])).cells
    assert first.scenario_text.endswith("whole answers. Perplexity of the given text is 12.")
    said = f"All 3 tokens are those of {first.id}. Perplexity of the given text is 12.6, 5 % above {first.id}'s."
    assert second.scenario_text.endswith(said)
    assert (first.figures["perplexity"].value, second.parity.verdict) == (12.0, first.parity.verdict)


def test_a_cell_without_tokens_says_nothing_of_them() -> None:
    first, second = cells_of(block_of(), {0: [], 1: [7, 8, 9]})
    assert (first.scenario_text, first.tokens) == ("", [])
    assert "those of" not in second.scenario_text


def test_both_phases_are_explained_even_where_the_token_alone_changed_or_did_not() -> None:
    for new in (2.0, 1.0):
        judge = BlockJudge(block_of(), reports=make_rounds(8, {0: 1.0, 1: new}))
        assert judge.arms_to_explain() == (0, 1)
    assert BlockJudge(block_of(scenario="single"), reports=make_rounds(8, {0: 1.0, 1: 1.0})).arms_to_explain() == ()
    assert BlockJudge(block_of()).arms_to_explain() == ()
