"""Two models side by side in the same blocks: what `onnxfarm compare BASE.onnx NEW.onnx` measures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from farm.contract.document import Document
from onnxfarm.commands.bench_options import parse_tolerances, read_matrix, with_settings
from onnxfarm.here.home import default_home
from onnxfarm.problems import require_extra
from onnxfarm.subject import Judging, Subject


@dataclass(frozen=True)
class Wanted:
    """How both models are measured and judged. `axes`: texts by the name of an axis, None where nothing was asked."""

    axes: Mapping[str, object] = field(default_factory=dict)
    tolerance: list[str] | None = None
    operators: bool = False
    inputs: Path | None = None
    evaluation: Path | None = None
    recipe: Judging = ""
    seed: int = 0
    home: Path | None = None

    @property
    def is_anything(self) -> bool:
        return self != Wanted(axes=dict.fromkeys(self.axes), home=self.home)


def measure_both(base: Path, new: Path, wanted: Wanted, *, console: Console) -> Document:
    """The document of both models. Raises Usage, Infrastructure and Stopped."""
    declared = with_settings(
        read_matrix(None, wanted.axes), tolerance=parse_tolerances(wanted.tolerance), operators=wanted.operators or None
    )
    with require_extra("node"):
        from onnxfarm.here import workbench
    sides = [Subject(model, wanted.inputs, seed=wanted.seed) for model in (base, new)]
    return workbench.measure_once(
        sides[0],
        declared,
        beside=sides[1],
        evaluation=wanted.evaluation,
        recipe=wanted.recipe,
        home=wanted.home or default_home(),
        console=console,
    )
