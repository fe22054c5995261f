"""Compared cells: the pinned base, rows with their change against it, the bars of one metric."""

import json
from dataclasses import replace

import pytest

from dashboard.figures import beside, theme
from dashboard.reading import compared_cells, compared_lines, judging
from farm.contract.document import Document
from farm.contract.document_cells import Accuracy, Cell, EngineParity, Parity
from farm.contract.document_comparisons import MetricChange
from farm.rules.cells.metrics import BY_NAME
from farm.rules.wording import numbers
from farm.rules.wording.numbers import MIB
from farm.rules.wording.vocabulary import sign_of

KEYS = ("b1-a0", "b1-a1")


@pytest.fixture
def chosen(by_id: dict[str, Cell]) -> list[judging.ChosenCell]:
    """1.29.0 as the base, and 1.31.1."""
    return [judging.ChosenCell(f"1:{name}", 1, by_id[name], f"/{name}/") for name in KEYS]


@pytest.fixture
def judged(chosen: list[judging.ChosenCell], document: Document) -> list[judging.PairVerdict]:
    return [judging.judge_pair(chosen[0], chosen[1], document.comparisons)]


def other_than(chosen: list[judging.ChosenCell], **changes: object) -> list[judging.ChosenCell]:
    base, other = chosen
    return [base, judging.ChosenCell(other.key, other.run_id, other.cell.model_copy(update=changes), other.href)]


def test_the_pinned_cell_comes_first_and_a_key_that_is_none_pins_nothing(chosen: list[judging.ChosenCell]) -> None:
    assert [one.key for one in compared_cells.pin_base(chosen, "1:b1-a1")] == ["1:b1-a1", "1:b1-a0"]
    assert compared_cells.pin_base(chosen, "9:x") == chosen


def test_rows_say_what_differs_and_by_how_much_against_the_base(
    chosen: list[judging.ChosenCell], judged: list[judging.PairVerdict]
):
    known = {line.name: line for line in compared_lines.make_lines(chosen, judged)}
    assert known["Runtime"].differs
    assert not known["Batch"].differs
    assert "Executed precision" not in known
    # number and sign are those of the verdict above
    assert [one.text for one in known["p50"].changes] == ["", judged[0].change]
    assert known["Throughput"].changes[1].text.endswith(" fewer")


def test_equal_rows_are_hidden_and_a_search_keeps_the_rows_with_all_of_its_words(
    chosen: list[judging.ChosenCell], judged: list[judging.PairVerdict]
) -> None:
    lines = compared_lines.make_lines(chosen, judged)
    assert all(line.differs for line in compared_lines.select_lines(lines, every=False, wanted=""))
    assert len(compared_lines.select_lines(lines, every=True, wanted="")) == len(lines)
    assert [line.name for line in compared_lines.select_lines(lines, every=True, wanted="RUN 1.31")][:1] == ["Runtime"]
    assert compared_lines.select_lines(lines, every=True, wanted="nothing like it") == []


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ({"model": "another", "model_sha256": "b" * 64}, "different models"),
        ({"batch": 8}, "items/s"),
        ({"shapes": {"s": 9}}, "not comparable"),
    ],
)
def test_what_was_not_fed_the_same_has_no_change_of_latency(
    chosen: list[judging.ChosenCell], changes: dict[str, object], how: str
) -> None:
    pair = other_than(chosen, **changes)
    judged = [judging.judge_pair(*pair, [])]  # type: ignore[call-arg]
    assert how in f"{judged[0].sign.word} {judged[0].change}"
    known = {line.name: line for line in compared_lines.make_lines(pair, judged)}
    assert [one.text for one in known["p50"].changes] == ["", ""]
    assert bool(known["Throughput"].changes[1].text) == ("batch" in changes)


@pytest.mark.parametrize(
    ("devices", "are_apart"),
    [(("host:1:a", "host:1:a"), False), (("host:1:a", "host:1:b"), True), (("", ""), True)],
)
def test_two_nodes_of_one_machine_are_no_different_hardware(
    chosen: list[judging.ChosenCell], devices: tuple[str, str], are_apart: bool
) -> None:
    pair = other_than(chosen, node="attic")
    base, other = (replace(choice, device=device) for choice, device in zip(pair, devices, strict=True))
    assert (judging.judge_pair(base, other, []).sign.word == "different hardware") == are_apart


# what labelled data show of 400 samples, and what an engine's outputs are of another model
LOST = Accuracy(
    metric="top1",
    n=400,
    value=0.006,
    difference=-0.974,
    difference_low=-0.99,
    difference_high=-0.95,
    text="It is lower.",
)
APART = EngineParity(cell=KEYS[0], verdict="fail", text="2 of 10 are no numbers.")


@pytest.mark.parametrize(
    ("changes", "axis", "led", "why"),
    [
        ({"parity": Parity(verdict="fail", text="Far off.")}, "runtime", "fails parity", "Far off."),
        ({"accuracy": LOST}, "runtime", "loses accuracy, top-1 98.0 → 0.6 %", LOST.text),
        ({"engines": [APART]}, "model", "fails parity", APART.text),
    ],
)
def test_wrong_outputs_lead_and_are_not_praised(
    chosen: list[judging.ChosenCell], document: Document, changes: dict[str, object], axis: str, led: str, why: str
) -> None:
    wrong = other_than(chosen, **changes)
    measured = [pair.model_copy(update={"axis": axis}) for pair in document.comparisons]
    judged, turned = judging.judge_pair(*wrong, measured), judging.judge_pair(*reversed(wrong), measured)  # type: ignore[call-arg]
    assert [one.sign.word for one in (judged, turned)] == ["wrong outputs", "base: wrong outputs"]
    assert compared_cells.write_headline(wrong, [judged]) == numbers.unbroken(
        f"Wrong outputs of 1.31.1: 1 of 2 cells {led}"
    )
    assert judged.evidence.endswith(f"; {why}; there is no verdict on speed")
    (outputs,) = [line for line in compared_lines.make_lines(wrong, [judged]) if line.name == "Outputs"]
    assert outputs.texts == ["", "wrong outputs"]


def test_two_that_a_block_judged_make_one_claim(
    chosen: list[judging.ChosenCell], judged: list[judging.PairVerdict]
) -> None:
    """It said `Against 1.29.0: 1.31.1 24 % slower`."""
    assert judged[0].change.endswith(" % slower")
    assert compared_cells.write_headline(chosen, judged) == numbers.unbroken(
        f"1.31.1 is {judged[0].change} than 1.29.0"
    )
    undecided = replace(judged[0], sign=sign_of("undecided"))
    assert compared_cells.write_headline(chosen, [undecided]).startswith("Against 1.29.0: 1.31.1 undecided (")


def test_what_is_right_is_told_behind_what_is_wrong(chosen: list[judging.ChosenCell], document: Document) -> None:
    base, other = chosen
    wrong = replace(other, key="2:c9", run_id=2, cell=other.cell.model_copy(update={"threads": 8, "accuracy": LOST}))
    judged = [judging.judge_pair(base, each, document.comparisons) for each in (other, wrong)]
    said = compared_cells.write_headline([base, other, wrong], judged)
    assert said.startswith(numbers.unbroken("Wrong outputs of 8 threads · 1.31.1: 1 of 3 cells loses accuracy"))
    assert ". Against 1 thread · 1.29.0: 1 thread" in said


def test_bars_begin_at_zero_with_the_base_at_the_top_and_whiskers_that_the_axis_reaches(
    chosen: list[judging.ChosenCell],
):
    base, other = chosen
    bars = [beside.Bar(base.key, base.cell, base.href), beside.Bar(other.key, other.cell, other.href, tone="slower")]
    figure = beside.draw_cells(BY_NAME["p50_ms"], bars)
    drawn = json.loads(figure.json)
    low, high = drawn["layout"]["xaxis"]["range"]
    assert low == 0
    assert high > max(one.cell.p50_ci_ms[1] for one in chosen if one.cell.p50_ci_ms)
    assert drawn["data"][0]["x"] == [one.cell.p50_ms for one in chosen]
    assert drawn["data"][0]["marker"]["color"] == [theme.OTHER, theme.verdict_colour("slower")]
    assert figure.title.startswith("p50 from ")
    assert len(figure.table.rows) == 2


def test_a_metric_that_no_cell_has_is_not_offered_and_not_drawn(chosen: list[judging.ChosenCell]) -> None:
    names = {metric.name for metric in beside.drawable_metrics([one.cell for one in chosen])}
    assert "p50_ms" in names
    assert "energy_mj" not in names
    figure = beside.draw_cells(BY_NAME["energy_mj"], [beside.Bar("one", chosen[0].cell, "")])
    assert figure.empty == "None of these cells has a figure for energy per inference."


def test_metrics_that_both_launches_say_have_verdicts_beside_their_figures(
    chosen: list[judging.ChosenCell], document: Document
) -> None:
    facts = {"unit": "ms", "margin": 0.1, "rounds": 8}
    session = MetricChange(
        name="session_ms", baseline=40, candidate=80, ratio=2.0, ci_low=1.9, ci_high=2.1, verdict="slower", **facts
    )
    growth = MetricChange(name="first_ms", baseline=0, candidate=1, verdict="bigger", change=1.0, **facts)
    (one,) = [each for each in document.comparisons if {each.baseline, each.candidate} == set(KEYS)]
    judged = judging.judge_pair(*chosen, [one.model_copy(update={"metrics": [session, growth]})])  # type: ignore[call-arg]
    known = {line.name: line.changes[1].text for line in compared_lines.make_lines(chosen, [judged])}
    assert known["Session creation"].startswith("▲ 2.0")
    assert known["First inference"] == "▲ bigger"
    assert not known["p50"].startswith("▲")


def test_memory_is_of_the_launches_that_its_verdict_is_of_and_says_so(
    chosen: list[judging.ChosenCell], document: Document
) -> None:
    """58 MiB of the check pass stood beside a change of 59 to 71 MiB, which launches take."""
    pair = [replace(one, cell=one.cell.model_copy(update={"peak_memory_bytes": 58 * MIB})) for one in chosen]
    memory = MetricChange(
        name="peak_memory_bytes", unit="bytes", baseline=59 * MIB, candidate=90 * MIB, ratio=90 / 59, ci_low=1.5,
        ci_high=1.6, verdict="bigger", margin=0.3, rounds=8,
    )  # fmt: skip
    (one,) = [each for each in document.comparisons if {each.baseline, each.candidate} == set(KEYS)]
    judged = judging.judge_pair(*pair, [one.model_copy(update={"metrics": [memory]})])  # type: ignore[call-arg]
    known = {line.name: line for line in compared_lines.make_lines(pair, [judged])}
    assert known["Peak memory of a launch"].texts == ["59 MiB", "90 MiB"]
    assert "bigger" in known["Peak memory of a launch"].changes[1].text
    alone = {line.name: line for line in compared_lines.make_lines(pair, [judging.judge_pair(*pair, [])])}  # type: ignore[call-arg]
    assert alone["Peak memory"].texts == ["58 MiB", "58 MiB"]


@pytest.mark.parametrize(("verdict_from", "told"), [("processor", "5.0 % longer"), ("wall", "20.0 % shorter")])
def test_cells_without_a_verdict_are_compared_by_the_clock_that_their_runs_verdicts_rest_on(
    chosen: list[judging.ChosenCell], document: Document, verdict_from: str, told: str
) -> None:
    """Of a run that rested on processor time, 0.00466 → 0.00492 ms, two cells were said to be "3 % shorter"."""
    base, other = (
        replace(choice, cell=choice.cell.model_copy(update={**times(clock), **cpu}))
        for choice, clock, cpu in zip(chosen, (4.0, 3.2), (processor(4.0), processor(4.2)), strict=True)
    )
    measured = [
        pair.model_copy(update={"candidate": "another", "verdict_from": verdict_from})
        for pair in document.comparisons
        if {pair.baseline, pair.candidate} == set(KEYS)
    ]
    assert judging.judge_pair(base, other, measured).change == told


def times(p50_ms: float) -> dict[str, object]:
    return {"p50_ms": p50_ms, "samples_ms": [p50_ms * (1 + part / 1000) for part in range(8)]}


def processor(p50_ms: float) -> dict[str, object]:
    return {"cpu_p50_ms": p50_ms, "cpu_samples_ms": times(p50_ms)["samples_ms"]}


def test_items_per_second_are_of_the_time_that_the_verdict_beside_them_rests_on(
    chosen: list[judging.ChosenCell],
) -> None:
    base, other = (
        replace(choice, cell=choice.cell.model_copy(update=own))
        for choice, own in zip(
            chosen,
            (
                {"batch": 1, "p50_ms": 4.0, "cpu_p50_ms": 2.0, "throughput": 250.0},
                {"batch": 8, "p50_ms": 40.0, "cpu_p50_ms": 15.6, "throughput": 200.0},
            ),
            strict=True,
        )
    )
    figures = {"ratio": 1.03, "low": 1.01, "high": 1.05, "quantity": "items", "by_processor": True}
    verdict = judging.PairVerdict(sign_of("faster"), "3 % more items/s", "", **figures)
    known = {line.name: line for line in compared_lines.make_lines([base, other], [verdict])}
    judged, by_clock = known["Throughput of processor time"], known["Throughput"]
    assert judged.values == [pytest.approx(500.0), pytest.approx(8000 / 15.6)]
    assert (judged.changes[1].text, by_clock.changes[1].text) == ("3 % more items/s", "")


def test_the_conditions_are_what_all_cells_share_and_the_interval_of_the_only_verdict(
    chosen: list[judging.ChosenCell], document: Document
) -> None:
    judged = judging.judge_pair(*chosen, document.comparisons)  # type: ignore[call-arg]
    shared = compared_cells.describe_conditions(chosen, [judged])
    assert shared.startswith(f"95 % interval {judged.interval} · ")
    assert "1.31.1" not in shared
    assert shared.endswith(f" · on {chosen[0].cell.node}")
    assert "interval" not in compared_cells.describe_conditions([*chosen, chosen[1]], [judged, judged])
    assert compared_cells.describe_conditions(chosen[:1], []) == ""
