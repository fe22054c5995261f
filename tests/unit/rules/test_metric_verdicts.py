"""Every metric that both arms' launches say has a verdict: by the table, from the launches to the sentence."""

from typing import Any

import numpy as np
import pytest

from farm.contract.cells import Budget, Runtime
from farm.contract.document import Document
from farm.contract.document_comparisons import MetricChange
from farm.contract.reports import EndReport, Report
from farm.rules.cells.metrics import BY_NAME, COMPARED
from farm.rules.cells.scenario_metrics import MIN_GROWTH, PERPLEXITY
from farm.rules.changes import gate
from farm.rules.comparing import differences
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.comparing.sides import swap_sides
from farm.rules.judging import metric_verdicts
from farm.rules.judging.block_verdicts import BlockJudge
from farm.rules.presenting import metric_changes
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from farm.rules.reporting.multiple_tests import correct_verdicts
from farm.rules.wording.numbers import MIB
from tests.unit.rules.making import make_block, make_check, make_facts, make_model, make_round, make_sample

ROUNDS = 12
BOTH = ["1.30.0", "1.31.1"]


def record_of(old: dict[str, float], new: dict[str, float], *, rounds: int = ROUNDS, **options: Any) -> BlockRecord:
    """Two releases as fast as each other; `old` and `new`: what their launches say besides, with 0.2 % of noise.

    A name that ends in `_ms` and that launches have no metric of is a part of the launch.
    """
    block = make_block(runtime=BOTH, **options)
    dice = np.random.default_rng(7)
    reports: list[Report] = [make_facts(), make_check(0), make_check(1)]
    for number in range(rounds):
        told = {}
        for arm, figures in enumerate((old, new)):
            noisy = {name: value * (1 + 0.002 * dice.standard_normal()) for name, value in figures.items()}
            phases = {name[:-3]: noisy.pop(name) for name in ("session_ms", "first_ms") if name in noisy}
            p50 = noisy.pop("p50_ms", 1 + 0.002 * dice.standard_normal())
            told[arm] = make_sample(p50, metrics=noisy, phases_ms=phases)
        reports.append(make_round(number, told))
    return BlockRecord(block=block, reports=[*reports, EndReport()], node="bench-1", is_over=True)


def measured(old: dict[str, float], new: dict[str, float], **options: Any) -> Document:
    """The document of that block."""
    record = record_of(old, new, **options)
    return assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget(record.block.budget)))


def test_a_change_rests_on_the_launches_of_its_rounds() -> None:
    record = record_of({"session_ms": 100.0}, {"session_ms": 150.0})
    judge = BlockJudge(record.block, reports=record.reports)
    (judged,) = judge.comparisons()
    (told,) = metric_verdicts.judge_metrics(judge, [judged])
    pairs = {change.name: metric_verdicts.find_pairs(judge, judged, change) for change in told}
    assert {"p50_ms", "session_ms"} <= pairs.keys()
    assert {len(some) for some in pairs.values()} == {ROUNDS}


def test_both_values_are_of_the_rounds_that_the_change_is_of() -> None:
    """Medians of 19 launches stood beside the ratio of 16 pairs, and pointed the other way."""
    reports: list[Report] = [make_facts(), make_check(0), make_check(1)]
    for number in range(19):
        old, new = (1.0, 1.01) if number < 9 else (2.0, 2.02) if number < 16 else (3.0, 0.5)
        # noise that no look decides
        wave = 1 + 0.05 * (-1) ** number
        reports.append(make_round(number, {0: make_sample(old), 1: make_sample(new * wave)}))
    record = BlockRecord(block=make_block(runtime=BOTH), reports=[*reports, EndReport()], node="n", is_over=True)
    (pair,) = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget(record.block.budget))).comparisons
    told = next(change for change in pair.metrics if change.name == "p50_ms")
    assert (pair.rounds, told.rounds) == (16, 16)
    assert told.baseline == 1.0


def of_sessions(
    old: tuple[float, float], new: tuple[float, float], *, is_busy: bool, **changes: object
) -> MetricChange:
    """Session creation by wall-clock and processor time of each arm, with 2 % of noise; busy: the wall has 60 %.

    `changes` are those of the block.
    """
    block = make_block(runtime=BOTH).model_copy(update=changes)
    dice = np.random.default_rng(5)
    reports: list[Report] = [make_facts(), make_check(0), make_check(1)]
    for number in range(ROUNDS):
        samples = {}
        for arm, (wall, spent) in enumerate((old, new)):
            spread = 0.6 if is_busy else 0.02
            phases = {
                "session": wall * float(np.exp(spread * dice.standard_normal())),
                "session_cpu": spent * float(np.exp(0.02 * dice.standard_normal())),
            }
            p50 = 1 + 0.002 * dice.standard_normal()
            samples[arm] = make_sample(p50, phases_ms=phases, is_disturbed=is_busy, cpu_p50_ms=p50, cpu_share=0.5)
        reports.append(make_round(number, samples))
    record = BlockRecord(block=block, reports=[*reports, EndReport()], node="bench-1", is_over=True)
    (comparison,) = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget(block.budget))).comparisons
    return next(change for change in comparison.metrics if change.name == "session_ms")


def test_session_creation_on_a_busy_machine_is_judged_and_told_by_processor_time() -> None:
    same = of_sessions((50.0, 33.0), (90.0, 33.0), is_busy=True)
    assert (same.verdict, same.is_processor) == ("equal", True)
    assert same.baseline == pytest.approx(33.0, rel=0.02)
    slower = of_sessions((50.0, 33.0), (50.0, 39.6), is_busy=True)
    assert slower.verdict == "slower"
    assert metric_changes.title(slower) == "session creation (processor time)"


def test_the_other_call_on_a_busy_machine_is_judged_by_its_own_processor_time() -> None:
    block, dice = make_block(runtime=BOTH), np.random.default_rng(5)
    reports: list[Report] = [make_facts(), make_check(0), make_check(1)]
    for number in range(ROUNDS):
        samples = {}
        for arm, spent in enumerate((0.0322, 0.0354)):
            wall, noise = (float(np.exp(spread * dice.standard_normal())) for spread in (0.6, 0.005))
            metrics = {"run_p50_ms": wall, "run_cpu_p50_ms": spent * noise}
            samples[arm] = make_sample(wall, metrics=metrics, is_disturbed=True, cpu_p50_ms=0.02 * noise, cpu_share=0.5)
        reports.append(make_round(number, samples))
    record = BlockRecord(block=block, reports=[*reports, EndReport()], node="bench-1", is_over=True)
    (comparison,) = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget(block.budget))).comparisons
    assert comparison.verdict_from == "processor"
    change = next(change for change in comparison.metrics if change.name == "run_p50_ms")
    assert (change.verdict, change.is_processor) == ("slower", True)
    assert change.baseline == pytest.approx(0.0322, rel=0.02)


def test_a_metric_that_noise_leaves_open_says_what_could_be_seen() -> None:
    noisy = of_sessions((40.0, 33.0), (43.2, 33.0), is_busy=False)
    assert (noisy.verdict, noisy.reason[:14]) == ("undecided", "Changes under ")


def test_session_creation_on_a_calm_machine_is_judged_by_the_clock() -> None:
    change = of_sessions((40.0, 33.0), (48.0, 33.0), is_busy=False)
    assert (change.verdict, change.is_processor) == ("slower", False)


def test_session_creation_in_a_pipeline_is_judged_by_processor_time_as_latency_is() -> None:
    change = of_sessions((40.0, 33.0), (40.0, 39.6), is_busy=False, is_of_pipeline=True)
    assert (change.verdict, change.is_processor) == ("slower", True)


def test_a_metric_whose_a_a_pairs_differ_more_has_a_wider_margin_on_that_node() -> None:
    assert of_sessions((40.0, 33.0), (48.0, 33.0), is_busy=False).margin == 0.1
    wide = of_sessions((40.0, 33.0), (48.0, 33.0), is_busy=False, margins={"session_ms": 0.3})
    assert (wide.margin, wide.verdict) == (0.3, "equal")
    narrow = of_sessions((40.0, 33.0), (48.0, 33.0), is_busy=False, margins={"session_ms": 0.03})
    assert narrow.margin == 0.1


def test_memory_takes_the_margin_of_its_own_a_a_pairs_too() -> None:
    block = make_block(runtime=BOTH)
    rounds = {0: 100.0 * MIB, 1: 130.0 * MIB}
    for margins, verdict in (({}, "bigger"), ({"peak_memory_bytes": 0.5}, "equal")):
        reports = [make_facts(), make_check(0), make_check(1)]
        reports += [
            make_round(
                number,
                {arm: make_sample(1.0 + 0.001 * number, peak_memory_bytes=int(size)) for arm, size in rounds.items()},
            )
            for number in range(ROUNDS)
        ]
        record = BlockRecord(
            block=block.model_copy(update={"margins": margins}), reports=[*reports, EndReport()], node="n", is_over=True
        )
        found = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget(block.budget)))
        assert verdicts_of(found)["peak_memory_bytes"] == verdict


def verdicts_of(document: Document) -> dict[str, str]:
    (comparison,) = document.comparisons
    return {change.name: change.verdict for change in comparison.metrics}


def test_the_headline_comes_first_and_says_what_the_comparison_says() -> None:
    document = measured({"p50_ms": 1.0}, {"p50_ms": 1.3})
    (comparison,) = document.comparisons
    first = comparison.metrics[0]
    assert (first.name, first.verdict, first.ratio, first.p) == (
        "p50_ms", "slower", comparison.ratio, comparison.p,
    )  # fmt: skip
    assert (first.ci_low, first.ci_high, first.margin) == (comparison.ci_low, comparison.ci_high, comparison.margin)
    assert first.candidate == pytest.approx(1.3, rel=0.01)
    assert metric_changes.list_secondary_changes(comparison) == []
    assert Document.model_validate_json(document.to_json()) == document


@pytest.mark.parametrize(
    ("scenario", "name", "old", "new", "verdict", "is_gain"),
    [
        ("single", "session_ms", 40.0, 80.0, "slower", False),
        ("single", "session_ms", 40.0, 41.0, "equal", True),
        ("single", "first_ms", 4.0, 2.0, "faster", True),
        ("single", "run_p50_ms", 0.0322, 0.0337, "slower", False),
        ("single", "bound_p50_ms", 0.0322, 0.0322, "equal", True),
        ("load:rate=20", "p99_ms", 10.0, 20.0, "slower", False),
        ("load:rate=20:bound=20ms", "goodput_per_s", 20.0, 10.0, "lower", False),
        ("generate", "ttft_ms", 50.0, 40.0, "faster", True),
        ("generate", "tpot_ms", 5.0, 6.0, "slower", False),
        ("generate", "tokens_per_s", 5.0, 6.0, "higher", True),
        ("generate", "prefill_tokens_per_s", 500.0, 400.0, "lower", False),
        ("generate", "outside_ms", 1.0, 1.05, "equal", True),
        ("generate", "perplexity", 12.0, 12.4, "higher", False),
        ("generate", "perplexity", 12.0, 11.6, "lower", True),
        ("generate", "perplexity", 12.0, 12.01, "equal", True),
        ("fresh", "growth_bytes_per_1000", 100.0, float(MIB), "bigger", False),
        ("fresh", "growth_bytes_per_1000", float(MIB), -100.0, "smaller", True),
        ("fresh", "growth_bytes_per_1000", 0.0, 4096.0, "equal", True),
    ],
)
def test_each_metric_has_words_of_its_kind(
    scenario: str, name: str, old: float, new: float, verdict: str, is_gain: bool
) -> None:
    document = measured({name: old}, {name: new}, scenario=scenario)
    (change,) = metric_changes.list_secondary_changes(document.comparisons[0])
    assert (change.name, change.unit, change.verdict) == (name, BY_NAME[name].unit, verdict)
    assert change.rounds in (8, 12)
    if verdict != "equal":
        assert metric_changes.is_gain(change) is is_gain
        assert metric_changes.is_loss(change) is not is_gain
        assert metric_changes.list_decided_changes(document.comparisons[0]) == [change]


def test_what_fresh_inputs_and_loads_call_the_first_is_no_first_inference() -> None:
    assert "first_ms" not in verdicts_of(measured({"first_ms": 4.0}, {"first_ms": 2.0}, scenario="fresh"))
    assert "p99_ms" not in verdicts_of(measured({"p99_ms": 4.0}, {"p99_ms": 2.0}))


def test_growth_is_told_by_its_difference_with_an_interval() -> None:
    (comparison,) = measured({"growth_bytes_per_1000": 100.0}, {"growth_bytes_per_1000": 1.0 * MIB}).comparisons
    (change,) = metric_changes.list_secondary_changes(comparison)
    assert change.ratio is None
    assert change.change_low < change.change < change.change_high
    assert change.change == pytest.approx(MIB, rel=0.01)
    assert change.margin == MIN_GROWTH
    back = metric_changes.list_secondary_changes(swap_sides(comparison))[0]
    assert (back.verdict, back.margin, back.change) == ("smaller", change.margin, -change.change)
    assert (back.change_low, back.change_high) == (-change.change_high, -change.change_low)


def test_rates_turn_with_their_sides() -> None:
    (comparison,) = measured({"max_rate_per_s": 100.0}, {"max_rate_per_s": 60.0}).comparisons
    (change,), (back,) = (metric_changes.list_secondary_changes(one) for one in (comparison, swap_sides(comparison)))
    assert (change.verdict, back.verdict, back.margin) == ("lower", "higher", change.margin)
    assert back.ratio == pytest.approx(1 / change.ratio)


def test_a_metric_with_too_few_launches_has_no_verdict() -> None:
    assert verdicts_of(measured({"session_ms": 1.0}, {})) == {"p50_ms": "equal"}
    few = measured(
        {"growth_bytes_per_1000": 1.0, "tpot_ms": 1.0}, {"growth_bytes_per_1000": 1.0, "tpot_ms": 1.0}, rounds=1
    )
    assert verdicts_of(few) == {}


def test_a_longer_budget_joins_its_rounds() -> None:
    both = {"growth_bytes_per_1000": 4096.0, "tpot_ms": 2.0}
    document = measured(both, both, rounds=24, budget="precise")
    assert {change.rounds for change in metric_changes.list_secondary_changes(document.comparisons[0])} <= {16, 24}


def test_the_sentence_tells_metrics_that_are_declared_to_be_told() -> None:
    sentence = measured(
        {"max_rate_per_s": 100.0, "session_ms": 40.0}, {"max_rate_per_s": 60.0, "session_ms": 80.0}
    ).sentence
    assert "Its highest rate is lower: " in sentence
    assert " requests/s instead of " in sentence
    assert "session" not in sentence


def test_small_growth_is_told_in_hundredths() -> None:
    sentence = measured({"growth_bytes_per_1000": 0.0}, {"growth_bytes_per_1000": 0.25 * MIB}).sentence
    assert "is bigger: growth per 1,000 inferences 0.25 MiB instead of 0 MiB." in sentence


def made(name: str, verdict: Any, p: float | None) -> MetricChange:
    return MetricChange(
        name=name, unit="ms", baseline=1.0, candidate=2.0, ratio=2.0, ci_low=1.9, ci_high=2.1, verdict=verdict,
        margin=0.1, rounds=8, p=p,
    )  # fmt: skip


def test_further_metrics_hold_among_all_that_were_tested_and_headlines_among_themselves() -> None:
    (one,) = measured({"p50_ms": 1.0}, {"p50_ms": 1.3}).comparisons
    chance = made("session_ms", "slower", 0.049)
    memory = made("peak_memory_bytes", "bigger", None)
    many = [made("first_ms", "equal", 0.9) for _ in range(40)]
    whole = one.model_copy(update={"metrics": [one.metrics[0], chance, memory, *many]})
    (held,) = correct_verdicts([whole])
    assert held.verdict == "slower"
    assert held.metrics[0].verdict == "slower"
    assert held.metrics[1].verdict == "undecided"
    assert held.metrics[1].reason.startswith("Among 42 verdicts this one may be chance")
    assert held.metrics[2] == memory
    # without so many others it holds
    (alone,) = correct_verdicts([one.model_copy(update={"metrics": [chance]})])
    assert alone.metrics == [chance]
    # a headline that falls takes its entry along
    weak = one.model_copy(update={"p": 0.2})
    (fallen,) = correct_verdicts([weak])
    assert (fallen.verdict, fallen.metrics[0].verdict) == ("undecided", "undecided")
    twin = one.model_copy(update={"axis": "twin", "metrics": [made("session_ms", "slower", 0.9)]})
    assert correct_verdicts([twin]) == [twin]


def test_a_metric_of_a_later_farm_is_no_gain() -> None:
    assert not metric_changes.is_gain(made("pinned_rate", "higher", None))


def test_every_entry_of_the_table_that_is_judged_has_a_unit_and_a_direction() -> None:
    for metric, judging in COMPARED:
        assert metric.unit or metric.name == PERPLEXITY
        assert metric.better
        assert judging.words[0] in ("slower", "bigger", "higher")
        assert judging.by == "ratio" or judging.margin > 0


def test_differences_beyond_any_size_are_judged_too() -> None:
    (judged,) = differences.judge_many([[(0.0, 1e15)] * 8], margin=1.0)
    assert judged.comparison.verdict == "slower"
    assert judged.change == pytest.approx(differences.MAX_MARGINS)


def loaded(old: float, new: float, **more: float) -> Document:
    both = ({"max_rate_per_s": rate, **more} for rate in (old, new))
    return measured(*both, scenario="load:bound=20ms")


@pytest.mark.parametrize(
    ("new", "verdict", "word", "said"),
    [
        (80.0, "slower", "lower", "highest load, p99 within 20 ms) at a 20.0 % lower rate than 1.30.0"),
        (125.0, "faster", "higher", "25"),
        (100.0, "equal", "equal", "at as high a rate as 1.30.0"),
    ],
)
def test_where_a_rate_is_looked_for_the_verdict_is_about_it(new: float, verdict: str, word: str, said: str) -> None:
    document = loaded(100.0, new)
    (comparison,) = document.comparisons
    assert (comparison.verdict, comparison.verdict_from) == (verdict, "rate")
    assert comparison.ratio == pytest.approx(100.0 / new, rel=0.01)
    assert comparison.wall_ratio is None
    first, p50 = comparison.metrics[:2]
    assert (first.name, first.verdict, p50.name, p50.verdict) == ("max_rate_per_s", word, "p50_ms", "equal")
    assert first.baseline == pytest.approx(100.0, rel=0.01)
    assert first.ci_low <= first.ratio <= first.ci_high
    assert first.ratio == pytest.approx(new / 100.0, rel=0.01)
    told = change_of(comparison, {cell.id: cell for cell in document.cells})
    assert (told.quantity, told.word) == ("rate", word)
    assert (told.ratio, told.low, told.high) == pytest.approx((first.ratio, first.ci_low, first.ci_high))
    assert said in document.sentence
    assert " rate " in document.sentence
    assert metric_changes.list_secondary_changes(comparison)[0] == p50


def test_a_rate_that_few_launches_found_is_undecided() -> None:
    document = measured({"max_rate_per_s": 100.0}, {}, scenario="load:bound=20ms")
    (comparison,) = document.comparisons
    assert (comparison.verdict, comparison.ratio) == ("undecided", None)
    assert change_of(comparison, {cell.id: cell for cell in document.cells}) == Change("rate", "undecided")
    assert (
        "Whether"
        in measured({"max_rate_per_s": 100.0}, {"max_rate_per_s": 104.0}, rounds=4, scenario="load:bound=20ms").sentence
    )


def test_the_gate_fails_on_a_lower_rate() -> None:
    sides = {"old": Runtime.of("onnxruntime==1.30.0"), "new": Runtime.of("onnxruntime==1.31.1")}
    (found,) = gate.judge_gate(loaded(100.0, 80.0), **sides, fail_on=["slower", "lower"]).failures
    assert found.check == "lower"
    assert "keeps its bound up to a lower rate than onnxruntime==1.30.0: highest rate 79.9 requests/s" in found.text
    assert gate.judge_gate(loaded(100.0, 125.0), **sides, fail_on=["slower", "lower"]).is_passed
