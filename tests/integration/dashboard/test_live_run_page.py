"""The page of a run while it is live: what it says, what is sent of it again, and to whom."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from dashboard.views import run as run_page
from farm.accounts.models import Membership, User
from farm.accounts.states import Role
from farm.base.refusals import Missing
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs import selectors
from farm.runs.models import Block, Report, Run
from farm.runs.selectors import outlooks, runs
from farm.runs.selectors.pages import revision_of
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, table_rows, words_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _one_period(settings: Settings) -> None:
    """No test ends in another period than it began in."""
    settings.LIVE_PERIOD_S = 10**9


def test_a_running_run_shows_how_far_it_is_and_asks_for_its_changes(signed_in: Client, begun: Run, node: Node) -> None:
    rows.MadeUpNode(node).measure(begun, most_rounds=3)
    response = signed_in.get(f"/runs/{begun.pk}/")
    words = assert_is_page(response)
    assert "Measuring encoder" in words
    assert words.count("0 of 8 cells ended") == 1
    assert "3 of 8 rounds measured" in words
    text = response.content.decode()
    assert text.count('class="running"') == 8
    assert words.count("3 rounds so far") == 8
    assert "?part=live" in text


def test_a_waiting_run_shows_its_cells_waiting(signed_in: Client, begun: Run) -> None:
    words = assert_is_page(signed_in.get(f"/runs/{begun.pk}/"))
    assert words.count("queued") >= 8
    assert outlooks.outlook_of(begun.pk).words_left in words
    # "started 15 min ago" stood beside "begins in about 35 s"
    assert re.search(r"0 of 8 rounds measured; submitted .{1,40} ago ?; begins in", words)
    assert "measuring" not in words.lower().replace("s of measuring", "")


def test_a_live_run_says_who_measures_what_since_when_and_how_it_ends(signed_in: Client, begun: Run, node: Node):
    rows.MadeUpNode(node).measure(begun, most_rounds=3)
    Block.objects.filter(node=node).update(doing="round 4: onnxruntime==1.31.1, int8-dynamic, arm 2")
    begun.touch()
    text = signed_in.get(f"/runs/{begun.pk}/?part=live").content.decode()
    now = text[text.index('id="now"') : text.index("</section>", text.index('id="now"'))]
    assert "3 of 8 rounds measured</span>" in now
    assert "round 4: onnxruntime==1.31.1, int8-dynamic" in now
    name = begun.blocks.get().arms.get(number=2).name
    assert f'href="/runs/{begun.pk}/cells/{name}/"' in now
    assert "bench-1 measures block 1." in now
    took = r"<time [^>]*data-elapsed[^>]*>[\d.]+ s</time>"
    assert re.search(rf"0 of 8 cells ended; 3 of 8 rounds measured; started {took} ago; time left: about [^<]*\.", text)
    # one state on the whole page
    assert "measuring</span>" in text[: text.index("<h1")]
    assert "queued" not in text[: text.index("<h1")]
    assert "standstill" not in text


def test_a_run_whose_last_block_has_reported_is_settling(signed_in: Client, begun: Run, node: Node) -> None:
    rows.MadeUpNode(node, settles=False).measure(begun)
    text = signed_in.get(f"/runs/{begun.pk}/").content.decode()
    assert "settling</span>" in text[: text.index("<h1")]
    assert text.count('class="running"') == 8
    told = selectors.progress(begun)
    assert (told.state, told.blocks, told.outcome) == ("running", {"reported": 1}, "")
    assert "1 of 1 block settling" in told.words


def test_a_run_that_stands_still_says_why(signed_in: Client, begun: Run, node: Node) -> None:
    held = "another measurement holds this machine since 07:12"
    Node.objects.filter(pk=node.pk).update(doing=held)
    words = assert_is_page(signed_in.get(f"/runs/{begun.pk}/"))
    assert re.search(rf"bench-1: {held} Waiting for [\d.]+ s \.", words)
    assert "left." not in words
    # what keeps it changes without a change of the run
    Node.objects.filter(pk=node.pk).update(doing="", state="offline")
    words = assert_is_page(signed_in.get(f"/runs/{begun.pk}/"))
    assert f"is online. Start bench-1 ({node.last_heard}), or add a node." in words


def test_a_page_that_waits_is_told_what_keeps_its_run_now(
    signed_in: Client, begun: Run, node: Node, settings: Settings
) -> None:
    path = f"/runs/{begun.pk}/?part=live"
    first = signed_in.get(path)
    assert "a node takes the next block within seconds" in first.content.decode()
    Node.objects.filter(pk=node.pk).update(doing="another measurement holds this machine since 07:12")
    settings.LIVE_PERIOD_S = 10**8
    second = signed_in.get(path, headers={"if-none-match": first["ETag"]})
    assert "bench-1: another measurement holds this machine since 07:12" in second.content.decode()
    assert signed_in.get(path, headers={"if-none-match": second["ETag"]}).status_code == 304


def test_a_run_behind_another_one_says_which_and_not_what_the_node_does_for_that(
    signed_in: Client, version: Version, node: Node, owner: User, stranger: User
) -> None:
    first, second = rows.begin_run(version, owner), rows.begin_run(version, owner)
    rows.MadeUpNode(node).measure(first, most_rounds=1)
    Block.objects.filter(node=node).update(doing="round 2: onnxruntime==1.31.1, int8-dynamic, arm 2")
    words = assert_is_page(signed_in.get(f"/runs/{second.pk}/"))
    assert re.search(rf"Queued: bench-1 has been measuring run {first.pk} since \d\d:\d\d UTC\.", words)
    assert "int8-dynamic, arm" not in words
    assert selectors.progress(second).doing == ()
    assert [doing.partition(":")[0] for doing in selectors.progress(first).doing] == ["bench-1"]
    # the number of another team's run is theirs
    Run.objects.filter(pk=first.pk).update(team=stranger.memberships.get().team)
    assert "bench-1 has been measuring a run of another team since" in assert_is_page(
        signed_in.get(f"/runs/{second.pk}/")
    )


def test_a_page_that_fills_in_is_sent_the_sections_that_changed_and_no_others(
    signed_in: Client, begun: Run, node: Node
) -> None:
    page = signed_in.get(f"/runs/{begun.pk}/").content.decode()
    have = [f"{name}.{at}" for name, at in re.findall(r'<section class="panel" id="(\w+)" data-at="(\w+)"', page)]
    assert [one.partition(".")[0] for one in have] == ["charts", "compared", "cells", "log"]

    def sent(have: list[str]) -> list[str]:
        text = signed_in.get(f"/runs/{begun.pk}/", {"part": "live", "have": ",".join(have)}).content.decode()
        assert "have=" not in text
        return re.findall(r'<section class="panel" id="(\w+)" hx-swap-oob="true" data-at', text)

    assert sent(have) == []
    assert sent(have[1:]) == ["charts"]
    rows.MadeUpNode(node).measure(begun, most_rounds=8)
    # eight rounds make comparisons, and figures of cells that have not ended
    assert sent(have) == ["charts", "log", "compared", "cells"]
    assert sent(["cells.x", "../x", "", "no"]) == ["charts", "log", "compared", "cells"]
    whole = signed_in.get(f"/runs/{begun.pk}/")
    assert {row[2] for row in table_rows(whole, "cells-table")} == {"● measuring"}
    words = words_of(whole)
    assert "0 of 8 cells ended; 8 of 8 rounds measured" in words
    assert words.count("8 rounds so far") == 8


def test_the_tables_of_a_large_run_come_again_to_those_who_have_them(
    signed_in: Client, begun: Run, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.MadeUpNode(node).measure(begun, most_rounds=8)
    monkeypatch.setattr("dashboard.views.run_pieces.MAX_CELLS", -1)

    def sent(have: str) -> list[str]:
        text = signed_in.get(f"/runs/{begun.pk}/", {"part": "live", "have": have}).content.decode()
        return re.findall(r'<section class="panel" id="(\w+)" hx-swap-oob="true" data-at', text)

    assert sent("") == ["charts", "log"]
    assert sent("compared.0") == ["charts", "log", "compared"]
    assert 'data-at="' in signed_in.get(f"/runs/{begun.pk}/?part=compared").content.decode()


def test_a_page_of_a_run_that_changes_while_it_is_made_is_made_again(
    signed_in: Client, begun: Run, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = runs.busy_blocks

    def meanwhile(row: Run) -> list[runs.BusyBlock]:
        monkeypatch.undo()
        rows.MadeUpNode(node).measure(begun, most_rounds=1)
        return busy(row)

    monkeypatch.setattr(run_page, "busy_blocks", meanwhile)
    words = assert_is_page(signed_in.get(f"/runs/{begun.pk}/"))
    assert "Measuring encoder" in words
    assert "queued" not in words.lower().replace("block_queued", "")
    assert "Block 1 on bench-1" in words


def test_an_unchanged_run_is_answered_with_304_and_few_queries(
    signed_in: Client, begun: Run, node: Node, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = signed_in.get(f"/runs/{begun.pk}/?part=live")
    assert first.status_code == 200
    assert "no-cache" in first["Cache-Control"]
    assert "private" in first["Cache-Control"]
    # the session, its user, the run with what they may do
    with django_assert_num_queries(3):
        again = signed_in.get(f"/runs/{begun.pk}/?part=live", headers={"if-none-match": first["ETag"]})
    assert again.status_code == 304
    rows.MadeUpNode(node).measure(begun, most_rounds=1)
    changed = signed_in.get(f"/runs/{begun.pk}/?part=live", headers={"if-none-match": first["ETag"]})
    assert changed.status_code == 200
    assert "<html" not in changed.content.decode()
    assert 'hx-swap-oob="true"' in changed.content.decode()
    words_of(changed)


def test_each_reader_of_a_head_that_was_made_once_has_the_rights_and_the_token_of_their_own(
    signed_in: Client, begun: Run, viewer: User
) -> None:
    readers = (signed_in, client_of(viewer), signed_in)
    texts = [one.get(f"/runs/{begun.pk}/").content.decode() for one in readers]
    heads = [text[text.index('id="live"') : text.index('id="map"')] for text in texts]
    tokens = [re.findall(r'name="csrfmiddlewaretoken" value="(\w{64})"', head) for head in heads]
    assert [len(found) for found in tokens] == [1, 0, 1]
    assert ["/cancel/" in head for head in heads] == [True, False, True]
    # masked anew for each answer
    assert tokens[0] != tokens[2]
    assert not any("csrf-token-placeholder" in text for text in texts)


def test_only_the_session_that_saw_a_revision_is_told_that_nothing_is_new(
    signed_in: Client, begun: Run, owner: User, stranger: User
) -> None:
    seen = signed_in.get(f"/runs/{begun.pk}/?part=live")["ETag"]

    def answer(client: Client, tag: str) -> int:
        return client.get(f"/runs/{begun.pk}/?part=live", headers={"if-none-match": tag}).status_code

    forged = seen[:-2] + ('0"' if seen[-2] != "0" else '1"')
    assert answer(signed_in, seen) == 304
    assert answer(signed_in, forged) == 200
    assert answer(client_of(owner), seen) == 200
    assert answer(client_of(stranger), seen) == 404
    assert answer(Client(), seen) == 302


def test_what_is_new_is_made_once_and_given_to_others_with_the_same_rights(
    signed_in: Client,
    begun: Run,
    owner: User,
    viewer: User,
    node: Node,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    everybody = [signed_in, client_of(owner), client_of(viewer)]
    path = f"/runs/{begun.pk}/?part=live"
    tags = [one.get(path)["ETag"] for one in everybody]
    rows.MadeUpNode(node).measure(begun, most_rounds=1)
    first = signed_in.get(path, headers={"if-none-match": tags[0]})
    with django_assert_num_queries(3):
        second = everybody[1].get(path, headers={"if-none-match": tags[1]})
    third = everybody[2].get(path, headers={"if-none-match": tags[2]})
    assert first.status_code == second.status_code == third.status_code == 200
    token = re.compile(r'name="csrfmiddlewaretoken" value="(\w{64})"')
    texts = [token.sub("", one.content.decode()) for one in (first, second, third)]
    assert texts[0] == texts[1]
    assert token.search(second.content.decode()), "the form to cancel has the reader's own token"
    assert "/cancel/" not in texts[2], "who may only look is not given what was made for those who may write"


def test_a_live_part_asks_for_the_rights_that_the_page_asks_for(begun: Run, owner: User, viewer: User, stranger: User):
    chief = User.objects.create_superuser("chief")
    outcasts: tuple[User | AnonymousUser, ...] = (stranger, AnonymousUser())
    for user in (owner, viewer, chief):
        seen = revision_of(user, begun.pk)
        assert (seen.run_id, seen.revision, seen.team_id) == (begun.pk, begun.revision, begun.team_id)
        assert seen.may_write == selectors.can_write_run(user, selectors.run(user, begun.pk))
    for outcast in outcasts:
        for look in (revision_of, selectors.run):
            with pytest.raises(Missing):
                look(outcast, begun.pk)


def test_whoever_lost_a_right_gets_nothing_of_what_was_kept_for_others(
    signed_in: Client, begun: Run, owner: User, viewer: User, stranger: User, node: Node
) -> None:
    path = f"/runs/{begun.pk}/?part=live"
    leaving, demoted = client_of(viewer), client_of(owner)
    tags = {one: one.get(path)["ETag"] for one in (leaving, demoted)}
    rows.MadeUpNode(node).measure(begun, most_rounds=1)
    assert leaving.get(path, headers={"if-none-match": tags[leaving]}).status_code == 200
    assert "/cancel/" in signed_in.get(path).content.decode()
    Membership.objects.filter(user=viewer).delete()
    Membership.objects.filter(user=owner).update(role=Role.VIEWER)
    for asked in (path, f"/runs/{begun.pk}/", f"/runs/{begun.pk}/?part=cells"):
        for reader, status in ((leaving, 404), (client_of(stranger), 404), (Client(), 302)):
            for tag in ("", *tags.values()):
                answer = reader.get(asked, headers={"if-none-match": tag})
                assert (answer.status_code, "encoder" in answer.content.decode()) == (status, False), asked
    # the run is as it was: only what the reader may do has changed, and with it the page
    again = demoted.get(path, headers={"if-none-match": tags[demoted]})
    assert (again.status_code, "/cancel/" in again.content.decode()) == (200, False)
    demoted.logout()
    assert demoted.get(path, headers={"if-none-match": again["ETag"]}).status_code == 302


def test_a_page_that_waited_for_the_end_is_told_to_load_itself_again(signed_in: Client, run: Run) -> None:
    assert signed_in.get(f"/runs/{run.pk}/?part=live")["HX-Refresh"] == "true"


def test_what_is_left_follows_the_clock_while_nothing_of_the_run_changes(signed_in: Client, begun: Run, node: Node):
    def left() -> str:
        found = re.search(r"time left: about \d+ (?:s|min)(?:, longer)?", words_of(signed_in.get(f"/runs/{begun.pk}/")))
        assert found is not None
        return found[0]

    rows.MadeUpNode(node).measure(begun, most_rounds=3)
    before = left()
    # the next round takes ten minutes
    for report in Report.objects.filter(attempt__block__run=begun):
        Report.objects.filter(pk=report.pk).update(received_at=report.received_at - timedelta(minutes=10))
    assert left() != before
