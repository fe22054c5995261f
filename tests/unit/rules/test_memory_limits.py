"""A memory limit in a matrix: what it may be, where it is held, and that cells without one are the cells of before."""

import pytest

from farm.contract.cells import CellSpec, Runtime, SessionSettings
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from tests.unit.rules.making import make_model, only_refusal


@pytest.mark.parametrize(("written", "read"), [("none", 0), (0, 0), ("0", 0), (1024, 1024), ("64", 64)])
def test_a_limit_is_mib_or_none(written, read):
    assert matrix.parse({"runtime": "1.31.1", "memory_limit_mb": written}).axes["memory-limit-mb"] == (read,)


@pytest.mark.parametrize("written", ["1 GiB", -1, False, True, 1.5, 1 << 40, ""])
def test_anything_else_is_refused(written):
    with pytest.raises(MatrixProblem, match="memory-limit-mb"):
        matrix.parse({"runtime": "1.31.1", "memory_limit_mb": written})


def test_cells_without_a_limit_have_the_digests_of_before():
    usual = CellSpec(artifact_sha256="0" * 64, runtime=Runtime(distribution="onnxruntime", version="1.31.1"))
    assert "memory_limit_mb" not in usual.model_dump(mode="json")["session"]
    limited = usual.model_copy(update={"session": SessionSettings(memory_limit_mb=64)})
    assert limited.digest != usual.digest
    assert "memory_limit_mb" not in SessionSettings(memory_limit_mb=0).model_dump()


def test_a_matrix_may_have_cells_with_and_without():
    plan = planner.plan(matrix.parse({"runtime": "1.31.1", "memory_limit_mb": ["none", 1024]}), make_model())
    assert {arm.spec.session.memory_limit_mb for block in plan.blocks for arm in block.arms} == {0, 1024}


def test_a_device_takes_no_limit():
    asked = {"runtime": "onnxruntime-gpu==1.24.1", "provider": "cuda", "memory_limit_mb": 64}
    reason = only_refusal(planner.plan(matrix.parse(asked), make_model()))
    assert "of which CUDAExecutionProvider takes far more than it uses: leave memory-limit-mb out" in reason.text
