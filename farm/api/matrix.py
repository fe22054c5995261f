"""The schema of matrix files, and the matrix that is measured when none is given."""

from django.http import HttpRequest
from ninja import Router

from farm.rules.matrices import matrix as matrices

router = Router(tags=["runs"])


@router.get("/matrix-schema", auth=None, response=dict[str, object])
def matrix_schema(request: HttpRequest) -> dict[str, object]:
    """The JSON schema (2020-12) of a matrix file; editors may point at this address."""
    return matrices.json_schema()


@router.get("/matrix-default", auth=None, response=dict[str, object])
def matrix_default(request: HttpRequest) -> dict[str, object]:
    """The matrix that is measured when a run names none."""
    return dict(matrices.default_matrix().as_plain())
