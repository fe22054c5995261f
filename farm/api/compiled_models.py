"""A model that a provider compiled while a cell was measured: for what, and its bytes."""

from django.http import FileResponse, HttpRequest
from ninja import Router, Schema
from pydantic import Field

from farm.api.auth import person
from farm.api.description import describe_file
from farm.base.refusals import Gone, Missing, NotAllowed
from farm.registry.selectors import find_stored_file
from farm.rules.reporting import compiled_models as words
from farm.runs import selectors
from farm.runs.models import CompiledModel, Run

router = Router(tags=["runs"])


class CompiledOut(Schema):
    """What a provider compiled of a cell's model, and for what: as the node that measured it says."""

    sha256: str = Field(description="the digest of the file")
    bytes: int = Field(description="its size")
    url: str = Field(description="where it is fetched")
    sentence: str = Field(description="for what it was compiled, in words")
    provider: str = Field(description="the provider that compiled it, and that runs it")
    provider_options: dict[str, str] = Field(description="the options it was compiled with, such as soc_model")
    runtime: str = Field(description="the runtime that compiled it")
    packages: dict[str, str] = Field(description="every package of that runtime's environment")
    device: dict[str, str] = Field(description="what the plug-in and its device say of themselves")
    simulated: bool = Field(description="whether a simulator stood in for the device")


@router.get("/runs/{int:run_id}/cells/{str:cell}/compiled", response=CompiledOut)
def compiled(request: HttpRequest, run_id: int, cell: str) -> CompiledOut:
    """What a provider compiled of a cell's model, and for what."""
    run = selectors.run(person(request), run_id)
    model = _find_compiled(run, cell)
    document = selectors.cell_document(run, cell)
    return CompiledOut(
        sha256=model.blob.sha256,
        bytes=model.blob.bytes,
        url=f"/api/v1/runs/{run_id}/cells/{cell}/compiled.onnx",
        sentence=words.describe_compilation(document),
        provider=document.provider,
        provider_options={name: str(value) for name, value in document.provider_options.items()},
        runtime=str(document.runtime),
        packages=document.packages,
        device=document.provider_facts,
        simulated=document.simulated,
    )


@router.get(
    "/runs/{int:run_id}/cells/{str:cell}/compiled.onnx",
    openapi_extra=describe_file("application/octet-stream", "a model of nodes EPContext, as the node sent it"),
)
def compiled_file(request: HttpRequest, run_id: int, cell: str) -> FileResponse:
    """The compiled model itself, byte by byte as a node sent it: load it in a sandbox, or upload it again."""
    run = selectors.run(person(request), run_id)
    if not selectors.can_write_run(person(request), run):
        raise NotAllowed(f"Only members can download what was compiled in run {run_id}: it is a model.")
    model = _find_compiled(run, cell)
    name = selectors.name_compiled_model(selectors.cell_document(run, cell))
    stored = find_stored_file(model.blob.sha256).open("rb")
    return FileResponse(stored, content_type="application/octet-stream", filename=name, as_attachment=True)


def _find_compiled(run: Run, cell: str) -> CompiledModel:
    model = selectors.compiled_model(run, cell)
    if model is None:
        if gone := selectors.explain_removed_compiled(run, cell):
            raise Gone(gone, code="retention")
        raise Missing(
            f"Nothing was compiled for cell {cell} of run {run.pk}: a provider that compiles, such as qnn, leaves a "
            "model where its cell was measured and the model is not compiled already."
        )
    return model
