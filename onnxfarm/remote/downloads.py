"""Downloads a version of a model from a farm."""

import re
from pathlib import Path

from farm.contract.base import FILE_NAME
from onnxfarm.problems import Infrastructure
from onnxfarm.remote import operations
from onnxfarm.remote.account import find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.lookups import find_version

ROLES = ("model", "data")


def download_version(name: str, *, folder: Path) -> Path:
    """Download the model that NAME@VERSION names, with its external data; return the .onnx's path.

    The files go into the new folder `model-<id>` below `folder`, which must not be there yet.
    The farm is that of $ONNXFARM_SERVER or of `onnxfarm login`. Raises Usage and Infrastructure.
    """
    with Client(find_account()) as client:
        version = find_version(client, name)
        # a file called model.onnx gets its name from its folder
        folder = folder / f"model-{version.model_id}"
        folder.mkdir()
        files = [file for file in version.files if file.role in ROLES]
        for file in files:
            if not re.fullmatch(FILE_NAME, file.name) or not file.name.strip("."):
                raise Infrastructure(
                    f"{client.account.server} calls a file {file.name[:80]!r}, which is no file's name."
                )
            digest = client.save_file(
                operations.VERSION_FILE, folder / file.name, max_bytes=file.bytes, version=version.id, name=file.name
            )
            if digest != file.sha256:
                raise Infrastructure(
                    f"{file.name} of {name} came with other bytes than the farm has (sha256 {digest[:12]}, "
                    f"not {file.sha256[:12]}): run the command again."
                )
    models = [folder / file.name for file in files if file.role == ROLES[0]]
    if not models:
        raise Infrastructure(f"{name} has no files any more: its team's retention removed them.")
    return models[0]
