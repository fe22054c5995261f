"""What a scenario is: what one launch does with the session; every question about it is answered by its entry. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from farm.contract.cells import CellSpec, Workload
from farm.contract.document_cells import CellPhase, Figure, Input
from farm.rules.cells import fills, growth
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.scenario_metrics import GROWTH
from farm.rules.runtimes import engines
from farm.rules.runtimes.models import ModelFacts

# what is assumed of a model that was never measured
UNKNOWN_LATENCY_MS = 10.0
# of two arms and eight rounds a block of ten minutes
MAX_LAUNCH_S = 600.0 / 16


class ShapeProblem(Protocol):
    """What stands against one size of a model's dimension; None where nothing does."""

    def __call__(self, name: str, size: int, /) -> str | None: ...


class Entry(Protocol):
    """A line of the table: ours are classes of `Scenario`, those from outside are declared.

    `schema`: how an editor checks its options. `takes_value`: whether its text is `name:value`.
    """

    @property
    def schema(self) -> Mapping[str, Any]: ...

    @property
    def takes_value(self) -> bool: ...

    def read(self, options: object, /) -> "Scenario":
        """The scenario of these options. Raises MatrixProblem."""
        ...


@dataclass(frozen=True)
class Scenario:
    """One scenario with its options.

    `kind`: what metrics are declared for. `is_plain`: launches run one input in one session, so that they may take
    turns and be traced. `is_single_stream`: one inference at a time, so that its thread's own time tells what others
    took. `is_open`: arrivals come by a clock of their own. `takes_prompts`: a prompt and the tokens behind it are
    measured and traced apart. `answers`: what is held against the answers given alone, as a launch's figure counts it.
    """

    kind: ClassVar[str]
    schema: ClassVar[Mapping[str, Any]] = {"type": ["object", "null"]}
    takes_value: ClassVar[bool] = False
    is_plain: ClassVar[bool] = False
    is_single_stream: ClassVar[bool] = True
    is_open: ClassVar[bool] = False
    takes_prompts: ClassVar[bool] = False
    # metrics that launches of no other scenario say
    own_metrics: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def read(cls, options: object, /) -> "Scenario":
        """The scenario of these options. Raises MatrixProblem."""
        if options_of(cls.kind, options, example=cls.kind):
            raise MatrixProblem(f"The scenario {cls.kind} has no options: write `{cls.kind}` alone.")
        return cls()

    @property
    def name(self) -> str:
        return self.kind

    @property
    def text(self) -> str:
        """As the command line and documents spell it; reading it gives the same scenario."""
        return self.name

    @property
    def label(self) -> str:
        return self.text

    @property
    def along_axis(self) -> str:
        return self.text

    @property
    def short(self) -> str:
        return self.along_axis

    @property
    def family(self) -> str:
        """Cells of one family stand in one block and are compared."""
        return self.text

    @property
    def answers(self) -> str:
        return "input sets were, under load,"

    @property
    def looks_for_a_rate(self) -> bool:
        return False

    @property
    def bound_ms(self) -> float | None:
        """What its p99 is asked to keep."""
        return None

    @property
    def seconds(self) -> float:
        """Seconds that each cell works on for once its rounds are over."""
        return 0.0

    @property
    def tokens(self) -> int:
        return 0

    @property
    def context(self) -> int:
        """Tokens that a model holds at once, given and made."""
        return self.tokens

    @property
    def draws(self) -> bool:
        return False

    @property
    def drawn_tokens(self) -> int:
        return 0

    @property
    def prompts_sha256(self) -> str:
        return ""

    def inferences_at_once(self, work: Workload) -> int:
        return work.concurrency

    def axes_it_sets(self) -> Mapping[str, str]:
        """Axes of a matrix that it says itself, each with what is to be told where both do."""
        return {}

    def workload_fields(self, work: Mapping[str, object]) -> dict[str, object]:
        """Fields of a workload whose scenario it is, with what they say themselves."""
        return dict(work)

    def order_fields(self, work: Workload) -> dict[str, object]:
        """What the runner of a sample is told. `made`: inputs of no distribution, which each set makes anew."""
        made = {name: text for name, text in work.inputs.items() if fills.parse(text).kind in (fills.POSITIONS, "size")}
        return {"kind": self.name, "seed": work.seed, "made": made}

    def fit_to_model(self, model: ModelFacts, *, is_batched: bool) -> Self:
        """The scenario as it is measured with this model. `is_batched`: whether the matrix says a batch."""
        return self

    def refusals(self, spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> Iterator[str]:
        """What stands against measuring the cell, each a sentence with the way out. `shape_problem`: of one size."""
        if spec.workload.concurrency > 1:
            streams = spec.workload.concurrency
            yield f"The scenario {self.name} has streams of its own: leave out concurrency {streams}."
        if engines.engine_of(spec.runtime).is_browser:
            yield f"{spec.runtime} is measured in the scenario single alone: leave {self.name} out for browsers."

    def extra_launch_s(self, latency_ms: float | None, *, timed_s: float) -> float:
        """What a launch takes beyond one of `single`, whose inferences are timed for `timed_s` at least."""
        return 0.0

    def search_s(self, latency_ms: float | None) -> float:
        """What a block measures once before its rounds."""
        return 0.0

    def max_launch_s(self, latency_ms: float | None) -> float:
        """What a launch may need where everything is done anew."""
        return 0.0

    def inputs(self, work: Workload) -> list[Input]:
        """What launches are given, instead of what the check was fed."""
        return []

    def describe_result(
        self, launched: Mapping[str, Figure], *, p99_ms: float | None, phases: Sequence[CellPhase] = ()
    ) -> str:
        """What launches say together, in sentences; empty where it looks for nothing."""
        return growth.sentence(launched[GROWTH]) if GROWTH in launched else ""


def options_of(kind: str, options: object, *, example: str) -> dict[str, object]:
    """The options as a mapping. Raises MatrixProblem."""
    if not isinstance(options, Mapping):
        raise MatrixProblem(f"The scenario {kind} has {options!r}: write its options, such as `{example}`.")
    return {str(name): value for name, value in options.items()}
