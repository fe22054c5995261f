"""Pages that ask again and again whether anything is new: one query decides, and what is new is made once for all."""

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotModified
from django.middleware.csrf import CsrfViewMiddleware, get_token
from django.utils.cache import patch_cache_control
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.decorators import sync_and_async_middleware

from dashboard.reading.kept import Kept
from farm.runs.selectors.pages import revision_and_state
from farm.runs.states import RunState

if TYPE_CHECKING:
    from farm.runs.models import Run

SALT = "dashboard.polling"
# seconds between two questions of a page that shows a run being measured; a round of it takes longer
PERIOD_S = 5
# seconds for which a page goes on to show what is new before its reader's rights are asked about again
RIGHTS_HOLD_S = 60
PARTS_KEPT = 64
# stands where the forms of a page carry a token, which is the reader's own
TOKEN = "the-token-of-whoever-reads"
RUN = re.compile(r"/runs/(\d{1,18})/")
ETAG = re.compile(r'W/"(\d{1,18})-(\d{1,18})-([a-z]{1,16})-([01])-(\d{1,12})-([0-9a-f]{32})"')
Answering = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


@dataclass(frozen=True)
class Seen:
    """What a page shows of a run, and what its reader might do when that was asked: `asked_at`, in seconds since 1970.

    It travels as the page's ETag, signed with the farm's key for this reader's session alone: it cannot be made up.
    """

    run_id: int
    revision: int
    state: str
    may_write: bool
    asked_at: int

    @classmethod
    def now(cls, row: "Run", *, may_write: bool) -> Self:
        """Of a reader whose rights were asked this moment."""
        return cls(row.pk, row.revision, row.state, may_write, int(time.time()))

    @classmethod
    def of(cls, request: HttpRequest) -> Self | None:
        """What this request says of itself; None where it says nothing, or what the farm never gave to this session."""
        given = request.META.get("HTTP_IF_NONE_MATCH", "")
        words = ETAG.fullmatch(given)
        if words is None:
            return None
        found = cls(int(words[1]), int(words[2]), words[3], words[4] == "1", int(words[5]))
        return found if constant_time_compare(given, found.etag(request)) else None

    def etag(self, request: HttpRequest) -> str:
        """As a header."""
        session = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        said = f"{self.run_id}-{self.revision}-{self.state}-{int(self.may_write)}-{self.asked_at}"
        return f'W/"{said}-{salted_hmac(SALT, f"{session}:{said}", algorithm="sha256").hexdigest()[:32]}"'

    @property
    def is_fresh(self) -> bool:
        """Whether the rights were asked recently; a clock that was set back makes them old."""
        return 0 <= time.time() - self.asked_at < RIGHTS_HOLD_S


# by revision, state, beginning of the run, rights and address: the changed part of a page, with TOKEN in its forms
_PARTS: Kept[str] = Kept(PARTS_KEPT)


def changed_part(request: HttpRequest, row: "Run", make: Callable[[], str], *, may_write: bool) -> HttpResponse:
    """The part of a run's page that changes, made once for all who may do the same."""
    seen = Seen.now(row, may_write=may_write)
    return _answer(request, seen, _PARTS.get(_key(request, seen, row.created_at), make))


def with_token(request: HttpRequest, text: str) -> str:
    """A kept piece of a page, its forms with this reader's own token."""
    return text.replace(TOKEN, get_token(request)) if TOKEN in text else text


@sync_and_async_middleware
def unchanged_first(get_response: Answering) -> Answering:
    """Middleware that answers readers of a run's page before anything else is looked at.

    It stands before sessions, addresses and everything else that a page needs. Who has this revision is told so (304).
    Who has an older one gets what has been made for others of the same rights, if theirs were asked a moment ago.
    Everybody else goes the whole way, where rights are asked.
    """
    if iscoroutinefunction(get_response):
        # the gateway for nodes, which has no pages
        return get_response
    return lambda request: _known(request) or get_response(request)


def _known(request: HttpRequest) -> HttpResponseBase | None:
    asked = RUN.fullmatch(request.path_info) if request.method == "GET" else None
    if asked is None or request.GET.get("part") != "live":
        return None
    seen = Seen.of(request)
    found = revision_and_state(seen.run_id) if seen is not None and seen.run_id == int(asked[1]) else None
    if seen is None or found is None:
        return None
    revision, state, began = found
    if (seen.revision, seen.state) == (revision, state):
        response = HttpResponseNotModified(headers={"ETag": request.META["HTTP_IF_NONE_MATCH"]})
        patch_cache_control(response, private=True, no_cache=True)
        return response
    if state == RunState.FINISHED or not seen.is_fresh or settings.CSRF_COOKIE_NAME not in request.COOKIES:
        return None
    now = replace(seen, revision=revision, state=state)
    text = _PARTS.known(_key(request, now, began))
    if text is None:
        return None
    # reads the cookie, which the token of a form is made of
    CsrfViewMiddleware(_never).process_request(request)
    return _answer(request, now, text)


def _never(request: HttpRequest) -> HttpResponseBase:
    raise AssertionError("only the cookie is read")


def _key(request: HttpRequest, seen: Seen, began: Any) -> tuple[Any, ...]:
    return (seen.run_id, seen.revision, seen.state, began, seen.may_write, request.GET.urlencode())


def _answer(request: HttpRequest, seen: Seen, text: str) -> HttpResponse:
    response = HttpResponse(with_token(request, text), headers={"ETag": seen.etag(request)})
    # what the middleware behind this one would add
    response.headers["Content-Length"] = str(len(response.content))
    patch_cache_control(response, private=True, no_cache=True)
    return response
