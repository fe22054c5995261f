"""The functions for Python programs: `onnxfarm.bench`, `onnxfarm.compare` and `onnxfarm.open`.

    results = onnxfarm.bench("model.onnx", runtime=["1.29.0", "1.31.1"], batch=[1, 8], budget="quick")
    results.cells[0].p50_ms, results.comparisons[0].verdict

Further keywords are the axes and settings of a matrix file, with `_` for `-`. Each function raises an
`onnxfarm.problems.Problem`, whose text says what happened and what to do next.
"""

import os
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from farm.contract.document import SCHEMA, Document
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix as matrices
from farm.rules.presenting.spreadsheets import list_rows
from onnxfarm.commands.options import parse_judging
from onnxfarm.documents import read_object
from onnxfarm.outputs import make_console
from onnxfarm.problems import Infrastructure, Usage, require_extra
from onnxfarm.subject import Judging, Subject

AnyPath = str | os.PathLike[str]


class Results(Document):
    """A bench document, docs/bench.md: `cells`, `comparisons`, `sentence` and all its other keys, as typed values."""

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row for each cell and the columns of `results --csv`.

        Raises Infrastructure without pandas.
        """
        try:
            import pandas
        except ModuleNotFoundError as missing:
            raise Infrastructure("to_pandas() needs pandas, which is not installed: pip install pandas.") from missing
        return pandas.DataFrame(list_rows(self))


def bench(  # noqa: PLR0913  what the command takes
    model: AnyPath,
    *,
    inputs: AnyPath | None = None,
    expected: AnyPath | None = None,
    evaluation: AnyPath | None = None,
    recipe: str = "",
    judge: str = "",
    seed: int = 0,
    home: AnyPath | None = None,
    quiet: bool = False,
    **matrix: object,
) -> Results:
    """Measure a model on this machine, as `onnxfarm bench` does, but without default sizes for a decoder's prompt.

    `evaluation`: labelled data on which every cell is judged, by `recipe` or by the user's function `judge`, written
    FILE.py:FUNCTION. `home`: the folder for runtimes; None: that of `onnxfarm bench`. `matrix`: axes and settings, see
    above; without `runtime`, the newest release is measured. Progress goes to stderr unless `quiet`. A cell that fails
    raises nothing; its `reason` says why. Raises Usage, Infrastructure, and Stopped on Ctrl-C.
    """
    subject = Subject(Path(model), _make_path(inputs), _make_path(expected), seed)
    judging = parse_judging(recipe, judge, _make_path(evaluation))
    return _measure(subject, None, matrix, evaluation=_make_path(evaluation), recipe=judging, home=home, quiet=quiet)


def compare(  # noqa: PLR0913  what the command takes
    base: AnyPath,
    new: AnyPath,
    *,
    inputs: AnyPath | None = None,
    evaluation: AnyPath | None = None,
    recipe: str = "",
    judge: str = "",
    seed: int = 0,
    home: AnyPath | None = None,
    quiet: bool = False,
    **matrix: object,
) -> Results:
    """Measure two models side by side, in the same rounds, on this machine.

    All comparisons are between the two models, on the axis `model`. The options are those of `bench`, except
    `expected`. Raises Usage, also for two models that are the same byte for byte, Infrastructure, and Stopped on
    Ctrl-C.
    """
    first, second = (Subject(Path(side), _make_path(inputs), seed=seed) for side in (base, new))
    judging = parse_judging(recipe, judge, _make_path(evaluation))
    return _measure(first, second, matrix, evaluation=_make_path(evaluation), recipe=judging, home=home, quiet=quiet)


def open(run_or_path: int | AnyPath, *, server: str | None = None) -> Results:
    """Read results: of a farm's run, by its number, or from a file of `bench --json` or `results --json`.

    Only an int is the number of a run. A str is a path, even if it has only digits. `server`: the farm's address; None:
    that of $ONNXFARM_SERVER, else of `onnxfarm login`. Raises Usage if there is no such run or file, or if the file
    holds another document, and Infrastructure if the farm fails.
    """
    if isinstance(run_or_path, int):
        from onnxfarm.remote.account import find_account
        from onnxfarm.remote.client import Client
        from onnxfarm.remote.runs import read_document

        with Client(find_account(server)) as client:
            return _make_results(read_document(client, str(run_or_path)))
    plain = read_object(Path(run_or_path))
    try:
        return Results.model_validate(plain)
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Usage(f"{run_or_path} is no document of {SCHEMA}: {place}: {first['msg']}.") from problem


def _measure(
    subject: Subject,
    other: Subject | None,
    matrix: Mapping[str, object],
    *,
    evaluation: Path | None,
    recipe: Judging,
    home: AnyPath | None,
    quiet: bool,
) -> Results:
    try:
        declared = matrices.parse({"matrix": {}, **matrix})
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem
    with require_extra("node"):
        from onnxfarm.here import workbench
        from onnxfarm.here.home import default_home
    document = workbench.measure_once(
        subject,
        declared,
        other=other,
        evaluation=evaluation,
        recipe=recipe,
        home=Path(home or default_home()),
        console=Console(file=StringIO()) if quiet else make_console(stderr=True),
    )
    return _make_results(document)


def _make_results(document: Document) -> Results:
    return Results.model_validate(document.model_dump(by_alias=True))


def _make_path(path: AnyPath | None) -> Path | None:
    return None if path is None else Path(path)
