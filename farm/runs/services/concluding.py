"""What a finished run found, as a whole: its headline, and which verdicts hold among all its comparisons.

Done by the tick rather than by the last report: it reads every cell of the run, and the node should not wait for it.
"""

import gzip

from django.db import transaction
from django.db.models import F

from farm.contract import document as doc
from farm.rules.reporting.leads import lead_of
from farm.runs.models import Comparison, FinishedDocument, Run
from farm.runs.selectors.documents import whole_document
from farm.runs.states import RunState

# so many in one tick
MOST = 4


def conclude_runs() -> int:
    """Concludes runs that have finished; gives how many."""
    runs = Run.objects.filter(state=RunState.FINISHED, is_concluded=False).select_related("version__model", "team")
    return sum(_conclude(run) for run in runs.order_by("finished_at")[:MOST])


def add_leads() -> int:
    """Says what runs lead with that an older release concluded; their documents and revisions stay as they are."""
    rows = Run.objects.filter(is_concluded=True, lead__isnull=True).select_related("version__model", "team")
    older = list(rows.order_by("-pk")[:MOST])
    for run in older:
        lead = lead_of(whole_document(run)).model_dump(mode="json")
        Run.objects.filter(pk=run.pk, is_concluded=True).update(lead=lead)
    return len(older)


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
        kept = {"revision": run.revision + 1, "body": body}
        FinishedDocument.objects.update_or_create(run=run, defaults=kept)
    return True


def _write_verdicts(run: Run, comparisons: list[doc.Comparison]) -> None:
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
