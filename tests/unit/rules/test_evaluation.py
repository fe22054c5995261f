"""Recipes as text, judged samples as text, and what they come to beside an FP32 cell."""

import base64
import zlib
from typing import Any

import numpy as np
import pytest

from farm.contract import document_cells as doc_cells
from farm.contract.evaluation import MAX_SAMPLES, AccuracyReport, CustomJudge, EvaluationRecipe
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.presenting import lines
from farm.rules.quality import evaluation
from farm.rules.reporting import accuracies
from farm.rules.wording import numbers
from tests.documents import NEW, make_cell

RIGHT = np.array([True] * 95 + [False] * 5)
WORSE = np.array([True] * 70 + [False] * 30)


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        ("top1", EvaluationRecipe()),
        ("top5@scores", EvaluationRecipe(metric="top5", output="scores")),
        ("softmax+mse", EvaluationRecipe(metric="mse", apply="softmax")),
        ("argmax", EvaluationRecipe(apply="argmax")),
        ("threshold=0.3+top1@y", EvaluationRecipe(apply="threshold", threshold=0.3, output="y")),
    ],
)
def test_a_recipe_is_read_and_written_alike(text: str, recipe: EvaluationRecipe) -> None:
    assert evaluation.parse_recipe(text) == recipe
    assert evaluation.parse_recipe(evaluation.format_recipe(recipe)) == recipe


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("top2", "did you mean .top5."),
        ("accuracy", "Unknown metric 'accuracy'"),
        ("softmacs+top1", "did you mean 'softmax'"),
        ("softmax=2", "takes no number"),
        ("threshold=high", "is not a number"),
        ("threshold=nan", "is not a number"),
        ("top1@", "cannot be read"),
        ("", "Unknown metric"),
        ("softmax+", "Unknown metric"),
        ("a\x00b", "cannot be read"),
        ("top1@" + "y" * 400, "cannot be read"),
    ],
)
def test_a_recipe_that_cannot_be_meant_is_told(text: str, words: str) -> None:
    with pytest.raises(evaluation.RecipeProblem, match=words):
        evaluation.parse_recipe(text)


def report(judged: np.ndarray, **changes: Any) -> AccuracyReport:
    recipe = EvaluationRecipe(metric="mse" if judged.dtype.kind == "f" else "top1")
    known = {"arm": 0, "recipe": recipe, "n": judged.size, "samples": evaluation.pack_samples(judged)}
    return AccuracyReport(**{**known, **changes})


def test_judged_samples_come_back_as_they_were_packed() -> None:
    assert evaluation.unpack_samples(report(RIGHT)).tolist() == RIGHT.tolist()
    errors = np.array([0.0, 0.25, 4.0])
    assert evaluation.unpack_samples(report(errors)).tolist() == errors.tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 0},
        {"n": 400},
        {"samples": "b1:!!!"},
        {"samples": "b1:AAAA"},
        {"samples": evaluation.pack_samples(np.array([1.0, 2.0]))},
        {"samples": evaluation.pack_samples(np.ones(60_000, np.float64))},
    ],
)
def test_samples_that_are_none_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(evaluation.SamplesProblem):
        evaluation.unpack_samples(report(RIGHT, **changes))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_errors_that_are_no_errors_are_refused(value: float) -> None:
    with pytest.raises(evaluation.SamplesProblem):
        evaluation.unpack_samples(report(np.array([value, 0.0])))


def test_a_mean_that_its_metric_cannot_have_is_refused() -> None:
    recipe = EvaluationRecipe(metric="cosine")
    assert evaluation.unpack_samples(report(np.array([-1.5, -0.5]), recipe=recipe)).tolist() == [-1.5, -0.5]
    for judged in (np.array([1.5, 1.0]), np.array([-1.0, -1.5])):
        with pytest.raises(evaluation.SamplesProblem):
            evaluation.unpack_samples(report(judged, recipe=recipe))


def test_a_metric_that_is_not_known_here_any_more_says_itself_what_a_sample_is() -> None:
    recipe = EvaluationRecipe(metric="acme")
    for judged in (RIGHT, np.array([-3.0, 8.5])):
        told_of = report(judged, recipe=recipe)
        assert evaluation.unpack_samples(told_of).tolist() == judged.tolist()
        assert accuracies.make_accuracy(told_of).value == judged.mean()
    with pytest.raises(evaluation.SamplesProblem):
        evaluation.unpack_samples(report(RIGHT, recipe=recipe, samples="x9:AAAA"))


def test_a_users_own_judge_says_its_direction_and_its_file() -> None:
    told_by = CustomJudge(file="mine.py:score", sha256="ab" * 32, lower_is_better=True)
    recipe = EvaluationRecipe(metric="score")
    found = accuracies.make_accuracy(report(np.array([1.0, 3.0]), recipe=recipe, judge=told_by))
    assert (found.metric, found.recipe, found.higher_is_better) == ("score", "mine.py:score", False)
    assert (found.value, found.judge_sha256) == (2.0, "ab" * 32)
    assert "the user's own mine.py:score (sha256 abababababab)" in found.text


def test_one_number_of_a_judge_has_no_interval_and_is_held_against_nothing() -> None:
    def judged(value: float) -> doc_cells.Accuracy:
        by = CustomJudge(file="mine.py:score", sha256="ab" * 32, value=value)
        made = AccuracyReport(arm=0, recipe=EvaluationRecipe(metric="score"), n=4, judge=by)
        return accuracies.make_accuracy(made)

    cells = [
        cell(name, None, precision=precision).model_copy(update={"accuracy": judged(value)})
        for name, precision, value in (("c1", "fp32", 0.5), ("c2", "fp16", 0.25))
    ]
    found = told(cells, "c2")
    assert (found.value, found.ci_low, found.difference) == (0.25, None, None)
    assert not lines.is_less_accurate(found)


def test_figures_that_are_higher_are_better_unless_the_metric_says_otherwise() -> None:
    near, far = np.array([0.9, 0.8, 0.95, 0.9]), np.array([0.1, 0.2, 0.1, 0.15])
    recipe = EvaluationRecipe(metric="cosine")
    cells = [cell("c1", near), cell("c2", far, precision="int8-dynamic")]
    cells = [
        one.model_copy(update={"accuracy": accuracies.make_accuracy(report(judged, recipe=recipe))})
        for one, judged in zip(cells, (near, far), strict=True)
    ]
    found = told(cells, "c2")
    assert found.higher_is_better
    assert lines.is_less_accurate(found)
    assert (found.only_baseline, found.only_this) == (None, None)


def cell(name: str, judged: np.ndarray | None, *, precision: str = "fp32", **changes: Any) -> doc_cells.Cell:
    accuracy = None if judged is None else accuracies.make_accuracy(report(judged))
    known = {"runtime": NEW, "precision": precision, "recipe": precision.replace("fp32", ""), "accuracy": accuracy}
    return make_cell(name, **{**known, "digest": "0" * 64, **changes})


def told(cells: list[doc_cells.Cell], name: str) -> doc_cells.Accuracy:
    found = {one.id: one.accuracy for one in accuracies.compare_with_fp32(cells)}[name]
    assert found is not None
    return found


def test_a_variant_is_held_against_the_fp32_cell_of_its_runtime() -> None:
    other = cell("c3", WORSE, runtime="onnxruntime==1.29.0")
    cells = [other, cell("c1", RIGHT), cell("c2", WORSE, precision="int8-qdq")]
    found = told(cells, "c2")
    assert (found.baseline, found.difference) == ("c1", pytest.approx(-0.25))
    assert found.difference_low is not None
    assert found.difference_high is not None
    assert found.difference_low < -0.25 < found.difference_high < 0
    assert (found.only_baseline, found.only_this) == (25, 0)
    assert lines.is_less_accurate(found)
    assert "70.0 % of 100 samples are right" in found.text
    assert "Against FP32 (c1): \N{MINUS SIGN}25.00 points" in found.text
    assert "it is lower" in found.text
    assert found.samples == ""


def test_an_fp32_cell_on_the_cpu_has_no_baseline_and_one_elsewhere_has() -> None:
    cells = [cell("c1", RIGHT), cell("c2", RIGHT, threads=2), cell("c3", RIGHT, provider="OpenVINOExecutionProvider")]
    assert told(cells, "c1").baseline is None
    assert told(cells, "c2").baseline is None
    found = told(cells, "c3")
    assert (found.baseline, found.difference, found.p) == ("c1", 0.0, 1.0)
    assert not lines.is_less_accurate(found)
    assert "no difference is shown" in found.text


def test_cells_judged_on_other_data_are_not_held_against_each_other() -> None:
    first, second = cell("c1", RIGHT), cell("c2", WORSE, precision="fp16")
    elsewhere = first.model_copy(update={"accuracy": first.accuracy.model_copy(update={"data_sha256": "f" * 64})})
    assert told([elsewhere, second], "c2").baseline is None


def test_errors_are_better_when_they_are_smaller() -> None:
    small, large = np.array([0.1, 0.2, 0.1, 0.3]), np.array([1.1, 1.2, 1.0, 1.4])
    found = told([cell("c1", small), cell("c2", large, precision="int8-dynamic")], "c2")
    assert not found.higher_is_better
    assert lines.is_less_accurate(found)
    assert found.value == pytest.approx(1.175)
    assert "Mean squared error" in found.text


def test_a_cell_that_could_not_be_judged_says_why() -> None:
    reason = Reason(code=ReasonCode.TIMEOUT, text="The evaluation took too long.")
    failed = accuracies.make_accuracy(AccuracyReport(arm=0, reason=reason))
    assert (failed.value, failed.text) == (None, "The evaluation took too long.")
    cells = [cell("c1", RIGHT), cell("c2", None).model_copy(update={"accuracy": failed})]
    assert told(cells, "c2").baseline is None


def test_a_share_is_100_percent_only_when_nothing_is_missing() -> None:
    assert numbers.accuracy(1.0) == "100.0 %"
    assert numbers.accuracy(0.99999) == "99.999 %"


def test_samples_that_swell_beyond_every_data_set_or_are_cut_short_are_refused() -> None:
    swollen = base64.b64encode(zlib.compress(bytes(5 * MAX_SAMPLES))).decode()
    cut = base64.b64encode(zlib.compress(bytes(100))[:-3]).decode()
    for packed in (swollen, cut):
        with pytest.raises(evaluation.SamplesProblem, match="unpack to more than"):
            evaluation.unpack_samples(report(RIGHT, samples=f"b1:{packed}"))


def test_one_sample_shows_no_difference_of_errors() -> None:
    cells = [cell("c1", np.array([0.1])), cell("c2", np.array([1.1]), precision="int8-dynamic")]
    assert told(cells, "c2").baseline is None


def test_a_cell_with_samples_and_no_figure_keeps_its_own_words() -> None:
    judged = cell("c2", WORSE, precision="int8-qdq")
    bare = judged.accuracy.model_copy(update={"value": None, "text": "Judged elsewhere."})
    found = told([cell("c1", RIGHT), judged.model_copy(update={"accuracy": bare})], "c2")
    assert found.text.startswith("Judged elsewhere. Against FP32 (c1)")


def test_a_cell_whose_samples_were_not_kept_is_held_against_nothing() -> None:
    kept = cell("c2", WORSE, precision="int8-qdq")
    bare = kept.model_copy(update={"accuracy": kept.accuracy.model_copy(update={"samples": ""})})
    assert told([cell("c1", RIGHT), bare], "c2").baseline is None
    (same,) = [one for one in accuracies.compare_with_fp32([kept], keep_samples=True) if one.id == "c2"]
    assert same.accuracy.samples == kept.accuracy.samples


def reached(value: float, **changes: object) -> doc_cells.Accuracy:
    known = {"metric": "top1", "recipe": "top1", "output": "y", "n": 500, "data_sha256": "d", "value": value}
    known |= {"ci_low": value - 0.01, "ci_high": value + 0.01, "text": "as it was"}
    return doc_cells.Accuracy.model_validate({**known, **changes})


@pytest.mark.parametrize(
    ("own", "before", "is_lower"),
    [
        (reached(0.006), [reached(0.98)], True),
        (reached(0.95), [reached(0.98)], False),
        (reached(0.99), [reached(0.98)], False),
        (reached(0.006), [], False),
        (reached(0.006), [reached(0.98, data_sha256="other")], False),
        (reached(0.006), [reached(0.98, data_sha256="other"), reached(0.98)], True),
        (reached(0.006, ci_low=None), [reached(0.98)], False),
    ],
)
def test_a_version_that_surely_lost_against_one_before_on_the_same_data_is_wrong(
    own: doc_cells.Accuracy, before: list[doc_cells.Accuracy], is_lower: bool
) -> None:
    held, without = accuracies.compare_versions(
        [make_cell("c1", accuracy=own, parity=doc_cells.Parity(verdict="pass")), make_cell("c2")], before
    )
    assert (lines.is_wrong(held), without.accuracy) == (is_lower, None)
    assert (held.accuracy == own) == (not is_lower)


def test_a_loss_that_samples_in_pairs_show_keeps_their_interval() -> None:
    own = reached(0.77, difference=-0.21, difference_low=-0.2529, difference_high=-0.1696)
    [held] = accuracies.compare_versions([make_cell("c1", accuracy=own)], [reached(0.98)])
    assert held.accuracy == own


def test_a_version_after_a_broken_one_is_held_against_the_last_that_was_right() -> None:
    right = accuracies.drop_lossy([reached(0.97), reached(0.98), reached(0.006)])
    assert [one.value for one in right] == [0.98, 0.97]


def test_cells_of_several_runs_are_paired_within_their_version_and_runtime() -> None:
    plain, small = accuracies.make_accuracy(report(RIGHT)), accuracies.make_accuracy(report(WORSE))
    known = {"runtime": NEW, "model_sha256": "v1"}
    first, second = (
        make_cell("c1", accuracy=plain, **known),
        make_cell("c2", accuracy=small, **{**known, "model_sha256": "v2"}),
    )
    third = make_cell("c3", accuracy=small, precision="int8-dynamic", **known)
    found = accuracies.compare_across_runs([first, second, third])
    assert [one.accuracy.difference for one in found] == [None, None, pytest.approx(-0.25)]
