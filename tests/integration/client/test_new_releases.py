"""A release that appears: known to everybody who asks for it, as a real index on this machine offers it."""

import io
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from rich.console import Console
from typer.testing import CliRunner

from farm.accounts.models import Team, User
from farm.alerts.models import IndexLook, Watch
from farm.alerts.selectors.releases import list_known_releases
from farm.alerts.services import index as looks
from farm.alerts.services.watches import check_release
from farm.base.refusals import Invalid
from farm.contract.cells import Runtime
from farm.registry.models import Version
from farm.rules.matrices import matrix as matrices
from farm.rules.planning.plans import Plan
from onnxfarm.here import bisection, workbench
from onnxfarm.here.release_index import find_newest_release, load_listing, resolve_runtimes
from onnxfarm.main import app
from onnxfarm.problems import Infrastructure, Usage
from onnxfarm.remote.client import Client
from onnxfarm.subject import Subject
from tests.acceptance.release_index import ReleaseIndex
from tests.conftest import MODELS
from tests.integration.dashboard.rows import make_node, make_version

NAME = "onnxruntime"
DEAD = "http://127.0.0.1:9/simple/"
RELU = MODELS / "relu_op13_ir7.onnx"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReleaseIndex]:
    """An index that has two releases now, and others in a drawer."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in ("1.31.1", "1.39.0", "1.40.0", "1.41.0rc1", "1.42.0"):
        (wheels / f"{NAME}-{version}-py3-none-any.whl").touch()
    # of no machine here, and of nothing that is a version
    for name in (
        "1.43.0-cp399-cp399-win32",
        "1.44.0-py3-none-plan9",
        "..-py3-none-any",
        "99999999999999999999999999999999.0-py3-none-any",
    ):
        (wheels / f"{NAME}-{name}.whl").touch()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with ReleaseIndex(wheels, port=0, offered={NAME: ["1.31.1", "1.39.0"]}) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


def planned(home: Path, *, pre: bool = False, **options: str) -> tuple[Plan, str]:
    """What `bench` plans in a home, and what it says on the way."""
    said = io.StringIO()
    with workbench.open_workbench(Subject(RELU), home=home, console=Console(file=said, width=200)) as bench:
        return bench.plan(matrices.from_options(matrices.parse({"pre": pre}), **options)), said.getvalue()


def version_of(plan: Plan) -> str:
    (block,) = plan.blocks
    return block.arms[0].spec.runtime.version


def test_the_newest_stable_release_with_a_wheel_for_this_machine_is_measured_from_defaults(
    index: ReleaseIndex, tmp_path: Path
) -> None:
    index.offer(NAME, ["1.40.0", "1.41.0rc1", "1.43.0", "1.44.0", "..", "99999999999999999999999999999999.0"])
    plan, said = planned(tmp_path / "home")
    assert (version_of(plan), said) == ("1.40.0", "")
    assert find_newest_release(home=tmp_path / "home", with_prereleases=True) == Runtime.of("onnxruntime==1.41.0rc1")
    assert resolve_runtimes("1.31.1, newest", home=tmp_path / "home") == "1.31.1,1.40.0"
    assert resolve_runtimes(None, home=tmp_path / "home", with_prereleases=True) == "1.41.0rc1"
    assert version_of(planned(tmp_path / "home", pre=True)[0]) == "1.41.0rc1", "where the matrix says so"
    assert version_of(planned(tmp_path / "home", runtime="1.41.0rc1")[0]) == "1.41.0rc1", "by its name"
    assert index.asked == {NAME: 1}, "what the index says is believed for ten minutes"


def test_a_release_appears_after_ten_minutes_in_a_home_that_asked_before(index: ReleaseIndex, tmp_path: Path) -> None:
    assert find_newest_release(home=tmp_path) == Runtime.of("onnxruntime==1.39.0")
    index.offer(NAME, ["1.40.0"])
    assert find_newest_release(home=tmp_path) == Runtime.of("onnxruntime==1.39.0")
    kept = tmp_path / "index" / f"{NAME}.json"
    os.utime(kept, (time.time() - 601, time.time() - 601))
    assert find_newest_release(home=tmp_path) == Runtime.of("onnxruntime==1.40.0")


@pytest.mark.parametrize("kept", ["", "[]", "null", '{"offered": 1}', '{"versions": []}', "\0"])
def test_what_a_home_keeps_wrongly_is_asked_again(index: ReleaseIndex, tmp_path: Path, kept: str) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / f"{NAME}.json").write_text(kept)
    assert set(load_listing(NAME, home=tmp_path).offered) == {"1.31.1", "1.39.0"}


def test_offline_the_newest_known_release_is_measured_and_that_is_said(
    index: ReleaseIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", DEAD)
    plan, said = planned(tmp_path)
    assert version_of(plan) == "1.32.0"
    assert "did not answer" in said
    with pytest.raises(Infrastructure, match="did not answer"):
        resolve_runtimes("newest", home=tmp_path)


def test_a_candidate_can_be_bisected_by_its_name_and_no_other_is_searched(index: ReleaseIndex, tmp_path: Path) -> None:
    index.offer(NAME, ["1.40.0", "1.41.0rc1", "1.42.0"])
    good, bad = Runtime.of("onnxruntime==1.39.0"), Runtime.of("onnxruntime==1.41.0rc1")
    assert bisection.list_candidates(good, bad, home=tmp_path) == ["1.39.0", "1.40.0", "1.41.0rc1"]
    last = Runtime.of("onnxruntime==1.42.0")
    assert bisection.list_candidates(good, last, home=tmp_path) == ["1.39.0", "1.40.0", "1.42.0"]
    early = bisection.list_candidates(good, last, home=tmp_path, with_prereleases=True)
    assert early == ["1.39.0", "1.40.0", "1.41.0rc1", "1.42.0"]
    with pytest.raises(Usage, match=r"1\.41\.5 does not exist"):
        bisection.list_candidates(good, Runtime.of("onnxruntime==1.41.5"), home=tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gate", RELU, "--baseline", "1.41.0rc1"], "are both onnxruntime==1.41.0rc1"),
        (["gate", RELU, "--baseline", "1.41.0rc1", "--candidate", "newest"], "are both onnxruntime==1.41.0rc1"),
        (["gate", RELU, "--baseline", "newest", "--candidate", "1.40.0"], "are both onnxruntime==1.40.0"),
        (["bisect", RELU, "--good", "1.41.0rc1", "--bad", "newest"], "are both onnxruntime==1.41.0rc1"),
        (["compare", RELU, RELU], "the same model"),
        (["compare", "old.json", "new.json"], "the options that measure"),
    ],
)
def test_every_command_that_names_releases_takes_pre_releases_for_the_newest(
    index: ReleaseIndex, tmp_path: Path, words: list[object], said: str
) -> None:
    index.offer(NAME, ["1.40.0", "1.41.0rc1"])
    result = CliRunner().invoke(app, [str(word) for word in (*words, "--pre", "--home", tmp_path)])
    assert (result.exit_code, said in result.stderr.splitlines()[-1]) == (2, True), result.stderr


@pytest.fixture
def version(team: Team, owner: User) -> Version:
    make_node(team, owner)
    return make_version(team, owner)


@pytest.mark.django_db(transaction=True)
def test_a_farm_asks_the_index_for_a_release_that_it_does_not_know(
    index: ReleaseIndex, version: Version, farm: Client
) -> None:
    index.offer(NAME, ["1.40.0"])
    assert farm.plan(version.pk, {"matrix": {"runtime": ["1.39.0", "1.40.0"]}}).parsed.cells == 2
    assert farm.plan(version.pk, {"matrix": {"runtime": ["1.31.1"]}}).parsed.cells == 1
    index.offer(NAME, ["1.42.0"])
    for _ in range(3):
        with pytest.raises(Usage, match=r"1\.42\.0 does not exist"):
            farm.plan(version.pk, {"matrix": {"runtime": ["1.42.0"]}})
    assert index.asked == {NAME: 1}
    IndexLook.objects.update(looked_at="2020-01-01T00:00Z")
    assert check_release(NAME, "1.42.0") == "1.42.0"
    assert farm.plan(version.pk, {"matrix": {"include": [{"runtime": "1.42.0"}]}}).parsed.cells == 1


@pytest.mark.django_db(transaction=True)
def test_a_farm_plans_the_newest_of_all_where_that_is_asked(
    index: ReleaseIndex, version: Version, farm: Client
) -> None:
    index.offer(NAME, ["1.40.0", "1.41.0rc1"])
    assert looks.poll_due_indexes() == 4
    for pre, version_planned in ((False, "1.40.0"), (True, "1.41.0rc1")):
        (block,) = farm.plan(version.pk, {"batch": [1], "pre": pre}).parsed.blocks
        assert {arm.spec.runtime.version for arm in block.arms} == {version_planned}


@pytest.mark.django_db
def test_a_farm_offers_within_ten_minutes_what_appears_without_any_watch(index: ReleaseIndex) -> None:
    assert not Watch.objects.exists()
    assert (looks.poll_due_indexes(), list_known_releases().newest.version) == (2, "1.39.0")
    index.offer(NAME, ["1.40.0", "1.41.0rc1"])
    assert looks.poll_due_indexes() == 0
    IndexLook.objects.update(looked_at=timezone.now() - timedelta(minutes=9, seconds=1))
    assert (looks.poll_due_indexes(), list_known_releases().newest.version) == (2, "1.40.0")


@pytest.mark.django_db(transaction=True)
def test_a_farm_whose_index_does_not_answer_says_so(
    index: ReleaseIndex, version: Version, farm: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", DEAD)
    with pytest.raises(Usage, match=r"1\.40\.0 does not exist.* The package index gives no releases of onnxruntime"):
        farm.plan(version.pk, {"matrix": {"runtime": ["1.40.0"]}})
    with pytest.raises(Invalid, match=r"The package index gives no releases of onnxruntime"):
        check_release(NAME, "1.40.0")
    assert farm.plan(version.pk, {"matrix": {"runtime": ["1.31.1"]}}).parsed.cells == 1
