"""Pages that ask again and again whether anything is new: for a run that is as it was, one query decides."""

import re
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotModified
from django.utils.cache import patch_cache_control
from django.utils.crypto import salted_hmac
from django.utils.decorators import sync_and_async_middleware

from farm.runs.selectors.pages import revision_and_state

SALT = "dashboard.polling"
# seconds between two questions of a page that shows a run being measured; a round of it takes longer
PERIOD_S = 4
RUN = re.compile(r"/runs/(\d{1,18})/")
Answering = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


def etag_of(request: HttpRequest, run_id: int, revision: int, state: str) -> str:
    """What a run at this revision is called for this reader's session alone.

    Whoever sends it back has seen that very revision, so that no question of rights has to be asked to say that
    nothing is new. It cannot be made up: it is signed with the farm's key.
    """
    session = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    signature = salted_hmac(SALT, f"{session}:{run_id}:{revision}:{state}", algorithm="sha256").hexdigest()[:32]
    return f'W/"run-{run_id}-{revision}-{state}-{signature}"'


@sync_and_async_middleware
def unchanged_first(get_response: Answering) -> Answering:
    """Middleware that answers 304 before anything else is looked at, to a reader who has this revision of a run.

    It stands before sessions, addresses and everything else that a page needs: nine of ten such questions end here.
    """
    if iscoroutinefunction(get_response):
        # the gateway for nodes, which has no pages
        return get_response
    return lambda request: _unchanged(request) or get_response(request)


def _unchanged(request: HttpRequest) -> HttpResponseBase | None:
    given = request.META.get("HTTP_IF_NONE_MATCH", "")
    asked = RUN.fullmatch(request.path_info) if given and request.method == "GET" else None
    if asked is None or request.GET.get("part") != "live":
        return None
    run_id = int(asked[1])
    found = revision_and_state(run_id)
    if found is None or given != etag_of(request, run_id, *found):
        return None
    response = HttpResponseNotModified(headers={"ETag": given})
    patch_cache_control(response, private=True, no_cache=True)
    return response
