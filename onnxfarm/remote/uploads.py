"""Models on their way into a farm's registry: sent, inspected, and what came with them looked at."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from farm.contract.api.registry import VersionOut
from onnxfarm.model_files import derive_model_name, find_program, list_model_files
from onnxfarm.outputs import print_lines
from onnxfarm.problems import TimedOut, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.client import Client

POLL_S = 0.3
LIMIT_S = 300.0


@dataclass(frozen=True)
class Bundle:
    """A model on disk. `beside`: what comes with it by role (inputs, prompts, expected and so on), where given;
    `fields`: model, note, team and recipe, where said; `source`: the framework's program, where given."""

    model: Path
    beside: Mapping[str, Path | None] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    source: Path | None = None

    @property
    def files(self) -> list[Path]:
        return [*list_model_files(self.model), *([find_program(self.source)] if self.source is not None else [])]


def upload_and_inspect(client: Client, bundle: Bundle, *, console: Console) -> VersionOut:
    """Upload a model, wait for its inspection, and return its version; uploading it again is the same one.

    Raises Usage with the farm's sentence when the model is rejected or its labelled data do not fit, and TimedOut after
    LIMIT_S.
    """
    files = bundle.files
    given = {role: path for role, path in bundle.beside.items() if path is not None}
    fields = {name: text for name, text in bundle.fields.items() if text}
    if called := derive_model_name(bundle.model):
        fields.setdefault("model", called)
    print_lines(f"Uploading {', '.join(path.name for path in [*files, *given.values()])}", console=console)
    with _bar(console, files=[*files, *given.values()]) as advance:
        version = client.upload(files, roles=given, fields=fields, progress=advance)
    print_lines(f"Stored as {version.model} v{version.number} in team {version.team}", console=console)
    limit = time.monotonic() + LIMIT_S
    while version.state in ("pending", "inspecting"):
        if time.monotonic() > limit:
            raise TimedOut(
                f"{version.model} v{version.number} was not inspected within {LIMIT_S:.0f} s; "
                "is the farm's `prepare` worker running?"
            )
        time.sleep(POLL_S)
        version = client.call(operations.VERSION, version=version.id)
    if version.state == "rejected":
        raise Usage(f"{files[0].name} was rejected: {version.problem}")
    data = given.get("evaluation")
    return version if data is None else _wait_for_data(client, version, data, until=limit)


def _wait_for_data(client: Client, version: VersionOut, data: Path, *, until: float) -> VersionOut:
    """Return the version once its labelled data were checked. Raises Usage when they do not fit, and TimedOut."""
    while (found := version.evaluation) and found.state in ("pending", "making"):
        if time.monotonic() > until:
            raise TimedOut(f"{data.name} was not checked in time; is the farm's `prepare` worker running?")
        time.sleep(POLL_S)
        version = client.call(operations.VERSION, version=version.id)
    if found and found.state == "failed":
        raise Usage(f"{data}: {found.problem}")
    return version


@contextlib.contextmanager
def _bar(console: Console, *, files: list[Path]) -> Iterator[Callable[[int], None]]:
    """Show a bar of bytes on a terminal; nothing elsewhere."""
    columns = (TextColumn("upload"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sum(path.stat().st_size for path in files if path.is_file()))
        yield lambda size: progress.advance(task, size)
