"""Defines the result of an inspection: the message that the child returns."""

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from farm.contract.base import Message, Sha256
from farm.contract.cells import Bundle
from farm.rules.cells import fills, recipes
from farm.rules.generation import decoders
from farm.rules.quality.findings import RANDOM_DRAWS
from farm.rules.runtimes.conversions import OpsetReach
from farm.rules.runtimes.models import CompiledFacts, ContextFacts, GenaiFacts, ModelFacts, ModelInput, SourceFacts

Count = Annotated[int, Field(ge=0)]
Dim = int | str
MAX_PORTS = 4096
MAX_WORDS = 2000
PortName = Annotated[str, StringConstraints(max_length=1000)]
Size = Annotated[int, Field(ge=0, le=1 << 24)]


class Port(Message):
    """An input or output. A dynamic dimension without a name of its own is called INPUT.AXIS, like `x.2`."""

    name: str
    # as numpy spells it
    dtype: str
    # sizes and names; None if the rank is unknown
    shape: tuple[Dim, ...] | None


class ModelProblem(Message):
    """Why a model is refused: a code, and a sentence that says what is wrong and what to do."""

    code: str
    text: str


class FoundFinding(Message):
    """One finding about a model: its identifier (see `farm.rules.quality.findings`), a detail, and where it applies."""

    id: str
    detail: str
    count: Count = 1
    where: tuple[str, ...] = ()


class Feed(Message):
    """The sizes and input values that a model runs with where the user names none."""

    # sizes of dynamic dimensions, by name
    sizes: Annotated[dict[PortName, Size], Field(max_length=MAX_PORTS)] = Field(default_factory=dict)
    # fills of inputs (farm.rules.cells.fills) by name; `given` if the inputs came with the model
    inputs: Annotated[dict[PortName, str], Field(max_length=MAX_PORTS)] = Field(default_factory=dict)
    # sizes with which a decoder takes a whole prompt without a cache; empty if no run showed that it does
    prompt: Annotated[dict[PortName, Size], Field(max_length=MAX_PORTS)] = Field(default_factory=dict)
    # how often the model was run to find them
    tries: Count = 0
    # why it ran in none of these tries; else empty
    problem: Annotated[str, StringConstraints(max_length=4000)] = ""

    @field_validator("inputs")
    @classmethod
    def _can_be_made(cls, value: dict[str, str]) -> dict[str, str]:
        """Check the texts, which come from a process that a model may have taken over."""
        for text in value.values():
            if text != fills.GIVEN:
                fills.check_text(text)
        return value


class Inspection(Message):
    """A model's facts, or its problem. Sizes are in bytes.

    `opset` is the imported version of ONNX's own operator set; None if none is imported.
    """

    ok: bool
    # None if `ok` is true
    problem: ModelProblem | None = None
    main_sha256: Sha256 | None = None
    main_bytes: Count = 0
    data_bytes: Count = 0
    ir_version: int = 0
    opsets: dict[str, int] = Field(default_factory=dict)
    unused_opsets: tuple[str, ...] = ()
    producer: str = ""
    graph_name: str = ""
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    # the first dimension that the inputs share: a number if fixed, a name if dynamic, None if it is not a batch
    batch: int | str | None = None
    # names of dynamic dimensions, the batch among them
    dims: tuple[str, ...] = ()
    # of the main graph
    nodes: Count = 0
    # of subgraphs and functions
    nodes_below: Count = 0
    functions: Count = 0
    # numbers of nodes by operator, in subgraphs and functions too; the domain is a prefix where it is not ONNX's
    operators: dict[str, int] = Field(default_factory=dict)
    subgraphs: dict[str, int] = Field(default_factory=dict)
    # domains of operators that neither the model's functions nor ONNX Runtime define
    custom_domains: tuple[str, ...] = ()
    external_files: tuple[str, ...] = ()
    parameters: Count = 0
    parameters_bytes: Count = 0
    # decision trees, whose numbers do not count as parameters
    trees: Count = 0
    dtypes: dict[str, int] = Field(default_factory=dict)
    is_quantised: bool = False
    opset_reach: OpsetReach | None = None
    findings: tuple[FoundFinding, ...] = ()
    # None if the release that inspected the model chose none
    feed: Feed | None = None
    # the framework's program next to the model; None if there is none
    source: SourceFacts | None = None
    # code inside the model that a provider compiled; None if there is none
    compiled: CompiledFacts | None = None
    # the configuration of onnxruntime-genai next to the model; None if there is none
    genai: GenaiFacts | None = None
    # the longest sequence that a decoder takes; None if the graph sets no limit, or was not inspected for it
    context: ContextFacts | None = None

    @property
    def uploaded(self) -> str:
        """The precision of the stored numbers, like `fp16` or `int8 QDQ`; empty if none are stored."""
        return recipes.describe_uploaded(self.dtypes, self.operators, is_quantised=self.is_quantised)

    @property
    def opset(self) -> int | None:
        return self.opsets.get("")

    @property
    def binding_problem(self) -> str:
        """The first input or output that I/O binding cannot bind, in words; empty if all can be bound.

        Inputs of strings, and outputs that are sequences or maps, cannot.
        """
        for port in self.inputs:
            if port.dtype == "string":
                return f"the input {port.name} takes strings"
        for port in self.outputs:
            if port.dtype in ("sequence", "map"):
                return f"the output {port.name} is a {port.dtype}"
        return ""

    @property
    def unseeded_operators(self) -> str:
        """The types of operators that draw random numbers without a seed, sorted, with commas; empty if there are none.

        The text is cut at MAX_WORDS characters.
        """
        where = next((finding.where for finding in self.findings if finding.id == RANDOM_DRAWS), ())
        return ", ".join(where)[:MAX_WORDS]

    @property
    def inputs_with_fills(self) -> tuple[ModelInput, ...]:
        """The inputs with their fills; empty if one of them has no known rank or no chosen fill."""
        chosen = self.feed.inputs if self.feed is not None else {}
        ports = [port for port in self.inputs if port.shape is not None and port.name in chosen]
        if len(ports) < len(self.inputs):
            return ()
        return tuple(
            ModelInput(name=port.name, dtype=port.dtype, shape=port.shape or (), fill=chosen[port.name])
            for port in ports
        )

    def make_facts(
        self, bundle: Bundle, *, name: str, inputs_sha256: Sha256 | None, inputs_batch: int | None
    ) -> ModelFacts:
        """Collect what planning must know of a model with these files.

        `inputs_sha256` and `inputs_batch` are the digest and the batch of inputs that came with the model, if any did.
        """
        return ModelFacts(
            name=name,
            main=bundle.main,
            bundle_sha256=bundle.digest,
            main_sha256=bundle.main_sha256,
            opsets=self.opsets,
            ir_version=self.ir_version,
            unused_opsets=self.unused_opsets,
            opset_reach=self.opset_reach or OpsetReach(),
            custom_domains=self.custom_domains,
            batch=self.batch,
            dims={dim: None for dim in self.dims if dim != self.batch},
            is_quantised=self.is_quantised,
            uploaded=self.uploaded,
            inputs_sha256=inputs_sha256,
            inputs_batch=inputs_batch,
            inputs=self.inputs_with_fills,
            outputs=tuple(port.name for port in self.outputs),
            inputs_problem=self.feed.problem if self.feed else "",
            sizes=self.feed.sizes if self.feed else {},
            generation_problem=decoders.generation_problem(self.inputs, self.outputs),
            source=self.source,
            genai=self.genai,
            compiled=self.compiled,
            context=self.context,
            is_grouped=decoders.has_group_query_attention(self.operators),
            unbound=self.binding_problem,
            draws=self.unseeded_operators,
        )


class Coverage(Message):
    """One kind of operator: how many the original has, and which of them still read floats in the variant."""

    op_type: str
    all: Count
    kept_float: tuple[str, ...]


class TensorError(Message):
    """A tensor's quantisation error as a signal-to-noise ratio in decibels; lower is worse, None means no noise.

    `model_db` compares it with the original model, `rounding_db` counts its own rounding alone.
    """

    tensor: str
    node: str
    op_type: str
    model_db: float | None
    rounding_db: float | None


class QuantisedReport(Message):
    """What quantisation did to a model. `errors` begins with the worst tensor, and is None for forms other than QDQ."""

    coverage: tuple[Coverage, ...]
    scales: dict[str, tuple[float, ...]]
    errors: tuple[TensorError, ...] | None
