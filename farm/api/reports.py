"""The report of an alert: a zip that repeats the measurement, and the text of an issue to file."""

import tempfile
from contextlib import ExitStack

from django.http import FileResponse, HttpRequest, HttpResponse
from ninja import Router

from farm.accounts.selectors import can_write
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import reports
from farm.api.auth import person
from farm.api.description import describe_file
from farm.base.refusals import NotAllowed
from farm.rules.changes import report

router = Router(tags=["alerts"])
# a report over this size is put on the disk until it is sent
IN_MEMORY_BYTES = 8 << 20


@router.get(
    "/alerts/{int:alert_id}/report.zip",
    openapi_extra=describe_file("application/zip", "everything that repeats the measurement"),
)
def report_zip(request: HttpRequest, alert_id: int) -> FileResponse:
    """The model, its inputs, samples, facts and lock files, and one command that repeats the measurement."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    if not can_write(user, team=alert.team):
        raise NotAllowed(f"Only members can download the report of alert {alert_id}: it contains the model.")
    with ExitStack() as opened:
        file = opened.enter_context(tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES))
        case = reports.write_zip(alert, file)
        file.seek(0)
        # from here on the response closes it
        opened.pop_all()
    return FileResponse(file, as_attachment=True, filename=report.report_name(case), content_type="application/zip")


@router.get("/alerts/{int:alert_id}/issue.md", openapi_extra=describe_file("text/markdown", "the text of an issue"))
def issue_text(request: HttpRequest, alert_id: int) -> HttpResponse:
    """The text of an issue for ONNX Runtime's tracker, in Markdown; the report is attached to it."""
    alert = selectors.alert(person(request), alert_id)
    return HttpResponse(report.render_issue(reports.make_case(alert)), content_type="text/markdown; charset=utf-8")
