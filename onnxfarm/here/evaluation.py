"""Labelled data that the user gives beside a model: looked at before anything is measured."""

from pathlib import Path

from farm.contract.cells import FileRef
from farm.contract.evaluation import EvaluationOrder
from farm.rules.quality import evaluation
from farm.workshop import orders
from onnxfarm.here.bundle import LocalFiles, Uploaded
from onnxfarm.here.given import copied
from onnxfarm.problems import Usage


def take_evaluation(model: Uploaded, path: Path, *, recipe: str, folder: Path, files: LocalFiles) -> EvaluationOrder:
    """Take labelled data in. Raises Usage with the sentence of what does not fit the model or the recipe."""
    try:
        how = evaluation.parse_recipe(recipe)
    except evaluation.RecipeProblem as problem:
        raise Usage(f"--recipe: {problem}") from problem
    out = folder / "labelled"
    out.mkdir()
    given = copied(path, folder / "given-evaluation")
    try:
        found = orders.check_evaluation(model.folder, model.main, data=given, recipe=how, out_dir=out)
    except orders.WorkshopError as error:
        raise Usage(f"{path}: {error.reason.text}") from error
    data: FileRef = files.add(found.path, name="evaluation.npz")
    return EvaluationOrder(data=data, recipe=how)
