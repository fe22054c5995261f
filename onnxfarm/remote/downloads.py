"""Downloads a version of a model from a farm."""

import re
from pathlib import Path

from farm.contract.base import FILE_NAME
from onnxfarm.problems import Infrastructure, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.lookups import find_version

MODEL_ROLE, DATA_ROLE = "model", "data"


def download_version(name: str, *, folder: Path) -> Path:
    """Download a version of a model with its external data, and return the path of the .onnx.

    `name`: NAME@VERSION. The farm is that of $ONNXFARM_SERVER, else of `onnxfarm login`. The files go into a new folder
    `model-ID` in `folder`, where ID is the model's number; `folder` must exist. After an error, the new folder stays,
    and has to be removed before another try. Raises Usage if there is no such version or the new folder exists, and
    Infrastructure if the farm fails, if a digest is wrong, or if the farm no longer has the files.
    """
    with Client(find_account()) as client:
        version = find_version(client, name)
        # a model in a file called model.onnx gets its name from the folder
        version_folder = folder / f"model-{version.model_id}"
        try:
            version_folder.mkdir()
        except FileExistsError as error:
            raise Usage(
                f"{version_folder} exists already: remove it, or download {name} into another folder."
            ) from error
        files = [file for file in version.files if file.role in (MODEL_ROLE, DATA_ROLE)]
        for file in files:
            if not re.fullmatch(FILE_NAME, file.name) or not file.name.strip("."):
                raise Infrastructure(
                    f"{client.account.server} calls a file {file.name[:80]!r}, which is no file's name."
                )
            digest = client.save_file(
                operations.VERSION_FILE,
                version_folder / file.name,
                max_bytes=file.bytes,
                version=version.id,
                name=file.name,
            )
            if digest != file.sha256:
                raise Infrastructure(
                    f"{file.name} of {name} came with other bytes than the farm has (sha256 {digest[:12]}, "
                    f"not {file.sha256[:12]}): run the command again."
                )
    models = [version_folder / file.name for file in files if file.role == MODEL_ROLE]
    if not models:
        raise Infrastructure(f"{name} has no files any more: its team's retention removed them.")
    return models[0]
