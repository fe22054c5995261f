"""Labelled data before any node has them: accepted, or refused in one sentence when they do not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from farm.contract.evaluation import MAX_SAMPLES, EvaluationRecipe
from farm.rules.quality.accuracy_metrics import METRICS
from farm.workshop import arrays, orders
from farm.workshop.child import evaluation, label_shapes
from farm.workshop.problems import Problem
from farm.workshop.samples import builders as samples
from farm.workshop.samples import digits
from tests.unit.workshop import making

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], np.float32)


@pytest.mark.parametrize(
    ("labels", "metric", "outputs", "count"),
    [
        ([1, 1, 2], "top1", SCORES, 3),
        ([1, 1, 2], "top1", np.array([1, 0, 2]), None),
        ([0, 0, 1], "recall1", SCORES, 2),
        ([[1, 0, 1], [0, 0, 0], [1, 1, 1]], "f1-multilabel", SCORES, 3),
        (SCORES, "mse", SCORES, None),
        (["a", "b", "c"], "acme", SCORES, None),
        (["a", "", "c"], "wer", np.array(["a", "b", "c"], object), None),
        ([[[0, 0, 5, 5, 2]], [[0, 0, 0, 0, -1]]], "map50", np.zeros((2, 9, 6)), 3),
        ([[0, 2], [-100, 1]], "perplexity", np.zeros((2, 2, 3)), 3),
    ],
)
def test_labels_of_a_metrics_shape_are_accepted(
    labels: Any, metric: str, outputs: np.ndarray, count: int | None
) -> None:
    assert shape_of(metric)(outputs, np.array(labels), metric) == count


def shape_of(metric: str) -> label_shapes.Check:
    return label_shapes.SHAPES[METRICS[metric].labels if metric in METRICS else "any"]


HOLED = np.array([[0.0, np.nan, 1.0]] * 3)


@pytest.mark.parametrize(
    ("metric", "outputs", "labels", "code", "words"),
    [
        ("top1", SCORES, [0, 1, 3], "bad_labels", "reach from 0 to 3, the output has the classes 0 to 2"),
        ("top1", SCORES, [0, -1, 2], "bad_labels", "from -1"),
        ("top1", SCORES, [0.5, 1, 2], "bad_labels", "one whole number a sample"),
        ("f1", SCORES, [0, np.nan, 2], "bad_labels", "one whole number a sample"),
        ("recall1", SCORES, [[0], [1], [1]], "bad_labels", "one whole number a sample"),
        ("recall1", SCORES, [0, 1, 2], "bad_labels", "samples that share a label"),
        ("recall1", SCORES[:, 0], [0, 0, 0], "bad_output", "an embedding"),
        ("top5", SCORES[:, :1], [0, 0, 0], "bad_output", "one row of scores"),
        ("top1", SCORES[:, 0], [0, 0, 0], "bad_output", "one row of scores"),
        ("f1-multilabel", SCORES[:, 0], [0, 0, 0], "bad_output", "one row of scores"),
        ("f1-multilabel", SCORES, [[0, 1]] * 3, "bad_output", "wants the same"),
        ("f1-multilabel", SCORES, [[0, 1, 2]] * 3, "bad_labels", "not all 0 or 1"),
        ("f1-multilabel", SCORES, HOLED, "bad_labels", "not all 0 or 1"),
        ("mse", SCORES, [1.0, 2.0, 3.0], "bad_output", "wants the same"),
        ("cosine", SCORES, HOLED, "bad_labels", "not all finite numbers"),
        ("cosine", SCORES, [["a", "b", "c"]] * 3, "bad_labels", "not all finite numbers"),
        ("wer", np.array(["a"]), [1], "bad_labels", "a text a sample"),
        ("wer", np.array(["a"]), [["a"]], "bad_labels", "a text a sample"),
        ("cer", np.array(["a"]), ["  "], "bad_labels", "one at least that says something"),
        ("cer", SCORES, ["a", "b", "c"], "bad_output", "ctc.cer makes one of scores"),
        ("map50", SCORES, [[[0, 0, 5, 5, 2]]], "bad_output", "x1, y1, x2, y2, score, class"),
        ("map50", np.zeros((1, 9, 6)), [[0, 0, 5, 5]], "bad_labels", "x1, y1, x2, y2, class"),
        ("map50", np.zeros((1, 9, 6)), [[[0, 0, np.nan, 5, 1]]], "bad_labels", "all finite"),
        ("map50", np.zeros((1, 9, 6)), [[[5, 0, 0, 5, 1]]], "bad_labels", "is among the labels"),
        ("map50", np.zeros((1, 9, 6)), [[[0, 0, 5, 5, 0.5]]], "bad_labels", "is among the labels"),
        ("map50", np.zeros((1, 9, 6)), [[[0, 0, 5, 5, -1]]], "bad_labels", "No label is a box"),
        ("perplexity", SCORES, [0, 1, 2], "bad_output", "scores of .sample, place, token."),
        ("perplexity", np.zeros((2, 2, 3)), [[0.0, 1.0]] * 2, "bad_labels", "a token for each of 2 places"),
        ("perplexity", np.zeros((2, 2, 3)), [0, 1], "bad_labels", "a token for each of 2 places"),
        ("perplexity", np.zeros((2, 2, 3)), [[0, 3]] * 2, "bad_labels", "the output has the tokens 0 to 2"),
        ("perplexity", np.zeros((2, 2, 3)), [[-1, -1]] * 2, "bad_labels", "the output has the tokens 0 to 2"),
    ],
)
def test_labels_that_do_not_fit_are_told(metric: str, outputs: np.ndarray, labels: Any, code: str, words: str) -> None:
    with pytest.raises(Problem, match=words) as caught:
        shape_of(metric)(outputs, np.array(labels), metric)
    assert caught.value.code == code


def test_the_classifiers_data_are_accepted_in_a_confined_child(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    (tmp_path / "out").mkdir()
    data = arrays.write_npz(tmp_path / "evaluation.npz", digits.make_evaluation_data())
    found = orders.check_evaluation(
        tmp_path / "in", "digits.onnx", data=data, recipe=EvaluationRecipe(), out_dir=tmp_path / "out"
    )
    assert (found.n, found.classes, found.output) == (540, 10, "y")
    accepted = arrays.read_npz(found.path)
    assert list(accepted) == ["x", "labels"]
    assert accepted["labels"].tolist() == digits.make_evaluation_data()["labels"].tolist()


def checked(tmp_path: Path, model: Any, data: dict[str, np.ndarray], **recipe: Any) -> dict[str, Any]:
    folder = making.save(model, tmp_path / "in")
    path = arrays.write_npz(tmp_path / "evaluation.npz", data)
    payload = {
        "folder": str(folder), "main": "model.onnx", "data": str(path), "out": str(tmp_path / "accepted.npz"),
        "metric": "top1", "labels": "class", "at_once": 64, "output": None, "apply": None, "threshold": 0.5,
    }  # fmt: skip
    return evaluation.check_labelled_data({**payload, **recipe})


def test_an_output_that_has_not_a_row_a_sample_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1)
    model = making.model([node], [making.port("x", ["batch", 4])], [making.port("y", [1, 1])])
    data = {"x": np.eye(4, dtype=np.float32), "labels": np.arange(4)}
    assert "1 rows for 4 labels" in checked(tmp_path, model, data)["problem"]["text"]


def test_a_metric_that_is_not_known_here_is_told(tmp_path: Path) -> None:
    with pytest.raises(orders.WorkshopError, match="'acme' is not known"):
        orders.check_evaluation(
            tmp_path, "m.onnx", data=tmp_path / "d.npz", recipe=EvaluationRecipe(metric="acme"), out_dir=tmp_path
        )


def test_a_fixed_batch_takes_any_number_of_samples(tmp_path: Path) -> None:
    x = np.eye(4, dtype=np.float32)[[0, 1, 2]]
    answer = checked(tmp_path, making.relu(), {"x": x, "labels": np.array([0, 1, 3])})["answer"]
    assert (answer["n"], answer["classes"]) == (3, 4)


@pytest.mark.parametrize("step", ["softmax", "argmax"])
def test_a_recipes_step_is_taken(step: str, tmp_path: Path) -> None:
    data = {"x": np.eye(4, dtype=np.float32), "labels": np.arange(4)}
    assert checked(tmp_path, making.relu(), data, apply=step)["answer"]["classes"] == 4


def test_a_threshold_makes_two_classes(tmp_path: Path) -> None:
    node = helper.make_node("Sigmoid", ["x"], ["y"])
    model = making.model([node], [making.port("x", ["batch", 1])], [making.port("y", ["batch", 1])])
    data = {"x": np.array([[-3], [3]], np.float32), "labels": np.array([0, 1])}
    assert checked(tmp_path, model, data, apply="threshold")["answer"]["classes"] == 2
    problem = checked(tmp_path, model, {**data, "labels": np.array([0, 2])}, apply="threshold")["problem"]
    assert problem["text"] == "The labels reach from 0 to 2, the output has the classes 0 to 1."


def test_a_label_beyond_the_first_batch_is_looked_at_too(tmp_path: Path) -> None:
    x = np.zeros((100, 4), np.float32)
    labels = np.zeros(100, int)
    labels[99] = 4
    for step in (None, "argmax"):
        assert (
            checked(tmp_path, making.relu(), {"x": x, "labels": labels}, apply=step)["problem"]["code"] == "bad_labels"
        )


def test_more_samples_than_are_read_are_refused(tmp_path: Path) -> None:
    count = MAX_SAMPLES + 1
    data = {"x": np.zeros((count, 4), np.float32), "labels": np.zeros(count, int)}
    assert checked(tmp_path, making.relu(), data)["problem"]["code"] == "too_many_samples"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"x": np.zeros((2, 4), np.float32)}, "bad_labels"),
        ({"x": np.zeros((2, 4), np.float32), "labels": np.zeros(3, int)}, "bad_labels"),
        ({"x": np.zeros((0, 4), np.float32), "labels": np.zeros(0, int)}, "bad_labels"),
        ({"z": np.zeros((2, 4), np.float32), "labels": np.zeros(2, int)}, "inputs_names"),
        ({"x": np.zeros((2, 4)), "labels": np.zeros(2, int)}, "inputs_dtype"),
        ({"x": np.zeros((2, 5), np.float32), "labels": np.zeros(2, int)}, "inputs_shape"),
    ],
)
def test_evaluation_data_that_do_not_fit_are_refused(data: dict[str, np.ndarray], code: str, tmp_path: Path) -> None:
    assert checked(tmp_path, making.relu(), data)["problem"]["code"] == code


def test_an_unknown_output_is_told_with_those_there_are(tmp_path: Path) -> None:
    data = {"x": np.zeros((2, 4), np.float32), "labels": np.zeros(2, int)}
    problem = checked(tmp_path, making.relu(), data, output="scores")["problem"]
    assert problem["text"] == "The model has no output 'scores': it has y."


def test_a_step_that_wants_fractions_is_refused_on_whole_numbers(tmp_path: Path) -> None:
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)
    model = making.model([node], [making.port("x", ["batch", 4])], [making.port("y", ["batch"], TensorProto.INT64)])
    data = {"x": np.eye(4, dtype=np.float32), "labels": np.arange(4)}
    assert checked(tmp_path, model, data)["answer"] == {"n": 4, "output": "y", "classes": None}
    assert checked(tmp_path, model, data, apply="softmax")["problem"]["code"] == "bad_output"


def test_a_model_without_a_batch_cannot_be_judged_by_sample(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    model = making.model([node], [making.port("x", ["rows", 4])], [making.port("y", ["rows", 4])])
    data = {"x": np.eye(4, dtype=np.float32), "labels": np.arange(4)}
    assert checked(tmp_path, model, data)["problem"]["code"] == "bad_output"


def speech() -> Any:
    """Scores of three tokens at four places, as they are fed."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return making.model([node], [making.port("x", ["batch", 4, 3])], [making.port("y", ["batch", 4, 3])])


@pytest.mark.parametrize(
    ("vocabulary", "code"),
    [
        (np.array(["", "a", "b"]), ""),
        (None, "bad_labels"),
        (np.array(["", "a"]), "bad_labels"),
        (np.array(["x", "a", "b"]), "bad_labels"),
        (np.array([0, 1, 2]), "bad_labels"),
        (np.array([["", "a", "b"]]), "bad_labels"),
    ],
)
def test_ctc_wants_the_text_of_each_token(vocabulary: Any, code: str, tmp_path: Path) -> None:
    data = {"x": np.zeros((2, 4, 3), np.float32), "labels": np.array(["a b", "b"])}
    data |= {} if vocabulary is None else {"vocabulary": vocabulary}
    answer = checked(tmp_path, speech(), data, apply="ctc", metric="wer", labels="texts")
    assert answer.get("problem", {}).get("code", "") == code
    if not code:
        assert list(arrays.read_npz(tmp_path / "accepted.npz")) == ["x", "labels", "vocabulary"]


def test_ctc_wants_scores_or_tokens(tmp_path: Path) -> None:
    data = {"x": np.zeros((2, 4), np.float32), "labels": np.array(["a", "b"]), "vocabulary": np.array(["", "a"])}
    problem = checked(tmp_path, making.relu(), data, apply="ctc", metric="wer", labels="texts")["problem"]
    assert problem["code"] == "bad_output"


def detector() -> Any:
    """Two images' boxes, scores and classes, as they are fed."""
    shapes = {"boxes": ["batch", 3, 4], "scores": ["batch", 3], "kinds": ["batch", 3]}
    nodes = [helper.make_node("Identity", [f"{name}_in"], [name]) for name in shapes]
    ports = [[making.port(f"{name}{end}", shape) for name, shape in shapes.items()] for end in ("_in", "")]
    return making.model(nodes, *ports)


def test_boxes_scores_and_classes_may_be_three_outputs(tmp_path: Path) -> None:
    fed = {"boxes_in": (2, 3, 4), "scores_in": (2, 3), "kinds_in": (2, 3)}
    data = {name: np.zeros(shape, np.float32) for name, shape in fed.items()}
    data["labels"] = np.array([[[0, 0, 5, 5, 1]], [[0, 0, 0, 0, -1]]])
    how = {"metric": "map50", "labels": "boxes"}
    answer = checked(tmp_path, detector(), data, output="boxes,scores,kinds", **how)["answer"]
    assert answer == {"n": 2, "output": "boxes,scores,kinds", "classes": 2}
    assert checked(tmp_path, detector(), data, output="boxes,shores", **how)["problem"]["code"] == "bad_output"
    assert checked(tmp_path, detector(), data, output="boxes", **how)["problem"]["code"] == "bad_output"
    problem = checked(tmp_path, detector(), data, output="boxes,scores,kinds", metric="top1")["problem"]
    assert problem["text"].startswith("The model has no output 'boxes,scores,kinds'")
