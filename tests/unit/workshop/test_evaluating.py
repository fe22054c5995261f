"""Labelled data before any node has them: accepted, or refused in one sentence when they do not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from farm.contract.evaluation import MAX_SAMPLES, EvaluationRecipe
from farm.workshop import arrays, orders
from farm.workshop.child import evaluation
from farm.workshop.problems import Problem
from farm.workshop.samples import builders as samples
from farm.workshop.samples import digits
from tests.unit.workshop import making

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], np.float32)


def judged(metric: str, outputs: np.ndarray, labels: list[Any]) -> list[Any]:
    found: list[Any] = evaluation.judge(outputs, np.array(labels), metric=metric).tolist()
    return found


def test_top1_counts_the_best_score() -> None:
    assert judged("top1", SCORES, [1, 1, 2]) == [True, False, True]


def test_ties_and_scores_that_are_no_numbers_count_as_wrong() -> None:
    assert judged("top1", np.array([[0.5, 0.5], [np.nan, 0.1]], np.float32), [0, 0]) == [False, False]


def test_top5_counts_the_five_best() -> None:
    scores = np.arange(7, dtype=np.float32)[None].repeat(2, axis=0)
    assert judged("top5", scores, [2, 1]) == [True, False]


def test_classes_that_the_model_chose_itself_are_compared() -> None:
    assert judged("top1", np.array([1, 0, 2]), [1, 1, 2]) == [True, False, True]


def test_mse_is_the_mean_of_each_samples_squares() -> None:
    assert judged("mse", np.array([[1.0, 2.0], [0.0, 0.0]]), [[1.0, 0.0], [0.0, 0.0]]) == [2.0, 0.0]


@pytest.mark.parametrize(
    ("metric", "outputs", "labels", "code", "words"),
    [
        ("top1", SCORES, [1, 1], "bad_output", "3 rows for 2 labels"),
        ("top1", SCORES, [0, 1, 3], "bad_labels", "reach from 0 to 3, the output has the classes 0 to 2"),
        ("top1", SCORES, [0, -1, 2], "bad_labels", "from -1"),
        ("top1", SCORES, [0.5, 1, 2], "bad_labels", "one whole number a sample"),
        ("top5", SCORES[:, :1], [0, 0, 0], "bad_output", "one row of scores"),
        ("top1", SCORES[:, 0], [0, 0, 0], "bad_output", "one row of scores"),
        ("mse", SCORES, [1.0, 2.0, 3.0], "bad_output", "mse wants the same"),
    ],
)
def test_labels_and_outputs_that_do_not_fit_are_refused(
    metric: str, outputs: np.ndarray, labels: list[Any], code: str, words: str
) -> None:
    with pytest.raises(Problem, match=words) as caught:
        judged(metric, outputs, labels)
    assert caught.value.code == code


def test_the_classifiers_data_are_accepted_in_a_confined_child(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    (tmp_path / "out").mkdir()
    data = arrays.write_npz(tmp_path / "evaluation.npz", digits.evaluation())
    found = orders.check_evaluation(
        tmp_path / "in", "digits.onnx", data=data, recipe=EvaluationRecipe(), out_dir=tmp_path / "out"
    )
    assert (found.n, found.classes, found.output) == (540, 10, "y")
    accepted = arrays.read_npz(found.path)
    assert list(accepted) == ["x", "labels"]
    assert accepted["labels"].tolist() == digits.evaluation()["labels"].tolist()


def checked(tmp_path: Path, model: Any, data: dict[str, np.ndarray], **recipe: Any) -> dict[str, Any]:
    folder = making.save(model, tmp_path / "in")
    path = arrays.write_npz(tmp_path / "evaluation.npz", data)
    payload = {
        "folder": str(folder), "main": "model.onnx", "data": str(path), "out": str(tmp_path / "accepted.npz"),
        "metric": "top1", "output": None, "apply": None, "threshold": 0.5,
    }  # fmt: skip
    return evaluation.check({**payload, **recipe})


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
