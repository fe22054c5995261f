"""One model across hardware: which setting is best where, what keeps the limits, and what is said of it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from farm.contract.document_cells import Accuracy, Cell, Parity, ProviderTime
from farm.rules.presenting import hardware, hardware_words
from farm.rules.presenting.hardware import Limits, MeasuredSetting
from tests.documents import NEW, make_cell

CPU, OPENVINO, CUDA = "CPUExecutionProvider", "OpenVINOExecutionProvider", "CUDAExecutionProvider"
AT = datetime(2026, 11, 22, tzinfo=UTC)
PASS, FAIL = Parity(verdict="pass"), Parity(verdict="fail")


def cell(name: str = "c1", p50: float | None = 2.0, **more: Any) -> Cell:
    known = {"runtime": NEW, "p50_ms": p50, "parity": PASS}
    if p50 is not None:
        known |= {"p50_ci_ms": (0.95 * p50, 1.05 * p50), "throughput": 1000 / p50}
    return make_cell(name, **{**known, **more})


def on(node: str, one: Cell, *, version: int = 1, machine: str = "Example CPU") -> MeasuredSetting:
    return MeasuredSetting(run=1, version=version, node=node, machine=machine, at=AT, cell=one)


def judged(value: float = 0.9, difference: float | None = None, **more: Any) -> Accuracy:
    known: dict[str, Any] = {"metric": "top1", "value": value, "difference": difference}
    if difference is not None:
        known |= {"difference_low": difference - 0.004, "difference_high": difference + 0.004}
    return Accuracy(**{**known, **more})


INT8 = cell("c2", 1.0, precision="int8-dynamic", recipe="int8-dynamic", accuracy=judged(difference=-0.005))
EIGHT = cell("c3", 8.0, batch=8, throughput=1000.0)


def test_each_node_and_tag_has_its_lowest_latency_and_the_lowest_stands_first() -> None:
    found = hardware.find_targets(
        [on("a", cell()), on("a", EIGHT), on("a", cell("c4", 0.5, provider=OPENVINO)), on("b", cell("c5", 9.0))]
    )
    said = [(one.nodes, one.tag, one.settings, one.best and one.best.cell.id) for one in found]
    assert said == [(("a",), "openvino", 1, "c4"), (("a",), "cpu", 2, "c1"), (("b",), "cpu", 1, "c5")]


def test_by_items_a_second_the_larger_batch_is_best() -> None:
    (found,) = hardware.find_targets([on("a", cell()), on("a", EIGHT)], goal="items")
    assert found.best.cell is EIGHT
    unknown = hardware.find_targets([on("a", cell("c9", throughput=None))], goal="items")
    assert unknown[0].best is not None


def test_a_tag_is_one_target_over_all_its_nodes_and_its_best_says_which() -> None:
    (found,) = hardware.find_targets(
        [on("b", cell("c1", 3.0)), on("a", cell("c2", 2.0), machine="Faster CPU")], by="tag"
    )
    assert (found.nodes, found.tag, found.machine) == (("a", "b"), "cpu", "Faster CPU")
    assert found.best.node == "a"
    assert hardware_words.name_target(found) == "cpu (2 nodes)"


def test_the_newest_version_stands_first_and_one_can_be_taken_alone() -> None:
    found = hardware.find_targets([on("a", cell()), on("a", cell("c2", 5.0), version=2)])
    assert [one.version for one in found] == [2, 1]
    assert [one.version for one in hardware.select_version(found)] == [2]
    assert [one.version for one in hardware.select_version(found, 1)] == [1]
    assert hardware.select_version([]) == []


def test_each_version_has_its_own_usual_sizes() -> None:
    """A new version with another default size, measured less often, had no best setting at all."""
    old = [on("a", cell(name, shapes={"sequence": 64}), version=1) for name in ("c1", "c2")]
    newest, before = hardware.find_targets([*old, on("a", cell("c3", shapes={"sequence": 128}), version=2)])
    assert (newest.version, newest.best and newest.best.cell.id, newest.left_out) == (2, "c3", {})
    assert (before.version, before.left_out) == (1, {})


@pytest.mark.parametrize(
    ("one", "fault"),
    [
        (cell(), None),
        (cell(parity=Parity()), None),
        (cell(parity=FAIL), "wrong"),
        (cell(provider=CUDA, active_providers=[CPU]), "elsewhere"),
        (cell(provider=CUDA, active_providers=[CUDA, CPU]), None),
        (cell(provider=CUDA, providers=[ProviderTime(name=CPU, nodes=3, time_share=1.0)]), "elsewhere"),
        (cell(provider=CUDA, providers=[ProviderTime(name=CUDA, nodes=3, time_share=1.0)]), None),
        (cell(provider=CUDA), None),
        (cell(p50=None), "untimed"),
    ],
)
def test_wrong_outputs_another_provider_and_no_latency_are_faults(one: Cell, fault: str | None) -> None:
    assert hardware.find_fault(one) == fault


def test_a_cell_that_fails_parity_is_never_best_however_fast_it_is() -> None:
    wrong = cell("c2", 0.1, parity=FAIL)
    (found,) = hardware.find_targets([on("a", wrong), on("a", cell())])
    assert found.best.cell.id == "c1"
    assert found.left_out == {"wrong": 1}
    (none,) = hardware.find_targets([on("a", wrong)])
    assert (none.best, none.settings, none.left_out, none.limit_check) == (None, 1, {"wrong": 1}, "unknown")
    # where nothing may be recommended stands last, and alone says so
    both = hardware.find_targets([on("a", wrong), on("b", cell("c3", 99.0))])
    assert [one.nodes for one in both] == [("b",), ("a",)]
    assert "none is recommended" in hardware_words.describe_targets([none], Limits(), "latency")
    assert hardware_words.describe_targets([none], Limits(budget_ms=1.0), "latency") == (
        "Within 1 ms: None of 1 target of version 1. Every measured setting was left out."
    )


@pytest.mark.parametrize(
    ("one", "loss"),
    [
        (INT8, (0.005, 0.009, "labelled data")),
        (cell(), (0.0, 0.0, "parity")),
        (cell(accuracy=judged()), (0.0, 0.0, "parity")),
        (cell(parity=Parity()), None),
        (cell(precision="fp16"), None),
        (cell(precision="fp16", accuracy=judged(0.25, 0.05, metric="mse", higher_is_better=False)), (0.25, 0.27, None)),
        (cell(precision="fp16", accuracy=judged(0.25, 0.25, metric="mse", higher_is_better=False)), None),
        (
            cell(precision="fp16", accuracy=judged(0.9, -0.1, difference_low=None, difference_high=None)),
            (0.1, 0.1, None),
        ),
    ],
)
def test_a_loss_is_in_points_or_in_parts_of_an_error_with_its_worse_end(one: Cell, loss: tuple[Any, ...] | None):
    found = hardware.find_loss(one)
    if loss is None:
        assert found is None
    else:
        assert found is not None
        assert (found.value, found.worst) == (pytest.approx(loss[0]), pytest.approx(loss[1]))
        assert found.basis == (loss[2] or "labelled data")


@pytest.mark.parametrize(
    ("limits", "one", "keeping"),
    [
        (Limits(), cell(p50=99.0), "kept"),
        (Limits(budget_ms=2.1), cell(), "kept"),
        (Limits(budget_ms=2.0), cell(), "undecided"),
        (Limits(budget_ms=1.9), cell(), "exceeded"),
        (Limits(budget_ms=2.0), cell(p50_ci_ms=None), "kept"),
        (Limits(max_loss=0.01), INT8, "kept"),
        (Limits(max_loss=0.006), INT8, "undecided"),
        (Limits(max_loss=0.004), INT8, "exceeded"),
        (Limits(max_loss=0.01), cell(precision="fp16"), "unknown"),
        (Limits(budget_ms=0.9, max_loss=0.01), INT8, "exceeded"),
        (Limits(budget_ms=2.0, max_loss=0.01), cell(precision="fp16"), "unknown"),
    ],
)
def test_limits_are_kept_by_the_worse_ends_of_both_intervals(limits: Limits, one: Cell, keeping: str) -> None:
    assert hardware.check_limits(one, limits) == keeping


def test_the_best_setting_is_one_that_keeps_the_wish_and_only_then_the_fastest() -> None:
    lossy = cell("c4", 0.2, precision="int8-qdq", accuracy=judged(difference=-0.2))
    (found,) = hardware.find_targets(
        [on("a", lossy), on("a", INT8), on("a", cell())], limits=Limits(budget_ms=3.0, max_loss=0.01)
    )
    assert (found.best.cell.id, found.limit_check) == ("c2", "kept")


def test_a_provider_without_an_entry_stands_under_the_hardware_that_was_asked_for() -> None:
    own = on("a", cell(provider="OwnExecutionProvider", hardware="our-npu"))
    gpu = on("a", cell(provider=OPENVINO, provider_options={"device_type": "GPU"}))
    assert (own.tag, gpu.tag, on("a", cell(provider=CUDA)).tag) == ("our-npu", "openvino-gpu", "cuda")


def test_nothing_measured_is_said() -> None:
    assert hardware_words.describe_targets([], Limits(), "latency") == "No hardware has measured this model yet."
    assert hardware_words.describe_left_out([]) == "0 settings measured. No setting was left out."


def test_without_a_wish_the_answer_names_how_many_and_the_best() -> None:
    found = hardware.find_targets([on("a", cell()), on("b", cell("c2", 4.0))])
    assert hardware_words.describe_targets(found, Limits(), "latency") == (
        "Version 1 was measured on 2 targets. Lowest p50: 2.0 ms ± 0.1, 500 items/s on a (cpu) with "
        "1.31.1, CPU, fp32, batch 1, 1 thread."
    )
    exact = hardware.find_targets([on("a", cell(throughput=885.504))])
    # no more digits than an interval of ± 5 % allows
    assert ", 890 items/s on a (cpu)" in hardware_words.describe_targets(exact, Limits(), "latency")
    items = hardware.find_targets([on("a", EIGHT)], goal="items")
    assert (
        "Most items/s: 1\N{NARROW NO-BREAK SPACE}000 items/s, 8.0 ms ± 0.4 on a (cpu)"
        in hardware_words.describe_targets(items, Limits(), "items")
    )
    bare = hardware.find_targets([on("a", cell(throughput=None, p50_ci_ms=None))])
    assert "Lowest p50: 2.00 ms on a (cpu)" in hardware_words.describe_targets(bare, Limits(), "latency")


def test_settings_that_launches_do_not_tell_apart_from_the_best_are_counted() -> None:
    """The page named 1.31.1 alone, of which the model's page said that 1 other is not told apart from it."""
    near = [on("a", cell()), on("a", cell("c2", 2.05, threads=2))]
    told = hardware_words.describe_targets(hardware.find_targets(near), Limits(), "latency")
    assert told.endswith(", 1 thread. 1 other is as fast within the intervals.")
    few = hardware.find_targets([on("a", cell()), on("a", cell("c2", 2.05, threads=2, p50_ci_ms=None))])
    assert "thread. Of 1 other there are too few launches to tell" in hardware_words.describe_targets(
        few, Limits(), "latency"
    )


def test_the_page_is_headed_by_the_best_figure_within_the_limits() -> None:
    measured = [on("a", cell()), on("b", cell("c2", 4.0))]
    found = hardware.find_targets(measured)
    assert hardware_words.write_headline(found, Limits(), "latency") == "2.0 ms ± 0.1 at best, on a (cpu)"
    assert hardware_words.write_headline(found, Limits(), "items") == "500 items/s at best, on a (cpu)"
    # within the other's interval nothing was told apart: a page crowned one of two names of the same processor
    for goal in ("latency", "items"):
        alike = hardware.find_targets([on("a", cell()), on("b", cell("c2", 2.05))], goal=goal)
        assert hardware_words.write_headline(alike, Limits(), goal).endswith(" at best; no target leads")
    assert hardware_words.write_headline(
        hardware.find_targets([on("a", cell(p50_ci_ms=None))]), Limits(), "latency"
    ).endswith(" on a (cpu)")
    tight = Limits(budget_ms=1)
    assert hardware_words.write_headline(hardware.find_targets(measured, limits=tight), tight, "latency") == (
        "no target within 1 ms"
    )
    assert hardware_words.write_headline([], Limits(), "latency") == ""


def test_where_a_model_may_run_is_one_sentence_with_what_stays_open() -> None:
    limits = Limits(budget_ms=20, max_loss=0.01)
    measured = [
        on("a", INT8), on("b", cell("c2", 19.5)), on("c", cell("c3", 1.0, precision="fp16")), on("d", cell("c4", 90.0)),
    ]  # fmt: skip
    said = hardware_words.describe_targets(hardware.find_targets(measured, limits=limits), limits, "latency")
    assert said.startswith("Within 20 ms and 1 % loss: 1 of 4 targets of version 1. Lowest p50: 1.00 ms ± 0.05,")
    assert "1 undecided: the interval reaches beyond the limit." in said
    assert said.endswith("1 without a measured loss: add labelled data to the model and measure again.")


def test_where_nothing_keeps_the_wish_the_lowest_latency_is_named() -> None:
    limits = Limits(budget_ms=0.25)
    found = hardware.find_targets([on("a", cell()), on("b", cell("c2", 4.0))], limits=limits)
    assert hardware_words.describe_targets(found, limits, "latency") == (
        "Within 0.25 ms: None of 2 targets of version 1. The lowest latency is 2.0 ms ± 0.1, on a (cpu) with "
        "1.31.1, CPU, fp32, batch 1, 1 thread."
    )


def test_what_was_left_out_is_counted_by_its_reason() -> None:
    measured = [
        on("a", cell()), on("a", cell("c2", parity=FAIL)), on("b", cell("c3", parity=FAIL)),
        on("b", cell("c4", provider=CUDA, active_providers=[CPU])),
    ]  # fmt: skip
    assert hardware_words.describe_left_out(hardware.find_targets(measured)) == (
        "4 settings measured. Left out: 2 with wrong outputs, 1 that ran on the CPU instead of the provider asked for."
    )
    assert (
        hardware_words.describe_left_out(hardware.find_targets([on("a", cell())]))
        == "1 setting measured. No setting was left out."
    )


def test_limits_are_written_as_they_were_asked_for() -> None:
    assert hardware_words.format_limits(Limits()) == ""
    assert hardware_words.format_limits(Limits(budget_ms=1500)) == "1\N{NARROW NO-BREAK SPACE}500 ms"
    assert hardware_words.format_limits(Limits(max_loss=0.005)) == "0.5 % loss"


@pytest.mark.parametrize(
    ("devices", "is_other_hardware", "says_one_machine"),
    [
        ({"a": ""}, False, False),
        ({"a": "", "b": ""}, True, False),
        ({"a": "host:1:x", "b": "host:1:y"}, True, False),
        ({"a": "host:1:x", "b": "host:1:x"}, False, True),
        ({"a": "host:1:x", "b": "host:1:x", "c": "node:3"}, True, True),
    ],
)
def test_nodes_of_one_machine_are_no_other_hardware(
    devices: dict[str, str], is_other_hardware: bool, says_one_machine: bool
) -> None:
    told = hardware_words.explain_side_by_side(
        [replace(on(node, cell()), device=device) for node, device in devices.items()]
    )
    assert told.startswith(hardware_words.SIDE_BY_SIDE) == is_other_hardware
    assert ("a and b are nodes of one machine" in told) == says_one_machine
