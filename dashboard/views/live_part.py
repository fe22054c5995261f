"""The part of a run's page that fills in by itself: asked for again and again, made once for equal rights."""

from collections.abc import Callable
from dataclasses import astuple

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.utils.cache import patch_cache_control
from django.utils.crypto import salted_hmac
from django.views.decorators.http import condition

from dashboard.cache import kept
from farm.runs.selectors.pages import Revision
from farm.runs.states import RunState

# seconds between two questions of a page that shows a run being measured; a round of it takes longer
PERIOD_S = 5
# stands where the forms of a page carry a token, which is the reader's own
TOKEN = "the-token-of-whoever-reads"


def live_part(request: HttpRequest, seen: Revision, make: Callable[[], str]) -> HttpResponse:
    """What changed, 304 where nothing did, and an order to load the page again once the run has ended: its charts and
    tables are about the finished run. `seen`: the run as this reader may see it now."""
    if seen.state == RunState.FINISHED:
        return HttpResponse(headers={"HX-Refresh": "true"})
    response = _unless_known(request, seen, make)
    patch_cache_control(response, private=True, no_cache=True)
    return response


def _etag(request: HttpRequest, seen: Revision, make: Callable[[], str]) -> str:
    # of this session alone: the forms carry its token
    return f'"{salted_hmac("dashboard.live_part", f"{request.session.session_key}:{seen}").hexdigest()}"'


@condition(etag_func=_etag)
def _unless_known(request: HttpRequest, seen: Revision, make: Callable[[], str]) -> HttpResponse:
    text = kept("pieces", "live", *astuple(seen), request.GET.urlencode(), make=make)
    return HttpResponse(with_token(request, text))


def with_token(request: HttpRequest, text: str) -> str:
    """A kept piece of a page, its forms with this reader's own token."""
    return text.replace(TOKEN, get_token(request)) if TOKEN in text else text
