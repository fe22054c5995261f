"""Labelled data for a version that is in the registry already."""

from django.http import HttpRequest
from ninja import Router, Status

from farm.api.auth import person
from farm.api.models import shape_version
from farm.base.refusals import Invalid
from farm.contract.api.registry import VersionOut
from farm.registry import selectors, services
from farm.registry.upload_handler import StoredUpload
from farm.rules.quality.accuracy_metrics import METRICS

router = Router(tags=["registry"])
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["evaluation"],
                    "properties": {
                        "evaluation": {"type": "string", "format": "binary"},
                        "recipe": {
                            "type": "string",
                            "description": f"[STEP+]METRIC[@OUTPUT] of {', '.join(METRICS)}; default: top1",
                        },
                    },
                }
            }
        },
    }
}


@router.post("/versions/{int:version_id}/evaluation", response={202: VersionOut}, openapi_extra=FORM)
def add_evaluation(request: HttpRequest, version_id: int) -> Status[VersionOut]:
    """Give a version labelled data: an `.npz` of its inputs by name and `labels`.

    They are inspected in the sandbox: read the version until `evaluation.state` is ready or failed. They replace data
    that the version has already.
    """
    user = person(request)
    version = selectors.version(user, version_id)
    files = [file for file in request.FILES.getlist("evaluation") if isinstance(file, StoredUpload)]
    if len(files) != 1:
        raise Invalid(
            f"{len(files)} files came in the field evaluation; one is taken.",
            code="bad_form",
            hint="Send multipart/form-data with one .npz in the field evaluation.",
        )
    recipe = request.POST.get("recipe", "")
    services.add_evaluation(version=version, by=user, draft=files[0].draft, recipe=recipe)
    return Status(202, shape_version(selectors.version(user, version.pk)))
