"""Versions of models in one block: `models` of a matrix, from its plan to the document and the lists."""

from typing import Any

import pytest

from farm.accounts.models import Team, User
from farm.base.refusals import Conflict, Invalid, Missing
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.registry.services import remove_version
from farm.registry.states import VersionState
from farm.runs.models import Beside, Cell, Run
from farm.runs.selectors import document, find_leased_file
from farm.runs.selectors.cells import cells_matching
from farm.runs.services import conclude_runs, start_run
from tests.integration.runs.making import claim, first_block, make_artifact, make_node, make_version, measure
from tests.integration.runs.making import make_run as make_any_run

pytestmark = pytest.mark.django_db
ONE = {"runtime": ["1.31.1"], "batch": [1]}


@pytest.fixture
def newer(version: Version, team: Team) -> Version:
    """Version 2 of the same model."""
    return Version.objects.create(
        model=version.model,
        number=2,
        artifact=make_artifact(team, "encoder-2"),
        state=VersionState.READY,
        inspection=version.inspection,
    )


@pytest.fixture
def node(team: Team) -> Node:
    return make_node(team)


def make_run(version: Version, member: User, *models: str, **settings: Any) -> Run:
    return make_any_run(version, member, matrix=ONE, models=list(models), **settings)


@pytest.mark.parametrize("named", ["previous", "encoder@1", "encoder@v1"])
def test_two_versions_share_a_block_and_have_one_verdict(
    node: Node, version: Version, newer: Version, member: User, named: str
) -> None:
    run = make_run(newer, member, named)
    block = first_block(run)
    assert [arm.cell.beside and arm.cell.beside.version for arm in block.arms.order_by("number")][:2] == [version, None]
    measure(node, block, {0: 1.0, 1: 1.5, 2: 1.0})
    conclude_runs()
    run.refresh_from_db()
    found = document(run)
    assert [(cell.model, cell.status) for cell in found.cells][:2] == [("encoder v1", "done"), ("encoder v2", "done")]
    (comparison,) = [comparison for comparison in found.comparisons if comparison.axis == "model"]
    assert (comparison.baseline, comparison.candidate, comparison.verdict) == ("c1", "c2", "slower")


def test_each_arm_has_the_files_of_its_own_version(node: Node, version: Version, newer: Version, member: User) -> None:
    run = make_run(newer, member, "previous")
    lease = claim(node, first_block(run))
    assert [arm.source.main for arm in lease.order.arms][:2] == ["encoder.onnx", "encoder-2.onnx"]
    assert [arm.bundle for arm in lease.order.arms] == [arm.source for arm in lease.order.arms]


def test_a_node_of_before_gets_no_block_of_two_models(
    node: Node, version: Version, newer: Version, member: User
) -> None:
    block = first_block(make_run(newer, member, "previous"))
    with pytest.raises(Conflict, match="older than blocks of several models"):
        claim(node, block, understands=())
    assert claim(node, block).order.block == str(block.pk)


def test_a_node_without_walls_measures_what_its_owner_uploaded_alone(
    team: Team, version: Version, newer: Version, member: User, owner: User
) -> None:
    node = make_node(team, name="bare", owner=member, sandbox="none")
    make_node(team, name="walled")
    Version.objects.update(uploaded_by=member)
    own = first_block(make_run(newer, member, "previous"))
    Version.objects.filter(pk=version.pk).update(uploaded_by=owner)
    with pytest.raises(Conflict, match="having no sandbox"):
        claim(node, own)
    Version.objects.update(uploaded_by=member)
    assert claim(node, own).order.block == str(own.pk)


def test_a_block_lends_the_files_of_its_versions_and_of_no_other(
    node: Node, team: Team, version: Version, newer: Version, member: User
) -> None:
    block = first_block(make_run(newer, member, "previous"))
    for side in (version, newer):
        # it is not really stored: whether it may be had was asked before
        sha256 = side.artifact.files.get().blob.sha256
        with pytest.raises(Missing):
            find_leased_file(block, sha256)
        assert block.run.team.blobs.filter(sha256=sha256).exists()


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("encoder@3", "does not have"),
        ("decoder@1", "does not have"),
        ("encoder@2", "is the version that is measured"),
        ("private@1", "does not have"),
        ("copy@1", "has the same files as encoder v2"),
    ],
)
def test_what_cannot_stand_beside_is_refused_in_a_sentence(
    node: Node, team: Team, version: Version, newer: Version, member: User, named: str, told: str
) -> None:
    make_version(Team.objects.create(name="others"), name="private")
    copy = make_version(team, name="copy")
    Version.objects.filter(pk=copy.pk).update(artifact=newer.artifact)
    with pytest.raises(Invalid, match=told):
        start_run(version=newer, matrix={"matrix": ONE, "models": [named]}, requested_by=member)
    assert not Run.objects.exists()


def test_the_first_version_has_none_before_it(node: Node, version: Version, member: User) -> None:
    with pytest.raises(Invalid, match="no version before it"):
        start_run(version=version, matrix={"matrix": ONE, "models": "previous"}, requested_by=member)


@pytest.mark.parametrize(
    "written", ["encoder", "encoder@", "@1", "encoder@x", ["encoder@1"] * 2, ["a@1"] * 9, 3, {"encoder": 1}, ["a\n@1"]]
)
def test_models_are_named_by_versions_alone(node: Node, version: Version, member: User, written: object) -> None:
    with pytest.raises(Invalid, match="models"):
        start_run(version=version, matrix={"matrix": ONE, "models": written}, requested_by=member)


def test_a_version_that_a_run_measured_beside_another_stays(
    node: Node, version: Version, newer: Version, member: User
) -> None:
    make_run(newer, member, "previous")
    assert remove_version(version=version, by=member).hidden == 1
    assert Beside.objects.get().version == version


def test_lists_across_runs_tell_of_the_runs_own_version_alone(
    node: Node, version: Version, newer: Version, member: User
) -> None:
    run = make_run(newer, member, "previous")
    measure(node, first_block(run), {0: 1.0, 1: 1.5, 2: 1.0})
    assert [(cell.name, cell.version) for cell in cells_matching(member, "encoder")] == [("c2", 2)]


def test_another_signature_is_measured_side_by_side_by_its_own_sizes(
    node: Node, team: Team, version: Version, newer: Version, member: User
) -> None:
    port = {"name": "tokens", "dtype": "int64", "shape": ["N", 8]}
    Version.objects.filter(pk=newer.pk).update(
        inspection={**newer.inspection, "inputs": [port], "feed": {"inputs": {"tokens": "0..9"}}}
    )
    run = make_run(Version.objects.get(pk=newer.pk), member, "previous")
    assert Cell.objects.filter(run=run).exclude(status="").count() == 0
    assert "'tokens'" in run.events.order_by("pk")[1].text
