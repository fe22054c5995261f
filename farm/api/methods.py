"""Makes the answer 405 of the API look like all of its errors: JSON with a sentence."""

from django.http import HttpRequest, HttpResponseBase

from farm.api.middleware import AnswerMiddleware
from farm.base.errors import API_ROOT, make_problem_response


class MethodNotAllowedMiddleware(AnswerMiddleware):
    """Turns every 405 of the API into a JSON problem with a sentence, and keeps its header `Allow`."""

    def change_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return a JSON problem in place of a 405 below /api/, and any other answer as it is."""
        if response.status_code != 405 or not request.path.startswith(API_ROOT):
            return response
        allowed = response.headers.get("Allow", "")
        hint = f"It takes {allowed}." if allowed else ""
        problem = make_problem_response(405, f"{request.path} takes no {request.method}.", hint=hint)
        problem.headers["Allow"] = allowed
        return problem
