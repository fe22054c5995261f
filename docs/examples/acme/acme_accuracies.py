# acme_accuracies.py
from farm.rules.quality.accuracy_metrics import AccuracyMetric

WITHIN = AccuracyMetric(
    name="within",
    title="within one unit",
    judge="acme_within",
    labels="like-output",
    note="right when no value is off by more than 1",
    is_yes_or_no=True,
)
