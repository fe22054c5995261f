"""What a finished run found, as a whole: its headline, and which verdicts hold among all its comparisons.

Done by the tick rather than by the last report: it reads every cell of the run, and the node should not wait for it.
"""

import gzip
import logging
from collections.abc import Callable
from itertools import islice

from django.core.cache import cache
from django.db import transaction
from django.db.models import F, QuerySet

from farm.contract import document_comparisons as doc_comparisons
from farm.rules.presenting.leads import lead_of
from farm.runs.models import Comparison, FinishedDocument, Run
from farm.runs.selectors.documents import whole_document
from farm.runs.states import RunState

log = logging.getLogger(__name__)
# so many in one tick, of so many that are looked through for them
MOST = 4
MOST_ASKED = 1000
# a run that broke is tried again after so long
AGAIN_S = 60.0


def conclude_runs(*, at_once: int = MOST) -> int:
    """Concludes runs that have finished; gives how many."""
    runs = Run.objects.filter(state=RunState.FINISHED, is_concluded=False)
    return sum(_tried(run, _conclude) for run in _due(runs.order_by("finished_at"), at_once))


def add_leads(*, at_once: int = MOST) -> int:
    """Says what runs lead with that an older release concluded; their documents and revisions stay as they are."""
    runs = Run.objects.filter(is_concluded=True, lead__isnull=True)
    return sum(_tried(run, _add_lead) for run in _due(runs.order_by("-pk"), at_once))


def _due(runs: QuerySet[Run], at_once: int) -> list[Run]:
    """The first of them, without those that broke a moment ago: they would take the place of all others for ever."""
    numbers = runs.values_list("pk", flat=True)[:MOST_ASKED]
    due = list(islice((pk for pk in numbers if cache.get(_broke(pk)) is None), at_once))
    return list(runs.filter(pk__in=due).select_related("version__model", "team"))


def _tried(run: Run, act: Callable[[Run], bool]) -> bool:
    """Whether it was done. A run that breaks it is logged and left alone for a while."""
    try:
        return act(run)
    except Exception:
        cache.set(_broke(run.pk), True, timeout=AGAIN_S)
        log.exception("run %s could not be concluded; it is tried again in %.0f s", run.pk, AGAIN_S)
        return False


def _broke(run_id: int) -> str:
    return f"runs.concluding.broke.{run_id}"


def _add_lead(run: Run) -> bool:
    lead = lead_of(whole_document(run)).model_dump(mode="json")
    return bool(Run.objects.filter(pk=run.pk, is_concluded=True).update(lead=lead))


def _conclude(run: Run) -> bool:
    """Writes headline, verdicts and the finished document, unless the run has changed meanwhile."""
    document = whole_document(run)
    body = gzip.compress(document.to_json().encode(), compresslevel=5, mtime=0)
    with transaction.atomic():
        same = Run.objects.filter(pk=run.pk, state=RunState.FINISHED, revision=run.revision)
        found = {"headline": document.sentence, "lead": lead_of(document).model_dump(mode="json")}
        if not same.update(**found, is_concluded=True, revision=F("revision") + 1):
            return False
        _write_verdicts(run, document.comparisons)
        kept = FinishedDocument(run=run, revision=run.revision + 1, body=body)
        FinishedDocument.objects.bulk_create(
            [kept], update_conflicts=True, unique_fields=["run"], update_fields=["revision", "body"]
        )
    return True


def _write_verdicts(run: Run, comparisons: list[doc_comparisons.Comparison]) -> None:
    """The verdicts that changed because the run has so many comparisons (Benjamini-Hochberg)."""
    held = {(one.baseline, one.candidate): one.verdict for one in comparisons}
    rows = Comparison.objects.filter(run=run).select_related("baseline", "candidate")
    changed = []
    for row in rows.only("verdict", "baseline__name", "candidate__name"):
        verdict = held.get((row.baseline.name, row.candidate.name), row.verdict)
        if verdict != row.verdict:
            row.verdict = verdict
            changed.append(row)
    Comparison.objects.bulk_update(changed, ["verdict"], batch_size=500)
