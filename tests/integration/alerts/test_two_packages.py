"""A watch of a plug-in and the ONNX Runtime beside it hears of both, measures step by step, and says which moved."""

from pathlib import Path
from typing import Any

import pytest

from farm.accounts.models import User
from farm.alerts.models import Alert, IndexLook, Watch, WatchRound
from farm.alerts.selectors.releases import list_choices
from farm.alerts.services import index
from farm.alerts.services.causes import call_watch
from farm.alerts.states import RoundOutcome
from farm.base.refusals import Invalid
from farm.contract.cells import CellSpec
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.runtimes.listings import Listing
from farm.rules.runtimes.plugins import split_pair
from tests.acceptance.release_index import ReleaseIndex
from tests.acceptance.watched_farm import OTHER_SOURCES
from tests.integration.alerts.driving import MATRIX, Lab, make_watch, offer

pytestmark = pytest.mark.django_db
GGML = "onnxruntime-ggml"


@pytest.fixture(autouse=True)
def _allowed(settings: Any) -> None:
    settings.ALLOWED_PACKAGES = frozenset({GGML})


def pair(own: str, core: str) -> str:
    return f"{own}+onnxruntime.{core}"


@pytest.fixture
def watch(version: Version, member: User, node: Node) -> Watch:
    offer("0.2.0", distribution=GGML)
    offer("1.29.0", "1.31.1")
    matrix = {**MATRIX, "provider": ["cpu"]}
    return make_watch(version, member, distribution=GGML, reference="0.2.0+onnxruntime==1.29.0", matrix=matrix)


def rounds() -> list[tuple[str, str, str]]:
    return list(WatchRound.objects.order_by("pk").values_list("old", "new", "outcome"))


def slow_with(*, own: str = "", core: str = "") -> Any:
    """A latency that steps up with a release of one of the two packages."""

    def latency(spec: CellSpec) -> float:
        its_own, its_core = split_pair(spec.runtime.version)
        return 1.24 if its_own == own or its_core == core else 1.0

    return latency


def test_a_release_out_of_the_plug_ins_range_starts_no_round(watch: Watch, lab: Lab) -> None:
    lab.live()
    assert rounds() == []


def test_a_release_of_onnx_runtime_in_the_range_is_measured_and_blamed(watch: Watch, node: Node) -> None:
    offer("1.29.0", "1.30.0", "1.31.1")
    Lab(node, p50_ms=slow_with(core="1.30.0")).live()
    assert rounds() == [(pair("0.2.0", "1.29.0"), pair("0.2.0", "1.30.0"), RoundOutcome.ALERT)]
    alert = Alert.objects.get()
    assert alert.changed_packages == ("onnxruntime",)
    assert alert.sentence.startswith(f"{GGML} 0.2.0 on ONNX Runtime 1.30.0 runs encoder"), alert.sentence
    assert "slower than on ONNX Runtime 1.29.0 on bench-1" in alert.sentence
    assert "ONNX Runtime moved, from 1.29.0 to 1.30.0; onnxruntime-ggml stayed at 0.2.0." in alert.sentence
    since = alert.investigations.get(kind="since_when")
    assert since.answer["first_bad"] == pair("0.2.0", "1.30.0")


def test_where_both_moved_each_has_its_round_and_the_slow_one_alone_its_alert(watch: Watch, node: Node) -> None:
    offer("0.2.0", "0.3.0", distribution=GGML)
    offer("1.29.0", "1.30.0", "1.31.1")
    Lab(node, p50_ms=slow_with(own="0.3.0")).live()
    assert rounds() == [
        (pair("0.2.0", "1.29.0"), pair("0.2.0", "1.30.0"), RoundOutcome.QUIET),
        (pair("0.2.0", "1.30.0"), pair("0.3.0", "1.30.0"), RoundOutcome.ALERT),
    ]
    alert = Alert.objects.get()
    assert alert.changed_packages == (GGML,)
    assert "onnxruntime-ggml moved, from 0.2.0 to 0.3.0; ONNX Runtime stayed at 1.30.0." in alert.sentence


def test_since_when_is_looked_for_among_the_releases_of_the_package_that_moved(watch: Watch, node: Node) -> None:
    offer("0.2.0", "0.2.1", "0.3.0", distribution=GGML)

    def latency(spec: CellSpec) -> float:
        return 1.24 if split_pair(spec.runtime.version)[0] in ("0.2.1", "0.3.0") else 1.0

    Lab(node, p50_ms=latency).live()
    since = Alert.objects.get().investigations.get(kind="since_when")
    assert since.answer["first_bad"] == pair("0.2.1", "1.29.0")
    assert since.answer["last_good"] == pair("0.2.0", "1.29.0")


def test_both_packages_are_asked_for_and_nothing_is_measured_before_both_answered(
    version: Version, member: User, lab: Lab, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.INDEX_POLL_S = 1
    asked = []

    def listing(distribution: str, *, timeout_s: float) -> Listing:
        asked.append(distribution)
        if distribution == "onnxruntime":
            raise index.IndexProblem("The package index did not answer for onnxruntime within 90 s.")
        return Listing(offered=("0.2.0", "0.3.0"))

    monkeypatch.setattr(index, "list_offered", listing)
    make_watch(version, member, distribution=GGML, reference="0.2.0")
    index.poll_due_indexes()
    lab.live()
    assert asked == ["onnxruntime", GGML]
    assert rounds() == []
    assert IndexLook.objects.get(distribution="onnxruntime").problem


def test_releases_on_a_package_index_of_both_packages_are_heard_of(
    version: Version, member: User, node: Node, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    settings.INDEX_POLL_S = 1
    for name in ("onnxruntime-1.29.0", "onnxruntime-1.30.0", "onnxruntime-1.31.1", "onnxruntime_ggml-0.2.0"):
        (tmp_path / f"{name}-py3-none-any.whl").touch()
    with ReleaseIndex(tmp_path, port=0, offered={"onnxruntime": ["1.29.0", "1.31.1"]}) as packages:
        for name in OTHER_SOURCES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_INDEX_URL", packages.url)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        make_watch(version, member, distribution=GGML, reference="0.2.0+onnxruntime==1.29.0")
        lab = Lab(node, p50_ms=slow_with(core="1.30.0"))
        index.poll_due_indexes()
        lab.live()
        assert rounds() == []
        packages.offer("onnxruntime", ["1.30.0"])
        index.fetch_releases("onnxruntime")
        lab.live()
    assert rounds() == [(pair("0.2.0", "1.29.0"), pair("0.2.0", "1.30.0"), RoundOutcome.ALERT)]
    assert Alert.objects.get().changed_packages == ("onnxruntime",)


def test_a_reference_without_an_onnx_runtime_stands_on_the_newest_of_the_range(watch: Watch, member: User) -> None:
    other = make_watch(watch.watched.get().versions.get(), member, name="other", distribution=GGML, reference="0.2.0")
    assert other.reference == pair("0.2.0", "1.30.0")
    assert list_choices(GGML, reference=other.reference) == [pair("0.2.0", "1.29.0")]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"distribution": GGML, "reference": "0.2.0+onnxruntime==1.31.1"}, "1.31.1 is not in it"),
        ({"distribution": GGML, "reference": "0.2.0+onnxruntime==new"}, "new"),
        ({"distribution": "onnxruntime", "reference": "1.29.0+onnxruntime==1.30.0"}, "1.29.0"),
        ({"distribution": "their-ep", "reference": "1.0"}, "their-ep"),
    ],
)
def test_a_pair_that_cannot_stand_is_refused(version: Version, member: User, how: dict[str, str], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        make_watch(version, member, **how)


def test_a_plug_in_that_the_admin_did_not_allow_is_refused(version: Version, member: User, settings: Any) -> None:
    settings.ALLOWED_PACKAGES = frozenset()
    with pytest.raises(Invalid, match="other people's code, which has to be allowed by its name"):
        make_watch(version, member, distribution=GGML, reference="0.2.0")


def test_a_call_of_two_pairs_that_differ_in_both_says_so(watch: Watch, node: Node, member: User) -> None:
    offer("0.2.0", "0.3.0", distribution=GGML)
    call_watch(watch=watch, by=member, candidate="0.3.0+onnxruntime==1.30.0")
    Lab(node, p50_ms=slow_with(own="0.3.0")).live()
    alert = Alert.objects.filter(good=pair("0.2.0", "1.29.0"), bad=pair("0.3.0", "1.30.0")).get()
    assert alert.changed_packages == (GGML, "onnxruntime")
    assert "Both moved: onnxruntime-ggml from 0.2.0 to 0.3.0" in alert.sentence
