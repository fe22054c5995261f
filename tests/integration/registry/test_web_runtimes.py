"""ONNX Runtime Web from an npm registry: fetched once, checked, unpacked confined; each failure is a sentence."""

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone
from pytest_django import Settings

from farm.accounts.models import Team, User
from farm.alerts.selectors import releases
from farm.alerts.services import index
from farm.base.refusals import Conflict, Missing, NotAllowed
from farm.contract.cells import Runtime
from farm.registry import services
from farm.registry.models import WebRuntime
from farm.registry.services.web_runtimes import MAX_RELEASES_OF_TEAM
from farm.registry.states import MakingState
from farm.rules.runtimes import web
from farm.runs.models import Attempt, Cell
from farm.runs.selectors import find_team_asking_for
from farm.runs.states import AttemptState
from tests.acceptance.served import Served
from tests.integration.runs.making import claim, first_block, make_node, make_run, make_version

pytestmark = pytest.mark.django_db(transaction=True)
# newer than those whose digests the farm knows
VERSION = "1.30.7"
KNOWN = web.RELEASES[-1]
BUILD = "1.31.0-dev.20260914-8d85527a0"
CONTENTS = {name: name.encode() * 9 for name in web.list_files(VERSION)}


def package(files: dict[str, bytes], *, links: bool = False) -> bytes:
    """A tarball as npm packs one, with files that browsers do not load beside the wanted ones."""
    drawn = io.BytesIO()
    with tarfile.open(fileobj=drawn, mode="w:gz") as archive:
        for name, content in {"package.json": b"{}", **{f"dist/{one}": text for one, text in files.items()}}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            if links and name.startswith("dist/"):
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0
            archive.addfile(member, io.BytesIO(content if member.isreg() else b""))
    return drawn.getvalue()


class Registry:
    """A registry of one package with one release."""

    def __init__(self) -> None:
        self.packed = package(CONTENTS)
        self.said: dict[str, object] = {}
        self.asked: list[str] = []
        self.leads_to = ""
        self.offered: object = {VERSION: {}, "1.17.0": {}, BUILD: {}, "1.29.0": {"deprecated": "slow  on\nArm"}, "x": 1}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                if registry.leads_to:
                    self.send_response(302)
                    self.send_header("Location", registry.leads_to)
                    self.end_headers()
                    return
                body = registry.answer(self.path)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/npm"

    def answer(self, path: str) -> bytes | None:
        version = path.removeprefix("/npm/onnxruntime-web/")
        if version in (VERSION, KNOWN):
            digest = base64.b64encode(hashlib.sha512(self.packed).digest()).decode()
            dist = {"tarball": f"{self.url}/web.tgz", "integrity": f"sha512-{digest}"}
            return json.dumps({"version": version, "dist": {**dist, **self.said}}).encode()
        if path == "/npm/onnxruntime-web":
            return json.dumps({"versions": self.offered}).encode()
        return self.packed if path == "/npm/web.tgz" else None


@pytest.fixture
def registry(settings: Settings) -> Iterator[Registry]:
    registry = Registry()
    settings.NPM_REGISTRY = registry.url
    with Served(registry.server):
        yield registry


def fetched(version: str = VERSION, *, team: Team | None = None) -> WebRuntime:
    row = services.find_or_order_web_runtime(version, team=team or Team.objects.get_or_create(name="asking")[0])
    services.fetch_web_runtime(row.pk)
    row.refresh_from_db()
    return row


def test_a_release_is_fetched_once_and_only_the_files_that_browsers_load_are_kept(registry: Registry) -> None:
    row = fetched()
    assert row.state == MakingState.READY, row.reason_text
    assert {file.name for file in row.files} == set(web.list_files(VERSION))
    for file in row.files:
        assert services.find_web_runtime_file(file.sha256).read_bytes() == CONTENTS[file.name]
    assert fetched().files == row.files
    assert len(registry.asked) == 2


def _other_digest(registry: Registry) -> None:
    registry.said = {"integrity": "sha512-" + base64.b64encode(bytes(64)).decode()}


def _no_digest(registry: Registry) -> None:
    registry.said = {"integrity": "sha1-AAAA"}


def _elsewhere(registry: Registry) -> None:
    registry.said = {"tarball": "https://example.com/web.tgz"}


def _no_archive(registry: Registry) -> None:
    registry.packed = b"<html>"


def _incomplete(registry: Registry) -> None:
    registry.packed = package({web.MODULE: b"1"})


def _links(registry: Registry) -> None:
    registry.packed = package(CONTENTS, links=True)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_other_digest, "is not the one that its digest names (sha512); it is not used"),
        (_no_digest, "gives no digest of onnxruntime-web 1.30.7, so it is not fetched"),
        (_elsewhere, "sends on to 'example.com', which is not asked"),
        (_no_archive, "The package is not an archive as npm packs it"),
        (_incomplete, "The package has no "),
        (_links, f"and no {web.MODULE}"),
    ],
)
def test_a_package_that_is_not_what_it_should_be_is_not_served(
    registry: Registry, spoil: Callable[[Registry], None], words: str
) -> None:
    spoil(registry)
    row = fetched()
    assert row.state == MakingState.FAILED
    assert words in row.reason_text
    with pytest.raises(Conflict) as refusal:
        services.find_or_order_web_runtime(VERSION, team=None)
    assert words in refusal.value.detail


def test_a_known_release_whose_registry_gives_other_files_is_not_served(registry: Registry) -> None:
    row = fetched(KNOWN)
    assert row.state == MakingState.FAILED
    assert f"{web.MODULE} of onnxruntime-web {KNOWN} is not the one that this farm knows" in row.reason_text
    with pytest.raises(Conflict):
        services.find_or_order_web_runtime(KNOWN, team=None)


def test_what_an_older_farm_fetched_in_the_place_of_a_known_release_is_fetched_anew(registry: Registry) -> None:
    other = fetched()
    WebRuntime.objects.filter(pk=other.pk).update(version=KNOWN)
    row = services.find_or_order_web_runtime(KNOWN, team=None)
    assert (row.state, row.files) == (MakingState.PENDING, ())


def test_a_release_that_npm_does_not_have_is_said_by_its_number(registry: Registry, team: Team) -> None:
    row = fetched("1.99.0", team=team)
    assert row.reason_text.startswith("onnxruntime-web 1.99.0 does not exist on 127.0.0.1")
    assert row.reason_code == "unknown_runtime"


def test_a_registry_that_does_not_answer_is_named_with_its_setting(settings: Settings) -> None:
    settings.NPM_REGISTRY = "http://127.0.0.1:9/"
    text = fetched().reason_text
    assert "The npm registry 127.0.0.1 does not answer" in text
    assert "ONNXFARM_NPM_REGISTRY" in text


@pytest.mark.parametrize("version", ["1.17.3", "latest", "../../x", "1.30.0-dev.1", "1.30"])
def test_what_is_no_release_is_asked_of_nobody(registry: Registry, version: str) -> None:
    with pytest.raises(Missing):
        services.find_or_order_web_runtime(version, team=None)
    assert registry.asked == []


def test_no_redirect_of_a_registry_is_followed(registry: Registry) -> None:
    registry.leads_to = f"{registry.url}/elsewhere"
    assert fetched().state == MakingState.FAILED
    assert registry.asked == [f"/npm/onnxruntime-web/{VERSION}"]


def test_a_mirror_that_repeats_npms_own_address_is_asked_itself(registry: Registry) -> None:
    registry.said = {"tarball": "https://registry.npmjs.org/web.tgz"}
    assert fetched().state == MakingState.READY
    assert registry.asked[-1] == "/npm/web.tgz"


def test_no_file_but_those_of_a_fetched_release_is_handed_out(registry: Registry) -> None:
    fetched()
    with pytest.raises(Missing):
        services.find_web_runtime_file("0" * 64)


def test_npms_list_gives_the_releases_that_browsers_load_and_dated_builds_before_them(registry: Registry) -> None:
    assert index.fetch_releases(web.DISTRIBUTION) == 2
    assert releases.list_published(web.DISTRIBUTION) == [VERSION]
    assert releases.list_published(web.DISTRIBUTION, with_prereleases=True) == [VERSION, BUILD]
    assert releases.list_known_releases().yanked == {Runtime.of("onnxruntime-web==1.29.0"): "slow on Arm"}


@pytest.mark.parametrize("offered", [None, ["1.30.0"], "1.30.0"])
def test_a_list_that_is_none_is_said_with_its_setting(registry: Registry, offered: object) -> None:
    registry.offered = offered
    with pytest.raises(index.IndexProblem, match="lists no releases of onnxruntime-web; check ONNXFARM_NPM_REGISTRY"):
        index.list_offered(web.DISTRIBUTION)


@pytest.mark.parametrize(("why", "said"), [(True, "deprecated"), ("no  more", "no more"), (None, ""), ("", "")])
def test_a_version_that_npm_deprecates_is_one_that_nobody_should_take(registry: Registry, why: object, said: str):
    registry.offered = {VERSION: {"deprecated": why}}
    assert services.list_npm_releases() == {VERSION: said}


def test_a_node_that_asks_for_a_hundred_made_up_releases_has_none_of_them_fetched(team: Team, owner: User) -> None:
    node = make_node(team, owner=owner)
    for minor in range(100):
        assert find_team_asking_for(f"onnxruntime-web==1.{100 + minor}.0", node=node) is None
        with pytest.raises(NotAllowed):
            services.find_or_order_web_runtime(f"1.{100 + minor}.0", team=None)
    assert not WebRuntime.objects.exists()
    assert services.find_or_order_web_runtime(KNOWN, team=None).state == MakingState.PENDING


def test_a_team_s_matrices_exhaust_nobody_else_s_releases(team: Team) -> None:
    for minor in range(MAX_RELEASES_OF_TEAM):
        services.find_or_order_web_runtime(f"1.{100 + minor}.0", team=team)
    with pytest.raises(Conflict, match="is not fetched too"):
        services.find_or_order_web_runtime("1.99.0", team=team)
    services.find_or_order_web_runtime("1.99.0", team=Team.objects.create(name="others"))
    # what could not be had is forgotten after a day
    long_ago = timezone.now() - timedelta(days=2)
    WebRuntime.objects.filter(team=team).update(state=MakingState.FAILED, finished_at=long_ago)
    services.find_or_order_web_runtime("1.98.0", team=team)
    assert [row.version for row in WebRuntime.objects.filter(team=team)] == ["1.98.0"]


def test_the_block_that_a_node_holds_names_what_is_fetched_for_it(team: Team, owner: User) -> None:
    node = make_node(team, owner=owner)
    run = make_run(make_version(team), owner)
    block = first_block(run)
    claim(node, block)
    Cell.objects.filter(run=run).update(runtime="onnxruntime-web==1.99.0")
    assert find_team_asking_for("onnxruntime-web==1.99.0", node=node) == team
    assert find_team_asking_for("onnxruntime-web==1.98.0", node=node) is None
    assert find_team_asking_for("onnxruntime-web==1.99.0", node=make_node(team, name="other")) is None
    Attempt.objects.get(block=block).end(AttemptState.LOST)
    assert find_team_asking_for("onnxruntime-web==1.99.0", node=node) is None
