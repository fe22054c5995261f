"""Which releases of ONNX Runtime load a model: what the health check of a deployment asks."""

from django.http import HttpRequest
from ninja import Router, Schema

from farm.api.auth import person
from farm.registry import selectors
from farm.rules.runtimes import compatibility
from farm.runs.selectors.compatibility import compatibility_of

router = Router(tags=["registry"])


class ReleaseOut(Schema):
    """`basis`: measured (a runner of this release was given the model) or derived (from its stamps)."""

    version: str
    loads: bool
    basis: str
    code: str | None
    text: str
    loads_as_variant: bool
    executed_nodes: int | None
    fusions_differ: bool


class CompatibilityOut(Schema):
    """`lowest`: the oldest release that loads the model as it is; null when none is known to."""

    sentence: str
    lowest: str | None
    rows: list[ReleaseOut]


@router.get("/versions/{int:version_id}/compatibility", response=CompatibilityOut)
def compatibility_table(request: HttpRequest, version_id: int) -> CompatibilityOut:
    """Every known release of ONNX Runtime: whether it loads this version, why not, and how that is known."""
    user = person(request)
    rows = compatibility_of(selectors.version(user, version_id))
    return CompatibilityOut.model_validate(compatibility.as_plain(rows))
