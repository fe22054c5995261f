"""Builds of an index that an admin added: downloaded by sha256, installed where the owner allows it, or not at all."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farm.base import downloads
from farm.base.downloads import DownloadError
from farm.contract.blocks import WheelFile
from farm.contract.cells import Runtime
from farm.contract.reasons import ReasonCode
from farm.rules.runtimes import indexes
from onnxfarm.here.release_index import WHEELS, find_newest_release, find_unknown_runtimes
from onnxfarm.problems import Infrastructure, Usage
from tests.integration.worker.feeds import Answer, Feed
from tests.integration.worker.wheels import make_wheel
from worker.agent.installation import wheels
from worker.agent.installation.runtimes import RuntimeStore, RuntimeUnavailableError

OWN = "1.33.0.dev20261120"
RUNTIME = Runtime(distribution="onnxruntime", version=f"{OWN}+at.nightly")
BUILD = {"onnxruntime/__init__.py": f"__version__ = '{OWN}'\ndef get_available_providers():\n    return []\n"}


@pytest.fixture
def feed() -> Iterator[Feed]:
    with Feed() as feed:
        yield feed


@pytest.fixture
def wheel(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelFile:
    """A build that the feed offers to this home."""
    path = make_wheel(tmp_path / "dist", "onnxruntime", OWN, BUILD)
    content = path.read_bytes()
    feed.answers[f"/{path.name}"] = (200, {}, content)
    found = WheelFile(name=path.name, url=f"{feed.url}{path.name}", sha256=hashlib.sha256(content).hexdigest())
    feed.list(found)
    monkeypatch.setenv("ONNXFARM_INDEXES", f"nightly={feed.url}")
    return found


def test_a_home_installs_a_build_of_its_own_index(wheel: WheelFile, feed: Feed, tmp_path: Path) -> None:
    assert find_unknown_runtimes([RUNTIME], home=tmp_path) == (RUNTIME,)
    found = RuntimeStore(tmp_path / "runtimes", wheels=tmp_path / WHEELS).provide(RUNTIME)
    assert (found.runtime, found.packages["onnxruntime"]) == (RUNTIME, OWN)
    assert find_unknown_runtimes([RUNTIME], home=tmp_path) == (RUNTIME,)
    assert feed.seen == ["/onnxruntime/", f"/{wheel.name}"], "a wheel that is kept is not fetched again"


def test_the_newest_of_all_may_be_of_an_index_of_ones_own(
    wheel: WheelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert find_newest_release(home=tmp_path, with_prereleases=True) == RUNTIME
    assert find_newest_release(home=tmp_path) is None


@pytest.mark.parametrize(
    ("runtime", "problem", "words"),
    [
        ("onnxruntime==1.33.0+at.other", Usage, "index other, which is not known here: ONNXFARM_INDEXES=other="),
        ("onnxruntime==1.34.0+at.nightly", Usage, f"no onnxruntime 1.34.0; its newest are {OWN}"),
        ("onnxruntime-gpu==1.33.0+at.nightly", Infrastructure, "answered 404"),
    ],
)
def test_a_build_that_is_not_there_is_said_in_a_sentence(
    wheel: WheelFile, tmp_path: Path, runtime: str, problem: type[Exception], words: str
) -> None:
    with pytest.raises(problem, match=words):
        find_unknown_runtimes([Runtime.of(runtime)], home=tmp_path)
    assert not (tmp_path / WHEELS).exists()


def test_an_index_that_is_written_wrongly_is_refused_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONNXFARM_INDEXES", "nightly=https://ada:hunter2@feed.example/")
    with pytest.raises(Usage, match=r"^\$ONNXFARM_INDEXES: ") as refused:
        find_unknown_runtimes([RUNTIME], home=tmp_path)
    assert "hunter2" not in str(refused.value)


def test_a_node_installs_what_its_owner_allows_from_the_files_of_an_order(wheel: WheelFile, tmp_path: Path) -> None:
    store = RuntimeStore(tmp_path / "runtimes", indexes=["nightly"])
    found = store.provide(RUNTIME, files=[wheel])
    assert (found.runtime, found.packages["onnxruntime"]) == (RUNTIME, OWN)
    assert [place.name for place in (tmp_path / "runtimes").iterdir() if place.name.startswith(".")] == []


def test_a_node_whose_owner_did_not_allow_the_index_fetches_nothing(
    wheel: WheelFile, feed: Feed, tmp_path: Path
) -> None:
    store = RuntimeStore(tmp_path / "runtimes", indexes=["other"])
    # a release of the usual index never comes from files of a farm
    for runtime in (RUNTIME, Runtime.of("onnxruntime==1.31.1")):
        with pytest.raises(RuntimeUnavailableError, match="--allow-index") as refused:
            store.provide(runtime, files=[wheel])
        assert refused.value.reason.code == ReasonCode.UNKNOWN_RUNTIME
    assert feed.seen == []


def other_bytes(feed: Feed, wheel: WheelFile) -> WheelFile:
    feed.answers[f"/{wheel.name}"] = (200, {}, b"PK of somebody else")
    return wheel


def elsewhere(feed: Feed, wheel: WheelFile) -> WheelFile:
    feed.answers[f"/{wheel.name}"] = (302, {"location": "http://169.254.169.254/latest/meta-data"}, b"")
    return wheel


def in_a_circle(feed: Feed, wheel: WheelFile) -> WheelFile:
    feed.answers[f"/{wheel.name}"] = (302, {"location": f"/{wheel.name}"}, b"")
    return wheel


def too_long(feed: Feed, wheel: WheelFile) -> WheelFile:
    return wheel.model_copy(update={"url": wheel.url.replace(wheel.name, "long")})


def of_another_package(feed: Feed, wheel: WheelFile) -> WheelFile:
    content = feed.answers[f"/{wheel.name}"]
    named = wheel.name.replace("onnxruntime", "evil_package")
    feed.answers[f"/{named}"] = content
    return wheel.model_copy(update={"name": named, "url": f"{feed.url}{named}"})


def no_wheel(feed: Feed, wheel: WheelFile) -> WheelFile:
    return wheel.model_copy(update={"name": "build.whl"})


def for_others(feed: Feed, wheel: WheelFile) -> WheelFile:
    return wheel.model_copy(update={"name": wheel.name.replace("-any", "-win_amd64")})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (other_bytes, "has the sha256"),
        (elsewhere, "redirects to 169.254.169.254, which is not allowed"),
        (in_a_circle, "redirects more than 3 times"),
        (too_long, "has more than 1,000 bytes"),
        (of_another_package, "not be installed"),
        (no_wheel, "not named like a wheel: "),
        (for_others, "none of its 1 wheels is for this machine"),
    ],
)
def test_what_is_not_the_file_that_was_listed_is_not_installed(
    feed: Feed,
    wheel: WheelFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Feed, WheelFile], WheelFile],
    words: str,
) -> None:
    if spoil is too_long:
        monkeypatch.setattr(indexes, "MAX_WHEEL_BYTES", 1000)
        feed.answers["/long"] = (200, {}, b"x" * 2000)
    store = RuntimeStore(tmp_path / "runtimes", indexes=["nightly"])
    with pytest.raises(RuntimeUnavailableError, match=words) as refused:
        store.provide(RUNTIME, files=[spoil(feed, wheel)])
    assert refused.value.reason.code == ReasonCode.RUNTIME_INSTALL_FAILED
    assert store.list_installed() == ()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {}, b"x" * 2000), "answered more than 1,000 bytes"),
        ((302, {"location": "https://elsewhere.example/"}, b""), "answered 302"),
        ((500, {}, b""), "answered 500"),
        ((200, {"content-length": "9", "transfer-encoding": "x"}, b"short"), "does not answer|answered"),
    ],
)
def test_a_page_is_read_where_it_lies_and_no_longer_than_it_may_be(feed: Feed, answer: Answer, words: str) -> None:
    feed.answers["/page"] = answer
    with pytest.raises(DownloadError, match=words):
        downloads.download_page(f"{feed.url}page", accept="*/*", max_bytes=1000, timeout_s=5.0)


def test_a_wheel_for_this_interpreter_comes_before_one_for_any(feed: Feed, wheel: WheelFile, tmp_path: Path) -> None:
    tag = f"cp3{__import__('sys').version_info.minor}"
    own = wheel.model_copy(update={"name": wheel.name.replace("py3-none", f"{tag}-none")})
    assert wheels.download_best_wheel([wheel, own], tmp_path).name == own.name
