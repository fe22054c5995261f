"""An alert as a report to file: the case, the files it needs, and the zip that holds all of it."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from farm.alerts.models import Alert, Investigation
from farm.alerts.states import InvestigationKind, InvestigationState
from farm.base.refusals import Conflict, Missing
from farm.registry.models import Artifact
from farm.registry.selectors import find_stored_file
from farm.rules.changes import report
from farm.rules.changes.report import Case
from farm.rules.findings.kinds import kind_of
from farm.runs import selectors as runs
from farm.runs.models import Arm, Run, match_arms
from farm.runs.models import Cell as CellRow
from farm.runs.selectors.retention import explain_removed_timings


def make_case(alert: Alert) -> Case:
    """Collect the evidence of an alert. Raises Conflict where it compares versions of a model or where its run is gone,
    Missing where the run has lost a cell."""
    if alert.is_of_versions:
        text = (
            f"Alert {alert.pk} compares versions of a model on one release: nothing in it is to be reported upstream."
        )
        raise Conflict(text, code="versions")
    symptom = alert.lead
    if symptom is None or symptom.run is None:
        raise Conflict(f"Alert {alert.pk} has no run that it could be repeated from.", code="no_evidence")
    document = runs.document(symptom.run)
    cells = {cell.id: cell for cell in document.cells}
    for name in (symptom.baseline, symptom.cell):
        if name not in cells:
            raise Missing(f"Run {document.run} has no cell {name!r} any more.")
    row = _row(symptom.run, symptom.cell, symptom.baseline)
    has_work_around = kind_of(symptom.kind).has_work_around
    return Case(
        document=document,
        old=cells[symptom.baseline],
        new=cells[symptom.cell],
        spec=row.spec,
        model=_artifact(row).main,
        sentence=symptom.text,
        kind=symptom.kind,
        since=_sentence(alert, InvestigationKind.SINCE_WHEN),
        work_around=_sentence(alert, InvestigationKind.WORK_AROUND) if has_work_around else "",
        code=_code(alert) if has_work_around else "",
    )


def write_zip(alert: Alert, to: IO[bytes]) -> Case:
    """Write the zip of an alert's report to a file, and return the case. Raises Conflict and Missing as `make_case`,
    and Missing for a file that was removed from the store."""
    case = make_case(alert)
    symptom_run = Run.objects.filter(pk=int(case.document.run or 0)).first()
    if symptom_run is None:
        raise Conflict(f"The run of alert {alert.pk} was removed meanwhile.", code="no_evidence")
    with zipfile.ZipFile(to, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, text in report.render_files(case).items():
            archive.writestr(name, text)
        for side, cell in (("old", case.old), ("new", case.new)):
            if gone := explain_removed_timings(symptom_run):
                archive.writestr(f"{report.timings_name(side)}.txt", f"{gone}\n")
            elif Arm.objects.filter(block__run=symptom_run, name=cell.id).exists():
                archive.writestr(report.timings_name(side), "".join(runs.timing_lines(symptom_run, cell.id)))
        for name, path in _files(symptom_run, case):
            archive.write(path, name)
    return case


def _files(run: Run, case: Case) -> Iterator[tuple[str, Path]]:
    """Yield the model's files and its inputs, with their names in the report."""
    row = _row(run, case.new.id, case.old.id)
    for file in _artifact(row).bundle.files:
        yield f"{report.MODEL_FOLDER}/{file.name}", find_stored_file(file.sha256)
    if row.preparation is not None and row.preparation.inputs is not None:
        yield report.INPUTS, find_stored_file(row.preparation.inputs.sha256)


def _row(run: Run, *names: str) -> CellRow:
    """Return the first of these cells that has inputs, or else the first one. Raises Missing where there is none."""
    cells = CellRow.objects.filter(run=run).select_related(
        "variant__derived", "preparation__inputs", "run__version__artifact"
    )
    found: list[CellRow] = []
    for name in names:
        arm = Arm.objects.filter(match_arms(run, name)).select_related("cell").first()
        found += cells.filter(name=arm.cell.name if arm is not None else name)
    if not found:
        raise Missing(f"Run {run.pk} has no cell {names[0]!r} any more.")
    return next((row for row in found if row.preparation is not None), found[0])


def _artifact(row: CellRow) -> Artifact:
    derived = row.variant.derived if row.variant is not None else None
    return derived or row.run.version.artifact


def _find_answered(alert: Alert, kind: InvestigationKind) -> Investigation | None:
    rows = alert.investigations.filter(kind=kind, state=InvestigationState.ANSWERED)
    return rows.order_by("-pk").first()


def _sentence(alert: Alert, kind: InvestigationKind) -> str:
    answered = _find_answered(alert, kind)
    return answered.sentence if answered is not None else ""


def _code(alert: Alert) -> str:
    answered = _find_answered(alert, InvestigationKind.WORK_AROUND)
    answer = answered.answer if answered is not None else None
    return str(answer.get("code", "")) if answer and answer.get("is_found") else ""
