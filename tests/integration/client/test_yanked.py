"""Releases that a package index took back (PEP 592), as a real index on this machine says it and pip reads it."""

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from farm.accounts.models import Team, User
from farm.alerts.models import Release, Watch
from farm.alerts.selectors.releases import list_published as known_to_the_farm
from farm.alerts.services.index import fetch_releases
from farm.contract.cells import Runtime
from farm.registry.models import Version
from farm.rules.matrices import matrix as matrices
from farm.rules.searches.gate import Checks, Gate
from farm.rules.searches.search import carry_out
from onnxfarm.here import workbench
from onnxfarm.here.release_index import list_releases
from onnxfarm.main import app
from onnxfarm.problems import Usage
from onnxfarm.remote import operations
from onnxfarm.remote.client import Client
from onnxfarm.remote.gate import RemoteGate
from onnxfarm.subject import GateRequest, Subject
from tests.acceptance.release_index import ReleaseIndex
from tests.conftest import MODELS
from tests.integration.dashboard.rows import make_node, make_version

NAME = "onnxruntime"
OFFERED, YANKED = ("1.29.0", "1.31.1", "1.32.0"), {"1.30.0": "crashes on AVX-512: <see #1>", "1.33.0": ""}
BROKEN = "onnxruntime==1.30.0 was yanked from the package index (crashes on AVX-512: <see #1>)"
SILENT = "onnxruntime==1.33.0 was yanked from the package index: the nearest that was not is 1.32.0."
DEAD = "http://127.0.0.1:9/simple/"
RELU = MODELS / "relu_op13_ir7.onnx"
OLD, NEW = (Runtime(distribution=NAME, version=version) for version in ("1.30.0", "1.32.0"))
Command = Callable[..., Result]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReleaseIndex]:
    """An index of onnxruntime, two releases of which are yanked; pip sees nothing else."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in (*OFFERED, *YANKED):
        (wheels / f"{NAME}-{version}-py3-none-any.whl").touch()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with ReleaseIndex(wheels, port=0, offered={}) as index:
        index.yanked[NAME] = dict(YANKED)
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


def sentence(result: Result) -> str:
    """The one sentence of a usage error."""
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bisect", RELU, "--good", "1.30.0", "--bad", "1.31.1"], BROKEN),
        (["bisect", RELU, "--good", "1.29.0", "--bad", "1.33.0"], SILENT),
        (["gate", RELU, "--baseline", "1.29.0", "--candidate", "1.30.0"], BROKEN),
        (["gate", RELU, "--baseline", "1.33.0", "--candidate", "1.31.1"], SILENT),
    ],
)
def test_a_yanked_release_is_said_in_a_sentence(index: ReleaseIndex, tmp_path: Path, words: list[object], said: str):
    line = sentence(CliRunner().invoke(app, [str(word) for word in (*words, "--home", tmp_path / "home")]))
    assert line.startswith(f"onnxfarm: {said}")


def test_what_was_yanked_is_not_searched_nor_swept(index: ReleaseIndex, tmp_path: Path) -> None:
    versions = list_releases(NAME, home=tmp_path)
    assert versions[-3:] == ["1.31.0", "1.31.1", "1.32.0"]
    assert "1.30.0" not in versions


@pytest.fixture
def version(team: Team, owner: User) -> Version:
    make_node(team, owner)
    return make_version(team, owner)


@pytest.mark.django_db
def test_the_farm_keeps_what_was_yanked_until_it_is_offered_again(index: ReleaseIndex) -> None:
    assert fetch_releases(NAME) == len(OFFERED)
    assert known_to_the_farm(NAME) == list(OFFERED)
    rows = {row.version: row.yanked_because for row in Release.objects.filter(is_yanked=True, is_gone=True)}
    assert rows == YANKED
    del index.yanked[NAME]["1.33.0"]
    assert fetch_releases(NAME) == 0
    assert known_to_the_farm(NAME) == [*OFFERED, "1.33.0"]
    index.yanked[NAME]["1.29.0"] = "after all"
    fetch_releases(NAME)
    assert "1.29.0" not in known_to_the_farm(NAME)


@pytest.mark.django_db(transaction=True)
def test_a_watch_a_plan_and_a_gate_of_a_farm_say_it_too(
    index: ReleaseIndex, version: Version, farm: Client, onnxfarm: Command
) -> None:
    fetch_releases(NAME)
    wanted = ["watch", "add", "upgrades", "--model", version.model.name, "--reference"]
    assert BROKEN in sentence(onnxfarm(*wanted, "1.30.0"))
    assert not Watch.objects.exists()
    assert onnxfarm(*wanted, "1.29.0").exit_code == 0
    assert SILENT in sentence(onnxfarm("watch", "run", "upgrades", "--candidate", "1.33.0"))
    two = {"matrix": {"runtime": ["1.32.0", "1.30.0"], "batch": [1]}}
    with pytest.raises(Usage, match=r"1\.30\.0 was yanked from the package index"):
        farm.plan(version.pk, two)
    given = GateRequest(Subject(RELU), deadline=None)
    gate = RemoteGate(farm, given, version_id=version.pk, console=Console(file=io.StringIO()))
    with pytest.raises(Usage, match="yanked"):
        carry_out(Gate(lambda: matrices.parse(two), (OLD, NEW), Checks(("slower",))), gate)
    assert farm.call(operations.RUNS) == []


def test_a_release_that_only_the_index_knows_is_planned_and_one_that_it_lacks_is_refused(
    index: ReleaseIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wheels" / f"{NAME}-1.40.0-py3-none-any.whl").touch()
    console = Console(file=io.StringIO())
    with workbench.open_workbench(Subject(RELU), home=tmp_path / "home", console=console) as bench:
        (block,) = bench.plan(matrices.from_options(runtime="1.31.1,1.40.0")).blocks
        assert [arm.spec.runtime.version for arm in block.arms] == ["1.31.1", "1.40.0"]
        with pytest.raises(Usage, match=r"1\.41\.0 does not exist: the nearest known release is 1\.32\.0\.$"):
            bench.plan(matrices.from_options(runtime="1.41.0"))
    monkeypatch.setenv("PIP_INDEX_URL", DEAD)
    with (
        workbench.open_workbench(Subject(RELU), home=tmp_path / "other", console=console) as bench,
        pytest.raises(Usage, match=r"The package index, which might know, did not answer\.$"),
    ):
        bench.plan(matrices.from_options(runtime="1.40.0"))
