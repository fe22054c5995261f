"""The facts about a model that inspection found and that engines, scenarios and planning need."""

from typing import Annotated

from pydantic import Field, StringConstraints

from farm.contract.base import FileName, Message, Sha256
from farm.rules.runtimes.conversions import OpsetReach

# the names under which a model's given inputs, its prompts and its calibration data are stored
INPUTS, PROMPTS, CALIBRATION = "inputs.npz", "prompts.npz", "calibration.npz"


class ModelInput(Message):
    """An input of a model, and how it is made where nothing else is asked: a text of `farm.rules.cells.fills`."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    fill: str


class SourceFacts(Message):
    """The framework's program beside a model."""

    name: FileName
    bytes: Annotated[int, Field(ge=0)] = 0
    # the release of the framework that saved it
    saved_by: Annotated[str, StringConstraints(max_length=64)] = ""
    operators: Annotated[int, Field(ge=0)] = 0
    # why it cannot be run, in one sentence; empty where it can
    problem: Annotated[str, StringConstraints(max_length=2000)] = ""


class CompiledFacts(Message):
    """Code inside a model that providers compiled (ONNX Runtime's nodes EPContext)."""

    # the providers, as the model spells them
    by: Annotated[tuple[Annotated[str, StringConstraints(max_length=200)], ...], Field(max_length=8)] = ()
    # with what and for what it was compiled, where the model says so
    sdk: Annotated[str, StringConstraints(max_length=2000)] = ""
    hardware: Annotated[str, StringConstraints(max_length=2000)] = ""
    # why it cannot be run here, in one sentence; empty where it can on those providers
    problem: Annotated[str, StringConstraints(max_length=2000)] = ""


class GenaiFacts(Message):
    """The configuration of onnxruntime-genai beside a model."""

    type: Annotated[str, StringConstraints(max_length=64)] = ""
    # in tokens
    vocabulary: Annotated[int, Field(ge=0)] = 0
    # in tokens
    context: Annotated[int, Field(ge=0)] = 0
    has_tokenizer: bool = False
    # why it cannot generate, in one sentence; empty where it can
    problem: Annotated[str, StringConstraints(max_length=2000)] = ""

    @property
    def words(self) -> str:
        tokenizer = "with a tokenizer" if self.has_tokenizer else "no tokenizer"
        return f"{self.type}, vocabulary {self.vocabulary:,}, context {self.context:,}, {tokenizer}"


class ContextFacts(Message):
    """The longest sequence that a decoder's graph takes, in tokens, and what says so: `the 512 rows of wpe, …`."""

    tokens: Annotated[int, Field(ge=1)]
    where: Annotated[str, StringConstraints(max_length=300)]

    @property
    def words(self) -> str:
        return f"context {self.tokens:,} ({self.where})"


class PromptFacts(Message):
    """Prompts that came with a model, as token ids, and perhaps a text to score."""

    # the digest of the file that holds them
    sha256: Sha256
    rows: Annotated[int, Field(ge=1)]
    # tokens of each row
    tokens: Annotated[int, Field(ge=1)]
    # tokens of the text to score; 0 where there is none
    text_tokens: Annotated[int, Field(ge=0)] = 0


class ModelFacts(Message):
    """What planning must know of a model, as inspection found it.

    `opset` is that of the default domain, under either of its names; None where the model imports none.
    """

    name: str = "model"
    # the name of its .onnx
    main: FileName = "model.onnx"
    bundle_sha256: Sha256
    main_sha256: Sha256
    opsets: dict[str, int] = Field(default_factory=dict)
    ir_version: int = 8
    # domains that no node uses
    unused_opsets: tuple[str, ...] = ()
    opset_reach: OpsetReach = OpsetReach()
    custom_domains: tuple[str, ...] = ()
    # the first dimension that the inputs share: a number where it is fixed, a name where it is dynamic, None where it
    # is no batch
    batch: int | str | None = None
    # other dimensions by name: a number where the name stands for a fixed size, None where it is dynamic
    dims: dict[str, int | None] = Field(default_factory=dict)
    is_quantised: bool = False
    # the number format of the upload: `fp16`, `int8 QDQ`
    uploaded: str = ""
    inputs_sha256: Sha256 | None = None
    # the batch size of the given inputs
    inputs_batch: int | None = None
    # empty where it was inspected by a release that did not look at inputs
    inputs: tuple[ModelInput, ...] = ()
    # the names of its outputs
    outputs: tuple[str, ...] = ()
    # the sizes that inspection chose, or that were given, for dynamic dimensions
    sizes: dict[str, int] = Field(default_factory=dict)
    # why no inputs were found that the model runs with; empty where some were
    inputs_problem: str = ""
    # why it cannot generate; empty where it can, or where nobody looked
    generation_problem: str = ""
    # the digest of the calibration data that were accepted
    calibration_sha256: Sha256 | None = None
    # why calibration data that were given cannot serve
    calibration_problem: str = ""
    # the average time of an inference in the newest measured cells, and the shortest; None where no cell was measured
    latency_ms: Annotated[float, Field(gt=0)] | None = None
    quickest_ms: Annotated[float, Field(gt=0)] | None = None
    # the framework's program that came with it
    source: SourceFacts | None = None
    genai: GenaiFacts | None = None
    # code in it that runs only on the provider that compiled it
    compiled: CompiledFacts | None = None
    prompts: PromptFacts | None = None
    # None where nothing in the model limits the length of a sequence
    context: ContextFacts | None = None
    # whether it has a GroupQueryAttention
    is_grouped: bool = False
    # which of its inputs or outputs no binding takes, in words
    unbound: str = ""
    # its operators that draw random numbers without a seed
    draws: Annotated[str, StringConstraints(max_length=2000)] = ""

    @property
    def opset(self) -> int | None:
        return self.opsets.get("", self.opsets.get("ai.onnx"))
