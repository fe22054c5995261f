"""A framework's program beside a model: what is known of it, what is refused and why, what is written for nodes."""

import copy
import json
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from farm.contract.cells import Recipe
from farm.contract.reasons import ReasonCode
from farm.workshop import orders
from farm.workshop.child import program_graph, programs, variants
from tests import programs as made

INPUTS: Any = [{"name": "x", "dtype": "float32", "shape": ["batch", made.WIDTH]}]
OUTPUTS: Any = [{"name": "y", "dtype": "float32", "shape": ["batch", made.OUT]}]


def problem(folder: Path, *, inputs: Any = INPUTS, outputs: Any = OUTPUTS) -> str:
    """What is said of the program in a folder; empty where it can be run."""
    about = programs.describe_program(folder, inputs=inputs, outputs=outputs)
    return str(about.get("problem", ""))


def test_a_model_alone_has_no_program(tmp_path):
    made.write_onnx(tmp_path / "model.onnx")
    assert orders.inspect(tmp_path, "model.onnx").source is None


def test_a_program_is_inspected_with_its_model(tmp_path):
    made.write_onnx(tmp_path / "model.onnx")
    path = made.write_program(tmp_path / "model.pt2")
    found = orders.inspect(tmp_path, "model.onnx")
    assert found.ok
    assert found.source.model_dump() == {
        "name": "model.pt2",
        "bytes": path.stat().st_size,
        "saved_by": "2.13.0+cpu",
        "operators": 2,
        "problem": "",
    }


def test_a_bad_program_leaves_its_model_as_good_as_it_was(tmp_path):
    made.write_onnx(tmp_path / "model.onnx")
    (tmp_path / "model.pt2").write_bytes(b"no zip")
    found = orders.inspect(tmp_path, "model.onnx")
    assert found.ok
    assert "is not a program of torch.export, or a damaged one" in found.source.problem


def test_what_nodes_run_holds_nothing_pickled_and_no_guards_or_notes(tmp_path):
    made.write_onnx(tmp_path / "model.onnx")
    extra = {"extra/notes.txt": b"n", "data/weights/unused": b"u"}
    made.write_program(tmp_path / "model.pt2", files=extra, change=lambda g: g.update(guards_code=["import os"]))
    out = tmp_path.with_name(f"{tmp_path.name}-out")
    out.mkdir()
    variant = orders.make_variant(tmp_path, "model.onnx", recipe=Recipe(is_program=True), out_dir=out)
    assert (variant.main, variant.files) == ("model.pt2", ("model.pt2",))
    assert "without its pickled sample inputs" in variant.history[0]
    with zipfile.ZipFile(out / "model.pt2") as archive:
        found = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    before = made.members()
    kept = {name: content for name, content in found.items() if not name.endswith((".pt", "model.json", "farm.json"))}
    assert kept == {name: content for name, content in before.items() if not name.endswith((".pt", "model.json"))}
    assert found["data/sample_inputs/model.pt"] == b""
    graph = json.loads(found["models/model.json"])
    assert graph["guards_code"] == []
    assert all(node["metadata"] == {} for node in graph["graph_module"]["graph"]["nodes"])
    assert json.loads(found["extra/onnxfarm.json"]) == {
        "saved_by": "2.13.0+cpu",
        "positional": 1,
        "inputs": [{"name": "x", "key": "", "dtype": "float32", "sizes": [None, made.WIDTH]}],
        "outputs": ["y"],
    }


def test_tensors_are_matched_by_place_where_their_names_are_others(tmp_path):
    made.write_program(tmp_path / "model.pt2")
    assert problem(tmp_path, inputs=[{**INPUTS[0], "name": "pixels"}]) == ""


def test_a_variant_of_a_model_without_a_program_is_refused(tmp_path):
    made.write_onnx(tmp_path / "model.onnx")
    out = tmp_path.with_name(f"{tmp_path.name}-out")
    out.mkdir()
    with pytest.raises(orders.WorkshopError, match=r"There is no \.pt2 beside the model") as raised:
        orders.make_variant(tmp_path, "model.onnx", recipe=Recipe(is_program=True), out_dir=out)
    assert raised.value.reason.code == ReasonCode.MODEL_NOT_LOADED


def test_two_programs_are_one_too_many(tmp_path):
    made.write_program(tmp_path / "a.pt2")
    shutil.copyfile(tmp_path / "a.pt2", tmp_path / "b.pt2")
    assert problem(tmp_path) == "a.pt2 and b.pt2 are both programs: keep one."


def uses(target: str) -> made.Change:
    return lambda g: g["graph_module"]["graph"]["nodes"][1].update(target=target)


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("torch.ops.mylib.foo.default", "mylib::foo"),
        ("torch.ops.quantized_decomposed.add.default", "quantized_decomposed::add"),
        ("torch.hub.load", "torch.hub.load"),
        ("_operator.attrgetter", "_operator.attrgetter"),
        ("os.system", "os.system"),
        ("torch.ops.aten.relu.default\n", "aten::relu"),
    ],
)
def test_an_operator_that_is_not_pytorchs_own_is_named_and_refused(tmp_path, target, named):
    made.write_program(tmp_path / "model.pt2", change=uses(target))
    said = problem(tmp_path)
    assert "which is not PyTorch's own" in said
    assert named in said


@pytest.mark.parametrize(
    "target",
    ["torch.ops.aten.add.Tensor", "_operator.getitem", "math.ceil", "torch.sym_max", "torch.ops.higher_order.cond"],
)
def test_pytorchs_own_operators_are_taken(tmp_path, target):
    made.write_program(tmp_path / "model.pt2", change=uses(target))
    assert problem(tmp_path) == ""


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch x')",
        "Symbol('s77').__class__",
        "Symbol('s77 + exit()')",
        "exit()",
        "[x for x in (1,)]",
        "(lambda: 0)()",
        "9**9**9 if s0 else 's0'.join",
        "s0 +",
        "s" * 2001,
        "(" * 1000 + "s0" + ")" * 1000,
    ],
)
def test_a_size_that_is_more_than_arithmetic_is_refused_before_anything_evaluates_it(tmp_path, text):
    def change(g):
        g["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"] = text

    made.write_program(tmp_path / "model.pt2", change=change)
    assert "has a size that is not arithmetic" in problem(tmp_path)


@pytest.mark.parametrize("text", ["s77", "2*s0 + 1", "Max(1, s0)", "Mod(s0, 8)", "s0 // 2", "Eq(s0, 4)", "-u0"])
def test_sizes_as_torch_export_writes_them_are_taken(text):
    assert program_graph._is_arithmetic(text)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda g: _values(g)["x"]["device"].update(type="cuda"), "was exported for cuda: export the model on the CPU"),
        (lambda g: _graph(g).update(custom_obj_values={"o": {}}), "holds objects of classes of its own"),
        (lambda g: _inputs(g)[2].update(as_tensor={"name": "x; import os"}), "which is not a name"),
        (lambda g: g["range_constraints"].update({"exit()": {}}), "calls a dimension 'exit()'"),
        (lambda g: _spec(g, "user_input", {"as_none": True}), r"takes or gives a value that is not a tensor (as_none)"),
        (lambda g: g["graph_module"].pop("signature"), "has a graph that is not torch.export's (KeyError)"),
        (lambda g: g.update(graph_module=7), "has a graph that is not torch.export's"),
        (lambda g: _called(g).update(in_spec="[2, {}]"), "has a graph that is not torch.export's (ValueError)"),
        (lambda g: _called(g).update(in_spec=_nested()), "takes values inside lists or dicts"),
        (lambda g: _called(g).update(in_spec=_two()), "takes values inside others"),
        (lambda g: _called(g).update(out_spec=made.spec(made.LEAF, type_="my.Output")), "a my.Output, a class of its"),
        (lambda g: _called(g).update(out_spec=made.spec(made.LEAF, made.LEAF)), "gives values that are not tensors"),
        (lambda g: _mutates(g), "changes its inputs in place"),
        (lambda g: _values(g)["x"].update(dtype=5), "has the input x of int64[?, 16] where the model has x of float32"),
        (lambda g: _values(g)["x"].update(dtype=99), "has the input x of type 99[?, 16]"),
        (lambda g: _values(g)["x"]["sizes"].pop(), "has the input x of float32[?]"),
        (lambda g: _values(g)["relu"]["sizes"][1].update(as_int=9), "has the output relu of float32[?, 9]"),
    ],
)
def test_a_graph_that_cannot_be_run_is_refused_in_one_sentence(tmp_path, change, said):
    made.write_program(tmp_path / "model.pt2", change=change)
    found = problem(tmp_path)
    assert said in found
    assert found.startswith("model.pt2 ")
    assert found.endswith(".")


def _graph(g):
    return g["graph_module"]["graph"]


def _values(g):
    return _graph(g)["tensor_values"]


def _inputs(g):
    return _graph(g)["inputs"]


def _called(g):
    return g["graph_module"]["module_call_graph"][0]["signature"]


def _spec(g, kind, argument):
    g["graph_module"]["signature"]["input_specs"][2][kind]["arg"] = argument


def _mutates(g):
    g["graph_module"]["signature"]["output_specs"].append({"user_input_mutation": {}})


def _two():
    two = made._inside("builtins.tuple", made.LEAF, made.LEAF)
    return made.spec(two, made._inside("builtins.dict", context="[]"))


def _nested():
    inner = made._inside("builtins.tuple", made._inside("builtins.list", made.LEAF))
    return made.spec(inner, made._inside("builtins.dict", context="[]"))


def test_inputs_by_keyword_and_outputs_by_key_have_those_names(tmp_path):
    def change(g):
        by_name = made._inside("builtins.dict", made.LEAF, context='["pixels"]')
        _called(g).update(
            in_spec=made.spec(made._inside("builtins.tuple"), by_name),
            out_spec=made.spec(made.LEAF, type_="builtins.dict", context='["scores"]'),
        )

    path = made.write_program(tmp_path / "model.pt2", change=change)
    with zipfile.ZipFile(path) as archive:
        graph = program_graph.parse_graph("model.pt2", json.loads(archive.read("small/models/model.json")))
    assert graph.positional == 0
    assert [(one.name, one.key) for one in graph.inputs] == [("pixels", "pixels")]
    assert [one.name for one in graph.outputs] == ["scores"]


def test_another_number_of_inputs_names_both(tmp_path):
    made.write_program(tmp_path / "model.pt2")
    said = problem(tmp_path, inputs=[*INPUTS, {"name": "mask", "dtype": "bool", "shape": None}])
    assert said == "model.pt2 has the inputs x and the model has x, mask: export both from one model."


class Touching:
    """Unpickled, it leaves a file."""

    def __reduce__(self):
        return (open, (str(Path(__file__).with_name("unpickled")), "w"))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"archive_format": b"pt3"}, "is a zip, but not a program of torch.export"),
        ({"models/model.json": None}, "is a zip, but not a program of torch.export"),
        ({"archive_version": b"1"}, "has the archive version '1', and 0 is read here"),
        ({"byteorder": b"big"}, "was saved on a big-endian machine"),
        ({"byteorder": b"l" * 100}, "was saved on a big-endian machine"),
        ({"data.pkl": b"x"}, "is a pickled file of torch.save or TorchScript"),
        ({"data/aotinductor/model/a.so": b"x"}, "holds code compiled by AOTInductor"),
        ({"models/model.json": b"{"}, "has a models/model.json that is not JSON"),
        ({"models/model.json": b"[" * 100_000}, "has a models/model.json that is not JSON"),
        ({"models/model.json": b"[]"}, "that is not a JSON object"),
        ({"data/weights/model_weights_config.json": None}, "has no readable data/weights/model_weights_config.json"),
        ({"data/constants/model_constants_config.json": b"{}"}, "that lists nothing"),
        ({"data/weights/weight_1": None}, "names the tensor file data/weights/weight_1 and does not hold it"),
    ],
)
def test_an_archive_that_is_no_plain_program_is_refused_in_one_sentence(tmp_path, files, said):
    made.write_program(tmp_path / "model.pt2", files=files)
    assert said in problem(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"use_pickle": True}, "keeps weight pickled, which is not opened"),
        ({"use_pickle": None}, "keeps weight pickled, which is not opened"),
        ({"tensor_meta": None}, "keeps weight pickled, which is not opened"),
        ({"path_name": "../../x"}, "which is not the name of a tensor file"),
        ({"path_name": 7}, "which is not the name of a tensor file"),
    ],
)
def test_weights_that_would_have_to_be_unpickled_are_refused_and_not_opened(tmp_path, change, said):
    payload = {"data/weights/weight_0": pickle.dumps(Touching())}
    made.write_program(tmp_path / "model.pt2", files=payload, tensors=lambda listed: listed["weight"].update(change))
    assert said in problem(tmp_path)
    assert not Path(__file__).with_name("unpickled").exists()


def test_files_that_lie_over_one_another_are_refused_before_they_are_written_out(tmp_path):
    path = made.write_program(tmp_path / "model.pt2")
    with zipfile.ZipFile(path, "a") as zipped:
        large = max(zipped.filelist, key=lambda entry: entry.file_size)
        for number in range(100):
            again = copy.copy(large)
            again.filename = f"model/extra/{number}"
            zipped.filelist.append(again)
        zipped.writestr("model/extra/end", b"")
    assert "has files that lie over one another" in problem(tmp_path)


def test_other_files_that_end_alike_are_refused(tmp_path):
    path = tmp_path / "model.pt2"
    made.write_program(path, compression=zipfile.ZIP_DEFLATED)
    assert "is compressed or encrypted" in problem(tmp_path)
    path.write_bytes(made.write_program(tmp_path / "model.zip").read_bytes()[:-40])
    assert "damaged" in problem(tmp_path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("serialized_exported_program.json", "{}")
    assert "is of the format before PyTorch 2.8" in problem(tmp_path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/archive_format", "pt2")
        archive.writestr("b/archive_version", "0")
    assert "is a zip" in problem(tmp_path)
    path.write_bytes(pickle.dumps(Touching()))
    assert "is not a program of torch.export" in problem(tmp_path)
    assert not Path(__file__).with_name("unpickled").exists()


def test_a_child_that_finds_a_bad_program_answers_its_problem(tmp_path):
    made.write_onnx(tmp_path / "model.onnx")
    made.write_program(tmp_path / "model.pt2", change=uses("os.system"))
    out = tmp_path.with_name(f"{tmp_path.name}-out")
    out.mkdir()
    payload: Any = {"folder": str(tmp_path), "main": "model.onnx", "out": str(out), "precision": "fp32"}
    answer = variants.make_variant({**payload, "opset": None, "options": {}, "program": "model.pt2"})
    assert "os.system" in answer["problem"]["text"]
    assert not list(out.iterdir())
