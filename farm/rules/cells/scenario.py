"""What a scenario is: what one launch does with the session. Its class answers every question about it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from farm.contract.cells import CellSpec, Workload
from farm.contract.document_cells import CellPhase, Figure, Input
from farm.rules.cells import fills, growth
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.scenario_metrics import GROWTH
from farm.rules.runtimes import engines
from farm.rules.runtimes.models import ModelFacts

# assumed for a model that was never measured
UNKNOWN_LATENCY_MS = 10.0
# how long a launch may be where a block of ten minutes has two arms and eight rounds
MAX_LAUNCH_S = 600.0 / 16


# says why a model's dimension, by name, cannot have a size; None where it can
ShapeProblem = Callable[[str, int], str | None]


class Entry(Protocol):
    """An entry of the table of scenarios: one of our subclasses of `Scenario`, or one that a package declares."""

    # the JSON schema of its options
    @property
    def schema(self) -> Mapping[str, Any]: ...

    # whether its text is `name:value`, without a named option
    @property
    def takes_value(self) -> bool: ...

    def read(self, options: object, /) -> "Scenario": ...


@dataclass(frozen=True)
class Scenario:
    """One scenario with its options.

    Durations are seconds of wall-clock time, and `latency_ms` is None for a model that was never measured. `label`
    names the scenario for people, `axis_text` is its value on the axis of scenarios, and `short` is that without what
    would fill a line.
    """

    # the name that metrics are declared for
    kind: ClassVar[str]
    schema: ClassVar[Mapping[str, Any]] = {"type": ["object", "null"]}
    takes_value: ClassVar[bool] = False
    # whether launches run one input in one session, so that they may take turns and be traced
    is_plain: ClassVar[bool] = False
    # whether inferences run one after another, so that the thread's own time shows what other programs took
    is_single_stream: ClassVar[bool] = True
    # whether requests arrive although the last one was not answered
    is_open: ClassVar[bool] = False
    # whether a prompt and the tokens after it are measured and traced apart
    takes_prompts: ClassVar[bool] = False
    # metrics that only launches of this scenario give
    own_metrics: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def read(cls, options: object, /) -> "Scenario":
        """Make the scenario from its options as a matrix writes them. Raises MatrixProblem."""
        if read_options(cls.kind, options, example=cls.kind):
            raise MatrixProblem(f"The scenario {cls.kind} has no options: write `{cls.kind}` alone.")
        return cls()

    @property
    def name(self) -> str:
        return self.kind

    @property
    def text(self) -> str:
        """The scenario as the command line and documents write it; parsing the text gives the same scenario."""
        return self.name

    @property
    def label(self) -> str:
        return self.text

    @property
    def axis_text(self) -> str:
        return self.text

    @property
    def short(self) -> str:
        return self.axis_text

    @property
    def family(self) -> str:
        """Cells with the same family stand in one block and are compared."""
        return self.text

    @property
    def differing_phrase(self) -> str:
        return "input sets were, under load,"

    @property
    def looks_for_a_rate(self) -> bool:
        return False

    @property
    def bound_ms(self) -> float | None:
        """The limit that its p99 is to keep; None where there is none."""
        return None

    @property
    def sustained_s(self) -> float:
        """Seconds for which each cell goes on working once its rounds are over; 0 for all but `sustained`."""
        return 0.0

    @property
    def new_tokens(self) -> int:
        return 0

    @property
    def context_tokens(self) -> int:
        """Tokens that the model holds at once: those of the prompt and the new ones."""
        return self.new_tokens

    @property
    def draws_tokens(self) -> bool:
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
        """Name the axes that the scenario sets itself, each with the error for a matrix that sets it too."""
        return {}

    def workload_fields(self, work: Mapping[str, object]) -> dict[str, object]:
        """Complete the fields of a workload by what the scenario says of concurrency or batch."""
        return dict(work)

    def runner_settings(self, work: Workload) -> dict[str, object]:
        """Make the runner's settings; `made` are the inputs without random numbers, which are made for each set."""
        made = {name: text for name, text in work.inputs.items() if fills.parse(text).kind in (fills.POSITIONS, "size")}
        return {"kind": self.name, "seed": work.seed, "made": made}

    def fit_to_model(self, model: ModelFacts, *, is_batched: bool) -> Self:
        """Fill in what the scenario leaves to the model; `is_batched` says whether the matrix sets a batch."""
        return self

    def refusals(self, spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> Iterator[str]:
        """Say why this cell cannot be measured, each reason a sentence with the way out; nothing where it can."""
        if spec.workload.concurrency > 1:
            streams = spec.workload.concurrency
            yield f"The scenario {self.name} has streams of its own: leave out concurrency {streams}."
        if engines.engine_of(spec.runtime).is_browser:
            yield f"{spec.runtime} is measured in the scenario single alone: leave {self.name} out for browsers."

    def extra_launch_s(self, latency_ms: float | None, *, timed_s: float) -> float:
        """Estimate how much longer a launch takes than one of `single`, whose inferences are timed for `timed_s`.

        It is negative where the launch takes less.
        """
        return 0.0

    def search_s(self, latency_ms: float | None) -> float:
        """Estimate how many seconds a block measures once, before its rounds; 0 for a scenario that looks for nothing
        first."""
        return 0.0

    def max_launch_s(self, latency_ms: float | None) -> float:
        """Estimate how many seconds a launch may take where its measuring has to be repeated; 0 where it never is."""
        return 0.0

    def describe_inputs(self, work: Workload) -> list[Input]:
        """Describe what launches are fed; empty where they are fed the same inputs as the check pass."""
        return []

    def describe_result(
        self, launched: Mapping[str, Figure], *, p99_ms: float | None, phases: Sequence[CellPhase] = ()
    ) -> str:
        """Say in a sentence what the figures of all launches show; empty where the scenario has nothing to say."""
        return growth.describe_growth(launched[GROWTH]) if GROWTH in launched else ""


def read_options(kind: str, options: object, *, example: str) -> dict[str, object]:
    """Copy the options of a scenario with text as keys. Raises MatrixProblem where they are no mapping."""
    if not isinstance(options, Mapping):
        raise MatrixProblem(f"The scenario {kind} has {options!r}: write its options, such as `{example}`.")
    return {str(name): value for name, value in options.items()}
