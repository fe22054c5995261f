"""`onnxfarm submit MODEL --matrix FILE --wait`: uploads a model to a farm and starts a run."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from farm.contract.api.registry import VersionOut
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices.matrix_text import read_text as read_plain
from onnxfarm.calibration_files import make_sample_warning
from onnxfarm.commands import options
from onnxfarm.commands.feed_options import apply_feed_options
from onnxfarm.documents import read_text
from onnxfarm.exit_codes import judge_run
from onnxfarm.model_files import check_files_exist
from onnxfarm.outputs import print_lines, write_document
from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client, make_run_request
from onnxfarm.remote.runs import follow_run, read_document
from onnxfarm.remote.uploads import Bundle, upload_and_inspect

MatrixOption = Annotated[
    str | None,
    typer.Option(
        "--matrix", metavar="FILE", help="A matrix file, - for stdin, or JSON text.", show_default="the farm's own"
    ),
]

SeedOption = Annotated[
    int | None, typer.Option(help="Seed of the inputs and of the order of rounds.", show_default="chosen by the farm")
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(metavar="MINUTES", help="With --wait, stop waiting after this many minutes.", show_default="never"),
]


@exit_with_problem()
def submit(  # noqa: PLR0913  every option of the command
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx (its external data is found), or a .zip.")],
    matrix: MatrixOption = None,
    pre: options.PreOption = False,
    server: ServerOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end and print the results.")] = False,
    json_file: options.DocumentOption = None,
    shape: options.ShapeOption = None,
    input_: options.InputOption = None,
    inputs: options.InputsOption = None,
    prompts: options.PromptsOption = None,
    scenario: options.ScenarioOption = None,
    memory_limit_mb: options.MemoryLimitOption = None,
    operators: options.OperatorsOption = False,
    expected: options.ExpectedOption = None,
    evaluation: options.EvaluationOption = None,
    calibration: options.CalibrationOption = None,
    source: options.SourceOption = None,
    recipe: options.RecipeOption = "",
    name: Annotated[str, typer.Option(help="The model's name on the farm.", show_default="the file's name")] = "",
    note: Annotated[str, typer.Option(help="A note on this version.")] = "",
    team: options.TeamOption = "",
    seed: SeedOption = None,
    timeout: TimeoutOption = None,
    strict: options.StrictOption = False,
    axes: options.AxesOption = None,
) -> None:
    """Send a model and a matrix to a farm.

    Exit code 0: the run was taken, or with --wait every planned cell is done; 1: one failed, or none was measured.
    """
    if json_file is not None and not wait:
        raise Usage("--json writes the finished run: add --wait, or use `onnxfarm results RUN --json`.")
    options.refuse_recipe_without_data(recipe, evaluation)
    files_by_role = {"inputs": inputs, "prompts": prompts, "expected": expected}
    files_by_role |= {"evaluation": evaluation, "calibration": calibration}
    bundle = Bundle(model, files_by_role, {"model": name, "note": note, "team": team, "recipe": recipe}, source)
    # a missing file is refused before a missing account or farm
    _ = bundle.model_files
    check_files_exist({f"--{role}": path for role, path in files_by_role.items()})
    declared = apply_feed_options(
        read_matrix(matrix),
        shape=shape,
        inputs=input_,
        scenario=scenario,
        memory_limit_mb=memory_limit_mb,
        operators=operators,
        pre=pre,
    )
    console = Console(stderr=True)
    with Client(find_account(server)) as client:
        version = upload_and_inspect(client, bundle, console=console)
        _warn_of_calibration(version, console=console)
        order = make_run_request(version.id, declared) | ({} if seed is None else {"seed": seed})
        run = client.call(operations.START_RUN, json=order)
        print_lines(f"Run {run.id}: {run.url}", console=console)
        if not wait:
            print(run.id)
            return
        _wait_and_show(client, str(run.id), console=console, json_file=json_file, timeout=timeout, strict=strict)


def _warn_of_calibration(version: VersionOut, *, console: Console) -> None:
    """Print a warning where the version's calibration data cannot be used, or are few."""
    calibration = version.calibration
    if calibration and calibration.problem:
        print_lines(f"The calibration data cannot be used: {calibration.problem}", console=console)
    elif calibration and calibration.samples and make_sample_warning(calibration.samples):
        print_lines(make_sample_warning(calibration.samples), console=console)


def read_matrix(source: str | None) -> dict[str, object] | None:
    """Read a matrix, check it, and return it as plain values for the API. None stays None.

    `source`: the path of a file, - for stdin, or JSON text. Raises Usage if it cannot be read, or with the wrong key or
    value. Without numpy, only the farm checks the keys and values.
    """
    if source is None:
        return None
    is_text = source.lstrip().startswith("{")
    if source == "-":
        text = sys.stdin.read()
    elif is_text:
        text = source
    else:
        text = read_text(Path(source))
    try:
        return _parse_matrix(text)
    except MatrixProblem as problem:
        raise Usage(f"{'--matrix' if is_text else source}: {problem}") from problem


def _parse_matrix(text: str) -> dict[str, object]:
    """Parse a matrix. Raises MatrixProblem.

    The rules that check a matrix need numpy. If numpy is not installed, only the farm checks the keys and values.
    """
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


def _wait_and_show(
    client: Client, run_id: str, *, console: Console, json_file: Path | None, timeout: float | None, strict: bool
) -> None:
    from onnxfarm.outputs import make_console
    from onnxfarm.screen import show

    run = follow_run(client, run_id, console=console, timeout_s=None if timeout is None else timeout * 60)
    document = read_document(client, run_id)
    write_document(document, json_file)
    show(document, console=make_console(stderr=True), address=run.url)
    judge_run(document, run, strict=strict)
