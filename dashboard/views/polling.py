"""Pages that ask again and again whether anything is new: for a run that is as it was, one query decides."""

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotModified
from django.utils.cache import patch_cache_control
from django.utils.crypto import salted_hmac

from farm.runs.selectors.pages import revision_and_state

SALT = "dashboard.polling"
View = Callable[[HttpRequest, int], HttpResponseBase]


def etag_of(request: HttpRequest, run_id: int, revision: int, state: str) -> str:
    """What a run at this revision is called for this reader's session alone.

    Whoever sends it back has seen that very revision, so that no question of rights has to be asked to say that
    nothing is new. It cannot be made up: it is signed with the farm's key.
    """
    session = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    signature = salted_hmac(SALT, f"{session}:{run_id}:{revision}:{state}", algorithm="sha256").hexdigest()[:32]
    return f'W/"run-{run_id}-{revision}-{state}-{signature}"'


def unchanged_first(view: View) -> View:
    """Answers 304 before anything else is looked at, to a reader who has this revision of the run already."""

    @wraps(view)
    def answered(request: HttpRequest, run_id: int) -> HttpResponseBase:
        given = request.headers.get("If-None-Match", "")
        if request.GET.get("part") != "live" or not given:
            return view(request, run_id)
        found = revision_and_state(run_id)
        if found is None or given != etag_of(request, run_id, *found):
            return view(request, run_id)
        response = HttpResponseNotModified(headers={"ETag": given})
        patch_cache_control(response, private=True, no_cache=True)
        return response

    return answered
