"""The access matrix: every address × everybody who may ask, against the table in `table.py`."""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver

from farm.accounts.models import User
from farm.accounts.services import issue_token
from farm.accounts.states import Scope
from tests.integration.access.table import COLUMNS, Line, lines
from tests.integration.access.world import WEIGHTS, World
from tests.responses import Response

ADMIN = "admin/"
SAFE = ("GET", "HEAD", "OPTIONS")
METHODS = ("GET", "POST", "DELETE")
# what anybody does with their own: tokens, invitations to their own team, their node's hello, signing in and out
OF_ONE_S_OWN = (
    "api/v1/tokens",
    "settings/tokens/",
    "fleet/invite/",
    # a team's admin answers for it
    "api/v1/lendings/<int:lending_id>/<what>",
    "fleet/lendings/<int:lending_id>/<str:what>/",
    # whoever was invited answers
    "api/v1/invitations/<int:invitation_id>/<what>",
    "settings/invitations/<int:invitation_id>/<str:what>/",
    "api/node/v1/hello",
    "sign-out/",
)
WRITES = re.compile(r'(?:INSERT INTO|UPDATE|DELETE FROM) "(\w+)"')
# sessions, when somebody signed in or used a token, the log of who was refused, and whose plan is being made
HARMLESS = {"django_session", "accounts_token", "accounts_auditevent", "accounts_user", "registry_planorder"}
# what a token opens only with the scope `admin`, even to read
NEEDS_ADMIN_SCOPE = ("api/v1/channels/<int:channel_id>/secret",)
# what a token changes only with the scope `nodes` or `admin`
BEYOND_WRITE = (
    "api/v1/nodes",
    "api/v1/trials",
    "api/v1/channels",
    "api/v1/tokens",
    "api/v1/teams",
    "api/v1/invitations",
    "api/v1/users",
)
# what a token opens that may only gate, of what is not its own: all that is missing here is refused
OF_GATES = {
    "POST api/v1/uploads": "400",
    "POST api/v1/uploads/files": "ok",
    "HEAD api/v1/uploads/files/<key>": "ok",
    "PATCH api/v1/uploads/files/<key>": "ok",
    "POST api/v1/uploads/complete": "404",
    "GET api/v1/versions/<int:version_id>": "ok",
    "POST api/v1/plan": "ok",
    "GET api/v1/plans/<int:plan_id>": "ok",
    "POST api/v1/runs": "ok",
    "GET api/v1/runs/<int:run_id>": "404",
    "GET api/v1/runs/<int:run_id>/results": "404",
}
# what describes the APIs answers any method alike
DESCRIPTIONS = ("api/v1/openapi.json", "api/v1/docs", "api/node/v1/openapi.json")
# the sign-in form itself, and what it loads
OPEN_ADMIN = ("admin/login/", "admin/jsi18n/", "admin/logout/")


def addresses() -> Iterator[tuple[str, Any]]:
    """Every route of the farm with its view, as Django's resolver has them."""

    def walk(patterns: list[URLPattern | URLResolver], before: str) -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            route = before + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, route)
            else:
                yield route, pattern.callback

    return walk(get_resolver().url_patterns, "")


def ninja_methods(view: Any) -> set[str]:
    """The methods of an API's address; empty for a page, whose methods are tried instead."""
    for cell in getattr(view, "__closure__", None) or ():
        operations = getattr(cell.cell_contents, "operations", None)
        if operations:
            return {method for operation in operations for method in operation.methods}
    return set()


def word_of(answer: Response) -> str:
    """A status as the table says it."""
    status = answer.status_code
    if status in (301, 302):
        return "sign-in" if "/sign-in/?next=" in answer["Location"] else "moved"
    return "ok" if 200 <= status < 300 else "no" if status == 403 else str(status)


def outcome(world: World, line: Line, who: str, client: Client | None = None) -> str:
    """What somebody gets, with everything undone that it changed."""
    asking = client or world.client(who, line.route)
    cookies = deepcopy(asking.cookies)
    with transaction.atomic():
        answer = world.ask(line, who=who, client=asking)
        word = word_of(answer)
        # files and streams are closed here; Django's own clean-up would close the database too
        request_finished.disconnect(close_old_connections)
        answer.close()
        request_finished.connect(close_old_connections)
        transaction.set_rollback(True)
    # whoever signed in or out is as before
    asking.cookies = cookies
    return word


def test_every_address_has_a_line() -> None:
    declared = {(line.method, line.route) for line in lines()}
    routes = {route for _, route in declared}
    for route, view in addresses():
        if route.startswith(ADMIN):
            continue
        assert route in routes, f"{route} is not in tests/integration/access/table.py: say who may open it"
        for method in ninja_methods(view):
            assert (method, route) in declared, f"{method} {route} is not in tests/integration/access/table.py"


def test_no_line_is_about_an_address_that_is_gone() -> None:
    known = {route for route, _ in addresses()}
    assert [line.route for line in lines() if line.route not in known] == []


def test_no_line_stands_twice() -> None:
    keys = [(line.method, line.route) for line in lines()]
    assert sorted(set(keys)) == sorted(keys)


# some eight hundred requests; a test of this length is still one table, and the world is made once
@pytest.mark.timeout(300)
def test_everybody_gets_what_the_table_says(world: World) -> None:
    wrong = []
    for who in COLUMNS:
        for line in lines():
            word = outcome(world, line, who)
            if word != line.expected[who]:
                wrong.append(f"{who} gets {word}, not {line.expected[who]}: {line.method} {line.route}")
    assert not wrong, "\n".join(wrong)


def test_whoever_may_not_write_changes_nothing(world: World) -> None:
    """Not even where a page answers with another page: a viewer, a stranger and nobody write no row of the team's."""
    for who in ("viewer", "stranger", "nobody", "other"):
        for line in lines():
            if line.method in SAFE or line.route in OF_ONE_S_OWN:
                continue
            with CaptureQueriesContext(connection) as captured:
                outcome(world, line, who)
            written = {match[1] for query in captured if (match := WRITES.match(query["sql"]))} - HARMLESS
            assert not written, f"{who}, {line.method} {line.route}: {written}"


def test_only_members_and_the_node_that_measures_it_get_a_byte_of_a_model(world: World) -> None:
    """Every address that is read, a share link's page too: a viewer gets shapes, names and figures, and no weights."""
    reading = [line for line in lines() if line.method == "GET"]
    got = {who: {line.route for line in reading if WEIGHTS in read(world, line, who)} for who in COLUMNS}
    part, file = "api/v1/divergences/<int:divergence_id>/part.zip", "api/node/v1/files/<sha256>"
    wanted = {"owner": {part}, "mate": {part}, "node": {file}}
    assert got == {who: wanted.get(who, set()) for who in COLUMNS}


def read(world: World, line: Line, who: str) -> bytes:
    """The whole of an answer, streamed or not."""
    answer = world.ask(line, who=who)
    body: bytes = answer.getvalue() if answer.streaming else answer.content
    # files are closed here; Django's own clean-up would close the database too
    request_finished.disconnect(close_old_connections)
    answer.close()
    request_finished.connect(close_old_connections)
    return body


def test_methods_without_a_line_are_not_answered(world: World) -> None:
    """What is not in the table does nothing, even for the owner."""
    declared = {(line.method, line.route) for line in lines()}
    for route in sorted({route for _, route in declared if route not in DESCRIPTIONS}):
        for method in METHODS:
            if (method, route) not in declared:
                word = outcome(world, Line(method, route, {}), "owner")
                assert word in ("405", "404"), f"{method} {route} gives {word}"


def test_a_browser_changes_nothing_without_the_page_s_own_token(world: World, owner: User) -> None:
    """Every address that changes something refuses a session without the CSRF token."""
    for line in lines():
        if line.method in SAFE or line.route.startswith("api/node/"):
            continue
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(owner)
        word = outcome(world, line, "owner", browser)
        assert word == "no", f"{line.method} {line.route} gives {word}"


def test_a_token_that_may_only_read_changes_nothing(world: World, owner: User) -> None:
    _, secret = issue_token(owner, [Scope.READ])
    for line in lines():
        if not line.route.startswith("api/v1/") or line.expected["nobody"] != "401":
            continue
        word = outcome(world, line, "owner", Client(headers={"authorization": f"Bearer {secret}"}))
        may_read = line.method in SAFE and line.route not in NEEDS_ADMIN_SCOPE
        wanted = line.expected["owner"] if may_read else "no"
        assert word == wanted, f"{line.method} {line.route} gives {word}"


def test_a_token_that_uploads_and_runs_lets_no_machine_in_and_redirects_no_message(world: World, owner: User) -> None:
    """As in CI: its thief gets neither nodes, nor channels, nor other tokens, though the owner may have all of them."""
    _, secret = issue_token(owner, [Scope.READ, Scope.WRITE])
    for line in lines():
        if not line.route.startswith("api/v1/") or line.expected["nobody"] != "401":
            continue
        word = outcome(world, line, "owner", Client(headers={"authorization": f"Bearer {secret}"}))
        beyond = (line.method not in SAFE and line.route.startswith(BEYOND_WRITE)) or line.route in NEEDS_ADMIN_SCOPE
        wanted = "no" if beyond else line.expected["owner"]
        assert word == wanted, f"{line.method} {line.route} gives {word}"


def test_a_token_that_may_only_gate_opens_what_a_gate_needs_and_no_other_address(world: World, owner: User) -> None:
    _, secret = issue_token(owner, [Scope.GATE], team=world.run.team.name)
    found = {}
    for line in lines():
        if line.route.startswith("api/v1/") and line.expected["nobody"] == "401":
            word = outcome(world, line, "owner", Client(headers={"authorization": f"Bearer {secret}"}))
            found[f"{line.method} {line.route}"] = word
    assert {address: word for address, word in found.items() if word != "no"} == OF_GATES


def test_the_admin_is_for_administrators_of_the_installation(world: World) -> None:
    """Every address of Django's admin sends everybody else to its sign-in, whatever their role in a team."""
    world.names |= {"object_id": 1, "content_type_id": 1, "app_label": "accounts", "id": 1, "url": "x"}
    clients = {who: world.client(who, ADMIN) for who in ("owner", "nobody")}
    for route, _ in addresses():
        if not route.startswith(ADMIN) or route in OPEN_ADMIN or "(" in route:
            continue
        address = Line("GET", route.replace("<path:", "<"), {})
        for who, client in clients.items():
            answer = world.ask(address, who=who, client=client)
            assert answer.status_code == 302, f"{route} gives {answer.status_code} to {who}"
            assert answer["Location"].startswith("/admin/login/?next="), route
