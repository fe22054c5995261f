"""The part of a run's page that fills in by itself: asked for again and again, made once for equal rights."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Self, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.utils.cache import patch_cache_control
from django.utils.crypto import salted_hmac
from django.views.decorators.http import condition

from dashboard.cache import kept
from farm.runs.selectors.live import Standstill, standstill_of
from farm.runs.selectors.pages import Revision, is_same
from farm.runs.states import RunState

if TYPE_CHECKING:
    from farm.runs.models import Run


Made = TypeVar("Made")

# so often a page is made of a run that changes meanwhile
TRIES = 3
# stands where the forms of a page carry a token, which is the reader's own
TOKEN = "the-token-of-whoever-reads"


def standstill_at(seen: Revision) -> Standstill:
    """What an open run waits for, asked for once a period for all who look: other runs and nodes decide it too."""
    if seen.state == RunState.FINISHED:
        return Standstill()
    key = (seen.run_id, seen.created_at, seen.revision, int(time.time() / settings.LIVE_PERIOD_S))
    return kept("pieces", "standstill", *key, make=lambda: standstill_of(seen.run_id))


def settled(fetch: Callable[[], "Run"], make: Callable[["Run"], Made]) -> Made:
    """What was made of a run while it did not change: else one part of a page would show another state than the next.
    Of a run that changes all the time, the last try."""
    for _ in range(TRIES):
        row = fetch()
        made = make(row)
        if row.state == RunState.FINISHED or is_same(row):
            break
    return made


def live_part(request: HttpRequest, seen: Revision, still: Standstill, make: Callable[[], str]) -> HttpResponse:
    """What changed, 304 where nothing did, and an order to load the page again once the run has ended: what else stands
    on it is about the finished run. `seen`: the run as this reader may see it now; `still`: what it waits for."""
    if seen.state == RunState.FINISHED:
        return HttpResponse(headers={"HX-Refresh": "true"})
    response = _unless_known(request, seen, still, make)
    patch_cache_control(response, private=True, no_cache=True)
    return response


def _etag(request: HttpRequest, seen: Revision, still: Standstill, make: Callable[[], str]) -> str:
    # of this session alone: the forms carry its token
    return f'"{salted_hmac("dashboard.live_part", f"{request.session.session_key}:{seen}:{still}").hexdigest()}"'


@condition(etag_func=_etag)
def _unless_known(request: HttpRequest, seen: Revision, still: Standstill, make: Callable[[], str]) -> HttpResponse:
    text = kept("pieces", "live", *astuple(seen), still, request.GET.urlencode(), make=make)
    return HttpResponse(with_token(request, text))


def with_token(request: HttpRequest, text: str) -> str:
    """A kept piece of a page, its forms with this reader's own token."""
    return text.replace(TOKEN, get_token(request)) if TOKEN in text else text


TABLES = ("compared", "cells")
# always on the page; the tables of a large run are not, until somebody scrolls to them
ALWAYS = ("charts", "log")
# in the templates of sections, where the digest goes
MARK = 'data-at=""'


@dataclass(frozen=True, slots=True)
class Section:
    """A section as it stands on the page: its element has its name as id, and `at` as `data-at`."""

    name: str
    text: str
    at: str

    @classmethod
    def of(cls, request: HttpRequest, name: str, shown: Mapping[str, object]) -> Self:
        """The section `name`, drawn by its template from what is shown."""
        text = render_to_string(f"dashboard/parts/run_{name}.html", dict(shown), request)
        at = sha256(text.encode()).hexdigest()[:12]
        return cls(name, text.replace(MARK, f'data-at="{at}"', 1), at)

    @property
    def out_of_band(self) -> str:
        """The same as htmx puts it in place of the one that is there."""
        return self.text.replace("data-at=", 'hx-swap-oob="true" data-at=', 1)


def held(request: HttpRequest) -> dict[str, str]:
    """What the page says it has, the state of each section by its name: `have=charts.0a1b2c3d4e5f,log.…`."""
    pairs = (one.partition(".") for one in request.GET.get("have", "").split(","))
    return {name: at for name, _, at in pairs if name in (*ALWAYS, *TABLES)}


def newer(sections: Iterable[Section], have: Mapping[str, str]) -> list[Section]:
    """Those that the page has in another state."""
    return [section for section in sections if have.get(section.name) != section.at]
