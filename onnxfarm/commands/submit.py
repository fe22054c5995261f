"""`onnxfarm submit MODEL --matrix FILE --server URL --wait`."""

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices.matrix_text import read_text as read_plain
from onnxfarm.calibration_files import CALIBRATION_HELP, few_sentence
from onnxfarm.commands.feed_options import with_feed
from onnxfarm.commands.options import InputOption, InputsOption, ShapeOption
from onnxfarm.documents import read_text
from onnxfarm.model_files import files_of
from onnxfarm.outcomes import judge_run
from onnxfarm.problems import TimedOut, Usage, main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client

INSPECTION_POLL_S = 0.3
INSPECTION_LIMIT_S = 300.0

MatrixOption = Annotated[
    Path | None, typer.Option("--matrix", metavar="FILE", help="A matrix in YAML or JSON; default: the farm's own.")
]


@main_guard()
def submit(  # noqa: PLR0913  every option of the command
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx (its external data is found), or a .zip.")],
    matrix: MatrixOption = None,
    server: ServerOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end and print what came out.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="With --wait, write the run's document; - is stdout.")
    ] = None,
    shape: ShapeOption = None,
    input_: InputOption = None,
    inputs: InputsOption = None,
    expected: Annotated[Path | None, typer.Option(metavar="NPZ", help="Outputs that these inputs should give.")] = None,
    evaluation: Annotated[
        Path | None, typer.Option(metavar="NPZ", help="Labelled data: inputs by name and `labels`.")
    ] = None,
    calibration: Annotated[Path | None, typer.Option(metavar="NPZ|DIR", help=CALIBRATION_HELP)] = None,
    recipe: Annotated[str, typer.Option(help="How outputs are judged on them: top1 (default), top5, mse, …")] = "",
    name: Annotated[str, typer.Option(help="The model's line in the registry; default: the file's name.")] = "",
    note: Annotated[str, typer.Option(help="A note on this version.")] = "",
    team: Annotated[str, typer.Option(help="Default: your first team.")] = "",
    seed: Annotated[int | None, typer.Option(help="Seed of inputs and of the order of rounds.")] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="With --wait, give up after so long.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when a cell was refused, too.")] = False,
) -> None:
    """Send a model and a matrix to a farm.

    Exit code 0: the run was taken, or with --wait every planned cell is done; 1: one failed, or none was measured.
    """
    if json_file is not None and not wait:
        raise Usage("--json writes the finished run: add --wait, or use `onnxfarm results RUN --json`.")
    if recipe and evaluation is None:
        raise Usage("--recipe says how labelled data are judged: add them with --evaluation.")
    declared = with_feed(read_matrix(matrix), shape=shape, inputs=input_)
    files = files_of(model)
    console = Console(stderr=True)
    with Client(find_account(server)) as client:
        beside = {"inputs": inputs, "expected": expected, "evaluation": evaluation, "calibration": calibration}
        given = {role: path for role, path in beside.items() if path is not None}
        said = {"model": name, "note": note, "team": team, "recipe": recipe}
        fields = {field: text for field, text in said.items() if text}
        version = _uploaded(client, files, given, fields, console=console)
        _say_calibration(version, console=console)
        run = client.start(version["id"], declared, seed=seed)
        run_id = str(run["id"])
        console.print(f"Run {run_id}: {address_of(run, client)}", highlight=False, soft_wrap=True)
        if not wait:
            print(run_id)
            return
        _finish(client, run_id, console=console, json_file=json_file, timeout=timeout, strict=strict)


def _say_calibration(version: dict[str, Any], *, console: Console) -> None:
    """What is to be said of calibration data that cannot serve, or are few."""
    found = version.get("calibration") or {}
    if found.get("problem"):
        console.print(f"The calibration data cannot serve: {found['problem']}", highlight=False, soft_wrap=True)
    elif found.get("samples") and few_sentence(found["samples"]):
        console.print(few_sentence(found["samples"]), highlight=False, soft_wrap=True)


def read_matrix(path: Path | None) -> dict[str, Any] | None:
    """The matrix of a file as the API takes it. Raises Usage with the sentence that names the wrong key or value."""
    if path is None:
        return None
    text = read_text(path) if str(path) != "-" else sys.stdin.read()
    try:
        return _parsed(text)
    except MatrixProblem as problem:
        raise Usage(f"{path}: {problem}") from problem


def _parsed(text: str) -> dict[str, Any]:
    """The matrix, checked here where the rules can be loaded; without numpy its keys are left to the farm."""
    try:
        from farm.rules.matrices import matrix
    except ModuleNotFoundError:
        plain = read_plain(text)
        if not isinstance(plain, dict):
            raise MatrixProblem(
                "The matrix is not a mapping of axes: start with a line like `runtime: [1.31.1]`."
            ) from None
        return plain
    return dict(matrix.parse(text).as_plain())


def uploaded_version(
    client: Client, model: Path, *, console: Console, roles: dict[str, Path] | None = None
) -> dict[str, Any]:
    """The inspected version of a model on disk; uploading it again is the same version. `roles`: inputs, expected."""
    return _uploaded(client, files_of(model), roles or {}, {}, console=console)


def address_of(run: dict[str, Any], client: Client) -> str:
    """The run's page."""
    return str(run.get("url") or f"{client.account.server}/runs/{run['id']}/")


def _uploaded(
    client: Client, files: list[Path], given: dict[str, Path], fields: dict[str, str], *, console: Console
) -> dict[str, Any]:
    """Upload and wait for inspection. Raises Usage with the farm's sentence when the model is rejected."""
    names = ", ".join(path.name for path in [*files, *given.values()])
    console.print(f"Uploading {names}", highlight=False, soft_wrap=True)
    with _upload_bar(console, files=[*files, *given.values()]) as advance:
        version = client.upload(files, roles=given, fields=fields, progress=advance)
    limit = time.monotonic() + INSPECTION_LIMIT_S
    while version["state"] in ("pending", "inspecting"):
        if time.monotonic() > limit:
            raise TimedOut(
                f"{version['model']} v{version['number']} was not inspected within {INSPECTION_LIMIT_S:.0f} s; "
                "does the farm's `prepare` worker run?"
            )
        time.sleep(INSPECTION_POLL_S)
        version = client.version(version["id"])
    if version["state"] == "rejected":
        raise Usage(f"{files[0].name} was rejected: {version['problem']}")
    return _with_accepted_data(client, version, given, until=limit)


def _with_accepted_data(
    client: Client, version: dict[str, Any], given: dict[str, Path], *, until: float
) -> dict[str, Any]:
    """The version once its labelled data were looked at. Raises Usage with the farm's sentence when they do not fit."""
    if "evaluation" not in given:
        return version
    while (found := version.get("evaluation") or {}).get("state") in ("pending", "making"):
        if time.monotonic() > until:
            raise TimedOut(f"{given['evaluation'].name} was not looked at in time; does the `prepare` worker run?")
        time.sleep(INSPECTION_POLL_S)
        version = client.version(version["id"])
    if found.get("state") == "failed":
        raise Usage(f"{given['evaluation']}: {found['problem']}")
    return version


def _finish(
    client: Client, run_id: str, *, console: Console, json_file: Path | None, timeout: float | None, strict: bool
) -> None:
    from onnxfarm.commands.results import read_document, write_json
    from onnxfarm.remote.runs import follow
    from onnxfarm.screen import console_for, show

    run = follow(client, run_id, console=console, timeout_s=None if timeout is None else timeout * 60)
    document = read_document(client, run_id)
    if json_file is not None:
        write_json(document, json_file)
    show(document, console=console_for(stderr=True), address=address_of(run, client))
    judge_run(document, run, strict=strict)


class _upload_bar:  # noqa: N801 - used like the functions of contextlib
    """A bar of bytes on a terminal; nothing elsewhere."""

    def __init__(self, console: Console, *, files: list[Path]) -> None:
        columns = (TextColumn("upload"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("", total=sum(path.stat().st_size for path in files if path.is_file()))

    def __enter__(self) -> Any:
        self._progress.start()
        return lambda size: self._progress.advance(self._task, size)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
