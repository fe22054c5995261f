"""Lines over releases: what is read off documents of several blocks that share a reference."""

from collections.abc import Callable

from farm.contract.cells import CellSpec
from farm.contract.document import Document
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.matrices import matrix as matrices
from farm.rules.planning import planner
from farm.rules.runtimes.order import release_order
from farm.rules.searches.sweeps import Line, make_lines
from tests.unit.commands.made_up import MadeUpBench
from tests.unit.rules.making import make_model


def slower_since_1_31(spec: CellSpec) -> float:
    return 1.25 if release_order(spec.runtime.version) >= release_order("1.31.0") else 1.0


def line_of(bench: MadeUpBench, *versions: str, reference: str = "1.29.0") -> Line:
    """The one line of a block with these releases."""
    declared = {"batch": [1], "precision": ["fp32"], "runtime": [reference, *versions]}
    (line,) = make_lines([bench.measure(bench.plan(matrices.parse(declared)))], reference=reference)
    return line


def test_a_line_says_what_was_measured_and_where_it_changed() -> None:
    line = line_of(MadeUpBench(p50_ms=slower_since_1_31), "1.30.0", "1.31.0")
    assert [(turn.before, turn.after, turn.is_paired) for turn in line.turns] == [("1.30.0", "1.31.0", True)]
    assert line.sentence().startswith("encoder, CPU, fp32, batch 1, 1 thread: 3 of 3 releases measured, 1 change: 2")
    assert line.sentence().endswith("slower in 1.31.0.")
    assert line.as_plain()["sentence"] == line.sentence()


def test_a_reference_that_does_not_load_is_a_reason_and_no_ratio() -> None:
    reason = Reason(code=ReasonCode.MODEL_NOT_LOADED, text="It does not load.")
    bench = MadeUpBench(checks=lambda spec: {"reason": reason} if spec.runtime.version == "1.29.0" else {})
    line = line_of(bench, "1.30.0", "1.31.0")
    assert next((point.ratio, point.reason) for point in line.points) == (None, "It does not load.")
    assert line.turns == ()


def by_parts(p50_ms: Callable[[CellSpec], float], *, noise: float) -> list[Document]:
    """Two blocks that share the reference alone."""
    bench = MadeUpBench(p50_ms=p50_ms, noise=noise)
    base = {"batch": [1], "precision": ["fp32"]}
    pairs = (["1.29.0", "1.30.0"], ["1.29.0", "1.31.0"])
    return [bench.measure(bench.plan(matrices.parse({**base, "runtime": runtimes}))) for runtimes in pairs]


def test_neighbours_in_different_blocks_are_compared_through_the_reference() -> None:
    (line,) = make_lines(by_parts(slower_since_1_31, noise=0.003), reference="1.29.0")
    (turn,) = line.turns
    assert (turn.before, turn.after, turn.verdict, turn.is_paired) == ("1.30.0", "1.31.0", "slower", False)
    assert turn.low < 1.25 < turn.high
    (line,) = make_lines(by_parts(slower_since_1_31, noise=0.3), reference="1.29.0")
    assert line.turns == ()


def test_each_hardware_is_a_line_of_its_own() -> None:
    near, far = by_parts(slower_since_1_31, noise=0.003)
    far = far.model_copy(update={"cells": [one.model_copy(update={"hardware": "node:b"}) for one in far.cells]})
    found = make_lines([near, far], reference="1.29.0")
    assert [(line.label, [point.version for point in line.points]) for line in found] == [
        ("encoder, CPU, fp32, batch 1, 1 thread, cpu", ["1.29.0", "1.30.0"]),
        ("encoder, CPU, fp32, batch 1, 1 thread, node:b", ["1.29.0", "1.31.0"]),
    ]


def test_a_release_that_never_stood_beside_the_reference_says_so() -> None:
    bench = MadeUpBench()
    plan = bench.plan(matrices.parse({"batch": [1], "precision": ["fp32"], "runtime": ["1.30.0", "1.31.0"]}))
    (line,) = make_lines([bench.measure(plan)], reference="1.29.0")
    assert {point.reason for point in line.points} == {"It was not measured beside the reference."}


def test_an_a_a_twin_is_no_release_of_its_own() -> None:
    bench = MadeUpBench()
    declared = matrices.parse({"batch": [1], "precision": ["fp32"], "runtime": ["1.29.0", "1.30.0"]})
    document = bench.measure(planner.plan(declared, make_model(), with_null_pair=True))
    assert any(cell.twin_of for cell in document.cells)
    (line,) = make_lines([document], reference="1.29.0")
    assert [point.version for point in line.points] == ["1.29.0", "1.30.0"]


def test_neighbours_whose_pair_was_lost_are_compared_through_the_reference() -> None:
    bench = MadeUpBench(p50_ms=slower_since_1_31)
    declared = {"batch": [1], "precision": ["fp32"], "runtime": ["1.29.0", "1.30.0", "1.31.0"]}
    document = bench.measure(bench.plan(matrices.parse(declared)))
    names = {cell.id: cell.runtime.version for cell in document.cells}
    for pair in document.comparisons:
        if "1.29.0" not in (names[pair.baseline], names[pair.candidate]):
            pair.ratio = pair.ci_low = pair.ci_high = None
    (line,) = make_lines([document], reference="1.29.0")
    assert [(turn.after, turn.is_paired) for turn in line.turns] == [("1.31.0", False)]
    for pair in document.comparisons:
        pair.ci_low = None
    (line,) = make_lines([document], reference="1.29.0")
    assert line.turns == (), "without intervals nothing is sure"
