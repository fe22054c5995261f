"""Which releases of ONNX Runtime load a model: what the health check of a deployment asks."""

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from farm.api.auth import person
from farm.registry import selectors
from farm.rules.runtimes import compatibility
from farm.runs.selectors.compatibility import compatibility_of

router = Router(tags=["registry"])


class ReleaseOut(Schema):
    """`basis`: measured (a runner of this release was given the model), derived (from its stamps) or untried."""

    version: str = Field(description="the release of ONNX Runtime")
    loads: bool = Field(description="whether it loads the model as it is")
    basis: str = Field(
        description="measured (a runner of this release was given the model), derived (from its stamps) or untried"
    )
    code: str | None = Field(description="why it does not, for programs; null: it does")
    text: str = Field(description="why it does not, or what is known")
    loads_as_variant: bool = Field(description="whether it loads the model converted to an opset that it knows")
    executed_nodes: int | None = Field(description="how many nodes it ran, where that was traced")
    fusions_differ: bool = Field(description="whether it fused otherwise than the release before")


class CompatibilityOut(Schema):
    """`lowest`: the oldest release that loads the model as it is; null when none is known to."""

    sentence: str = Field(description="the answer in one sentence")
    lowest: str | None = Field(description="the oldest release that loads the model as it is; null: none is known to")
    rows: list[ReleaseOut] = Field(description="release by release")


@router.get("/versions/{int:version_id}/compatibility", response=CompatibilityOut)
def compatibility_table(request: HttpRequest, version_id: int) -> CompatibilityOut:
    """Every known release of ONNX Runtime: whether it loads this version, why not, and how that is known."""
    user = person(request)
    rows = compatibility_of(selectors.version(user, version_id))
    return CompatibilityOut.model_validate(compatibility.table_as_plain(rows))
