"""What the runner packs of judged samples, and where it finds what judges."""

from typing import Any

import numpy as np
import pytest

from farm.contract.evaluation import AccuracyReport, EvaluationRecipe
from farm.rules.quality import evaluation
from farm.rules.quality.accuracy_metrics import OWN
from worker.runner import evaluation as runner
from worker.runner import faults
from worker.runner.judges.judge import Judge
from worker.runner.order import EvaluationPart


@pytest.mark.parametrize("judged", [np.array([True, False, True] * 7), np.array([0.5, 0.0, 2.25])])
def test_what_the_runner_packs_the_farm_unpacks(judged: Any) -> None:
    metric = "top1" if judged.dtype.kind == "b" else "mse"
    report = AccuracyReport(
        arm=0, recipe=EvaluationRecipe(metric=metric), n=judged.size, samples=runner.pack_judgements(judged)
    )
    assert evaluation.unpack_samples(report).tolist() == judged.tolist()


@pytest.mark.parametrize("entry", OWN, ids=lambda entry: entry.name)
def test_each_metric_of_ours_has_its_judge(entry: Any) -> None:
    assert isinstance(runner.import_judge(EvaluationPart(data="", metric=entry.name, judge=entry.judge)), Judge)


def test_a_judge_of_a_package_that_is_not_here_is_refused() -> None:
    with pytest.raises(faults.Refusal) as refused:
        runner.import_judge(EvaluationPart(data="", metric="acme", judge="acme_judge"))
    assert refused.value.code == "not_supported"


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_a_figure_that_is_no_number_ends_in_a_sentence(value: float) -> None:
    with pytest.raises(faults.Refusal, match="not a finite number"):
        runner.refuse_unless_finite(np.array([0.0, value]), "mse")
