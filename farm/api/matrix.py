"""The schema of matrix files, and the matrix that is measured when none is given."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from farm.rules.matrices import matrix as matrices

router = Router(tags=["runs"])


@router.get("/matrix-schema", auth=None, response=dict[str, Any])
def matrix_schema(request: HttpRequest) -> dict[str, Any]:
    """The JSON schema (2020-12) of a matrix file; editors may point at this address."""
    return matrices.json_schema()


@router.get("/matrix-default", auth=None, response=dict[str, Any])
def matrix_default(request: HttpRequest) -> dict[str, Any]:
    """The matrix that is measured when a run names none."""
    return matrices.default().as_plain()
