"""Options that several measuring commands share, as typer reads them."""

import re
from pathlib import Path
from typing import Annotated

import typer

from farm.contract.cells import Budget
from farm.contract.evaluation import METRIC_NAME
from farm.rules.planning.estimates import ROUNDS
from farm.rules.quality.accuracy_metrics import METRICS
from onnxfarm.calibration_files import CALIBRATION_HELP
from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.subject import Judging, UserJudge

MAX_ROUNDS = 96

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="An .onnx (its external data is found), or a .zip.")
]
# `show_default` names what is measured if neither the option nor a matrix sets it
ToleranceOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=ATOL[,RTOL]", help="Tolerance of one output; repeat.")
]
RuntimesOption = Annotated[
    str | None,
    typer.Option(help="Runtimes, e.g. 1.29.0,newest or onnxruntime-openvino==1.24.1.", show_default="the newest"),
]
ProviderOption = Annotated[str | None, typer.Option(help="Execution providers, e.g. cpu,openvino.", show_default="cpu")]
BatchOption = Annotated[
    str | None, typer.Option(help="Batch sizes, e.g. 1,8.", show_default="that of the inputs or the model, else 1")
]
ShapeOption = Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help="A dynamic dimension; repeat.")]
ThreadsOption = Annotated[str | None, typer.Option(help="Intra-op threads, e.g. 1,2.", show_default="1")]
PrecisionOption = Annotated[
    str | None,
    typer.Option(
        help="Like fp32,int4:block=64,int8-dynamic,int8-qdq:per-channel:exclude-nodes=a+b.", show_default="fp32"
    ),
]
ScenarioOption = Annotated[
    str | None,
    typer.Option(
        help="What a launch does: single, fresh, load:rate=50, load:bound=20ms, sustained:10, generate; by comma.",
        show_default="single",
    ),
]
MemoryLimitOption = Annotated[
    str | None,
    typer.Option(
        "--memory-limit-mb", metavar="MIB", help="Address space that processes are held to.", show_default="none"
    ),
]
OptimizationOption = Annotated[str | None, typer.Option(help="disable, basic, extended, all.", show_default="all")]
BudgetOption = Annotated[
    str | None,
    typer.Option(help="glance (one launch, nothing compared), quick, standard or precise.", show_default="quick"),
]


def _refuse_axis_of_matrix(ctx: typer.Context, values: list[str] | None) -> None:
    if values:
        raise Usage(
            f"`onnxfarm {ctx.info_name}` reads runtimes, providers, batches and precisions from a file: write "
            "`runtime: [1.29.0, 1.31.1]` in it and give it with --matrix. `onnxfarm bench` takes them as options."
        )


# options of `bench` that a command with a matrix refuses, with a hint to write them into the matrix
AxesOption = Annotated[
    list[str] | None,
    typer.Option(
        *("--ort", "--provider", "--batch", "--precision", "--threads", "--opset"),
        hidden=True,
        callback=exit_with_problem()(_refuse_axis_of_matrix),
    ),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        help="Maximum rounds per block on this machine.",
        show_default="the budget's, of a gate 24 at least; up to half as many again replace disturbed ones",
    ),
]
OperatorsOption = Annotated[
    bool,
    typer.Option(
        "--operators", help="Also trace every launch, so that each operator gets a verdict; precise does this."
    ),
]
RuntimelessMatrixOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="A matrix without `runtime`, - for stdin, or JSON text.")
]
InputsOption = Annotated[
    Path | None, typer.Option(metavar="NPZ", help="Inputs by name.", show_default="generated from the seed")
]
PromptsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="NPZ", help="Token ids to generate from: `prompt`, and `text` to score.", show_default="drawn by seed"
    ),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=VALUE|LOW..HIGH", help="How to generate one input, e.g. ids=0..99; repeat."),
]
SourceOption = Annotated[
    Path | None,
    typer.Option(metavar="PT2", help="The model's program for runtimes like torch==2.13.0: torch.export.save's .pt2."),
]
ExpectedOption = Annotated[Path | None, typer.Option(metavar="NPZ", help="Expected outputs of the inputs.")]
EvaluationOption = Annotated[
    Path | None, typer.Option(metavar="NPZ", help="Labelled data: inputs by name and `labels`.")
]
CalibrationOption = Annotated[Path | None, typer.Option(metavar="NPZ|DIR", help=CALIBRATION_HELP)]
RecipeOption = Annotated[
    str,
    typer.Option(
        help=f"How outputs are judged on labelled data: [STEP+]METRIC[@OUTPUT]; {', '.join(METRICS)}.",
        show_default="top1",
    ),
]
JudgeOption = Annotated[
    str,
    typer.Option(
        metavar="FILE.py:FUNCTION",
        help="Judge by your own function(outputs, data) that gives a float a sample or one of all; it stays on this "
        "machine. Add :lower where less is better, or set FUNCTION.lower_is_better.",
        show_default="none",
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Also exit 1 if a cell was refused.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the inputs and of the order of rounds.")]
BranchOption = Annotated[
    str, typer.Option(metavar="NAME", help="With --server: the branch that has the model.", show_default="none")
]
CommitOption = Annotated[
    str, typer.Option(metavar="SHA", help="With --server: the commit that has the model.", show_default="none")
]
TeamOption = Annotated[
    str,
    typer.Option(
        "--team", help="The team on the farm that it belongs to.", show_default="the only one that you write in"
    ),
]


def split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def check_rounds(rounds: int | None, budget: Budget) -> None:
    """Raise Usage if a budget does not allow this number of rounds. None: --rounds was not given, which is allowed.

    From the budget's minimum to MAX_ROUNDS are allowed, and none at all for `glance`.
    """
    if rounds is None:
        return
    if budget is Budget.GLANCE:
        raise Usage("--budget glance is one launch, and compares nothing: leave out --rounds, or take `quick`.")
    if not (least := ROUNDS[budget].minimum) <= rounds <= MAX_ROUNDS:
        raise Usage(f"--rounds is {rounds}: a verdict takes {least}, so give {least} to {MAX_ROUNDS}.")


def refuse_recipe_without_data(recipe: str, evaluation: Path | None) -> None:
    if recipe and evaluation is None:
        raise Usage("--recipe says how labelled data are judged: add them with --evaluation.")


def parse_judging(recipe: str, judge: str, evaluation: Path | None) -> Judging:
    """Return how outputs are judged: by the text of --recipe, or by the function of --judge FILE.py:FUNCTION[:lower].

    An empty recipe is returned as it is, and means `top1`. A recipe is not checked, and the file of --judge is not
    read. Raises Usage if both are given, if one is given without labelled data in `evaluation`, if the text of --judge
    is malformed, or if its function has the name of a metric of --recipe.
    """
    refuse_recipe_without_data(recipe, evaluation)
    if not judge:
        return recipe
    if recipe or evaluation is None:
        raise Usage(
            "--judge judges in place of a --recipe, on samples: give it with --evaluation, and leave --recipe out."
        )
    path, _, named_function = judge.partition(".py:")
    function, _, direction = named_function.partition(":")
    if not path or not function.isidentifier() or direction not in ("", "lower", "higher"):
        raise Usage(f"--judge has {judge[:200]!r}: write FILE.py:FUNCTION, or FILE.py:FUNCTION:lower.")
    if not re.fullmatch(METRIC_NAME, function.lower()) or function.lower() in METRICS:
        raise Usage(f"--judge: {function} is called as a metric of --recipe is, or longer than 32: call it otherwise.")
    return UserJudge(Path(f"{path}.py"), function, direction == "lower" if direction else None)


def _check_file(path: Path | None) -> Path | None:
    """Refuse a FILE that looks like an option: if --json lacks its FILE, typer takes the next option as the file."""
    if path is not None and str(path).startswith("--"):
        raise typer.BadParameter(f"needs a FILE (- is stdout), and {path} follows it.", param_hint="--json")
    return path


# a command that measures shows a table and also writes JSON to a file (DocumentOption); a command that only answers
# prints JSON in place of text (JsonOption)
DocumentOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Also write what was measured to FILE as JSON; - is stdout.",
        callback=_check_file,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON in place of text; takes no FILE.")]
PreOption = Annotated[bool, typer.Option("--pre", help="The newest may be a release candidate or a development build.")]
PackagesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-package", metavar="NAME", help="Also allow this package as a runtime: its code runs here; repeat."
    ),
]
HomeOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Where runtimes are kept.", show_default="$ONNXFARM_HOME, else onnxfarm in the user's cache"
    ),
]
