"""A version of a farm as files here."""

import re
from pathlib import Path

from farm.contract.base import FILE_NAME
from onnxfarm.problems import Infrastructure
from onnxfarm.remote import operations
from onnxfarm.remote.account import find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.lookups import find_version

ROLES = ("model", "data")


def download_version(named: str, *, folder: Path) -> Path:
    """Download the model of NAME@VERSION with its external data below `folder`, and return the path of the .onnx.

    It comes from the farm of $ONNXFARM_SERVER or of `onnxfarm login`. Raises Usage and Infrastructure.
    """
    with Client(find_account()) as client:
        version = find_version(client, named)
        # the folder says which model a file called model.onnx is
        folder = folder / f"model-{version.model_id}"
        folder.mkdir()
        files = [file for file in version.files if file.role in ROLES]
        for file in files:
            if not re.fullmatch(FILE_NAME, file.name) or not file.name.strip("."):
                raise Infrastructure(
                    f"{client.account.server} calls a file {file.name[:80]!r}, which is no file's name."
                )
            saved = client.save_file(
                operations.VERSION_FILE, folder / file.name, max_bytes=file.bytes, version=version.id, name=file.name
            )
            if saved != file.sha256:
                raise Infrastructure(
                    f"{file.name} of {named} came with other bytes than the farm has (sha256 {saved[:12]}, "
                    f"not {file.sha256[:12]}): run the command again."
                )
    models = [folder / file.name for file in files if file.role == ROLES[0]]
    if not models:
        raise Infrastructure(f"{named} has no files any more: its team's retention removed them.")
    return models[0]
