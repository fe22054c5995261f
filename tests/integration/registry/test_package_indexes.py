"""Package indexes that an admin adds to a farm: who may, what is offered of them, and what is sent to nodes."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import AuditEvent, User
from farm.accounts.states import Scope
from farm.alerts.models import IndexLook, Release
from farm.alerts.selectors.releases import list_known_releases, list_published
from farm.alerts.services import index as looks
from farm.alerts.services.watches import check_release
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract.blocks import WheelFile
from farm.contract.cells import Runtime
from farm.fleet.models import Node
from farm.registry.models import PackageIndex, Version
from farm.registry.services import add_index, remove_index
from farm.runs.services import claim_block, release_ready_blocks, start_run
from farm.runs.services.leases import make_block_order
from tests.conftest import ApiOf
from tests.integration.dashboard.pages import assert_is_page
from tests.integration.dashboard.rows import make_node, make_version
from tests.integration.runs.making import first_block, make_run, prepare_all
from tests.integration.worker.feeds import Feed

pytestmark = pytest.mark.django_db
BUILD = "1.33.0.dev20261120+at.nightly"
SECRET = "https://ada:hunter2@feed.example/simple/"


@pytest.fixture
def admin(owner: User) -> User:
    owner.is_superuser = True
    owner.save()
    return owner


@pytest.fixture
def feed() -> Iterator[Feed]:
    with Feed() as feed:
        yield feed


def wheel(feed: Feed, version: str = "1.33.0.dev20261120", *, sha256: str = "a" * 64) -> WheelFile:
    name = f"onnxruntime-{version}-py3-none-any.whl"
    return WheelFile(name=name, url=f"{feed.url}{name}", sha256=sha256)


@pytest.fixture
def nightly(feed: Feed, admin: User) -> PackageIndex:
    feed.list(wheel(feed))
    return add_index(by=admin, name="nightly", url=feed.url)


def look() -> str:
    """Looks at the index now; what was wrong with it."""
    looks.fetch_releases("onnxruntime@nightly")
    return IndexLook.objects.get(distribution="onnxruntime@nightly").problem


def test_an_admin_adds_and_removes_an_index_which_the_audit_log_tells(admin: User, owner: User) -> None:
    add_index(by=admin, name="nightly", url="https://feed.example/simple")
    remove_index(by=admin, name="nightly")
    told = AuditEvent.objects.filter(verb__startswith="index").order_by("pk")
    assert [(event.verb, event.subject, event.actor, event.facts["url"]) for event in told] == [
        ("index added", "nightly", admin, "https://feed.example/simple/"),
        ("index removed", "nightly", admin, "https://feed.example/simple/"),
    ]


def test_nobody_else_does(member: User, nightly: PackageIndex) -> None:
    with pytest.raises(NotAllowed):
        add_index(by=member, name="own", url="https://feed.example/simple/")
    with pytest.raises(NotAllowed):
        remove_index(by=member, name="nightly")
    assert PackageIndex.objects.count() == 1


def test_an_address_with_a_password_is_kept_nowhere(
    admin: User, api_of: ApiOf, caplog: pytest.LogCaptureFixture
) -> None:
    answer = api_of(admin, Scope.ADMIN).post(
        "/api/v1/indexes", {"name": "nightly", "url": SECRET}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_index")
    page = Client()
    page.force_login(admin)
    shown = page.post("/settings/indexes/", {"name": "nightly", "url": SECRET})
    assert "holds a name or a password" in assert_is_page(shown, 400)
    assert not PackageIndex.objects.exists()
    assert not AuditEvent.objects.filter(verb="index added").exists()
    for text in (answer.content.decode(), shown.content.decode(), caplog.text):
        assert "hunter2" not in text


def test_names_are_taken_once_and_few_are_kept(admin: User, nightly: PackageIndex) -> None:
    with pytest.raises(Conflict, match="already an index nightly"):
        add_index(by=admin, name="nightly", url="https://feed.example/simple/")
    for number in range(4):
        add_index(by=admin, name=f"own{number}", url="https://feed.example/simple/")
    with pytest.raises(Conflict, match="remove one first"):
        add_index(by=admin, name="more", url="https://feed.example/simple/")


def test_its_builds_are_offered_by_name_to_whoever_asks_for_early_ones(
    nightly: PackageIndex, admin: User, settings: Any
) -> None:
    Release.objects.create(distribution="onnxruntime", version="1.32.0")
    IndexLook.objects.create(distribution="onnxruntime", looked_at="2100-01-01T00:00Z")
    assert looks.poll_due_indexes() == 1
    known = list_known_releases()
    assert (known.newest.version, known.newest_pre) == ("1.32.0", Runtime.of(f"onnxruntime=={BUILD}"))
    assert list_published("onnxruntime") == ["1.32.0"]
    assert list_published("onnxruntime", with_prereleases=True) == ["1.32.0", BUILD]
    # what the usual index says next is about its own releases
    looks.store_releases("onnxruntime", ["1.32.0"])
    assert BUILD in list_published("onnxruntime", with_prereleases=True)
    remove_index(by=admin, name="nightly")
    looks.poll_due_indexes()
    assert list_published("onnxruntime", with_prereleases=True) == ["1.32.0"]


def test_a_build_that_nobody_knows_is_asked_for_at_its_index(nightly: PackageIndex, feed: Feed) -> None:
    assert check_release("onnxruntime", BUILD) == BUILD
    for name in ("nightly", "other"):
        with pytest.raises(Invalid, match=f"is not on the index {name}"):
            check_release("onnxruntime", f"1.34.0+at.{name}")
    assert feed.seen == ["/onnxruntime/"], "what it says is believed for ten minutes"
    assert list(IndexLook.objects.values_list("distribution", flat=True)) == ["onnxruntime@nightly"]


def test_a_plan_does_not_refuse_what_another_worker_is_asking_for_at_this_moment(
    nightly: PackageIndex, feed: Feed
) -> None:
    IndexLook.objects.create(distribution="onnxruntime@nightly", looked_at=timezone.now(), is_being_asked=True)
    assert check_release("onnxruntime", BUILD) == BUILD
    assert not IndexLook.objects.get(distribution="onnxruntime@nightly").is_being_asked


def test_a_file_whose_bytes_changed_is_offered_no_more_and_that_is_said(nightly: PackageIndex, feed: Feed) -> None:
    assert look() == ""
    feed.list(wheel(feed, sha256="b" * 64), wheel(feed, "1.33.0.dev20261121"))
    assert look() == (
        "The index nightly has other bytes than before under the name onnxruntime-1.33.0.dev20261120-py3-none-any.whl."
    )
    assert list_published("onnxruntime", with_prereleases=True) == ["1.33.0.dev20261121+at.nightly"]
    assert nightly.wheels.get(version=BUILD).sha256 == "a" * 64


@pytest.mark.parametrize("answer", [(500, {}, b""), (302, {"location": "https://elsewhere.example/"}, b"")])
def test_an_index_that_does_not_answer_takes_nothing_back(
    nightly: PackageIndex, feed: Feed, answer: tuple[int, dict[str, str], bytes]
) -> None:
    look()
    feed.answers["/onnxruntime/"] = answer
    assert "The index nightly gives no releases of onnxruntime" in look()
    assert list_published("onnxruntime", with_prereleases=True) == [BUILD]


@pytest.fixture
def version(team: Any, owner: User) -> Version:
    return make_version(team, owner)


@pytest.fixture
def node(team: Any, owner: User) -> Node:
    return make_node(team, owner)


def test_an_order_names_the_files_by_their_digest_to_nodes_that_can_install_them(
    nightly: PackageIndex, feed: Feed, version: Version, node: Node, admin: User
) -> None:
    look()
    matrix = {"matrix": {"runtime": [BUILD], "batch": [1]}}
    run = start_run(version=version, matrix=matrix, requested_by=admin, known=list_known_releases())
    prepare_all(version.model.team)
    release_ready_blocks()
    block = first_block(run)
    order = make_block_order(block, attempt=1, understands=frozenset({"indexes"}))
    assert {arm.wheels for arm in order.arms} == {(wheel(feed),)}
    with pytest.raises(Conflict, match="which is of an index of this farm"):
        make_block_order(block, attempt=1)
    remove_index(by=admin, name="nightly")
    with pytest.raises(Conflict, match="is not on the index nightly of this farm"):
        claim_block(node=node, block_id=str(block.pk), attempt=block.attempt, understands=frozenset({"indexes"}))


def test_an_order_without_such_a_runtime_says_nothing_of_files(version: Version, node: Node, admin: User) -> None:
    block = first_block(make_run(version, admin, matrix={"runtime": ["1.31.1"], "batch": [1]}))
    assert "wheels" not in make_block_order(block, attempt=1).arms[0].model_dump()


def test_programs_and_pages_list_what_an_admin_added(
    nightly: PackageIndex, admin: User, member: User, api_of: ApiOf, feed: Feed
) -> None:
    (listed,) = api_of(member).get("/api/v1/indexes").json()
    assert (listed["name"], listed["url"], listed["created_by"]) == ("nightly", feed.url, admin.username)
    refused = api_of(member, Scope.ADMIN).delete("/api/v1/indexes/nightly")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    page = Client()
    page.force_login(admin)
    assert 'data-index="nightly"' in page.get("/settings/indexes/").content.decode()
    assert_is_page(page.post("/settings/indexes/nightly/remove/", follow=True))
    assert not PackageIndex.objects.exists()
    added = page.post("/settings/indexes/", {"name": "own", "url": "https://feed.example/simple"}, follow=True)
    assert 'data-index="own"' in added.content.decode()
    assert api_of(admin, Scope.ADMIN).delete("/api/v1/indexes/own").status_code == 204
    page.force_login(member)
    assert_is_page(page.get("/settings/indexes/"), 403)
