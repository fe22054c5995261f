"""Imports the files that the user gives with a model, such as inputs and labelled data, before anything is measured.

Each function raises Usage if a file cannot be read or does not fit the model.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from farm.contract.cells import FileRef
from farm.contract.evaluation import EvaluationOrder, EvaluationRecipe
from farm.rules.matrices.matrix import Matrix
from farm.rules.presenting import refusals
from farm.rules.quality import evaluation
from farm.rules.runtimes.models import PROMPTS, PromptFacts
from farm.rules.runtimes.nearest import choice_sentence
from farm.workshop import arrays, orders
from onnxfarm.calibration_files import list_sets
from onnxfarm.here.bundle import ImportedModel, LocalFiles
from onnxfarm.here.orders import UserInputs
from onnxfarm.problems import Usage
from onnxfarm.subject import Judging, UserJudge

MAX_JUDGE_BYTES = 1 << 20


def import_inputs(
    model: ImportedModel, *, inputs: Path | None, expected: Path | None, folder: Path, files: LocalFiles
) -> UserInputs:
    """Check and copy inputs and their expected outputs, and add both to `files`.

    Without `inputs`, `expected` is ignored and an empty UserInputs returned.
    """
    if inputs is None:
        return UserInputs()
    copy = copy_into(inputs, folder / "given-inputs")
    with convert_workshop_errors(inputs):
        accepted = orders.accept_inputs(model.folder, model.main, inputs=copy, out_dir=_make_folder(folder / "given"))
    return UserInputs(
        inputs=files.add(accepted.path, name="inputs.npz"),
        batch=accepted.batch,
        sizes=accepted.sizes,
        expected=_import_expected(model, expected, folder=folder, files=files) if expected else None,
    )


def import_prompts(
    model: ImportedModel, prompts: Path, *, folder: Path, files: LocalFiles
) -> tuple[FileRef, PromptFacts]:
    """Check and copy prompts, and add them to `files`. Return their file, and its numbers of rows and tokens."""
    copy = copy_into(prompts, folder / "given-prompts")
    with convert_workshop_errors(prompts):
        accepted = orders.accept_prompts(
            model.folder, model.main, prompts=copy, out_dir=_make_folder(folder / "prompts")
        )
    file = files.add(accepted.path, name=PROMPTS)
    return file, PromptFacts(
        sha256=file.sha256, rows=accepted.rows, tokens=accepted.tokens, text_tokens=accepted.text_tokens
    )


def import_calibration(model: ImportedModel, path: Path, *, folder: Path, files: LocalFiles) -> tuple[FileRef, int]:
    """Check and copy calibration data, and add them to `files`. Return their file, and its number of samples.

    `path`: an .npz, or a folder of ONNX's test data.
    """
    data, sets = None, []
    with convert_workshop_errors(path):
        if path.is_dir():
            for number, inputs in enumerate(list_sets(path)):
                sets.append([copy_into(file, folder / f"calibration-{number}-{file.stem}") for file in inputs])
        else:
            data = copy_into(path, folder / "given-calibration")
        out_folder = _make_folder(folder / "calibration")
        accepted = orders.accept_calibration(model.folder, model.main, data=data, sets=sets, out_dir=out_folder)
    return files.add(accepted.path, name="calibration.npz"), accepted.samples


def import_evaluation(
    model: ImportedModel, path: Path, *, recipe: Judging, folder: Path, files: LocalFiles
) -> EvaluationOrder:
    """Check and copy labelled data, and add them to `files`. `recipe`: how outputs are judged on them; empty: `top1`.

    With a UserJudge, the metric has the name of the function, and labels are not checked. Raises Usage for a wrong
    recipe, and for data that do not fit the model or the recipe.
    """
    if isinstance(recipe, UserJudge):
        copy = copy_into(path, folder / "given-evaluation")
        with convert_workshop_errors(path):
            accepted = orders.accept_samples(
                model.folder, model.main, data=copy, out_dir=_make_folder(folder / "labelled")
            )
        recipe_of_judge = EvaluationRecipe(metric=recipe.function.lower())
        return EvaluationOrder(data=files.add(accepted.path, name="evaluation.npz"), recipe=recipe_of_judge)
    try:
        parsed = evaluation.parse_recipe(recipe or "top1")
    except evaluation.RecipeProblem as problem:
        raise Usage(f"--recipe: {problem}") from problem
    copy = copy_into(path, folder / "given-evaluation")
    with convert_workshop_errors(path):
        out_folder = _make_folder(folder / "labelled")
        accepted = orders.check_evaluation(model.folder, model.main, data=copy, recipe=parsed, out_dir=out_folder)
    return EvaluationOrder(data=files.add(accepted.path, name="evaluation.npz"), recipe=parsed)


def add_prompt_shapes(matrix: Matrix, user_inputs: UserInputs, *, model: ImportedModel) -> Matrix:
    """Add the sizes of a prompt to the matrix of a decoder, which is then measured with one token and with a prompt.

    A matrix with shapes, scenarios or an `include` is returned unchanged, and so is any matrix if the user has given
    inputs or the model is no decoder. Dimensions that are the same with a prompt are left out.
    """
    feed = model.inspection.feed
    has_sizes = bool({"shapes", "scenario"} & matrix.axes.keys()) or matrix.include or user_inputs.inputs is not None
    if has_sizes or feed is None or not feed.prompt:
        return matrix
    changed = {name: size for name, size in feed.prompt.items() if size != feed.sizes[name]}
    return replace(matrix, axes={**matrix.axes, "shapes": ({}, changed)})


def read_judge_source(judge: UserJudge) -> bytes:
    """Read the Python file of a user's judge. Raises Usage if it cannot be read or has over MAX_JUDGE_BYTES."""
    try:
        content = judge.path.read_bytes()
    except OSError as problem:
        raise Usage(f"--judge: {judge.path} cannot be read ({problem.strerror}): give FILE.py:FUNCTION.") from problem
    if len(content) > MAX_JUDGE_BYTES:
        raise Usage(f"--judge: {judge.path} has {len(content):,} bytes; at most {MAX_JUDGE_BYTES:,} are taken.")
    return content


def check_against_model(matrix: Matrix, user_inputs: UserInputs, *, model: ImportedModel) -> None:
    """Check that a matrix fits the model and the user's inputs.

    Raises Usage for a dynamic dimension, or an output with a tolerance, that the model does not have, and for a batch
    size other than that of the user's inputs. Inputs without a batch allow none.
    """
    dimensions = model.inspection.dims
    for sizes in matrix.axes.get("shapes", ()):
        unknown = [name for name in sizes if name not in dimensions] if isinstance(sizes, Mapping) else []
        if unknown and not dimensions:
            raise Usage(f"{model.main} has no dynamic dimensions: leave --shape {unknown[0]} out.")
        if unknown:
            raise Usage(f"{model.main}: {choice_sentence('dynamic dimension', unknown[0], dimensions)}")
    outputs = {port.name for port in model.inspection.outputs}
    unknown_output = next((name for name in matrix.tolerances if name not in outputs), None)
    if unknown_output is not None:
        raise Usage(f"{model.main}: {choice_sentence('output', unknown_output, sorted(outputs))}")
    if user_inputs.inputs is None:
        return
    other_batches = [batch for batch in matrix.axes.get("batch", ()) if batch != user_inputs.batch]
    if other_batches and user_inputs.batch is None:
        raise Usage(
            f"The batch {other_batches[0]} is asked for, and the given inputs have no batch: leave --batch out."
        )
    if other_batches:
        raise Usage(
            f"The batch {other_batches[0]} is asked for, and the given inputs have batch {user_inputs.batch}: "
            "leave --batch out, or give other inputs."
        )


def _import_expected(model: ImportedModel, path: Path, *, folder: Path, files: LocalFiles) -> FileRef:
    copy = copy_into(path, folder / "given-expected")
    try:
        names = set(arrays.read_npz(copy))
    except arrays.ArraysError as problem:
        raise Usage(f"{path}: {problem}") from problem
    outputs = {port.name for port in model.inspection.outputs}
    if not names & outputs:
        raise Usage(
            f"{path} holds {', '.join(sorted(names)) or 'nothing'} and the model's outputs are "
            f"{', '.join(sorted(outputs))}: save the arrays under the outputs' names."
        )
    return files.add(copy, name="expected.npz")


@contextmanager
def convert_workshop_errors(path: Path | None = None) -> Iterator[None]:
    """Turn a WorkshopError inside the `with` into Usage. Its text begins with `path`, if that is given."""
    try:
        yield
    except orders.WorkshopError as problem:
        sentence = refusals.describe_reason(problem.reason)
        raise Usage(f"{path}: {sentence}" if path else sentence) from problem


def _make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def copy_into(path: Path, folder: Path) -> Path:
    """Copy a file into a new folder, under its own name, and return the copy. Raises Usage if that fails."""
    try:
        folder.mkdir()
        return Path(shutil.copyfile(path, folder / path.name))
    except OSError as problem:
        raise Usage(f"{path} cannot be read ({problem.strerror}): give the path of an .npz.") from problem
