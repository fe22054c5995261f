"""`onnxfarm compare`."""

import json
from typing import Any

import pytest

from farm.rules.cells.axes import MATRIX_AXES
from tests.unit.commands.conftest import Call, Write, refused

OLD, NEW = "onnxruntime==1.29.0", "onnxruntime==1.31.1"


def cell(name: str, **changed: Any) -> dict[str, Any]:
    """A measured cell; its samples are around `factor` ms."""
    factor = changed.pop("factor", 1.0)
    samples = [factor * (1.0 + 0.001 * place) for place in range(8)]
    return {
        "id": name,
        "digest": name,
        "model": "encoder.onnx",
        "model_sha256": "a" * 64,
        "opset": 17,
        "runtime": OLD,
        "provider": "CPUExecutionProvider",
        "batch": 1,
        "precision": "fp32",
        "threads": 1,
        "status": "done",
        "reason": None,
        "p50_ms": factor,
        "samples_ms": samples,
        **changed,
    }


def bench(*cells: dict[str, Any], **machine: Any) -> dict[str, Any]:
    return {"schema": "onnxfarm.bench/1", "machine": machine, "seed": 0, "cells": list(cells), "comparisons": []}


def compared(call: Call, write: Write, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    result = call("compare", write("old.json", old), write("new.json", new), "--json")
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    return answer


def test_two_releases_are_matched_and_not_comparable(call: Call, write: Write) -> None:
    answer = compared(call, write, bench(cell("a")), bench(cell("b", runtime=NEW, factor=1.2)))
    (one,) = answer["comparisons"]
    assert (one["baseline"], one["candidate"], one["verdict"]) == ("a", "b", "not comparable")
    assert one["ratio"] == pytest.approx(1.2)
    assert one["ci_low"] < 1.2 < one["ci_high"]
    assert (answer["interleaved"], one["interleaved"], one["test"]) == (False, False, "exact Mann-Whitney")
    assert one["differs"] == {"runtime": [OLD, NEW]}
    assert "not side by side in one block" in one["reason"]
    assert one["command"] == (
        "onnxfarm bench encoder.onnx --ort 1.29.0,1.31.1 --provider CPUExecutionProvider --batch 1 --threads 1 "
        "--precision fp32"
    )
    assert one["command"] in one["reason"]


def test_the_sentence_is_for_people(call: Call, write: Write) -> None:
    result = call("compare", write("o.json", bench(cell("a"))), write("n.json", bench(cell("b", runtime=NEW))))
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "encoder.onnx, CPU, fp32, batch 1, 1 thread (runtime onnxruntime==1.29.0 → onnxruntime==1.31.1): not comparable"
    )


def test_wrong_outputs_of_a_file_are_told_first(call: Call, write: Write) -> None:
    lost = {"metric": "top1", "n": 400, "value": 0.006, "difference": -0.97, "text": "It is lower."}
    lost |= {"difference_low": -0.99, "difference_high": -0.95}
    cells = [cell("a"), cell("b", batch=8, accuracy=lost), cell("c", batch=9, accuracy={"value": "none"})]
    result = call("compare", write("o.json", bench(*cells)), write("n.json", bench(*cells)))
    assert result.stdout.startswith("Wrong outputs of BASE: It is lower. Wrong outputs of NEW: It is lower. encoder")
    assert result.stdout.count("Wrong outputs") == 2


def test_cells_that_measure_the_same_are_matched_before_releases_are(call: Call, write: Write) -> None:
    old = bench(cell("old 29"), cell("old 31", runtime=NEW), cell("old 8", batch=8))
    new = bench(cell("new 8", batch=8, runtime=NEW), cell("new 31", runtime=NEW), cell("new 29"))
    answer = compared(call, write, old, new)
    matched = {(one["baseline"], one["candidate"]) for one in answer["comparisons"]}
    assert matched == {("old 29", "new 29"), ("old 31", "new 31"), ("old 8", "new 8")}
    assert answer["unmatched"] == []


def test_a_cell_repeated_in_several_blocks_is_matched_in_order(call: Call, write: Write) -> None:
    answer = compared(call, write, bench(cell("a"), cell("b")), bench(cell("c"), cell("d")))
    assert [(one["baseline"], one["candidate"]) for one in answer["comparisons"]] == [("a", "c"), ("b", "d")]


def test_which_of_several_releases_is_meant_is_not_guessed(call: Call, write: Write) -> None:
    old = bench(cell("x"), cell("a", batch=8), cell("b", batch=8, runtime="onnxruntime==1.28.0"))
    answer = compared(call, write, old, bench(cell("y"), cell("c", batch=8, runtime=NEW)))
    assert [one["baseline"] for one in answer["comparisons"]] == ["x"]
    assert {entry["cell"] for entry in answer["unmatched"]} == {"a", "b", "c"}


def test_cells_that_were_not_measured_are_told_with_their_reason(call: Call, write: Write) -> None:
    failed = cell("b", batch=8, status="failed", samples_ms=[], reason={"code": "oom", "text": "Out of memory."})
    crashed = cell("c", batch=4, status="crashed", samples_ms=None)
    answer = compared(call, write, bench(cell("a"), failed, crashed), bench(cell("d")))
    reasons = [entry["reason"] for entry in answer["unmatched"]]
    assert reasons[0].endswith("(b) was not measured (failed): Out of memory.")
    assert reasons[1].endswith("(c) was not measured (crashed).")
    told = call("compare", write("o.json", bench(cell("a"), failed)), write("n.json", bench(cell("d")))).stdout
    assert "Out of memory." in told


def test_twins_are_left_to_the_null_bank(call: Call, write: Write) -> None:
    answer = compared(call, write, bench(cell("a"), cell("twin", twin_of="a")), bench(cell("b")))
    assert len(answer["comparisons"]) == 1
    assert answer["unmatched"] == []


def test_other_facts_of_the_machine_are_named(call: Call, write: Write) -> None:
    old = bench(cell("a"), cpu_model="A", governor="performance", load_1m=0.1, turbo=True, os="x", arch="x86_64")
    new = bench(cell("b"), cpu_model="B", governor="powersave", load_1m=3.0, turbo=False, os="y", arch="x86_64")
    answer = compared(call, write, old, new)
    assert answer["different_hardware"] is True
    assert len(answer["confounders"]) == 4
    (one,) = answer["comparisons"]
    assert "cpu_model was A and is B." in one["reason"]
    assert "1 more machine facts differ." in one["reason"]
    assert one["command"].startswith("onnxfarm bench encoder.onnx --ort 1.29.0,1.29.0 ")


def test_two_models_share_no_block(call: Call, write: Write) -> None:
    answer = compared(call, write, bench(cell("a")), bench(cell("b", model_sha256="b" * 64, opset=18, runtime=NEW)))
    (one,) = answer["comparisons"]
    assert one["command"] is None
    assert "The models differ (model file digests aaaaaaaaaaaa and bbbbbbbbbbbb)" in one["reason"]


def test_axes_without_an_option_come_as_a_matrix_file(call: Call, write: Write) -> None:
    special = {"shapes": {"sequence": 32}, "provider_options": {"arena": "0"}, "optimization": "basic"}
    answer = compared(call, write, bench(cell("a", **special)), bench(cell("b", runtime=NEW, opset=18, **special)))
    (one,) = answer["comparisons"]
    assert one["command"] == "onnxfarm bench encoder.onnx --matrix both.json"
    assert one["matrix"] == {
        "matrix": {
            "runtime": [OLD, NEW],
            "opset": [17, 18],
            "provider": [{"name": "CPUExecutionProvider", "options": {"arena": "0"}}],
            "batch": [1],
            "precision": ["fp32"],
            "threads": [1],
            "shapes": [{"sequence": 32}],
            "optimization": ["basic"],
        }
    }


def test_the_session_of_a_cell_goes_along_unless_it_is_the_default(call: Call, write: Write) -> None:
    plain = {"name": "default", "spinning": True}
    calm = {"name": "calm", "spinning": False}
    old = bench(cell("a", session=plain, concurrency=1), cell("b", batch=8, session=calm))
    new = bench(cell("c", session=plain, concurrency=1), cell("d", batch=8, session=calm))
    first, second = compared(call, write, old, new)["comparisons"]
    assert first["matrix"] is None
    assert second["matrix"]["matrix"]["session"] == [calm]


def test_the_matrix_that_is_told_is_one_that_bench_reads(call: Call, write: Write) -> None:
    special = {"session": {"name": "calm", "inter_op_threads": 1, "spinning": False, "config": {}}, "concurrency": 2}
    answer = compared(call, write, bench(cell("a", **special)), bench(cell("b", runtime=NEW, **special)))
    axes = answer["comparisons"][0]["matrix"]["matrix"]
    for name, values in axes.items():
        for value in values:
            MATRIX_AXES[name].read(value)


def test_files_of_different_lengths_are_compared_as_they_are(call: Call, write: Write) -> None:
    old, new = bench(cell("a")), bench(cell("b", runtime=NEW, samples_ms=[1.2 + 0.001 * n for n in range(12)]))
    (one,) = compared(call, write, old, new)["comparisons"]
    assert (one["rounds_used"], one["verdict"]) == (8, "not comparable")
    assert one["ratio"] == pytest.approx(1.2, rel=0.01)


def test_a_file_with_little_in_it_is_still_compared(call: Call, write: Write) -> None:
    bare = {"id": "a", "status": "done", "samples_ms": [1.0, 1.1], "batch": None}
    answer = compared(call, write, bench(bare), bench({**bare, "p50_ms": float("nan"), "threads": None}))
    (one,) = answer["comparisons"]
    assert one["candidate_p50_ms"] is None
    assert one["command"].startswith("onnxfarm bench MODEL.onnx --ort ")


def test_settings_of_a_strange_kind_are_left_out_of_the_sentence(call: Call, write: Write) -> None:
    strange = {"session": "fast", "shapes": [1, 2], "provider": 5, "optimization": "basic"}
    (one,) = compared(call, write, bench(cell("a", **strange)), bench(cell("b", **strange)))["comparisons"]
    assert one["sentence"].startswith("encoder.onnx, fp32, batch 1, 1 thread, optimization basic (")


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ({"pairs": [[1, 2], [2, 3]]}, "has the schema None"),
        ({**bench(cell("b")), "schema": "onnxfarm.bench/2"}, "has the schema 'onnxfarm.bench/2'"),
        ([], "holds a list"),
        ("{", "JSON"),
        ({"schema": "onnxfarm.bench/1"}, "has no machine or no cells"),
        ({"schema": "onnxfarm.bench/1", "machine": {}, "cells": 5}, "has no machine or no cells"),
        (bench(5), "cells[0] has no id and status"),
        (bench({"id": "b"}), "cells[0] has no id and status"),
        (bench(cell("b", samples_ms=None)), "b: samples_ms is missing (null)"),
        (bench(cell("b", samples_ms=[1.0, None])), "b: samples_ms[1] is missing (null)"),
        (bench(cell("b", samples_ms=[1.0, -1.0])), "b: samples_ms[1] is -1.0"),
        (bench(cell("b", samples_ms=[0.0, 1.0])), "b: samples_ms[0] is 0.0"),
        (bench(cell("b", samples_ms=[])), "b has 0 sample(s)"),
        ({"benchmarks": [], "context": {}}, "has the schema None"),
        (bench(cell("b", samples_ms=[1.0, float("nan")])), "b: samples_ms[1] is NaN"),
        (bench(cell("b", samples_ms=[1.0])), "b has 1 sample(s)"),
        (bench(cell("b", batch=8)), "have no measured cell in common"),
        (bench(), "have no measured cell in common"),
    ],
)
def test_what_is_no_bench_file_is_refused_in_one_sentence(call: Call, write: Write, new: object, told: str) -> None:
    assert told in refused(call("compare", write("old.json", bench(cell("a"))), write("new.json", new), "--json"))
