"""Every page that links lead to, over a farm in which little went well: no stray value, stack trace or empty chart."""

import json
import re
from collections import deque
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.alerts.models import Channel, Watch
from farm.alerts.services.channels import create_channel
from farm.alerts.states import AlertState, RoundState
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth, NodeState
from farm.registry.models import Model
from farm.registry.states import VersionState
from farm.runs.services import cancel_run, settle
from farm.runs.services.share_links import share
from tests.integration.alerts.driving import make_watch
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.pages import assert_is_page
from tests.responses import Response

HREF = re.compile(r'\s(?:href|hx-get)="([^"]+)"')
FIGURE = re.compile(r"<figure.*?</figure>", re.DOTALL)
TITLE = re.compile(r"<h3[^>]*>(.*?)</h3>", re.DOTALL)
DRAWING = re.compile(r'<script type="application/json" id="figure-[^"]*">(.*?)</script>', re.DOTALL)
# one of these at a time: all of them together would be the same page hundreds of times
KEPT = ("chart", "along", "state", "by", "part", "preset", "days", "distribution", "every")
# pages with tests of their own, about files that these rows do not have
ELSEWHERE = ("/static/", "/admin/", "/api/")
LONG = "ein-Name-ohne-Ende-" * 5
UNICODE = "模型 <b>&amp; ‮gnol‬ 🚀 'ñ' %00"
PARTLY = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"], "provider": ["cpu", "cuda"], "batch": [1]}}
MOST_PAGES = 400


@pytest.fixture
def farm(team: Team, owner: User) -> list[str]:
    """Refused, failed, cancelled, wrong, displaced, unmeasured cells; nodes, watches, alerts and names of all sorts."""
    node = rows.make_node(team, owner, name="n" * 64)
    named = rows.make_version(team, owner)
    awkward = "</script><script>alert(1)</script> " + UNICODE * 4
    Model.objects.filter(pk=named.model_id).update(name=UNICODE, description=awkward, labels=[UNICODE])
    named.refresh_from_db()
    long = rows.make_version(team, owner, name=LONG)
    for state in (VersionState.REJECTED, VersionState.PENDING, VersionState.INSPECTING):
        rows.make_version(team, owner, name=f"model {state}", state=state)
    Model.objects.create(team=team, name="no version at all", created_by=owner)
    rows.finished_run(long, node, owner)
    rows.finished_run(named, node, owner, matrix=PARTLY, crashes=range(16))
    rows.finished_run(named, node, owner, crashes=[1, 5])
    rows.finished_run(named, node, owner, matrix=PARTLY, wrong=True, elsewhere=True)
    rows.finished_run(named, node, owner, matrix=PARTLY)
    begun = rows.begin_run(long, owner)
    rows.MadeUpNode(rows.make_node(team, owner, name="busy")).measure(begun, most_rounds=1)
    cancel_run(run=rows.begin_run(long, owner), by=owner)
    half = rows.begin_run(named, owner, matrix=PARTLY)
    rows.MadeUpNode(rows.make_node(team, owner, name="half")).measure(half, most_rounds=2)
    cancel_run(run=half, by=owner)
    settle(block_id=half.blocks.get().pk, attempt=1)
    rows.begin_run(named, owner, matrix=PARTLY)
    _nodes(team, owner)
    _watches(team, owner, named, long)
    subjects = {"run": f"{begun.pk}", "model": f"{named.model_id}", "cell": f"{half.pk}:c1"}
    links = [share(kind=kind, subject=subject, by=owner)[1] for kind, subject in subjects.items()]
    return [urlsplit(link).path for link in links]


def _nodes(team: Team, owner: User) -> None:
    for health in NodeHealth:
        rows.make_node(team, owner, name=f"is-{health}", health=health)
    facts = {"hostname": "bare", "os": "", "arch": ""}
    bare: dict[str, Any] = {"facts_json": facts, "tags": {}, "providers": [], "runtimes": [], "seen_at": None}
    rows.make_node(team, owner, name="bare")
    Node.objects.filter(name="bare").update(**bare, state=NodeState.OFFLINE, owner=None)


def _watches(team: Team, owner: User, named: Any, long: Any) -> None:
    make_watch(long, owner, name="never ran")
    watch = make_watch(named, owner)
    Watch.objects.filter(pk=watch.pk).update(name=UNICODE)
    watching.bare_round(watch, named, state=RoundState.MEASURING, judged_at=None, sentence="")
    watching.long_series(watch, named, 1, step_at=9)
    watching.long_series(watch, named, 30, step_at=9, series="s2", label="another one")
    watching.bare_alert(watch, named)
    watching.bare_alert(watch, named, bad="1.31.1", state=AlertState.RESOLVED)
    watching.bare_alert(watch, named, node="", bad="1.32.0", state=AlertState.INFRA, sentence="No node took its block.")
    made = create_channel(team=team, by=owner, name="hook", kind="webhook", target="https://example.org/hook")
    Channel.objects.filter(pk=made.pk).update(name=UNICODE)


def asked(address: str) -> str:
    """The address without what only repeats a page: its fragment, and all but one of the parameters that choose."""
    parts = urlsplit(address)
    pairs = parse_qsl(parts.query)
    chosen = [pair for pair in pairs if pair[0] in KEPT]
    query = urlencode([pair for pair in pairs if pair[0] == "cells"] + (chosen if len(chosen) == 1 else []))
    return f"{parts.path}?{query}" if query else parts.path


def is_elsewhere(path: str) -> bool:
    return path.startswith(ELSEWHERE) or "/graph/" in path


def is_page(answer: Response) -> bool:
    return answer.headers.get("Content-Type", "").startswith("text/html")


def assert_figures_say_something(page: str, path: str) -> None:
    """Each has a sentence; where it is drawn, something is drawn."""
    for figure in FIGURE.findall(page):
        title = TITLE.search(figure)
        assert title, path
        assert len(unescape(title[1]).split()) > 1, f"{path}: {title[1]!r} is no sentence"
        for drawing in DRAWING.findall(figure):
            drawn = json.loads(
                drawing.replace("\\u003c", "<"), parse_constant=lambda word: pytest.fail(f"{path}: {word}")
            )
            assert drawn["data"], path


def test_no_page_says_none_breaks_or_shows_an_empty_chart(farm: list[str], owner: User) -> None:
    client = Client()
    client.force_login(owner)
    began = timezone.now()
    waiting = deque(
        ["/", "/compare/", "/runs/new/", "/settings/shares/", "/settings/audit/", "/fleet/runtimes/", *farm]
    )
    seen = set(waiting)
    pages = 0
    while waiting:
        path = waiting.popleft()
        # the settings of somebody who administers no farm lead on
        answer = client.get(path, follow=path == "/settings/")
        assert answer.status_code < 500, path
        if not is_page(answer):
            if answer.streaming:  # any other was closed by the client, and once more would close the database
                answer.close()
            continue
        pages += 1
        assert answer.status_code == 200, f"a link led to {path}, which answered {answer.status_code}"
        page = answer.content.decode()
        assert "alert(1)</script>" not in page, path
        # a document may show what a template looks like
        if "<title>" in page and not path.startswith("/docs/"):
            assert_is_page(answer)
        assert_figures_say_something(page, path)
        for href in HREF.findall(page):
            address = urlsplit(urljoin(f"http://testserver{path}", unescape(href)))
            if address.netloc != "testserver" or is_elsewhere(address.path):
                continue
            found = asked(address.geturl().removeprefix("http://testserver"))
            if "as=" not in address.query and found not in seen:
                seen.add(found)
                waiting.append(found)
        assert pages <= MOST_PAGES, "the crawl does not end: leave more parameters out"
    assert pages >= 80, (pages, timezone.now() - began)
