"""A cell: one resolved point of a matrix, and the digest that names what it measures."""

from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, PlainSerializer, PlainValidator, StringConstraints

from farm.contract.base import FileName, Message, Sha256, digest_json

Precision = Literal["fp32", "fp16", "int8-dynamic", "int8-qdq", "int8-qoperator", "int4"]
# the default scenario: one inference after another
SINGLE: Final = "single"
# how the file of a framework's program ends, as torch.export writes it
PROGRAM_ENDING = ".pt2"
Optimization = Literal["disable", "basic", "extended", "all"]
# how an inference is called: with inputs and outputs bound once, or by `InferenceSession.run` with arrays
Call = Literal["bound", "run"]
BOUND: Final = "bound"
NO_POLICY: Final = "none"
# the policy by which ONNX Runtime chooses the devices of a session; `none`: the session names its provider
Policy = Literal["none", "max-performance", "max-efficiency", "min-power", "prefer-cpu", "prefer-gpu", "prefer-npu"]


class Budget(StrEnum):
    """How much measuring a cell gets: docs/samples.md, "Budgets". `glance`: one launch, and nothing is compared."""

    GLANCE = "glance"
    QUICK = "quick"
    STANDARD = "standard"
    PRECISE = "precise"


class Runtime(Message):
    """One ONNX Runtime distribution and version, installed on a node as its own virtual environment."""

    distribution: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")] = Field(
        description="the package, as the index names it"
    )
    version: Annotated[str, StringConstraints(pattern=r"^[0-9][0-9A-Za-z.+-]{0,31}$")] = Field(
        description="its release, as PEP 440 writes it"
    )

    # the cache takes 1 µs instead of 6, and a page reads documents of a thousand cells
    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, text: str) -> "Runtime":
        """Parse `distribution==version` without validation; use it only for texts that were checked before.

        Texts in documents, rows and reports were. The version is empty where the text names none, as for a build that
        the user made.
        """
        distribution, _, version = text.partition("==")
        return cls.model_construct(distribution=distribution, version=version)

    def __str__(self) -> str:
        return f"{self.distribution}=={self.version}" if self.version else self.distribution


class Loads(Message):
    """The newest operator set, IR version and `ai.onnx.ml` that a runtime was seen to load."""

    opset: Annotated[int, Field(ge=1, le=999)]
    ir: Annotated[int, Field(ge=1, le=999)]
    ml: Annotated[int, Field(ge=1, le=999)]

    def max_with(self, other: "Loads") -> "Loads":
        return Loads(opset=max(self.opset, other.opset), ir=max(self.ir, other.ir), ml=max(self.ml, other.ml))


def _parse_runtime(value: object) -> Runtime:
    if isinstance(value, Runtime):
        return value
    if not isinstance(value, str):
        raise ValueError("a runtime is spelled distribution==version")
    return Runtime.of(value)


# a runtime that a document spells `distribution==version`
SpelledRuntime = Annotated[
    Runtime, PlainValidator(_parse_runtime, json_schema_input_type=str), PlainSerializer(str, return_type=str)
]


class Recipe(Message):
    """How the measured variant is derived from the uploaded artifact. The default derives nothing."""

    precision: Precision = Field(default="fp32", description="what weights and activations are converted to")
    opset: int | Literal["as-is", "max-of-runtime"] = Field(
        default="as-is",
        description="what the model is converted to: a number, as-is, or the newest that the runtime knows",
    )
    options: dict[str, str] = Field(default_factory=dict, description="of the quantisation, by name")
    # the field is left out of older cells, so that their digests stay the same
    is_program: Annotated[
        bool,
        Field(
            exclude_if=lambda is_program: not is_program,
            description="whether the framework's own program, uploaded beside the .onnx, is measured in its place",
        ),
    ] = False

    @property
    def is_identity(self) -> bool:
        return self.precision == "fp32" and self.opset == "as-is" and not self.is_program


class Workload(Message):
    """The inputs of an inference and how inferences are run. `batch` is None where no first dimension is a batch."""

    batch: Annotated[int, Field(ge=1, le=65536)] | None = Field(
        default=None, description="rows of one inference; null: the model has no batch"
    )
    shapes: dict[str, Annotated[int, Field(ge=0, le=1 << 24)]] = Field(
        default_factory=dict, description="sizes of free dimensions, by name"
    )
    concurrency: Annotated[int, Field(ge=1, le=64)] = Field(default=1, description="sessions that run at once")
    seed: int = Field(default=0, description="what seeded inputs are made of")
    # digest of given inputs (.npz); None: the workshop makes inputs from the seed
    inputs_sha256: Sha256 | None = Field(default=None, description="digest of given inputs; null: seeded ones are made")
    # how inputs are made that are not the usual random numbers of their type, by name (see farm.rules.cells.fills)
    # the field is left out of older cells, so that their digests stay the same
    inputs: Annotated[
        dict[str, Annotated[str, StringConstraints(max_length=200)]],
        Field(exclude_if=lambda inputs: not inputs, description="how inputs are made, by name; empty: the usual way"),
    ] = Field(default_factory=dict)
    # what a launch does, as farm.rules.cells.scenarios writes it; `concurrency` alone makes a closed loop
    # the field is left out of older cells, so that their digests stay the same
    scenario: Annotated[
        str,
        StringConstraints(pattern=r"^[a-z]+(:[^:\s]+)*$", max_length=400),
        Field(
            exclude_if=lambda scenario: scenario == SINGLE,
            description="what one launch does with the session; left out: one inference after another",
        ),
    ] = SINGLE


class LaterAxes(BaseModel):
    """Axes that came after the first version, as fields of a session and of a document's cell alike.

    Each is left out where it has its default (`exclude_if`): the digests of cells of before stay, and nodes of before
    take them. A field here, its entry in `farm.rules.cells.axes` and its line in `worker.runner.session` are an axis.
    """

    policy: Annotated[
        Policy,
        Field(
            exclude_if=lambda policy: policy == NO_POLICY,
            description="by what ONNX Runtime itself chooses the device; none: the provider is asked for",
        ),
    ] = NO_POLICY
    memory_limit_mb: Annotated[
        int,
        Field(
            ge=0,
            le=1 << 24,
            exclude_if=lambda limit: not limit,
            description="MiB of addresses that the process is held to; 0: no limit",
        ),
    ] = 0
    call: Annotated[
        Call,
        Field(
            exclude_if=lambda call: call == BOUND,
            description="the call that is timed: bound, with inputs and outputs bound once; run: InferenceSession.run",
        ),
    ] = BOUND


class SessionSettings(LaterAxes, Message):
    """ONNX Runtime session options that are part of the cell. `config` entries are passed verbatim."""

    threads: Annotated[int, Field(ge=1, le=1024)] = Field(default=1, description="inside one operator")
    inter_op_threads: Annotated[int, Field(ge=1, le=1024)] = Field(default=1, description="for operators side by side")
    execution_mode: Literal["sequential", "parallel"] = Field(
        default="sequential", description="one operator after another, or side by side"
    )
    optimization: Optimization = Field(default="all", description="level of graph optimisation")
    spinning: bool = Field(default=True, description="whether idle threads wait busily")
    memory_pattern: bool = Field(default=True, description="whether buffers are planned ahead")
    arena: bool = Field(default=True, description="whether memory comes from an arena")
    disabled_optimizers: tuple[str, ...] = Field(default=(), description="optimisers that are left out, by name")
    config: dict[str, str] = Field(default_factory=dict, description="entries of the session, passed verbatim")


class CellSpec(Message):
    """One point: variant × runtime × provider × workload × session × hardware."""

    artifact_sha256: Sha256 = Field(description="bundle digest of the upload")
    recipe: Recipe = Field(default=Recipe(), description="how the measured variant is made of it")
    runtime: Runtime = Field(description="what runs it")
    provider: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,64}$")] = Field(
        default="CPUExecutionProvider", description="the execution provider, as ONNX Runtime names it"
    )
    provider_options: dict[str, str] = Field(default_factory=dict, description="passed to it verbatim")
    workload: Workload = Field(default=Workload(), description="what one inference is given")
    session: SessionSettings = Field(default=SessionSettings(), description="how the session is set up")
    hardware: str = Field(default="cpu", description="tag or name of the nodes that may measure it")

    @property
    def digest(self) -> str:
        # cells with the same digest are the same measurement
        return digest_json(self.model_dump(mode="json"))


class FileRef(Message):
    """A stored file: the name it has in its bundle, its digest and size in bytes."""

    name: FileName
    sha256: Sha256
    bytes: Annotated[int, Field(ge=0)]


class Bundle(Message):
    """An artifact's files. `main` is the .onnx, or a framework's program; the digest covers names and contents."""

    main: FileName
    files: tuple[FileRef, ...]

    @property
    def digest(self) -> str:
        return digest_json(sorted([f.name, f.sha256, f.bytes] for f in self.files))

    @property
    def measured_bytes(self) -> int:
        """Size of the files that the runtime loads, without a framework's program beside the .onnx that is measured."""
        return sum(f.bytes for f in self.files if f.name == self.main or not f.name.endswith(PROGRAM_ENDING))

    @property
    def main_sha256(self) -> str:
        return next(f.sha256 for f in self.files if f.name == self.main)
