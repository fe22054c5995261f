"""Which files the client takes for a model, and what it says about a model on disk."""

import json
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from farm.workshop.samples import builders, decoder, genai
from onnxfarm.main import app
from onnxfarm.model_files import derive_model_name, list_model_files
from onnxfarm.problems import Usage
from tests.conftest import MODELS


def test_external_data_is_found_by_its_name_in_the_model(tmp_path: Path) -> None:
    for name in ("mlp_external.onnx", "mlp_external.onnx.data"):
        (tmp_path / name).write_bytes((MODELS / name).read_bytes())
    for other in ("notes.txt", "data", "mlp_external.inputs.npz", "other.onnx"):
        (tmp_path / other).write_bytes(b"1")
    assert [path.name for path in list_model_files(tmp_path / "mlp_external.onnx")] == [
        "mlp_external.onnx",
        "mlp_external.onnx.data",
    ]


def test_a_model_without_external_data_and_a_zip_stand_alone(tmp_path: Path) -> None:
    assert list_model_files(MODELS / "lstm.onnx") == [MODELS / "lstm.onnx"]
    (tmp_path / "m.zip").write_bytes(b"PK")
    assert list_model_files(tmp_path / "m.zip") == [tmp_path / "m.zip"]


@pytest.mark.parametrize("name", ["missing.onnx", "model.pt", "."])
def test_what_is_no_model_file_is_a_usage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.pt").touch()
    with pytest.raises(Usage):
        list_model_files(tmp_path / name)


def test_inspect_prints_facts_and_findings() -> None:
    shown = CliRunner().invoke(app, ["inspect", str(MODELS / "mlp_external.onnx")])
    assert shown.exit_code == 0, shown.output
    assert "opset 18" in shown.stdout
    answer = CliRunner().invoke(app, ["inspect", str(MODELS / "mlp_external.onnx"), "--json"])
    assert json.loads(answer.stdout)["external_files"] == ["mlp_external.onnx.data"]


def test_names_of_dimensions_are_never_cut_however_narrow_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = [f"past_sequence_length_of_the_{place}_decoder_layer" for place in ("first", "second", "third")]
    given = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, names)
    returned = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, names)
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [given], [returned])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    monkeypatch.setenv("COLUMNS", "60")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.onnx")])
    assert shown.exit_code == 0, shown.output
    assert "…" not in shown.stdout
    line = next(line for line in shown.stdout.splitlines() if line.startswith("dynamic sizes"))
    assert all(name in line for name in names)


def test_inspect_says_what_a_decoder_keeps_of_each_token(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["inspect", str(builders.write_model("decoder-gqa", tmp_path))])
    assert shown.exit_code == 0, shown.output
    line = next(line for line in shown.stdout.splitlines() if line.startswith("generates"))
    assert line.startswith("generates: a decoder with past: 2 layers, 2 heads of 64, vocabulary 1,000, context 512")


def test_inspect_says_what_a_folder_of_onnxruntime_genai_is(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["inspect", str(genai.write_folder(tmp_path / "folder", decoder.make()))])
    assert shown.exit_code == 0, shown.output
    assert "onnxruntime-genai: llama, vocabulary 1,000, context 512, no tokenizer\n" in shown.stdout


def test_inspect_tells_which_releases_load_a_model_and_how_it_is_known() -> None:
    path = str(MODELS / "relu_op21_ir10.onnx")
    shown = CliRunner().invoke(app, ["inspect", path, "--compatibility"])
    assert shown.exit_code == 0
    words = " ".join(shown.stdout.split())
    assert "Loads on ONNX Runtime 1.18.0 and newer (derived from its opsets and IR version, not measured)." in words
    answer = json.loads(CliRunner().invoke(app, ["inspect", path, "--compatibility", "--json"]).stdout)["compatibility"]
    assert answer["lowest"] == "1.18.0"
    rows = {row["version"]: row for row in answer["rows"]}
    assert (rows["1.17.3"]["loads"], rows["1.17.3"]["code"]) == (False, "opset_too_new")
    assert {row["basis"] for row in answer["rows"]} == {"derived"}


def test_inspect_refuses_what_is_no_model_in_one_sentence(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"nothing that anyone could load " * 9)
    answer = CliRunner().invoke(app, ["inspect", str(bad)])
    assert answer.exit_code == 2
    assert answer.stderr.startswith("onnxfarm: bad.onnx is not a valid ONNX model")


def test_a_folder_of_onnxruntime_genai_is_all_that_is_in_it(tmp_path: Path) -> None:
    for name in ("model.onnx", "model.onnx.data", "genai_config.json", "tokenizer.json", "README.md", ".gitattributes"):
        (tmp_path / name).write_bytes(b"1")
    found = [path.name for path in list_model_files(tmp_path)]
    assert found == ["model.onnx", "genai_config.json", "model.onnx.data", "tokenizer.json"]
    assert derive_model_name(tmp_path) == tmp_path.name
    assert derive_model_name(tmp_path / "model.onnx") == tmp_path.name


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["model.onnx"], "is a folder without genai_config.json: give an .onnx, or a folder that onnxruntime-genai"),
        (["genai_config.json"], "holds 0 .onnx files: only a decoder in one .onnx is generated with yet."),
        (["genai_config.json", "encoder.onnx", "decoder.onnx"], "holds 2 .onnx files: only a decoder in one .onnx"),
        (["genai_config.json", "model.onnx", *(f"{n}.txt" for n in range(63))], "holds 65 files, where 64 are taken"),
    ],
)
def test_another_folder_is_refused_in_one_sentence(tmp_path: Path, names: list[str], sentence: str) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"1")
    with pytest.raises(Usage) as refused:
        list_model_files(tmp_path)
    assert sentence in str(refused.value)


def test_inspect_shows_trees_as_trees_and_what_many_models_have_as_a_fact(tmp_path: Path) -> None:
    trees = onnx.helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", nodes_treeids=[0, 1, 2], nodes_nodeids=[0, 0, 0],
        nodes_featureids=[0, 0, 0], nodes_modes=["LEAF"] * 3, nodes_values=[0.0] * 3, nodes_truenodeids=[0] * 3,
        nodes_falsenodeids=[0] * 3, target_treeids=[0, 1, 2], target_nodeids=[0, 0, 0], target_ids=[0, 0, 0],
        target_weights=[1.0, 2.0, 3.0], n_targets=1,
    )  # fmt: skip
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 2]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([trees], "g", ports[:1], ports[1:])
    imports = [onnx.helper.make_opsetid("", 22), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=imports, ir_version=10), tmp_path / "m.onnx")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.onnx")])
    assert shown.exit_code == 0, shown.output
    assert "3 trees" in shown.stdout
    assert "parameters" not in shown.stdout
    assert "· needs_newer_runtime" in shown.stdout


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bert/model.onnx", "bert"),
        ("bert/onnx/model.onnx", "bert"),
        ("big model/Model.onnx", "big-model"),
        ("bert/encoder.onnx", ""),
        ("bert/decoder_model.onnx", ""),
    ],
)
def test_a_file_called_model_is_named_after_its_folder(path: str, name: str, tmp_path: Path) -> None:
    assert derive_model_name(tmp_path / path) == name
