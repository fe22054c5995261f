"""The base class of scenarios, which say what one launch does with the session."""

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


# says why a model's dimension, given by name, cannot have a size; None where it can
ShapeProblem = Callable[[str, int], str | None]


class Entry(Protocol):
    """An entry of the table of scenarios: a subclass of `Scenario`, or an entry that a package declares."""

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
    names the scenario for people. `axis_text` is its value on the axis of scenarios, and `short` is a text of it that
    fits into a table. `differing_phrase` fills the gap in `12 … answered otherwise than alone`. `looks_for_a_rate` says
    that a load searches the highest rate. Only `generate` has tokens: `new_tokens` are generated after the prompt,
    `context_tokens` are those of the prompt and the new ones, and `drawn_tokens` are all that a launch draws at random.
    `prompts_sha256` is the digest of given prompts, and empty for random ones.
    """

    # the name that metrics are declared for
    kind: ClassVar[str]
    schema: ClassVar[Mapping[str, Any]] = {"type": ["object", "null"]}
    takes_value: ClassVar[bool] = False
    # whether launches run one input in one session, so that they may take turns and be traced
    is_plain: ClassVar[bool] = False
    # whether inferences run one after another, so that the thread's own time shows what other programs took
    is_single_stream: ClassVar[bool] = True
    # whether requests arrive even while the last one is not answered
    is_open: ClassVar[bool] = False
    # whether the prompt and the tokens after it are measured and traced separately
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
        """A text that is the same for scenarios whose cells are measured in one block and compared."""
        return self.text

    @property
    def differing_phrase(self) -> str:
        return "input sets were, under load,"

    @property
    def looks_for_a_rate(self) -> bool:
        return False

    @property
    def bound_ms(self) -> float | None:
        """The limit of the scenario's p99 in ms; None where it has none."""
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

    def _format_text(self, options: Mapping[str, object]) -> str:
        # as in `load:rate=50:streams=2`
        written = (f"{name}={value}" for name, value in options.items() if value not in (None, ""))
        return ":".join([self.name, *written])

    def inferences_at_once(self, work: Workload) -> int:
        return work.concurrency

    def axes_it_sets(self) -> Mapping[str, str]:
        """Name the axes that the scenario sets itself, each with the error for a matrix that sets it too."""
        return {}

    def workload_fields(self, work: Mapping[str, object]) -> dict[str, object]:
        """Return a copy of the fields of a workload, with the concurrency or batch that the scenario sets, if any."""
        return dict(work)

    def runner_settings(self, work: Workload) -> dict[str, object]:
        """Make the settings that the runner gets; `made` has the fills of inputs that depend only on their shapes."""
        made = {name: text for name, text in work.inputs.items() if fills.parse(text).kind in (fills.POSITIONS, "size")}
        return {"kind": self.name, "seed": work.seed, "made": made}

    def fit_to_model(self, model: ModelFacts, *, is_batched: bool) -> Self:
        """Return the scenario with the options that follow from the model; `is_batched` if the matrix sets a batch."""
        return self

    def refusals(self, spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> Iterator[str]:
        """Yield reasons why this cell cannot be measured, each a sentence that says what to do; none where it can."""
        if spec.workload.concurrency > 1:
            streams = spec.workload.concurrency
            yield f"The scenario {self.name} has streams of its own: leave out concurrency {streams}."
        if engines.engine_of(spec.runtime).is_browser:
            yield f"{spec.runtime} is measured in the scenario single alone: leave {self.name} out for browsers."

    def extra_launch_s(self, latency_ms: float | None, *, timed_s: float) -> float:
        """Estimate how many seconds longer a launch takes than one of `single`, which times inferences for `timed_s`.

        It is negative where the launch takes less.
        """
        return 0.0

    def search_s(self, latency_ms: float | None) -> float:
        """Estimate how many seconds a block searches for a rate before its rounds; 0 where it does not."""
        return 0.0

    def max_launch_s(self, latency_ms: float | None) -> float:
        """Estimate how many seconds a launch may take with all repetitions of its measurement; 0 where it has none."""
        return 0.0

    def describe_inputs(self, work: Workload) -> list[Input]:
        """Describe the inputs of launches; empty where they are those of the check pass."""
        return []

    def describe_result(
        self, launched: Mapping[str, Figure], *, p99_ms: float | None, phases: Sequence[CellPhase] = ()
    ) -> str:
        """Describe in a sentence what the figures of all launches show: by default how memory grows, else empty."""
        return growth.describe_growth(launched[GROWTH]) if GROWTH in launched else ""


def read_options(kind: str, options: object, *, example: str) -> dict[str, object]:
    """Copy a mapping of options with text as keys; `example` stands in the error. Raises MatrixProblem for others."""
    if not isinstance(options, Mapping):
        raise MatrixProblem(f"The scenario {kind} has {options!r}: write its options, such as `{example}`.")
    return {str(name): value for name, value in options.items()}
