"""Each judge of labelled data beside the figure of scikit-learn, jiwer or pycocotools, and its interval beside a
bootstrap's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import f1_score, log_loss, mean_squared_error, top_k_accuracy_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

from farm.rules.quality import accuracy
from farm.rules.quality.accuracy_metrics import METRICS
from tests import vectors
from worker.runner import extensions, faults
from worker.runner.judges import output_steps
from worker.runner.judges.judge import Judge

DICE = np.random.default_rng(7)
SCORES = DICE.standard_normal((400, 9)).astype(np.float32)
LABELS = np.where(DICE.random(400) < 0.4, SCORES.argmax(axis=1), DICE.integers(0, 9, 400))
FLAGS = (DICE.random((400, 9)) < 0.2).astype(np.int64)
# right more often than not
TOLD = np.where(DICE.random((400, 9)) < 0.8, FLAGS, DICE.random((400, 9))).astype(np.float32)
VECTORS = DICE.standard_normal((400, 9))
NOISY = (VECTORS + 0.7 * DICE.standard_normal((400, 9))).astype(np.float32)


TOKENS = DICE.integers(-1, 7, (400, 5))
LOGITS = (DICE.standard_normal((400, 5, 7)) + 2 * np.eye(7)[TOKENS]).astype(np.float32)
KNOWN = vectors.accuracies()


def judged(metric: str, outputs: Any, labels: Any, *, at_once: int = 64) -> np.ndarray:
    judge: Judge = extensions.import_builtin(METRICS[metric].judge)
    outputs, labels = np.asarray(outputs), np.asarray(labels)
    starts = range(0, len(labels), at_once)
    return judge.samples([judge.look(outputs[at : at + at_once], labels[at : at + at_once]) for at in starts])


def recall(outputs: np.ndarray, labels: np.ndarray, *, most: int) -> float:
    near = NearestNeighbors(n_neighbors=most + 1, metric="cosine").fit(outputs).kneighbors(return_distance=False)
    return float((labels[near[:, :most]] == labels[:, None]).any(axis=1).mean())


def macro_f1(outputs: np.ndarray, labels: np.ndarray) -> float:
    return float(f1_score(labels, outputs.argmax(axis=1), average="macro"))


def multilabel_f1(outputs: np.ndarray, labels: np.ndarray) -> float:
    return float(f1_score(labels, outputs > 0.5, average="macro", zero_division=0))


def cosine(outputs: np.ndarray, labels: np.ndarray) -> float:
    return float(np.diag(cosine_similarity(outputs, labels)).mean())


def perplexity(outputs: np.ndarray, labels: np.ndarray) -> float:
    shares = softmax(outputs[labels >= 0].astype(np.float64), axis=-1)
    return float(np.exp(log_loss(labels[labels >= 0], shares, labels=range(outputs.shape[-1]))))


EXPECTED: dict[str, tuple[np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray], float]]] = {
    "top1": (SCORES, LABELS, lambda scores, labels: top_k_accuracy_score(labels, scores, k=1)),
    "top5": (SCORES, LABELS, lambda scores, labels: top_k_accuracy_score(labels, scores, k=5)),
    "f1": (SCORES, LABELS, macro_f1),
    "f1-multilabel": (TOLD, FLAGS, multilabel_f1),
    "mse": (NOISY, VECTORS, mean_squared_error),
    "cosine": (NOISY, VECTORS, cosine),
    "perplexity": (LOGITS, TOKENS, perplexity),
    "recall1": (NOISY, LABELS, lambda rows, labels: recall(rows, labels, most=1)),
    "recall5": (NOISY, LABELS, lambda rows, labels: recall(rows, labels, most=5)),
    "recall10": (NOISY, LABELS, lambda rows, labels: recall(rows, labels, most=10)),
}


@pytest.mark.parametrize("metric", EXPECTED)
def test_a_metric_is_what_scikit_learn_says(metric: str) -> None:
    outputs, labels, known = EXPECTED[metric]
    found = judged(metric, outputs, labels)
    assert found.shape == (400,)
    assert float(found.mean()) == pytest.approx(known(outputs, labels), abs=1e-9)
    assert (found.dtype.kind == "b") == METRICS[metric].is_yes_or_no


@pytest.mark.parametrize(("metric", "given"), [("wer", "texts"), ("cer", "texts"), ("map50", "boxes")])
def test_a_metric_is_what_its_library_says(metric: str, given: str) -> None:
    labels, outputs = (np.array(KNOWN[given][name]) for name in ("labels", "outputs"))
    assert float(judged(metric, outputs, labels, at_once=7).mean()) == pytest.approx(KNOWN[given][metric], abs=1e-9)


def test_a_sample_without_which_a_class_has_no_box_leaves_it_out_of_the_mean() -> None:
    here, elsewhere = [0, 0, 10, 10], [20, 20, 30, 30]
    labels = np.array([[[*here, 0]], [[*here, 1]], [[*here, 0]]], float)
    outputs = np.array([[[*here, 0.9, 0]], [[*elsewhere, 0.8, 1]], [[*here, 0.7, 0]]], float)
    # without the second image the other class, found throughout, is all there is
    assert judged("map50", outputs, labels) == pytest.approx([5 / 6, -1 / 6, 5 / 6])


def test_boxes_that_are_none_are_passed_over() -> None:
    here = [0.0, 0.0, 10.0, 10.0]
    labels = np.array([[[*here, 2], [*here, -1]]])
    outputs = np.array([[[*here, 0.5, 2], [*here, 0.0, 2], [*here, 0.9, -1], [*here, np.nan, 2]]])
    assert judged("map50", outputs, labels).tolist() == [1.0]


def test_a_box_is_taken_once() -> None:
    here = [0.0, 0.0, 10.0, 10.0]
    outputs = np.array([[[*here, 0.5, 0], [*here, 0.9, 0]]])
    assert judged("map50", outputs, np.array([[[*here, 0]]])).tolist() == [1.0]
    assert judged("map50", outputs[:, ::-1], np.array([[[*here, 0], [*here, 0]]])).tolist() == [1.0]


def test_the_best_path_of_ctc_is_a_text() -> None:
    vocabulary = np.array(["", "a", "b", " "])
    ids = np.array([[1, 1, 0, 1, 2, 2, 3, 2], [0, 0, 0, 0, 0, 0, 0, 0]])
    for outputs in (ids, np.eye(4)[ids]):
        said = output_steps.apply_step(outputs, step="ctc", threshold=0.5, vocabulary=vocabulary)
        assert said.tolist() == ["aab b", ""]
        assert judged("cer", said, np.array(["aab b", ""])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("outputs", [np.zeros((2, 3)), np.full((2, 3), 4), np.full((2, 3), -1), np.zeros((2, 3, 9))])
def test_tokens_that_the_vocabulary_lacks_end_in_a_sentence(outputs: np.ndarray) -> None:
    outputs[..., -1] += 1
    with pytest.raises(faults.Refusal, match="of the vocabulary"):
        output_steps.apply_step(outputs, step="ctc", threshold=0.5, vocabulary=np.array(["", "a", "b", " "]))


@pytest.mark.parametrize("metric", ["f1", "f1-multilabel", "perplexity"])
def test_the_parts_of_a_figure_that_is_no_mean_have_its_interval(metric: str) -> None:
    outputs, labels, known = EXPECTED[metric]
    dice = np.random.default_rng(3)
    worse = np.where(dice.random(outputs.shape) < 0.1, dice.permutation(outputs), outputs)
    found = accuracy.compare_errors(judged(metric, outputs, labels), judged(metric, worse, labels))
    drawn = [dice.integers(0, 400, 400) for _ in range(150)]
    gaps = [
        judged(metric, worse[picked], labels[picked]).mean() - judged(metric, outputs[picked], labels[picked]).mean()
        for picked in drawn
    ]
    low, high = np.percentile(gaps, [2.5, 97.5])
    assert found.ci_high - found.ci_low == pytest.approx(high - low, rel=0.3)
    assert found.value == pytest.approx(known(worse, labels) - known(outputs, labels), abs=1e-9)


@pytest.mark.parametrize("metric", ["f1", "f1-multilabel", "perplexity"])
def test_a_sample_is_left_out_as_if_it_had_not_been_there(metric: str) -> None:
    outputs, labels, known = (given[:30] if isinstance(given, np.ndarray) else given for given in EXPECTED[metric])
    without = np.array([known(np.delete(outputs, at, 0), np.delete(labels, at, 0)) for at in range(30)])
    whole = known(outputs, labels)
    assert judged(metric, outputs, labels) == pytest.approx(whole + 29 * (without.mean() - without))


def test_ties_and_scores_that_are_no_numbers_count_as_wrong() -> None:
    assert judged("top1", np.array([[0.5, 0.5], [np.nan, 0.1]], np.float32), [0, 0]).tolist() == [False, False]
    assert judged("f1", np.full((2, 2), np.nan, np.float32), [0, 0]).mean() == 0.0


def test_classes_that_the_model_chose_itself_are_compared() -> None:
    assert judged("top1", [1, 0, 2], [1, 1, 2]).tolist() == [True, False, True]
    assert judged("f1", [1, 0, 2], [1, 1, 2]).mean() == pytest.approx(f1_score([1, 1, 2], [1, 0, 2], average="macro"))


def test_one_sample_is_the_whole_figure() -> None:
    assert judged("f1", [1], [1]).tolist() == [1.0]
    assert judged("f1-multilabel", [[1, 0]], [[1, 1]]).tolist() == [0.5]


def test_an_embedding_of_zeros_is_near_to_nothing() -> None:
    assert judged("cosine", np.zeros((1, 3)), np.ones((1, 3))).tolist() == [0.0]


@pytest.mark.parametrize(
    ("step", "outputs", "made"),
    [
        (None, [[1.0, 2.0]], [[1.0, 2.0]]),
        ("softmax", [[0.0, 0.0]], [[0.5, 0.5]]),
        ("argmax", [[0.0, 3.0]], [1]),
        ("threshold", [[0.4], [0.6]], [0, 1]),
        ("threshold", [[0.4, 0.6]], [[0, 1]]),
    ],
)
def test_a_step_is_applied_before_judging(step: str | None, outputs: list[Any], made: list[Any]) -> None:
    assert output_steps.apply_step(np.array(outputs, np.float32), step=step, threshold=0.5).tolist() == made


@pytest.mark.parametrize(
    ("metric", "outputs", "labels"),
    [
        ("top1", np.zeros((2, 3)), [0, 3]),
        ("top1", np.zeros((2, 3, 4)), [0, 1]),
        ("top1", np.float32(1), [0]),
        ("top5", np.zeros((3, 3)), [0, 1]),
        ("top1", np.zeros(3, np.int64), [0, 1]),
        ("f1", np.zeros((2, 3, 4)), [0, 1]),
        ("f1-multilabel", np.zeros((2, 3)), np.zeros((2, 4))),
        ("mse", np.zeros((2, 3)), np.zeros((2, 4))),
        ("cosine", np.zeros((2, 3)), np.zeros((2, 4))),
        ("cosine", np.full((2, 3), np.nan), np.zeros((2, 3))),
        ("recall1", np.zeros(2), [0, 1]),
        ("recall1", np.full((2, 3), np.nan), [0, 0]),
        ("recall5", np.zeros((3, 3)), [0, 0, 0]),
        ("wer", np.zeros(2), ["a", "b"]),
        ("wer", np.array(["a", "b"]), ["", ""]),
        ("cer", np.array([["a"]]), ["a"]),
        ("map50", np.zeros((2, 3, 4)), np.zeros((2, 3, 5))),
        ("map50", np.zeros((2, 3, 6)), np.full((2, 3, 5), -1.0)),
        ("perplexity", np.zeros((2, 3)), np.zeros((2, 3), int)),
        ("perplexity", np.zeros((2, 3, 4)), np.full((2, 3), 4)),
    ],
)
def test_an_output_unlike_the_others_ends_in_a_sentence(metric: str, outputs: Any, labels: Any) -> None:
    judge: Judge = extensions.import_builtin(METRICS[metric].judge)
    with pytest.raises(faults.Refusal, match="on the labelled data the output has"):
        judge.samples([judge.look(outputs, np.asarray(labels))])
