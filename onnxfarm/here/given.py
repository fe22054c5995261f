"""Inputs and expected outputs that the user gives: looked at before anything is measured."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from farm.contract.cells import FileRef
from farm.rules.matrices.matrix import Matrix
from farm.rules.runtimes.models import PROMPTS, PromptFacts
from farm.rules.runtimes.nearest import choice_sentence
from farm.workshop import arrays, orders
from onnxfarm.here.bundle import LocalFiles, Uploaded
from onnxfarm.here.orders import Given
from onnxfarm.problems import Usage


def take_given(
    model: Uploaded, *, inputs: Path | None, expected: Path | None, folder: Path, files: LocalFiles
) -> Given:
    """Take both in. Raises Usage with the sentence of what does not fit the model."""
    if inputs is None:
        return Given()
    out = folder / "given"
    out.mkdir()
    laid = copied(inputs, folder / "given-inputs")
    try:
        accepted = orders.accept_inputs(model.folder, model.main, inputs=laid, out_dir=out)
    except orders.WorkshopError as error:
        raise Usage(f"{inputs}: {error.reason.text}") from error
    return Given(
        inputs=files.add(accepted.path, name="inputs.npz"),
        batch=accepted.batch,
        sizes=accepted.sizes,
        expected=_expected(model, expected, folder=folder, files=files) if expected else None,
    )


def take_prompts(model: Uploaded, prompts: Path, *, folder: Path, files: LocalFiles) -> tuple[FileRef, PromptFacts]:
    """Take prompts in. Raises Usage with the sentence of what does not fit the model."""
    out = folder / "prompts"
    out.mkdir()
    laid = copied(prompts, folder / "given-prompts")
    try:
        accepted = orders.accept_prompts(model.folder, model.main, prompts=laid, out_dir=out)
    except orders.WorkshopError as error:
        raise Usage(f"{prompts}: {error.reason.text}") from error
    kept = files.add(accepted.path, name=PROMPTS)
    return kept, PromptFacts(
        sha256=kept.sha256, rows=accepted.rows, tokens=accepted.tokens, text_tokens=accepted.text_tokens
    )


def refuse_contradiction(matrix: Matrix, given: Given, *, model: Uploaded) -> None:
    """Raise Usage for a dimension or an output the model lacks, and for a batch that the given inputs lack."""
    known = model.inspection.dims
    for sizes in matrix.axes.get("shapes", ()):
        unknown = [name for name in sizes if name not in known] if isinstance(sizes, Mapping) else []
        if unknown and not known:
            raise Usage(f"{model.main} has no dynamic dimensions: leave --shape {unknown[0]} out.")
        if unknown:
            raise Usage(f"{model.main}: {choice_sentence('dynamic dimension', unknown[0], known)}")
    outputs = {port.name for port in model.inspection.outputs}
    strange = next((name for name in matrix.tolerances if name not in outputs), None)
    if strange is not None:
        raise Usage(f"{model.main}: {choice_sentence('output', strange, sorted(outputs))}")
    if given.inputs is None:
        return
    asked = [batch for batch in matrix.axes.get("batch", ()) if batch != given.batch]
    if asked and given.batch is None:
        raise Usage(f"The batch {asked[0]} is asked for, and the given inputs have no batch: leave --batch out.")
    if asked:
        raise Usage(
            f"The batch {asked[0]} is asked for, and the given inputs have batch {given.batch}: "
            "leave --batch out, or give other inputs."
        )


def _expected(model: Uploaded, path: Path, *, folder: Path, files: LocalFiles) -> FileRef:
    laid = copied(path, folder / "given-expected")
    try:
        names = set(arrays.read_npz(laid))
    except arrays.ArraysError as problem:
        raise Usage(f"{path}: {problem}") from problem
    known = {port.name for port in model.inspection.outputs}
    if not names & known:
        raise Usage(
            f"{path} holds {', '.join(sorted(names)) or 'nothing'} and the model's outputs are "
            f"{', '.join(sorted(known))}: save the arrays under the outputs' names."
        )
    return files.add(laid, name="expected.npz")


def copied(path: Path, folder: Path) -> Path:
    """A copy under its own name, which error sentences tell."""
    try:
        folder.mkdir()
        return Path(shutil.copyfile(path, folder / path.name))
    except OSError as problem:
        raise Usage(f"{path} cannot be read ({problem.strerror}): give the path of an .npz.") from problem
