"""Turns exceptions into JSON answers {"detail": a sentence, "code": …, "hint": …}, never a stack trace.

The log has what the answers hide: failures of the database, values that it refused, and unexpected errors.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, TooManyFilesSent
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.views import defaults
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from farm.base.refusals import Refusal
from farm.contract.texts import strip_pydantic_prefix

log = logging.getLogger(__name__)
API_ROOT = "/api/"
CODES = {401: "not_signed_in", 403: "not_allowed", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
SIGN_IN = "Send a token: Authorization: Bearer ofk_… (make one on the settings page), or sign in."
DATABASE_AWAY = "The farm's database is not responding; retry in a few seconds."
# by SQLSTATE; None stands for values that Django refuses before the database sees them, such as NUL
NOT_STORABLE = {
    None: "characters that cannot be stored, such as NUL",
    "22001": "a text that is too long to be stored",
    "22003": "a number that is out of range",
}
BROKEN = "Internal server error; see the farm's log."


def make_problem_response(status: int, detail: str, *, code: str = "", hint: str = "") -> JsonResponse:
    """Make the JSON answer to a request that is refused.

    An empty `code` becomes that of the status, or `invalid`; an empty `hint` is left out.
    """
    body = {"detail": detail, "code": code or CODES.get(status, "invalid")}
    return JsonResponse(body | ({"hint": hint} if hint else {}), status=status)


def install_error_handlers(api: NinjaAPI) -> None:
    """Register an error answer for every kind of exception, so that no request to this API ends in a stack trace."""
    answers: dict[type[Exception], Callable[..., HttpResponse]] = {
        Refusal: answer_refusal,
        ValidationError: answer_validation_error,
        AuthenticationError: answer_missing_sign_in,
        HttpError: answer_http_error,
        Http404: answer_not_found,
        PermissionDenied: answer_forbidden,
        MultiPartParserError: answer_unreadable_form,
        SuspiciousOperation: answer_unreadable_request,
        DataError: answer_unstorable_value,
        OperationalError: answer_database_failure,
        InterfaceError: answer_database_failure,
        Exception: answer_unexpected_error,
    }
    for raised, answer in answers.items():
        api.exception_handler(raised)(answer)


def answer_refusal(request: HttpRequest, raised: Refusal) -> HttpResponse:
    """Answer with the refusal's own status, words and headers."""
    answer = make_problem_response(raised.status, raised.detail, code=raised.code, hint=raised.hint)
    for name, value in raised.headers.items():
        answer[name] = value
    return answer


def answer_validation_error(request: HttpRequest, raised: ValidationError) -> HttpResponse:
    """Answer 422 with the first three errors, each with the name of its field."""
    return make_problem_response(
        422, "; ".join(_describe_error(error) for error in raised.errors[:3]) + ".", code="invalid"
    )


def answer_missing_sign_in(request: HttpRequest, raised: AuthenticationError) -> HttpResponse:
    return make_problem_response(401, "This needs a valid token or a signed-in browser.", hint=SIGN_IN)


def answer_http_error(request: HttpRequest, raised: HttpError) -> HttpResponse:
    """Answer with the error's own status, or as the Refusal that caused it."""
    # ninja hides a Refusal that is raised while the body is parsed behind its own "cannot parse"
    if isinstance(raised.__cause__, Refusal):
        return answer_refusal(request, raised.__cause__)
    return make_problem_response(raised.status_code, f"{str(raised).rstrip('.')}.")


def answer_not_found(request: HttpRequest, raised: Exception) -> HttpResponse:
    return make_problem_response(404, f"There is nothing at {request.path} that you can access.")


def answer_forbidden(request: HttpRequest, raised: Exception) -> HttpResponse:
    return make_problem_response(403, "You do not have permission to do this.")


def answer_unreadable_form(request: HttpRequest, raised: Exception) -> HttpResponse:
    return make_problem_response(400, "The form could not be read; send it as multipart/form-data.", code="bad_form")


def answer_unstorable_value(request: HttpRequest, raised: Exception) -> HttpResponse:
    """Answer 422 for a value that the database refused, and say what it was without quoting it."""
    log.info("%s %s: %s", request.method, request.path, raised)
    state = getattr(raised.__cause__, "sqlstate", None)
    problem = NOT_STORABLE.get(state, "a value that cannot be stored")
    return make_problem_response(422, f"The request contains {problem}.", code="invalid")


def answer_unreadable_request(request: HttpRequest, raised: Exception) -> HttpResponse:
    """Answer 413 for too many files or too long a body, and 400 for any other request that Django cannot read."""
    if isinstance(raised, TooManyFilesSent):
        return make_problem_response(413, "Too many files in one upload; send at most 64.", code="too_many_files")
    if isinstance(raised, RequestDataTooBig):
        return make_problem_response(413, "The request's body is too large for this address.")
    return make_problem_response(400, "The request could not be read.", code="bad_request")


def answer_database_failure(request: HttpRequest, raised: Exception) -> HttpResponse:
    log.error("%s %s: the database does not answer: %s", request.method, request.path, raised)
    return make_problem_response(503, DATABASE_AWAY, code="database_away")


def answer_unexpected_error(request: HttpRequest, raised: Exception) -> HttpResponse:
    log.exception("%s %s failed", request.method, request.path, exc_info=raised)
    return make_problem_response(500, BROKEN, code="internal")


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, as Django's handler404: in JSON below /api/, with an HTML page elsewhere."""
    if request.path.startswith(API_ROOT):
        return answer_not_found(request, Http404())
    return defaults.page_not_found(request, exception)


def bad_address(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400 for a request that reached no view, as Django's handler400: in JSON below /api/, else with a page."""
    if request.path.startswith(API_ROOT):
        return make_problem_response(400, "The request's address or headers could not be read.", code="bad_request")
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, as Django's handler500: in JSON below /api/, with a page elsewhere.

    Django has logged the exception.
    """
    if request.path.startswith(API_ROOT):
        return make_problem_response(500, BROKEN, code="internal")
    return defaults.server_error(request)


def _describe_error(error: Mapping[str, Any]) -> str:
    """Describe one entry of pydantic's error list: the field, and what is wrong with it."""
    where = ".".join(str(part) for part in error.get("loc", ()) if part not in ("body", "query", "path", "payload"))
    message = strip_pydantic_prefix(str(error.get("msg", "is not valid"))).rstrip(".")
    return f"{where}: {message}" if where else message
