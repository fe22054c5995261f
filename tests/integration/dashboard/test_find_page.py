"""The page of a search for the settings to ship, and its form on a model's page."""

import html

import pytest
from django.test import Client
from django.urls import reverse

from farm.accounts.models import Team, User
from farm.alerts.models import Find
from farm.alerts.selectors.finds import describe_progress
from farm.alerts.services import finds
from farm.contract.api.finds import FindOrder
from farm.registry.models import Version
from farm.runs.models import Run
from tests.integration.alerts.driving import Lab, make_ready, offer
from tests.integration.alerts.test_finds import SPACE, p50_ms
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.rows import make_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def member_pages(member: User) -> Client:
    return client_of(member)


@pytest.fixture
def lab(team: Team, owner: User) -> Lab:
    offer("1.31.1")
    return Lab(make_node(team, owner), p50_ms=p50_ms)


def ask(version: Version, by: User, **how: object) -> Find:
    order = FindOrder.model_validate({"version": version.pk, "space": SPACE, **how})
    return finds.start_find(version=version, by=by, order=order)


def test_the_form_on_a_model_s_page_starts_a_search_whose_page_is_shown(
    member_pages: Client, version: Version, lab: Lab
) -> None:
    page = member_pages.get(reverse("dashboard:model", args=[version.model_id])).content.decode()
    assert "Find settings" in page
    typed = {"goal": "latency", "minutes": "5", "hardware": "cpu, x86", "max_memory": "900", "max_p50": "100"}
    answer = member_pages.post(reverse("dashboard:ask_find", args=[version.pk]), typed)
    first = Find.objects.order_by("pk")[0]
    assert answer["Location"] == reverse("dashboard:find", args=[first.pk])
    assert [row.hardware for row in Find.objects.all()] == ["cpu", "x86"]
    assert first.question["limits"]["max_memory_bytes"] == 900 * 2**20
    page = member_pages.get(answer["Location"]).content.decode()
    assert "data-live" in page
    assert describe_progress(first) in page


@pytest.mark.parametrize(
    "typed",
    [{"goal": "speed"}, {"max_p50": "fast"}, {"max_p50": "-1"}, {"max_memory": "1e305"}, {"hardware": "nowhere"}],
)
def test_what_cannot_be_meant_goes_back_to_the_model(
    typed: dict[str, str], member_pages: Client, version: Version, lab: Lab
) -> None:
    answer = member_pages.post(
        reverse("dashboard:ask_find", args=[version.pk]), {"goal": "latency", **typed}, follow=True
    )
    assert answer.redirect_chain[-1][0].startswith(reverse("dashboard:model", args=[version.model_id]))
    assert not Find.objects.exists()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"min_accuracy": "120"}, "Accuracy is '120': give a number above 0, up to 100."),
        ({"max_p99": "nan"}, "p99 is 'nan': give a number above 0, up to 10,000,000."),
    ],
)
def test_a_number_is_refused_in_the_unit_in_which_it_was_typed(
    typed: dict[str, str], told: str, member_pages: Client, version: Version, lab: Lab
) -> None:
    asked = {"goal": "latency", **typed}
    page = member_pages.post(reverse("dashboard:ask_find", args=[version.pk]), asked, follow=True)
    assert told in html.unescape(page.content.decode())


def test_two_releases_in_the_form_race_as_advice_whether_to_upgrade(
    member_pages: Client, version: Version, lab: Lab
) -> None:
    offer("1.29.0", "1.31.1")
    typed = {"goal": "latency", "releases": "1.29.0, 1.31.1"}
    member_pages.post(reverse("dashboard:ask_find", args=[version.pk]), typed)
    included = Find.objects.get().question["matrix"]["matrix"]["include"]
    assert included[0]["runtime"] == "onnxruntime==1.29.0"
    assert {point["runtime"] for point in included} == {"onnxruntime==1.29.0", "onnxruntime==1.31.1"}


def test_an_answer_has_its_settings_its_snippets_and_the_gate(
    member_pages: Client, version: Version, lab: Lab, member: User
) -> None:
    first = ask(version, member)
    lab.live()
    page = member_pages.get(reverse("dashboard:find", args=[first.pk])).content.decode()
    for said in (
        "faster than the default, 2 threads",
        "ONNX Runtime 1.31.1, bench-1, batch 1 · ",
        "options.intra_op_num_threads = 1",
        "&quot;intraOpNumThreads&quot;: 1",
        "onnxfarm gate",
        "in its final block",
        "Settings that left",
    ):
        assert said in page
    assert "data-live" not in page
    run = Run.objects.order_by("pk")[0]
    origin = member_pages.get(reverse("dashboard:run", args=[run.pk])).content.decode()
    assert reverse("dashboard:find", args=[first.pk]) in origin
    model = member_pages.get(reverse("dashboard:model", args=[version.model_id])).content.decode()
    assert "faster than the default, 2 threads" in model
    assert "ONNX Runtime 1.31.1, bench-1, batch 1, " in model
    assert "has not been measured yet" not in model


def test_cancel_leaves_the_best_so_far(member_pages: Client, version: Version, lab: Lab, member: User) -> None:
    first = ask(version, member)
    finds.advance_finds()
    make_ready()
    lab.measure(Run.objects.get())
    finds.advance_finds()
    page = member_pages.post(reverse("dashboard:cancel_find", args=[first.pk]), follow=True).content.decode()
    assert "Best so far, not decided: 1 thread" in page
    assert "data-live" not in page


def test_a_stranger_cannot_see_a_search(stranger: User, version: Version, lab: Lab, member: User) -> None:
    first = ask(version, member)
    assert client_of(stranger).get(reverse("dashboard:find", args=[first.pk])).status_code == 404
