"""What the two sides of a symptom differ in beside the time: providers, fusions, copies, how much is executed."""

from farm.alerts.models import Symptom
from farm.base.refusals import Missing
from farm.rules.presenting import fusions
from farm.runs import selectors as runs


def graph_changes(symptom: Symptom) -> list[str]:
    """Sentences, in the order in which they matter; empty where a side was not traced, or its run was removed."""
    if symptom.run is None:
        return []
    try:
        old, new = (runs.cell_document(symptom.run, name) for name in (symptom.baseline, symptom.cell))
    except Missing:
        return []
    return fusions.graph_changes(old, new)
