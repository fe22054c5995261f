"""Memory beside latency: verdicts on metrics that come out alike at every launch, from the launches to the sentence."""

from typing import Any

import pytest

from farm.contract.cells import Budget, Runtime
from farm.contract.document import Document
from farm.contract.document_comparisons import MetricChange
from farm.contract.reports import EndReport, Report
from farm.rules.changes import gate
from farm.rules.changes.watch_rounds import Rule, judge
from farm.rules.comparing import repeats
from farm.rules.comparing.sides import swap_sides
from farm.rules.presenting import metric_changes
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from farm.rules.wording.numbers import MIB
from tests.unit.rules.making import make_block, make_check, make_facts, make_model, make_reason, make_round, make_sample

SPACE = "peak_address_space_bytes"
ROUNDS = 9
SIDES = {"old": Runtime.of("onnxruntime==1.23.1"), "new": Runtime.of("onnxruntime==1.23.2")}


@pytest.mark.parametrize(
    ("pairs", "way"),
    [
        ([(320, 833), (321, 832)], "more"),
        ([(833, 320), (832, 321)], "less"),
        ([(128, 142), (128, 143)], "equal"),
        ([(128, 144), (128, 144)], "more"),
        # one round is not like the others, or the sign is not the same
        ([(128, 128), (128, 160)], "undecided"),
        ([(128, 160), (160, 128)], "undecided"),
    ],
)
def test_a_difference_that_every_repeat_shows_is_one(pairs: list[tuple[float, float]], way: str) -> None:
    judged = repeats.judge(pairs, margin=16)
    assert judged.direction == way
    assert judged.low <= judged.ratio <= judged.high
    assert judged.margin == pytest.approx(16 / judged.baseline)


def test_one_launch_is_no_repeat() -> None:
    judged = repeats.judge([(320, 833)], margin=16)
    assert (judged.direction, judged.rounds) == ("undecided", 1)
    assert repeats.judge([], margin=16) is None


def measured(
    *,
    spaces: tuple[float, float] | None = (320.0, 833.0),
    wall: float = 1.0,
    rounds: int = ROUNDS,
    is_late: bool = False,
    **options: Any,
) -> Document:
    """Two releases whose launches took so many MiB of addresses; the candidate takes `wall` times as long."""
    block = make_block(runtime=["1.23.1", "1.23.2"], **options)
    reports: list[Report] = [make_facts(), make_check(0), make_check(1)]
    given = [{} if spaces is None else {SPACE: space * MIB} for space in spaces or (0.0, 0.0)]
    for number in range(rounds):
        # another program took the processor in the first one, which changes no memory
        samples = (
            make_sample(time * (1 + 0.001 * (number % 3)), is_disturbed=number == 0, metrics=said)
            for time, said in zip((1.0, wall), given, strict=True)
        )
        one = make_round(number, dict(enumerate(samples)))
        reports.append(one.model_copy(update={"is_last": is_late and number == rounds - 1}))
    record = BlockRecord(block=block, reports=[*reports, EndReport()], node="bench-1", is_over=True)
    return assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK))


def test_where_one_round_was_measured_the_document_says_why_memory_has_no_verdict() -> None:
    for is_late in (False, True):
        document = measured(rounds=1, is_late=is_late)
        (change,) = document.comparisons[0].metrics
        assert (change.name, change.verdict, change.rounds) == (SPACE, "undecided", 1)
        assert change.reason.startswith("One round has it on both sides: a verdict takes a second.")
        assert ("Time ran out" in change.reason) == is_late
        (found,) = [
            one.text
            for one in gate.judge_gate(
                document,
                old=Runtime.of("onnxruntime==1.23.1"),
                new=Runtime.of("onnxruntime==1.23.2"),
                fail_on=["bigger"],
            ).findings
            if "peak address space" in one.text
        ]
        assert found.endswith(change.reason)


def test_a_release_that_takes_more_addresses_is_bigger_though_it_is_as_fast() -> None:
    document = measured()
    (comparison,) = document.comparisons
    (change,) = metric_changes.list_secondary_changes(comparison)
    assert (change.name, change.unit, change.verdict, change.rounds) == (SPACE, "bytes", "bigger", ROUNDS)
    assert (change.baseline, change.candidate) == (320 * MIB, 833 * MIB)
    assert comparison.verdict == "equal"
    assert "1.23.2 is bigger: peak address space 833 MiB instead of 320 MiB." in document.sentence
    assert Document.model_validate_json(document.to_json()) == document


@pytest.mark.parametrize(
    ("wall", "spaces", "said"),
    [
        (0.7, (320.0, 833.0), "is faster but bigger: peak"),
        (1.4, (320.0, 833.0), "is slower and bigger: peak"),
        (1.4, (833.0, 320.0), "is slower but smaller: peak"),
        (0.7, (833.0, 320.0), "is faster and smaller: peak"),
    ],
)
def test_speed_and_memory_stand_in_one_sentence(wall: float, spaces: tuple[float, float], said: str) -> None:
    assert said in measured(wall=wall, spaces=spaces).sentence


@pytest.mark.parametrize("spaces", [None, (320.0, 322.0), (0.0, 320.0)])
def test_memory_that_is_equal_or_unknown_is_not_in_the_sentence(spaces: tuple[float, float] | None) -> None:
    document = measured(spaces=spaces)
    assert "bigger" not in document.sentence
    if spaces != (320.0, 322.0):
        assert [change.name for change in document.comparisons[0].metrics] == ["p50_ms"]


def test_more_work_at_a_time_takes_more_memory_which_is_no_news() -> None:
    block = make_block(batch=[1, 8], runtime=["1.31.1"])
    sizes = {arm.arm: 300.0 + 100.0 * arm.arm for arm in block.arms}
    rounds = [
        make_round(number, {arm: make_sample(1.0 + arm, metrics={SPACE: size * MIB}) for arm, size in sizes.items()})
        for number in range(8)
    ]
    checks = [make_check(arm) for arm in sizes]
    record = BlockRecord(block=block, reports=[make_facts(), *checks, *rounds, EndReport()], is_over=True)
    document = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK))
    by_batch = [one for one in document.comparisons if one.axis == "batch"]
    assert by_batch
    assert all(change.verdict == "bigger" for one in by_batch for change in metric_changes.list_secondary_changes(one))
    assert "bigger" not in document.sentence


def test_arms_that_cannot_be_compared_have_no_verdict_on_memory_either() -> None:
    block = make_block(runtime=["1.23.1", "1.23.2"])
    launches = {arm: make_sample(1.0, metrics={SPACE: 300.0 * MIB}) for arm in (0, 1)}
    rounds = [make_round(number, launches) for number in range(8)]
    broken = make_check(1, reason=make_reason())
    record = BlockRecord(block=block, reports=[make_facts(), make_check(0), broken, *rounds, EndReport()], is_over=True)
    document = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK))
    assert all(one.metrics == [] for one in document.comparisons if one.verdict == "not comparable")


def test_from_the_other_side_bigger_is_smaller() -> None:
    (one,) = measured().comparisons
    (change,) = metric_changes.list_secondary_changes(swap_sides(one))
    assert change.verdict == "smaller"
    assert change.ratio == pytest.approx(320 / 833)
    assert change.margin == pytest.approx(16 / 833)
    assert swap_sides(swap_sides(one)).metrics[1].candidate == one.metrics[1].candidate


def made(name: str, verdict: Any, ratio: float) -> MetricChange:
    return MetricChange(
        name=name, unit="bytes", baseline=100.0 * MIB, candidate=ratio * 100.0 * MIB, ratio=ratio, ci_low=ratio,
        ci_high=ratio, verdict=verdict, margin=0.16, rounds=4,
    )  # fmt: skip


def test_resident_memory_stands_for_all_as_in_the_column_of_cells() -> None:
    (one,) = measured().comparisons
    grown, shrunk = made(SPACE, "bigger", 1.5), made("peak_memory_bytes", "smaller", 0.4)
    both = one.model_copy(update={"metrics": [shrunk, grown]})
    assert metric_changes.find_memory_change(both) == shrunk
    assert metric_changes.find_memory_change(one.model_copy(update={"metrics": [grown]})) is None
    assert metric_changes.ratio_with_interval(grown) == (1.5, 1.5, 1.5)
    assert metric_changes.find_memory_change(one.model_copy(update={"metrics": []})) is None
    assert metric_changes.describe_changes("2.0", "undecided", both) == (
        "2.0 is bigger: peak address space 150 MiB instead of 100 MiB. "
        "2.0 is smaller: peak memory of a launch 40 MiB instead of 100 MiB."
    )


def test_a_metric_of_a_later_farm_is_told_by_its_name() -> None:
    (one,) = measured().comparisons
    later = one.model_copy(update={"metrics": [made("pinned_host_bytes", "bigger", 2.0)]})
    assert metric_changes.describe_changes("2.0", "equal", later) == (
        "2.0 is bigger: pinned host bytes 200 MiB instead of 100 MiB."
    )


def test_the_gate_fails_on_memory_where_it_is_told_to() -> None:
    (found,) = gate.judge_gate(measured(), **SIDES, fail_on=["bigger"]).failures
    assert found.check == "bigger"
    assert found.text.endswith(
        "takes more memory than onnxruntime==1.23.1: peak address space 833 MiB instead of 320 MiB"
    )
    assert gate.judge_gate(measured(), **SIDES, fail_on=["slower"]).is_passed
    assert gate.judge_gate(measured(spaces=(833.0, 320.0)), **SIDES, fail_on=["bigger"]).is_passed


def test_a_watch_alerts_on_addresses_as_on_resident_memory() -> None:
    judgement = judge(measured(), Rule(), **SIDES)
    (finding,) = judgement.findings
    assert finding.kind == "memory"
    assert "peak address space 833 MiB instead of 320 MiB" in finding.text
