"""The scenario `fresh`: every inference has other inputs, of one size or of several."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from farm.contract.cells import CellSpec, Workload
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import MAX_DIMENSION, read_count
from farm.rules.cells.scenario import UNKNOWN_LATENCY_MS, Scenario, ShapeProblem, read_options
from farm.rules.cells.scenario_metrics import GROWTH
from farm.rules.runtimes import engines, providers
from farm.rules.runtimes.models import ModelFacts

MIN_SETS, MAX_SETS = 8, 64
MAX_SIZES: Final = 16
RANDOM: Final = "random"
_DIMENSION = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$", re.ASCII)
_SHAPES: Final = "shapes"
# a launch ends after this many inferences or seconds, whichever comes first, as worker.runner.scenarios.fresh does
RUNS, MAX_RUNS_S = 1_000, 10.0
# each set first runs alone this many times, so that it is bound and its time settles
SET_RUNS = 3

Size = int | Literal["random"]


@dataclass(frozen=True)
class Fresh(Scenario):
    """Inferences that take turns through `sets` sets of inputs. `Scenario` documents the methods."""

    kind: ClassVar[str] = "fresh"
    own_metrics: ClassVar[frozenset[str]] = frozenset({GROWTH})
    sets: int = MIN_SETS
    # the sizes that each dimension takes, by its name
    shapes: Mapping[str, tuple[Size, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, options: object, /) -> Scenario:
        """Make the scenario from `sets` and the sizes of dimensions, which stand by name or under `shapes`.

        Raises MatrixProblem.
        """
        written = read_options(cls.kind, options, example="fresh: {shapes: {sequence: [16, 64, random]}}")
        sets = read_count("sets", written.pop("sets", MIN_SETS), minimum=MIN_SETS, maximum=MAX_SETS, scenario=cls.kind)
        nested = written.pop(_SHAPES, {})
        if not isinstance(nested, Mapping):
            raise MatrixProblem(
                f"The shapes of fresh are {nested!r}: write sizes such as `sequence: [16, 64, random]`."
            )
        sizes = {**written, **{str(name): values for name, values in nested.items()}}
        return cls(sets=sets, shapes={name: _read_sizes(name, values) for name, values in sizes.items()})

    @property
    def text(self) -> str:
        sizes = {name: "+".join(map(str, values)) for name, values in sorted(self.shapes.items())}
        return self._format_text({"sets": None if self.sets == MIN_SETS else self.sets, **sizes})

    @property
    def label(self) -> str:
        sizes = [f"{name} {', '.join(map(str, values))}" for name, values in sorted(self.shapes.items())]
        return "fresh inputs" + (f" ({'; '.join(sizes)})" if sizes else "")

    @property
    def differing_phrase(self) -> str:
        return f"of {self.sets} input sets were"

    def runner_settings(self, work: Workload) -> dict[str, object]:
        shapes = {name: list(sizes) for name, sizes in self.shapes.items()}
        return {**super().runner_settings(work), "sets": self.sets, "shapes": shapes}

    def refusals(self, spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> Iterator[str]:
        """Say why the cell cannot be measured: for a reason of any scenario, or because of the sizes of dimensions."""
        yield from super().refusals(spec, model, shape_problem=shape_problem)
        entry = providers.find(spec.provider)
        if self.shapes and entry is not None and entry.building is not None and entry.building.shapes:
            yield f"{entry.name} builds an engine for the shapes that it is given: leave the shapes of fresh out."
        if self.shapes and not engines.engine_of(spec.runtime).names_dimensions:
            yield f"{spec.runtime} knows no dimensions by name: leave the shapes of fresh out."
        # the dimensions of a model that was never inspected are not known
        is_known = bool(model.dims) or model.batch is not None
        for name, sizes in self.shapes.items() if is_known else ():
            size = next(number for number in sizes if isinstance(number, int))
            problem = None if name == model.batch else shape_problem(name, size)
            if problem is not None:
                yield problem

    def extra_launch_s(self, latency_ms: float | None, *, timed_s: float) -> float:
        latency_s = (latency_ms or UNKNOWN_LATENCY_MS) / 1000.0
        return SET_RUNS * self.sets * latency_s + max(0.0, min(MAX_RUNS_S, RUNS * latency_s) - timed_s)


def _read_sizes(name: str, written: object) -> tuple[Size, ...]:
    values = written.split("+") if isinstance(written, str) else written
    values = values if isinstance(values, list | tuple) else [values]
    if not _DIMENSION.match(name):
        raise MatrixProblem(f"The scenario fresh has the option {name!r}: it has sets, and sizes by dimension.")
    if name in ("sets", _SHAPES):
        raise MatrixProblem(f"The scenario fresh cannot size a dimension called {name!r}: rename it in the model.")
    if not 1 <= len(values) <= MAX_SIZES:
        raise MatrixProblem(f"The sizes of {name!r} are {len(values)}: fresh takes 1 to {MAX_SIZES} of a dimension.")
    sizes: tuple[Size, ...] = tuple(
        RANDOM if value == RANDOM else read_count(name, value, minimum=1, maximum=MAX_DIMENSION, scenario="fresh")
        for value in values
    )
    if all(size == RANDOM for size in sizes):
        raise MatrixProblem(f"The sizes of {name!r} are random alone: add a size for it to be drawn up to.")
    return sizes
