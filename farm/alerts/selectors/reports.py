"""Makes the report of an alert for the issue tracker of ONNX Runtime: its evidence, and a zip with all files."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from farm.alerts.models import Alert, Investigation
from farm.alerts.selectors.alerts import list_later_findings
from farm.alerts.states import OPEN_ALERTS, InvestigationKind, InvestigationState
from farm.base.refusals import Conflict, Missing
from farm.registry.models import Artifact
from farm.registry.selectors import find_stored_file
from farm.rules.changes import report
from farm.rules.changes.report import Case
from farm.rules.findings.kinds import kind_of
from farm.rules.runtimes.order import release_order
from farm.runs import selectors as runs
from farm.runs.models import Arm, Run, match_arms
from farm.runs.models import Cell as CellRow
from farm.runs.selectors.retention import explain_removed_timings


def make_case(alert: Alert) -> Case:
    """Collect the evidence of an alert's leading symptom, with the answers of its searches.

    Raises Conflict where the alert compares versions of a model, has no symptom, or where the leading symptom's run was
    removed. Raises Missing where the run has lost one of the two cells.
    """
    if alert.is_of_versions:
        text = (
            f"Alert {alert.pk} compares versions of a model on one release: nothing in it is to be reported upstream."
        )
        raise Conflict(text, code="versions")
    symptom = alert.leading_symptom
    if symptom is None or symptom.run is None:
        raise Conflict(f"Alert {alert.pk} has no run that it could be repeated from.", code="no_evidence")
    document = runs.document(symptom.run)
    cells = {cell.id: cell for cell in document.cells}
    for name in (symptom.baseline, symptom.cell):
        if name not in cells:
            raise Missing(f"Run {document.run} has no cell {name!r} any more.")
    row = _find_cell_row(symptom.run, symptom.cell, symptom.baseline)
    bisection = _find_answered(alert, InvestigationKind.SINCE_WHEN)
    work_around = None
    if kind_of(symptom.kind).has_work_around:
        work_around = _find_answered(alert, InvestigationKind.WORK_AROUND)
    answer = (work_around.answer if work_around is not None else None) or {}
    return Case(
        document=document,
        old=cells[symptom.baseline],
        new=cells[symptom.cell],
        spec=row.spec,
        model=_find_artifact(row).main,
        sentence=symptom.text,
        still=_describe_newest_finding(alert),
        kind=symptom.kind,
        since=bisection.sentence if bisection is not None else "",
        work_around=work_around.sentence if work_around is not None else "",
        code=str(answer.get("code", "")) if answer.get("is_found") else "",
    )


def write_zip(alert: Alert, to: IO[bytes]) -> Case:
    """Write the zip of an alert's report to a file, and return its evidence.

    Where retention removed the timings, a note takes their place. Raises Conflict and Missing as `make_case` does, and
    Missing for a file of the model or its inputs that was removed from the store.
    """
    case = make_case(alert)
    symptom_run = Run.objects.filter(pk=int(case.document.run or 0)).first()
    if symptom_run is None:
        raise Conflict(f"The run of alert {alert.pk} was removed meanwhile.", code="no_evidence")
    with zipfile.ZipFile(to, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, text in report.render_files(case).items():
            archive.writestr(name, text)
        for side, cell in (("old", case.old), ("new", case.new)):
            if removal := explain_removed_timings(symptom_run):
                archive.writestr(f"{report.timings_name(side)}.txt", f"{removal}\n")
            elif Arm.objects.filter(block__run=symptom_run, name=cell.id).exists():
                archive.writestr(report.timings_name(side), "".join(runs.timing_lines(symptom_run, cell.id)))
        for name, path in _list_files(symptom_run, case):
            archive.write(path, name)
    return case


def _list_files(run: Run, case: Case) -> Iterator[tuple[str, Path]]:
    """Yield the model's files and its inputs, with their names in the report."""
    row = _find_cell_row(run, case.new.id, case.old.id)
    for file in _find_artifact(row).bundle.files:
        yield f"{report.MODEL_FOLDER}/{file.name}", find_stored_file(file.sha256)
    if row.preparation is not None and row.preparation.inputs is not None:
        yield report.INPUTS, find_stored_file(row.preparation.inputs.sha256)


def _find_cell_row(run: Run, *names: str) -> CellRow:
    """Return the first of these cells that has prepared inputs, or else the first one. Raises Missing without any."""
    cells = CellRow.objects.filter(run=run).select_related(
        "variant__derived", "preparation__inputs", "run__version__artifact"
    )
    rows: list[CellRow] = []
    for name in names:
        arm = Arm.objects.filter(match_arms(run, name)).select_related("cell").first()
        rows += cells.filter(name=arm.cell.name if arm is not None else name)
    if not rows:
        raise Missing(f"Run {run.pk} has no cell {names[0]!r} any more.")
    return next((row for row in rows if row.preparation is not None), rows[0])


def _find_artifact(row: CellRow) -> Artifact:
    derived = row.variant.derived if row.variant is not None else None
    return derived or row.run.version.artifact


def _find_answered(alert: Alert, kind: InvestigationKind) -> Investigation | None:
    rows = alert.investigations.filter(kind=kind, state=InvestigationState.ANSWERED)
    return rows.order_by("-pk").first()


def _describe_newest_finding(alert: Alert) -> str:
    """Describe how the newest release in which an open alert's change was found again has it; empty without one."""
    if alert.state not in OPEN_ALERTS:
        return ""
    found = {release: event for _, release, event in list_later_findings([alert.pk])}
    release = max(found, key=release_order, default=alert.bad)
    if release_order(release) <= release_order(alert.bad):
        return ""
    return f"Still so in {release}. {alert.events.get(pk=found[release]).text}"
