"""The table of accuracy metrics: what entries say of a figure, and those of packages, which are declared alike."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from farm.contract.document_cells import Accuracy
from farm.rules.quality.accuracy_metrics import GROUP, METRICS, AccuracyMetric, metric_of
from farm.rules.wording import numbers

BLEU = {"name": "bleu", "title": "BLEU", "judge": "acme_bleu", "labels": "any", "note": "as near as its n-grams"}


def made(metric: str, **changes: Any) -> Accuracy:
    return Accuracy(**{"metric": metric, "n": 540, "value": 0.981, "ci_low": 0.966, "ci_high": 0.99, **changes})


def between(value: float, low: float, high: float) -> dict[str, float]:
    return {"difference": value, "difference_low": low, "difference_high": high}


@pytest.mark.parametrize(
    ("metric", "changes", "sentence"),
    [
        ("top1", {}, "98.1 % of 540 samples are right (96.6–99.0 %)."),
        ("recall5", {}, "98.1 % of 540 samples are found among their 5 nearest (96.6–99.0 %)."),
        ("recall1", {}, "98.1 % of 540 samples are nearest to one of their label (96.6–99.0 %)."),
        ("f1", {}, "Macro F1 98.1 % (96.6–99.0 %) over 540 samples."),
        ("mse", {"value": 0.01, "ci_low": -1, "ci_high": 2}, "Mean squared error 0.0100 (0–2.00) over 540 samples."),
        ("cosine", {"ci_low": -0.5, "ci_high": 1.5}, "Cosine similarity 0.981 (−0.500 to 1.00) over 540 samples."),
        ("acme", {"ci_low": None}, "Acme 0.981 over 540 samples."),
        ("top1", {"value": None, "text": "It took too long."}, "It took too long."),
    ],
)
def test_a_figure_in_words(metric: str, changes: dict[str, Any], sentence: str) -> None:
    found = made(metric, **changes)
    assert metric_of(found).describe(found) == sentence


@pytest.mark.parametrize(
    ("metric", "changes", "words"),
    [
        ("top1", {}, ""),
        ("top1", {"difference": -0.0019}, "−0.19 points"),
        ("top1", between(0.01, -0.01, 0.02), "+1.00 points (−1.00 to +2.00)"),
        ("mse", between(0.5, 0.0, 1.0), "+0.500 (0 to +1.00)"),
    ],
)
def test_a_difference_in_words(metric: str, changes: dict[str, Any], words: str) -> None:
    found = made(metric, **changes)
    assert metric_of(found).format_difference(found) == words


def test_a_figure_that_is_not_there_is_not_measured() -> None:
    assert METRICS["top1"].format_value(None) == numbers.NOT_MEASURED


def test_a_metric_that_nobody_here_knows_keeps_the_direction_of_its_document() -> None:
    assert not metric_of(made("acme", higher_is_better=False)).higher_is_better
    assert metric_of(made("acme")).higher_is_better


def installed(monkeypatch: pytest.MonkeyPatch, *entries: object) -> Any:
    module = ModuleType("acme_accuracies")
    monkeypatch.setitem(sys.modules, "acme_accuracies", module)
    for number, entry in enumerate(entries):
        setattr(module, f"E{number}", entry)
    names = [EntryPoint(f"e{number}", f"acme_accuracies:E{number}", GROUP.name) for number in range(len(entries))]
    return GROUP.load(names)


def test_a_package_brings_a_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = AccuracyMetric(**BLEU, is_share=False, most=100.0)
    found = installed(monkeypatch, entry, entry)
    assert found.entries == (entry,)
    assert found.refused["e1"].endswith("'bleu' is taken.")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "top1"}, "'top1' is taken"),
        ({"name": "BLEU@4"}, "name has 'BLEU@4'"),
        ({"judge": "judges.classes:TOP1"}, "judge has"),
        ({"judge": None}, "judge has None"),
        ({"title": ""}, "title has ''"),
        ({"note": "x" * 300}, "note has"),
        ({"labels": "sounds"}, "labels has 'sounds': write one of class"),
        ({"at_once": 0}, "at_once has 0"),
        ({"least": 1.0}, "least is 1.0 and most 1.0"),
    ],
)
def test_an_entry_that_is_none_is_left_out_and_told(
    changes: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = installed(monkeypatch, AccuracyMetric(**{**BLEU, **changes}))
    assert found.entries == ()
    assert words in found.refused["e0"]


def test_a_loss_is_told_by_what_was_reached_before_and_now():
    entry = METRICS["top1"]
    known = {"metric": "top1", "value": 0.006, "difference": -0.974}
    assert entry.format_change(Accuracy.model_validate(known)) == "top-1 98.0 → 0.6 %"
    assert not entry.format_change(Accuracy.model_validate({**known, "difference": None}))
