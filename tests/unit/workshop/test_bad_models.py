"""Every bad form of an upload is told in one sentence that names the thing and the way out."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.workshop import confined, orders
from farm.workshop.child.inspection import inspect
from tests.conftest import MODELS
from tests.unit.workshop import making


def problem(folder: Path, main: str = "model.onnx") -> tuple[str, str]:
    answer = inspect({"folder": str(folder), "main": main})
    assert "problem" in answer, answer
    text = answer["problem"]["text"]
    assert re.fullmatch(r"[^\n]+\.", text), text
    return answer["problem"]["code"], text


def written(folder: Path, content: bytes) -> Path:
    (folder / "model.onnx").write_bytes(content)
    return folder


def test_an_empty_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    assert problem(written(tmp_path, b""))[0] == "empty_file"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04rest of an archive", "looks like a zip archive"),
        (b"<!DOCTYPE html><html>", "looks like a page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS pointer"),
        (bytes(range(256)) * 40, "not a valid ONNX model"),
        (b"\x00" * 1000, "not a valid ONNX model"),
        (b"hello", "not a valid ONNX model"),
    ],
)
def test_a_file_of_another_kind_is_told_what_it_looks_like(content: bytes, words: str, tmp_path: Path) -> None:
    code, text = problem(written(tmp_path, content))
    assert code == "not_onnx"
    assert words in text


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused_in_one_sentence(share: float, tmp_path: Path) -> None:
    whole = (MODELS / "cnn_dyn.onnx").read_bytes()
    code, text = problem(written(tmp_path, whole[: int(len(whole) * share)]))
    assert code == "truncated"
    assert "upload it again" in text


def test_a_file_cut_between_two_fields_is_truncated_too(tmp_path: Path) -> None:
    made = making.relu()
    del made.opset_import[:]
    code, _ = problem(making.save(made, tmp_path))
    assert code == "truncated"


def test_a_message_without_a_graph_is_no_model(tmp_path: Path) -> None:
    made = onnx.ModelProto(ir_version=8)
    assert problem(making.save(made, tmp_path))[0] == "not_onnx"


def test_an_input_without_a_type_is_told(tmp_path: Path) -> None:
    made = making.relu()
    made.graph.input[0].ClearField("type")
    assert problem(making.save(made, tmp_path)) == ("input_type", "The input x has no type: export the model again.")


def test_missing_external_data_names_the_file(tmp_path: Path) -> None:
    folder = making.save_external(making.linear(), tmp_path)
    (folder / "weights.bin").unlink()
    code, text = problem(folder)
    assert code == "external_missing"
    assert text == "weights.bin, the external data of w, is missing: upload it too."


def test_extra_external_data_names_the_file(tmp_path: Path) -> None:
    folder = making.save_external(making.linear(), tmp_path)
    (folder / "spare.bin").write_bytes(b"x")
    code, text = problem(folder)
    assert (code, text.split()[0]) == ("external_extra", "spare.bin")


def test_reference_data_beside_the_model_is_not_extra(tmp_path: Path) -> None:
    folder = making.save(making.linear(), tmp_path)
    (folder / "inputs.npz").write_bytes(b"x")
    (folder / "test_data_set_0-input_0.pb").write_bytes(b"x")
    assert inspect({"folder": str(folder), "main": "model.onnx"})["answer"]["ok"]


@pytest.mark.parametrize(
    "location",
    [
        "/etc/passwd",
        "../secret",
        "folder/weights.bin",
        "..",
        ".",
        "",
        "a" * 129,
        "we ights.bin",
        "weights\n.bin",
        "wéights",
    ],
)
def test_external_data_outside_the_bundle_is_refused(location: str, tmp_path: Path) -> None:
    made = making.point(making.linear(), "w", location=location)
    code, text = problem(making.save(made, tmp_path))
    assert code == "external_name"
    assert "outside the bundle" in text


def test_a_link_as_external_data_is_refused(tmp_path: Path) -> None:
    folder = making.save_external(making.linear(), tmp_path / "bundle")
    (folder / "weights.bin").rename(tmp_path / "elsewhere")
    (folder / "weights.bin").symlink_to(tmp_path / "elsewhere")
    assert problem(folder)[0] == "external_link"


def test_a_model_that_is_its_own_external_data_is_refused(tmp_path: Path) -> None:
    made = making.point(making.linear(), "w", location="model.onnx", offset=0, length=48)
    code, text = problem(making.save(made, tmp_path))
    assert code == "external_self"
    assert "model.onnx itself" in text


@pytest.mark.parametrize(
    "places",
    [
        {"offset": 100}, {"offset": -4}, {"length": 1000}, {"length": 4}, {"offset": 8, "length": 48},
        {"offset": "many"}, {"length": "1e3"}, {"offset": 10**30},
    ],
)  # fmt: skip
def test_external_data_past_the_end_of_its_file_is_refused(places: dict[str, object], tmp_path: Path) -> None:
    made = making.point(making.linear(), "w", location="weights.bin", **places)
    folder = making.save(made, tmp_path)
    (folder / "weights.bin").write_bytes(bytes(48))
    assert problem(folder)[0] == "external_range"


def test_external_data_in_a_constant_of_a_subgraph_is_seen_too(tmp_path: Path) -> None:
    tensor = making.weight("hidden", np.ones(4, np.float32))
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/shadow")
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=tensor)], "then", [], [making.port("c", [4])]
    )
    node = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
    made = making.model([node], [making.port("x", [], TensorProto.BOOL)], [making.port("y", [4])])
    assert problem(making.save(made, tmp_path))[0] == "external_name"


def test_names_that_are_no_text_are_told(tmp_path: Path) -> None:
    content = making.relu().SerializeToString().replace(b"\x0a\x01x", b"\x0a\x01\xff")
    assert problem(written(tmp_path, content))[0] == "malformed"
    content = making.relu().SerializeToString().replace(b"Relu", b"Re\xfflu"[:2] + b"\xff\xfe")
    assert problem(written(tmp_path, content))[0] == "malformed"


def test_a_tensor_with_fewer_elements_than_its_shape_says_is_no_trouble(tmp_path: Path) -> None:
    made = making.linear(64, 64)
    made.graph.initializer[0].raw_data = b""
    found = inspect({"folder": str(making.save(made, tmp_path)), "main": "model.onnx"})["answer"]["findings"]
    assert "checker_complaint" in {finding["id"] for finding in found}


def bomb(depth: int) -> onnx.ModelProto:
    """A function that calls another twice, which calls another twice …"""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = []
    for level in range(depth):
        called = ("Relu", "") if level == 0 else (f"f{level - 1}", "own")
        nodes = [
            helper.make_node(called[0], ["a"], ["b"], domain=called[1]),
            helper.make_node(called[0], ["b"], ["c"], domain=called[1]),
        ]
        functions.append(helper.make_function("own", f"f{level}", ["a"], ["c"], nodes, imports))
    node = helper.make_node(f"f{depth - 1}", ["x"], ["y"], domain="own")
    return making.model(
        [node], [making.port("x")], [making.port("y")], opsets={"": 17, "own": 1}, functions=functions
    )  # fmt: skip


def test_a_bomb_of_nested_functions_is_refused_with_its_size(tmp_path: Path) -> None:
    code, text = problem(making.save(bomb(30), tmp_path))
    assert code == "function_bomb"
    assert "1,073,741,824 nodes" in text


def test_functions_that_call_themselves_are_refused(tmp_path: Path) -> None:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    node = helper.make_node("f", ["a"], ["b"], domain="own")
    function = helper.make_function("own", "f", ["a"], ["b"], [node], imports)
    made = making.relu(opsets={"": 17, "own": 1}, functions=[function])
    made.graph.node[0].op_type, made.graph.node[0].domain = "f", "own"
    assert problem(making.save(made, tmp_path))[0] == "function_bomb"


def test_a_few_functions_are_no_bomb(tmp_path: Path) -> None:
    answer = inspect({"folder": str(making.save(bomb(4), tmp_path)), "main": "model.onnx"})["answer"]
    assert answer["functions"] == 4
    assert answer["custom_domains"] == []


def test_an_order_answers_a_problem_as_an_inspection(tmp_path: Path) -> None:
    found = orders.inspect(written(tmp_path, b"hello"), "model.onnx")
    assert not found.ok
    assert found.problem.code == "not_onnx"


def test_an_inspection_that_takes_too_long_is_a_problem_in_words(tmp_path: Path) -> None:
    found = orders.inspect(making.save(making.relu(), tmp_path), "model.onnx", timeout_s=0.05)
    assert found.problem.code == "timeout"
    assert "did not end in time" in found.problem.text


def test_a_file_that_swells_in_memory_is_ended_by_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "_BASE_BYTES", 150 << 20)
    monkeypatch.setattr(confined, "_BYTES_PER_BUNDLE_BYTE", 0)
    # ten million empty nodes: two bytes each on disk, some eighty in memory
    graph = b"\x0a\x00" * 10_000_000
    content = b"\x08\x08\x3a" + varint(len(graph)) + graph
    assert orders.inspect(written(tmp_path, content), "model.onnx").problem.code == "out_of_memory"


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
