"""Lists of runs and models: figures in columns, sorted and filtered by their address, rows that can be chosen."""

import re
from copy import copy
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.views import lists
from farm.accounts.models import Team, User
from farm.alerts.models import WatchRound
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.presenting.key_results import KeyResult
from farm.rules.wording.vocabulary import sign_of
from farm.runs.models import Run
from farm.runs.services import backfill_leads
from farm.runs.states import RunReason
from tests.integration.alerts.driving import make_watch
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, table_rows, words_of

pytestmark = pytest.mark.django_db


def lead(**changes: object) -> dict[str, object]:
    known = {"verdict": "slower", "ratio": 1.24, "low": 1.21, "high": 1.26, "level": 0.95, "rounds": 8,
             "axis": "runtime", "step": "1.29.0 → 1.31.1",
             "where": "CPU, fp32, batch 1, 1 thread", "node": "bench-1"}  # fmt: skip
    return {**known, **changes}


@pytest.fixture
def listed(version: Version, owner: User, team: Team) -> list[Run]:
    """Three runs as they are once they are concluded: slower, faster, and one of an older release without figures."""
    other = rows.make_version(team, owner, name="decoder")
    known = {"team": team, "requested_by": owner, "matrix": {}, "state": "finished", "outcome": "complete"}
    return [
        Run.objects.create(**known, version=one, cell_count=count, lead=figures, is_concluded=True)
        for one, count, figures in (
            (version, 8, lead()),
            (other, 2, lead(verdict="faster", ratio=0.34, low=0.33, high=0.36, step="fp32 → int8-dynamic")),
            (other, 4, None),
        )
    ]


def test_a_run_is_a_row_of_figures_and_no_paragraph(signed_in: Client, run: Run) -> None:
    response = signed_in.get("/runs/")
    assert "95 % interval" not in assert_is_page(response)
    row = table_rows(response, "runs")[0]
    known = KeyResult.model_validate(run.lead)
    assert row[:4] == [f"run {run.pk}", "encoder v1", "✓ complete", f"{sign_of(known.verdict).mark} {known.verdict}"]
    # the figures of the headline, which says the same in words
    assert known.change.text in run.headline
    assert f"95 % interval {known.change.interval}" in run.headline
    assert row[4] == known.change.text
    assert 'title="95 %, 8 rounds"' in response.content.decode()
    assert row[6].startswith(known.step)
    assert "on bench-1" in row[6]
    assert f'title="{run.headline}'[:60] in response.content.decode()


@pytest.mark.parametrize(
    ("sort", "order"),
    [("", [3, 2, 1]), ("id", [1, 2, 3]), ("-id", [3, 2, 1]), ("change", [2, 1, 3]), ("-change", [1, 2, 3]),
     ("cells", [2, 3, 1]), ("-cells", [1, 3, 2]), ("model", [3, 2, 1]), ("verdict", [2, 1, 3]), ("nonsense", [3, 2, 1]),
     ("-", [3, 2, 1]), ("matrix", [3, 2, 1]), ("' OR 1=1", [3, 2, 1])],
)  # fmt: skip
def test_runs_are_sorted_by_the_address_and_what_is_not_known_stands_last(
    signed_in: Client, listed: list[Run], sort: str, order: list[int]
) -> None:
    response = signed_in.get("/runs/", {"sort": sort})
    found = [row[0] for row in table_rows(response, "runs")]
    assert found == [f"run {listed[place - 1].pk}" for place in order]


def test_a_head_leads_to_the_other_order_and_keeps_the_filters(signed_in: Client, listed: list[Run]) -> None:
    text = signed_in.get("/runs/?sort=-change&state=complete&page=1").content.decode()
    assert 'aria-sort="descending"><a href="?sort=change&amp;state=complete"' in text
    # figures begin with the largest, names with the first
    assert '<a href="?sort=-cells&amp;state=complete">' in text
    assert '<a href="?sort=model&amp;state=complete">' in text


def test_runs_are_filtered_by_their_verdict(signed_in: Client, listed: list[Run]) -> None:
    assert [row[0] for row in table_rows(signed_in.get("/runs/?verdict=faster"), "runs")] == [f"run {listed[1].pk}"]
    assert len(table_rows(signed_in.get("/runs/?verdict=nonsense"), "runs")) == 3
    assert "No results. Show all" in assert_is_page(signed_in.get("/runs/?verdict=undecided"))
    downloaded = signed_in.get("/runs/?verdict=faster&as=json").json()
    assert [(one["change"], one["low"], one["rounds"]) for one in downloaded] == [(0.34, 0.33, 8)]
    Run.objects.filter(pk=listed[2].pk).update(lead=lead(verdict="wrong outputs", ratio=None, step="int8-dynamic"))
    (row,) = table_rows(signed_in.get("/runs/?verdict=wrong outputs"), "runs")
    assert (row[0], row[3], row[4]) == (f"run {listed[2].pk}", "✕ wrong outputs", "")


def test_every_figure_has_the_name_of_its_column_for_windows_too_narrow_for_a_table(
    signed_in: Client, listed: list[Run]
) -> None:
    text = signed_in.get("/runs/").content.decode()
    row = re.search(r"<tr id=\"runs-\d+\">.*?</tr>", text)
    labels = re.findall(r'<td data-label="(.*?)"', row.group())
    assert labels[:6] == ["Model", "State", "Verdict", "change", "interval", "What"]
    assert '<option value="-change">change ↓</option>' in text


def test_rows_can_be_chosen_and_compared(signed_in: Client, listed: list[Run]) -> None:
    text = signed_in.get("/runs/").content.decode()
    assert len(re.findall(r'<input type="checkbox" class="box" name="runs"', text)) == 3
    assert re.search(r'<button class="copy" formaction="/compare/" data-together="c">Compare</button>', text)
    # a form that goes to an address carries no token there
    chosen = re.search(r'<form id="runs-chosen".*?</form>', text, re.DOTALL)
    assert "csrfmiddlewaretoken" not in chosen.group()


def test_settings_that_all_rows_have_stand_once_above_them(signed_in: Client, listed: list[Run]) -> None:
    """Each row repeated all of them, on four lines."""
    Run.objects.filter(pk=listed[2].pk).delete()
    Run.objects.filter(pk=listed[0].pk).update(lead=lead(where="CPU, fp16, batch 1, 1 thread"))
    for name in ("runs", "models"):
        response = signed_in.get(f"/{name}/")
        assert "All measured with CPU, batch 1, 1 thread, on bench-1." in assert_is_page(response)
        assert "1.29.0 → 1.31.1 fp16" in [entry for row in table_rows(response, name) for entry in row]
    assert 'title="CPU, fp16, batch 1, 1 thread, on bench-1"' in response.content.decode()
    # by whom and why is said where it is not the same of all
    assert "owner" not in table_rows(signed_in.get("/runs/"), "runs")[0]
    Run.objects.filter(pk=listed[0].pk).update(reason=RunReason.WATCH)
    assert "watch" in [entry for row in table_rows(signed_in.get("/runs/"), "runs") for entry in row]


def test_runs_that_an_older_release_concluded_get_their_figures(signed_in: Client, run: Run) -> None:
    known = run.lead
    Run.objects.filter(pk=run.pk).update(lead=None)
    assert table_rows(signed_in.get("/runs/"), "runs")[0][3:7] == ["", "", "", ""]
    assert backfill_leads() == 1
    after = Run.objects.get(pk=run.pk)
    assert (after.lead, after.revision) == (known, run.revision)
    assert backfill_leads() == 0


def test_a_run_that_goes_on_has_no_figures_of_before(run: Run, node: Node) -> None:
    assert run.lead
    assert run.resume()
    assert Run.objects.get(pk=run.pk).lead is None


def test_a_run_is_queued_in_every_list_until_a_node_measures_it(
    signed_in: Client, version: Version, node: Node, begun: Run
) -> None:

    def states() -> set[str]:
        listed = [table_rows(signed_in.get(path), "runs")[0][2] for path in ("/runs/", f"/models/{version.model_id}/")]
        home = words_of(signed_in.get("/")).partition("In progress")[2]
        shown = [word for word in ("queued", "measuring", "running") if word in home]
        of_model = table_rows(signed_in.get("/models/"), "models")[0][1].removeprefix(f"run {begun.pk} ")
        return {*listed, of_model, *(f"# {one}" for one in shown)}

    assert states() == {"· queued", "# queued"}
    rows.MadeUpNode(node).measure(begun, most_rounds=1)
    assert states() == {"● measuring", "# measuring"}


def test_what_the_farm_made_is_not_among_a_models_runs_nor_news_of_the_home_page(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    asked, made = rows.finished_run(version, node, owner), rows.finished_run(version, node, owner)
    Run.objects.filter(pk=made.pk).update(reason=RunReason.BISECTION)
    response = signed_in.get(f"/models/{version.model_id}/")
    assert [row[0] for row in table_rows(response, "runs")] == [f"run {asked.pk}"]
    assert "1 more run by the farm" in response.content.decode()
    assert f'href="/runs/?q={version.model.name}&amp;reason=every"' in response.content.decode()
    home = signed_in.get("/").content.decode()
    assert set(re.findall(r"/runs/\d+/", home)) == {f"/runs/{asked.pk}/"}


def test_a_model_is_a_row_with_what_its_last_run_led_with(signed_in: Client, listed: list[Run]) -> None:
    Run.objects.filter(pk=listed[2].pk).delete()
    found = {row[0]: row for row in table_rows(signed_in.get("/models/"), "models")}
    assert found["decoder"][1:5] == [f"run {listed[1].pk}", "▼ faster", "2.9× faster", "2.8–3.0×"]
    assert found["encoder"][2:5] == ["▲ slower", "24 % slower", "21–26 %"]


def test_a_run_that_was_cancelled_before_it_measured_hides_nothing(
    signed_in: Client, listed: list[Run], team: Team, owner: User
) -> None:
    version, known = listed[0].version, {"team": team, "requested_by": owner, "matrix": {}, "state": "finished"}
    Run.objects.filter(pk=listed[0].pk).update(lead=lead(), finished_at=timezone.now())
    nothing = {"verdict": "cancelled", "step": "none of 1 cell measured"}
    Run.objects.create(version=version, lead=nothing, finished_at=timezone.now(), is_concluded=True, **known)
    found = {row[0]: row for row in table_rows(signed_in.get("/models/"), "models")}
    assert found["encoder"][2:4] == ["▲ slower", "24 % slower"]
    assert "24 % slower" in assert_is_page(signed_in.get("/"))
    assert table_rows(signed_in.get("/models/?sort=-change"), "models")[0][0] == "encoder"


def test_lists_are_headed_by_the_worst_or_by_how_many_there_are(
    signed_in: Client, listed: list[Run], team: Team, owner: User
) -> None:
    assert "encoder is 24 % slower with 1.31.1 2 models, each by" in assert_is_page(signed_in.get("/models/"))
    assert "1 model" in assert_is_page(signed_in.get("/models/?q=decoder"))
    assert "encoder is 24 % slower with 1.31.1 3 runs" in assert_is_page(signed_in.get("/runs/"))
    Run.objects.create(team=team, requested_by=owner, matrix={}, state="running", version=listed[0].version)
    assert "encoder is 24 % slower with 1.31.1 4 runs, 1 in progress" in assert_is_page(signed_in.get("/runs/"))
    coloured = '<span class="sign slower">'
    assert coloured in signed_in.get("/models/").content.decode()
    Run.objects.filter(pk=listed[0].pk).update(lead=lead(axis="precision"))
    assert "each by the release" not in assert_is_page(signed_in.get("/models/"))
    # one precision beside another has not the colour of a regression
    assert coloured not in signed_in.get("/models/").content.decode()


def test_a_run_that_a_fresh_block_confirmed_says_what_that_found_wherever_its_own_figure_stands(
    signed_in: Client, listed: list[Run], owner: User, team: Team
) -> None:
    """1.32.0 was 59 % slower on the alert, and 44 % in the list of runs and of models."""
    known = {"team": team, "requested_by": owner, "matrix": {}, "state": "finished", "is_concluded": True}
    again = Run.objects.create(version=listed[0].version, reason="confirmation", lead=lead(ratio=1.41), **known)
    Run.objects.filter(pk=listed[0].pk).update(reason="watch", finished_at=timezone.now())
    watch = make_watch(listed[0].version, owner)
    judged = watching.bare_round(watch, listed[0].version, run=listed[0], confirming=again, outcome="alert")
    for address, table in (("/runs/", "runs"), ("/models/", "models"), ("/", "news")):
        assert "41 % slower 24 % at first" in str(table_rows(signed_in.get(address), table)), address
        assert "encoder is 41 % slower with" in assert_is_page(signed_in.get(address)), address
    assert f"Run {again.pk}, a fresh block, confirms: {judged.sentence}" in words_of(
        signed_in.get(f"/runs/{listed[0].pk}/")
    )
    # of another step it says nothing, nor where it was not confirmed
    Run.objects.filter(pk=again.pk).update(lead=lead(step="1.29.0 → 1.30.0"))
    assert "first" not in str(table_rows(signed_in.get("/runs/"), "runs"))
    Run.objects.filter(pk=again.pk).update(lead=lead())
    WatchRound.objects.update(outcome="unconfirmed")
    assert "first" not in str(table_rows(signed_in.get("/runs/"), "runs"))


@pytest.mark.parametrize(
    ("sort", "first"),
    [("name", "decoder"), ("-name", "encoder"), ("-change", "encoder"), ("-run", "decoder"), ("run", "encoder"),
     ("-at", "decoder"), ("verdict", "encoder")],
)  # fmt: skip
def test_models_are_sorted_by_the_address(
    signed_in: Client, listed: list[Run], team: Team, owner: User, sort: str, first: str
) -> None:
    rows.make_version(team, owner, number=2)
    assert table_rows(signed_in.get(f"/models/?sort={sort}"), "models")[0][0] == first


def test_moments_are_elements_that_a_script_can_read(signed_in: Client, listed: list[Run]) -> None:
    at = timezone.now() - timedelta(days=1)
    Run.objects.filter(pk=listed[0].pk).update(created_at=at)
    text = signed_in.get("/runs/").content.decode()
    assert f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}" class="nowrap">{at:%Y-%m-%d %H:%M} UTC</time>' in text


def test_what_others_wrote_stays_text_in_every_cell(signed_in: Client, listed: list[Run]) -> None:
    hostile = '<script>alert(1)</script>" onclick="x'
    Run.objects.filter(pk=listed[0].pk).update(
        lead=lead(step=hostile, where=hostile, verdict=hostile), headline=hostile
    )
    listed[0].version.model.name = hostile
    listed[0].version.model.save()
    for address in ("/runs/", "/models/", f"/models/{listed[0].version.model_id}/", "/"):
        text = signed_in.get(address).content.decode()
        assert "<script>alert" not in text, address
        assert '" onclick="x' not in text, address
    assert "alert(1)" in words_of(signed_in.get("/runs/"))


def test_a_cell_is_run_again_by_itself_and_cells_are_chosen(signed_in: Client, run: Run, viewer: User) -> None:
    text = signed_in.get(f"/runs/{run.pk}/").content.decode()
    again = f"/runs/new/?version={run.version_id}&amp;like={run.pk}&amp;cell=c5"
    assert f'href="{again}"' in text
    assert f'name="cells" value="{run.pk}:c5"' in text
    assert "1 cell in 1 block" in assert_is_page(signed_in.get(again.replace("&amp;", "&")))
    assert again not in client_of(viewer).get(f"/runs/{run.pk}/").content.decode()
    for wrong in ("c99", "../../etc", "c5,c6"):
        address = f"/runs/new/?version={run.version_id}&like={run.pk}&cell={wrong}"
        assert signed_in.get(address).status_code == 404, wrong


def test_runs_that_the_farm_made_to_be_sure_stand_apart(signed_in: Client, listed: list[Run]) -> None:
    Run.objects.filter(pk=listed[1].pk).update(reason=RunReason.BISECTION)
    Run.objects.filter(pk=listed[2].pk).update(reason=RunReason.WATCH)

    def shown(reason: str) -> list[str]:
        return [row[0] for row in table_rows(signed_in.get("/runs/", {"reason": reason}), "runs")]

    first, bisecting, watching = (f"run {run.pk}" for run in listed)
    assert shown("") == shown("nonsense") == [watching, first]
    assert shown("every") == [watching, bisecting, first]
    assert shown("bisection") == [bisecting]
    assert shown("watch") == [watching]
    assert listed[1].version_id == listed[2].version_id
    found = {row[0]: row[1] for row in table_rows(signed_in.get("/models/"), "models")}
    assert found["decoder"] == watching


@pytest.mark.parametrize(
    ("asked", "number", "told"),
    [
        *((None, 1, "more than 1"), ("nonsense", 1, "more than 1")),
        # a page further behind is found, counted as far as itself; behind the last one is the last one
        *(("2", 2, "more than 2"), ("3", 3, "3"), ("4", 3, "3"), ("999999999999999999", 3, "3")),
    ],
)
def test_a_list_counts_no_more_rows_than_it_needs_to_and_says_so(
    listed: list[Run], asked: str | None, number: int, told: str
) -> None:
    pages = lists.Counting(Run.objects.order_by("-pk"), asked, per_page=1, most=1)
    with CaptureQueriesContext(connection) as captured:
        page = pages.get_page(asked)
    assert ([run.pk for run in page], pages.count_words) == ([listed[3 - number].pk], told)
    counts = [query["sql"] for query in captured if "COUNT(" in query["sql"]]
    assert counts
    assert all("LIMIT" in query for query in counts)


def test_a_list_says_which_of_its_rows_it_shows(signed_in: Client, listed: list[Run]) -> None:
    for _ in range(lists.PER_PAGE):
        run = copy(listed[0])
        run.pk, run._state.adding = None, True
        run.save()
    assert "1–25 of 28" in words_of(signed_in.get("/runs/"))


def test_runs_are_searched_by_their_models_names_which_are_asked_for_first(signed_in: Client, listed: list[Run]):
    with CaptureQueriesContext(connection) as captured:
        found = table_rows(signed_in.get("/runs/?q=DECOD"), "runs")
    assert [row[0] for row in found] == [f"run {listed[2].pk}", f"run {listed[1].pk}"]
    matching = [one["sql"] for one in captured if "LIKE" in one["sql"]]
    assert len(matching) == 1
    assert "runs_run" not in matching[0]
    assert "No results" in words_of(signed_in.get("/runs/?q=nothing-has-this-name"))
