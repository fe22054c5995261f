"""A model version that carries its framework's program: kept, inspected, planned, and written for nodes."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from dashboard.views.variant import variant_name
from farm.contract.cells import Recipe
from farm.contract.reasons import ReasonCode
from farm.registry import services
from farm.registry.models import Version
from farm.registry.selectors import model_facts, open_stored_file
from farm.registry.states import MakingState, VersionState
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from tests import programs
from tests.integration.registry.uploading import upload_and_inspect

pytestmark = pytest.mark.slow
PROGRAM = Recipe(is_program=True)


@pytest.fixture
def version(transactional_db: None, member_api: Client, tmp_path: Path) -> Callable[..., Version]:
    """Uploads the small model beside a program and inspects both."""
    return lambda program: upload_and_inspect(member_api, programs.write_onnx(tmp_path / "small.onnx"), program)


def test_a_program_is_part_of_the_version_and_is_planned_for_pytorch_alone(
    version: Callable[..., Version], member_api: Client, tmp_path: Path
) -> None:
    row = version(programs.write_program(tmp_path / "small.pt2"))
    assert (row.state, row.problem) == (VersionState.READY, "")
    assert [one.name for one in row.artifact.bundle.files] == ["small.onnx", "small.pt2"]
    sent = member_api.get(f"/api/v1/versions/{row.pk}/files/small.pt2")
    assert b"".join(sent.streaming_content) == (tmp_path / "small.pt2").read_bytes()  # type: ignore[attr-defined]
    assert sent["Content-Disposition"] == 'attachment; filename="small.pt2"'
    facts = model_facts(row)
    assert (facts.source.name, facts.source.problem) == ("small.pt2", "")
    runtimes = ["torch==2.13.0", "1.31.1"]
    plan = planner.plan(matrix.parse({"matrix": {"runtime": runtimes}}), facts)
    assert [arm.spec.recipe.is_program for arm in plan.blocks[0].arms] == [True, False]
    assert not plan.refused


def test_nodes_are_given_the_program_without_what_is_pickled(version: Callable[..., Version], tmp_path: Path) -> None:
    row = version(programs.write_program(tmp_path / "small.pt2"))
    variant = services.ensure_variant(artifact=row.artifact, recipe=PROGRAM)
    assert variant.state == MakingState.PENDING
    services.make_variant(variant.pk)
    variant.refresh_from_db()
    assert (variant.state, variant.reason) == (MakingState.READY, None)
    assert variant_name(variant) == "program for PyTorch"
    (file,) = variant.bundle.files
    assert (file.name, variant.bundle.main) == ("model.pt2", "model.pt2")
    with open_stored_file(file.sha256) as stored, zipfile.ZipFile(stored) as archive:
        assert archive.read("model/data/sample_inputs/model.pt") == b""
        assert json.loads(archive.read("model/extra/onnxfarm.json"))["outputs"] == ["y"]


def test_a_program_with_operators_of_others_leaves_its_version_ready_and_is_refused_in_the_plan(
    version: Callable[..., Version], tmp_path: Path
) -> None:
    def change(graph: dict[str, object]) -> None:
        graph["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mylib.foo.default"

    row = version(programs.write_program(tmp_path / "small.pt2", change=change))
    assert row.state == VersionState.READY
    plan = planner.plan(matrix.parse({"matrix": {"runtime": ["torch==2.13.0"]}}), model_facts(row))
    (refused,) = plan.refused
    assert refused.reason.code == ReasonCode.MODEL_NOT_LOADED
    assert refused.reason.text.startswith("small.pt2 uses the operator mylib::foo, which is not PyTorch's own")
    variant = services.ensure_variant(artifact=row.artifact, recipe=PROGRAM)
    services.make_variant(variant.pk)
    variant.refresh_from_db()
    assert variant.state == MakingState.FAILED
    assert variant.reason.code == ReasonCode.MODEL_NOT_LOADED
