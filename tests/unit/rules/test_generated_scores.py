"""Scores of the same given text, held against those of another cell: same, near a tie, beyond, or different by dice."""

import struct
from base64 import b64encode
from collections.abc import Sequence
from math import inf, nan
from typing import Any

import pytest

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.reports import ForcedScores, Operator, PromptTrace, Report, TraceReport
from farm.rules.comparing import sides
from farm.rules.generation import forced
from farm.rules.planning.plans import PlannedBlock
from farm.rules.presenting.explanations import describe_phases, explain_change, explain_prefill
from farm.rules.reporting.documents import assemble
from farm.rules.reporting.records import BlockRecord, RunRecord
from farm.rules.wording.numbers import THIN
from tests.unit.rules.making import make_check, make_model, make_output, make_round, make_sample
from tests.unit.rules.test_generating import TOLD, block_of


def scores(*rows: Sequence[float]) -> ForcedScores:
    raw = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    return ForcedScores(places=tuple(range(len(rows))), scores=b64encode(raw).decode())


def compared(one: ForcedScores, other: ForcedScores) -> forced.ScoreDifference:
    found = forced.compare_scores(one, other, tolerance=1e-4)
    assert found is not None
    return found


def test_scores_within_the_tolerance_of_the_largest_are_the_same() -> None:
    found = compared(scores([0.0004, 8.0], [1.0, -2.0]), scores([0.0, 8.0], [1.0, -2.0]))
    assert found.is_within_tolerance
    assert found.sentence(baseline="c1") == "Given the same text, its scores at 2 places are within 0.0004 of c1's."


def test_the_place_that_is_furthest_off_is_named() -> None:
    found = compared(scores([1.0, 8.0], [1.0, 2.5]), scores([1.0, 8.0], [1.0, 2.0]))
    assert found.sentence(baseline="c1") == (
        "Given the same text, its scores at 2 places differ from c1's by up to 0.5, most at token 1 behind it: 1 "
        "beyond the tolerance."
    )
    first = compared(scores([2.0]), scores([1.0]))
    assert "at 1 place differ" in first.sentence(baseline="c1")
    assert "most at the end of the prompt" in first.sentence(baseline="c1")


def test_what_is_no_number_is_beyond_and_equal_infinities_are_not() -> None:
    assert compared(scores([inf, 1.0]), scores([inf, 1.0])).is_within_tolerance
    found = compared(scores([nan, 1.0]), scores([0.0, 1.0]))
    assert not found.is_within_tolerance
    assert "by no number" in found.sentence(baseline="c1")


def test_other_places_or_tokens_are_not_compared() -> None:
    assert forced.compare_scores(scores([1.0]), scores([1.0], [2.0]), tolerance=1e-4) is None
    assert forced.compare_scores(scores([1.0]), scores([1.0, 2.0]), tolerance=1e-4) is None


@pytest.mark.parametrize(
    ("places", "text", "words"),
    [((0,), "%%%", "not base64"), ((), "AAAA", "3 bytes"), ((0,), "", "0 bytes"), ((0, 1), "AAAA", "3 bytes")],
)
def test_scores_that_are_no_scores_are_refused(places: tuple[int, ...], text: str, words: str) -> None:
    with pytest.raises(forced.ScoresProblem, match=words):
        forced.unpack_scores(ForcedScores(places=places, scores=text))


def test_scores_are_read_the_same_on_a_machine_that_writes_them_the_other_way_round() -> None:
    own = forced.unpack_scores(scores([1.0, 2.0]))
    turned = forced.unpack_scores(scores([1.0, 2.0]), byte_order="big")
    for one in turned:
        one.byteswap()
    assert turned == own


def cells_of(block: PlannedBlock, **samples: dict[str, Any]) -> list[Cell]:
    """The cells after a round in which `a` and `b` said this."""
    chosen = {
        arm: make_sample(0.25, **{"metrics": TOLD, **said}) for arm, said in enumerate((samples["a"], samples["b"]))
    }
    checks = [make_check(arm.arm, outputs=(make_output(),)) for arm in block.arms]
    reports: list[Report] = [*checks, make_round(0, chosen)]
    return assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block, reports, is_over=True)])).cells


def test_a_near_tie_is_said_with_the_token() -> None:
    first, second = cells_of(
        block_of(),
        a={"tokens": (7, 8, 9), "gaps": (1.0, 0.00031, 2.0), "forced": scores([1.0])},
        b={"tokens": (7, 5, 9), "forced": scores([1.0])},
    )
    said = f"Token 2 of 3 is 5, where {first.id} chose 8: its two best scores were 0.00031 apart."
    assert said in second.scenario_text
    assert (second.parity.verdict, second.parity.text.startswith(said)) == ("fail", True)


def test_other_scores_fail_parity_even_with_the_same_tokens() -> None:
    _, second = cells_of(
        block_of(), a={"tokens": (7, 8, 9), "forced": scores([1.0])}, b={"tokens": (7, 8, 9), "forced": scores([1.5])}
    )
    assert second.parity.verdict == "fail"
    assert "All 3 tokens are those of" in second.parity.text


def test_drawn_tokens_that_differ_while_scores_agree_are_the_samplers() -> None:
    drawn = block_of(scenario="generate:prompt=4:new=3:sampling=top-p=0.9")
    alike, apart = (
        cells_of(drawn, a={"tokens": (7, 8, 9), "forced": scores([1.0])}, b={"tokens": (7, 5, 9), "forced": other})[1]
        for other in (scores([1.0]), scores([1.5]))
    )
    assert alike.scenario_text.endswith("It is different by its sampler, not by its model.")
    assert alike.parity.verdict != "fail"
    assert "sampler" not in apart.scenario_text
    assert apart.parity.verdict == "fail"


def test_a_row_of_a_batch_that_chose_otherwise_than_alone_fails_parity() -> None:
    (_, second) = cells_of(
        block_of(), a={"tokens": (7, 8, 9)}, b={"tokens": (7, 8, 9), "metrics": {**TOLD, "differing_rows": 1.0}}
    )
    assert second.parity.verdict == "fail"
    assert second.parity.text.startswith("1 row of the batch chose other tokens than alone.")


def test_inputs_of_a_cell_that_generates_are_its_prompts() -> None:
    first, _ = cells_of(block_of(), a={"tokens": (7, 8, 9)}, b={"tokens": (7, 8, 9)})
    (given,) = first.inputs
    assert (given.name, given.shape) == ("prompt", [1, 4])
    assert given.made_by == "token ids of the vocabulary, drawn by seed 0"


def operator(node: str, op_type: str, time_us: float) -> Operator:
    return Operator(node=node, op_type=op_type, provider="CPUExecutionProvider", time_us=time_us)


def traced(*operators: Operator, **more: Any) -> Cell:
    block = block_of()
    prompt = PromptTrace(tokens=4, runs=5, run_us=90.0, operators=(operator("head", "MatMul", 80.0),))
    trace = TraceReport(arm=0, runs=40, run_us=60.0, operators=operators, **{"prompt": prompt, **more})
    reports: list[Report] = [
        *(make_check(arm.arm, outputs=(make_output(),)) for arm in block.arms),
        trace,
        make_round(0, {arm: make_sample(0.25, metrics=TOLD, tokens=(7, 8, 9)) for arm in (0, 1)}),
    ]
    return assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block, reports, is_over=True)])).cells[0]


def test_a_trace_tells_both_phases_fused_attention_and_copies_of_the_cache() -> None:
    cell = traced(
        operator("attention", "GroupQueryAttention", 30.0),
        operator("key", "Concat", 10.0),
        operator("head", "MatMul", 10.0),
        cache_copies=("key",),
    )
    assert (cell.prompt.tokens, cell.prompt.traced_us, cell.prompt.unaccounted_us) == (4, 90.0, 10.0)
    assert [one.node for one in cell.prompt.operators] == ["head"]
    assert cell.scenario_text.endswith(
        "Fused attention: 1 GroupQueryAttention. Copies of the cache by 1 Concat node take 20 % of a token's time."
    )
    assert traced(operator("head", "MatMul", 10.0)).scenario_text.endswith("No attention is fused.")
    assert traced(operator("head", "MatMul", 10.0), prompt=None).scenario_text.endswith("over whole answers.")


def rounds_of(prefill: float, token: float) -> list[Report]:
    """Eight rounds of an arm that is the first one, and one that differs by these factors in both phases."""
    found: list[Report] = []
    for number in range(8):
        wobble = 1.0 + 0.007 * (number % 3 - 1)
        told = [
            {"tpot_ms": 0.25 * times, "ttft_ms": 4.0 * first, "tokens_per_s": 900.0}
            for first, times in ((1.0, 1.0), (prefill * wobble, token * wobble))
        ]
        found.append(
            make_round(
                number,
                {arm: make_sample(one["tpot_ms"], metrics=one, tokens=(7, 8, 9)) for arm, one in enumerate(told)},
            )
        )
    return found


def phases(prefill: float, token: float, *, slow: str = "norm", traces: int = 5) -> tuple[Comparison, str]:
    """The comparison and its sentence, where the candidate's prompt spends as much more in a node as it is slower."""
    block = block_of()
    reports: list[Report] = [*(make_check(arm.arm) for arm in block.arms), *rounds_of(prefill, token)]
    for number in range(traces):
        for arm, times in ((0, 1.0), (1, prefill)):
            rest = [operator("head", "MatMul", 500.0)]
            some = (operator(slow, "SkipLayerNormalization", 3500.0 * times), *rest)
            prompt = PromptTrace(tokens=4, runs=5, run_us=4000.0, operators=some)
            step = (operator("head", "MatMul", 250.0 * (token if arm else 1.0)),)
            reports.append(TraceReport(arm=arm, trace_round=number, runs=9, operators=step, prompt=prompt))
    document = assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block, reports, is_over=True)]))
    (comparison,) = document.comparisons
    return comparison, document.sentence


def test_the_first_sentence_names_the_phase_and_its_operator() -> None:
    comparison, said = phases(1.15, 1.0)
    assert comparison.verdict == "equal"
    start = (
        "Prefill is 15.0 % slower, decoding is equal. SkipLayerNormalization explains 88 % of prefill's 600 µs. ONNX"
    )
    assert said.startswith(start)
    told = explain_change(comparison)
    assert told.startswith(
        f"prefill: SkipLayerNormalization: 1 node, 3{THIN}500 → 4{THIN}025 µs, explains 88 % of the 600 µs"
    )


def test_a_slower_token_beside_an_equal_prompt_is_decoding() -> None:
    comparison, said = phases(1.0, 1.2)
    assert said.startswith("Prefill is equal, decoding is 20.0 % slower. ONNX Runtime")
    assert (explain_change(comparison) or "").startswith("decoding: MatMul: 1 node, 250 → 300 µs")
    assert sides.swap_sides(comparison).prompt_operators[0].baseline_us == comparison.prompt_operators[0].candidate_us


def test_a_phase_without_traces_or_figures_is_told_without_its_reason() -> None:
    comparison, said = phases(1.15, 1.0, traces=0)
    assert said.startswith("Prefill is 15.0 % slower, decoding is equal. ONNX")
    assert explain_change(comparison) is None
    assert explain_prefill(comparison) == ""
    bare = comparison.model_copy(update={"metrics": []})
    cell = Cell.model_construct(scenario="generate:prompt=4:new=3")  # type: ignore[call-arg]
    assert describe_phases(bare, cell) == ""
    few, _ = phases(1.15, 1.0, traces=2)
    assert describe_phases(few, cell) == "Prefill is 15.0 % slower, decoding is equal."
    assert explain_prefill(few) == ""


def test_the_prompts_processor_time_decides_where_the_tokens_does() -> None:
    comparison, _ = phases(1.15, 1.0)
    cpu = MetricChange(
        name="ttft_cpu_ms",
        unit="ms",
        baseline=1,
        candidate=1,
        ratio=1,
        ci_low=0.99,
        ci_high=1.01,
        verdict="equal",
        margin=0.02,
        rounds=8,
    )
    busy = comparison.model_copy(update={"verdict_from": "processor", "metrics": [*comparison.metrics, cpu]})
    cell = Cell.model_construct(scenario="generate:prompt=4:new=3")  # type: ignore[call-arg]
    assert describe_phases(busy, cell) == "Prefill and decoding are equal."
    assert sum((change.share or 0) for change in comparison.prompt_operators) == pytest.approx(525 / 600, rel=0.01)


def test_what_changed_more_than_the_prompt_has_no_share_of_it() -> None:
    comparison, _ = phases(1.15, 1.0)
    more = [change.model_copy(update={"share": 1.2 if change.share else 0.0}) for change in comparison.prompt_operators]
    cell = Cell.model_construct(scenario="generate:prompt=4:new=3")  # type: ignore[call-arg]
    said = describe_phases(comparison.model_copy(update={"prompt_operators": more}), cell)
    assert said.endswith("SkipLayerNormalization changed by +525 µs, prefill by +437 µs.")
