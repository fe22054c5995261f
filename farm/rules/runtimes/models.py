"""What engines, scenarios and planning must know of a model, as inspection found it."""

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
    """The framework's program beside a model. `problem`: why it cannot be run, in one sentence; empty when it can.

    `saved_by`: the release of the framework that saved it.
    """

    name: FileName
    bytes: Annotated[int, Field(ge=0)] = 0
    saved_by: Annotated[str, StringConstraints(max_length=64)] = ""
    operators: Annotated[int, Field(ge=0)] = 0
    problem: Annotated[str, StringConstraints(max_length=2000)] = ""


class CompiledFacts(Message):
    """Code inside a model that providers compiled (ONNX Runtime's nodes EPContext).

    `by`: the providers, as the model spells them. `sdk`, `hardware`: with what and for what it was compiled, where that
    is said. `problem`: why it cannot be run here, in one sentence; empty when it can where the provider is.
    """

    by: Annotated[tuple[Annotated[str, StringConstraints(max_length=200)], ...], Field(max_length=8)] = ()
    sdk: Annotated[str, StringConstraints(max_length=2000)] = ""
    hardware: Annotated[str, StringConstraints(max_length=2000)] = ""
    problem: Annotated[str, StringConstraints(max_length=2000)] = ""


class GenaiFacts(Message):
    """The configuration of onnxruntime-genai beside a model. `vocabulary`, `context`: in tokens.

    `problem`: why it cannot generate, in one sentence; empty when it can.
    """

    type: Annotated[str, StringConstraints(max_length=64)] = ""
    vocabulary: Annotated[int, Field(ge=0)] = 0
    context: Annotated[int, Field(ge=0)] = 0
    has_tokenizer: bool = False
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
    """Prompts that came with a model, as token ids, and where there is one a text to score; `tokens`: of each row.

    `sha256`: of the file that holds them.
    """

    sha256: Sha256
    rows: Annotated[int, Field(ge=1)]
    tokens: Annotated[int, Field(ge=1)]
    text_tokens: Annotated[int, Field(ge=0)] = 0


class ModelFacts(Message):
    """What planning must know of a model, as inspection found it.

    `main`: the name of its .onnx. `batch`: the first dimension shared by the inputs: a number when it is fixed, a name
    when it is dynamic, None when it is not a batch. `dims`: other dimensions by name, a number when fixed under that
    name, None when dynamic.
    `unused_opsets`: domains that no node uses. `inputs_batch`: the batch of given inputs.
    `calibration_sha256`: of accepted calibration data; `calibration_problem`: why those that were given cannot serve.
    `inputs`: empty where inspection is of before they were looked at; `outputs`: their names; `sizes`: what was chosen,
    or given, for dynamic dimensions; `inputs_problem`: why nothing was found that the model runs with.
    `generation_problem`: why it cannot generate; empty where it can, or was not looked into.
    `latency_ms`: what one inference takes on average in the cells that were measured last, where it is known;
    `quickest_ms`: the least of them. `source`: the framework's program that came with it.
    `compiled`: code in it that runs on the provider alone that compiled it. `context`: None where nothing says it.
    `is_grouped`: whether it has a GroupQueryAttention. `uploaded`: what its numbers are, `fp16`, `int8 QDQ`.
    `unbound`: what of it no binding takes, in words. `draws`: its operators that draw random numbers without a seed.
    """

    name: str = "model"
    main: FileName = "model.onnx"
    bundle_sha256: Sha256
    main_sha256: Sha256
    opsets: dict[str, int] = Field(default_factory=dict)
    ir_version: int = 8
    unused_opsets: tuple[str, ...] = ()
    opset_reach: OpsetReach = OpsetReach()
    custom_domains: tuple[str, ...] = ()
    batch: int | str | None = None
    dims: dict[str, int | None] = Field(default_factory=dict)
    is_quantised: bool = False
    uploaded: str = ""
    inputs_sha256: Sha256 | None = None
    inputs_batch: int | None = None
    inputs: tuple[ModelInput, ...] = ()
    outputs: tuple[str, ...] = ()
    sizes: dict[str, int] = Field(default_factory=dict)
    inputs_problem: str = ""
    generation_problem: str = ""
    calibration_sha256: Sha256 | None = None
    calibration_problem: str = ""
    latency_ms: Annotated[float, Field(gt=0)] | None = None
    quickest_ms: Annotated[float, Field(gt=0)] | None = None
    source: SourceFacts | None = None
    genai: GenaiFacts | None = None
    compiled: CompiledFacts | None = None
    prompts: PromptFacts | None = None
    context: ContextFacts | None = None
    is_grouped: bool = False
    unbound: str = ""
    draws: Annotated[str, StringConstraints(max_length=2000)] = ""

    @property
    def opset(self) -> int | None:
        return self.opsets.get("", self.opsets.get("ai.onnx"))
