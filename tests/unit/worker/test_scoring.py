"""The runner judges samples by the same rules as the workshop that accepted the data."""

from typing import Any

import numpy as np
import pytest

from farm.contract.evaluation import AccuracyReport, EvaluationRecipe
from farm.rules.quality import evaluation
from farm.workshop.child import evaluation as evaluating
from worker.runner import evaluation as runner
from worker.runner import faults, sample_scores

DICE = np.random.default_rng(7)


@pytest.mark.parametrize("metric", ["top1", "top5"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_scores_are_judged_as_in_the_workshop(metric: str, dtype: Any) -> None:
    scores = DICE.integers(0, 6, size=(400, 9)).astype(dtype)
    scores[3, 2] = np.nan
    labels = DICE.integers(0, 9, size=400)
    expected = evaluating.judge(scores, labels, metric=metric)
    assert sample_scores.judge(scores, labels, metric=metric).tolist() == expected.tolist()
    assert 0 < expected.sum() < 400


def test_errors_are_judged_as_in_the_workshop() -> None:
    outputs, labels = DICE.standard_normal((50, 3)).astype(np.float32), DICE.standard_normal((50, 3))
    expected = evaluating.judge(outputs, labels, metric="mse")
    assert sample_scores.judge(outputs, labels, metric="mse").tolist() == pytest.approx(expected.tolist())


def test_chosen_classes_are_compared() -> None:
    assert sample_scores.judge(np.array([1, 0]), np.array([1, 1]), metric="top1").tolist() == [True, False]


@pytest.mark.parametrize(
    ("step", "outputs", "made"),
    [
        (None, [[1.0, 2.0]], [[1.0, 2.0]]),
        ("softmax", [[0.0, 0.0]], [[0.5, 0.5]]),
        ("argmax", [[0.0, 3.0]], [1]),
        ("threshold", [[0.4], [0.6]], [0, 1]),
    ],
)
def test_a_step_is_applied_before_judging(step: str | None, outputs: list[Any], made: list[Any]) -> None:
    assert sample_scores.applied(np.array(outputs, np.float32), step=step, threshold=0.5).tolist() == made


@pytest.mark.parametrize(
    ("outputs", "labels", "metric"),
    [
        (np.zeros((2, 3)), np.array([0, 3]), "top1"),
        (np.zeros((2, 3, 4)), np.array([0, 1]), "top1"),
        (np.zeros((3, 3)), np.array([0, 1]), "top5"),
        (np.zeros(3, np.int64), np.array([0, 1]), "top1"),
        (np.zeros((2, 3)), np.zeros((2, 4)), "mse"),
        (np.array([[np.nan]]), np.zeros((1, 1)), "mse"),
        (np.array([[1e30]]), np.zeros((1, 1)), "mse"),
    ],
)
def test_an_output_unlike_the_others_ends_in_a_sentence(outputs: Any, labels: Any, metric: str) -> None:
    with pytest.raises(faults.Refusal, match="on the labelled data the output has"):
        sample_scores.judge(outputs, labels, metric=metric)


@pytest.mark.parametrize("judged", [np.array([True, False, True] * 7), np.array([0.5, 0.0, 2.25])])
def test_what_the_runner_packs_the_farm_unpacks(judged: Any) -> None:
    metric = "top1" if judged.dtype.kind == "b" else "mse"
    recipe = EvaluationRecipe.model_validate({"metric": metric})
    report = AccuracyReport(arm=0, recipe=recipe, n=judged.size, samples=runner.pack(judged))
    assert evaluation.unpack_samples(report).tolist() == judged.tolist()
