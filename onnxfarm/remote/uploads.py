"""Uploads a model to a farm, and waits until the farm has inspected it and checked its labelled data."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from farm.contract.api.registry import VersionOut
from onnxfarm.model_files import check_exported_program, derive_model_name, list_model_files
from onnxfarm.outputs import print_lines
from onnxfarm.problems import TimedOut, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.client import Client

POLL_S = 0.3
LIMIT_S = 300.0


@dataclass(frozen=True)
class Bundle:
    """A model on disk to upload. `files_by_role`: its inputs, prompts, expected outputs and so on.

    `fields`: model, note, team, recipe and so on. `source`: the framework's program that the model was exported from.
    Files that are None and fields that are empty are not sent.
    """

    model: Path
    files_by_role: Mapping[str, Path | None] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    source: Path | None = None

    @property
    def model_files(self) -> list[Path]:
        """The .onnx or .zip first, then its external data, then the program. Raises Usage for other kinds of files."""
        files = list_model_files(self.model)
        return files if self.source is None else [*files, check_exported_program(self.source)]


def upload_and_inspect(client: Client, bundle: Bundle, *, console: Console) -> VersionOut:
    """Upload a model, wait until the farm has inspected it, and return its version.

    Uploading the same files again returns the same version. Without a `model` in its fields, the model may get its name
    from its folder, see `derive_model_name`. Raises Usage for files that cannot be used, and with the farm's sentence
    if the model is rejected or its labelled data do not fit; TimedOut LIMIT_S seconds after the upload; and
    Infrastructure.
    """
    files = bundle.model_files
    files_by_role = {role: path for role, path in bundle.files_by_role.items() if path is not None}
    fields = {name: text for name, text in bundle.fields.items() if text}
    if model_name := derive_model_name(bundle.model):
        fields.setdefault("model", model_name)

    all_files = [*files, *files_by_role.values()]
    print_lines(f"Uploading {', '.join(path.name for path in all_files)}", console=console)
    with _open_bar(console, files=all_files) as advance:
        version = client.upload(files, roles=files_by_role, fields=fields, progress=advance)
    print_lines(f"Stored as {version.model} v{version.number} in team {version.team}", console=console)

    deadline = time.monotonic() + LIMIT_S
    while version.state in ("pending", "inspecting"):
        if time.monotonic() > deadline:
            raise TimedOut(
                f"{version.model} v{version.number} was not inspected within {LIMIT_S:.0f} s; "
                "is the farm's `prepare` worker running?"
            )
        time.sleep(POLL_S)
        version = client.call(operations.VERSION, version=version.id)
    if version.state == "rejected":
        raise Usage(f"{files[0].name} was rejected: {version.problem}")
    data = files_by_role.get("evaluation")
    return version if data is None else _wait_for_data(client, version, data, deadline=deadline)


def _wait_for_data(client: Client, version: VersionOut, data: Path, *, deadline: float) -> VersionOut:
    """Wait until the farm has checked a version's labelled data. Raises Usage if they do not fit, and TimedOut."""
    while (evaluation := version.evaluation) and evaluation.state in ("pending", "making"):
        if time.monotonic() > deadline:
            raise TimedOut(f"{data.name} was not checked in time; is the farm's `prepare` worker running?")
        time.sleep(POLL_S)
        version = client.call(operations.VERSION, version=version.id)
    if evaluation and evaluation.state == "failed":
        raise Usage(f"{data}: {evaluation.problem}")
    return version


@contextlib.contextmanager
def _open_bar(console: Console, *, files: list[Path]) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, and nothing elsewhere. Yield a function that advances it by bytes."""
    columns = (TextColumn("upload"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sum(path.stat().st_size for path in files if path.is_file()))
        yield lambda size: progress.advance(task, size)
