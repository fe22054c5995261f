"""Measures two models side by side in the same blocks, for `onnxfarm compare BASE.onnx NEW.onnx`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from farm.contract.document import Document
from onnxfarm.commands.bench_options import apply_settings, parse_tolerances, read_matrix
from onnxfarm.here.home import default_home
from onnxfarm.problems import require_extra
from onnxfarm.subject import Judging, Subject


@dataclass(frozen=True)
class ComparisonSettings:
    """How both models are measured and judged. `axes`: texts by the name of an axis; None: the option was not given."""

    axes: Mapping[str, object] = field(default_factory=dict)
    tolerance: list[str] | None = None
    operators: bool = False
    inputs: Path | None = None
    evaluation: Path | None = None
    recipe: Judging = ""
    seed: int = 0
    home: Path | None = None

    @property
    def has_measuring_options(self) -> bool:
        """Whether any setting except `home` is given. Two files of `bench` allow none, because nothing is measured."""
        return self != ComparisonSettings(axes=dict.fromkeys(self.axes), home=self.home)


def measure_both(base: Path, new: Path, settings: ComparisonSettings, *, console: Console) -> Document:
    """Measure both models in the same blocks on this machine, and return the bench document.

    Only the two models are compared. `settings.home` None: the default home. Raises Usage for settings that cannot be
    used and for equal models, Infrastructure, also if a package is missing, and Stopped on Ctrl-C.
    """
    declared = apply_settings(
        read_matrix(None, settings.axes),
        tolerance=parse_tolerances(settings.tolerance),
        operators=settings.operators or None,
    )
    with require_extra("node"):
        from onnxfarm.here import workbench
    sides = [Subject(model, settings.inputs, seed=settings.seed) for model in (base, new)]
    return workbench.measure_once(
        sides[0],
        declared,
        other=sides[1],
        evaluation=settings.evaluation,
        recipe=settings.recipe,
        home=settings.home or default_home(),
        console=console,
    )
