"""A cell: one resolved point of a matrix, and the digest that names what it measures."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from farm.contract.base import FileName, Message, Sha256, digest_of

Precision = Literal["fp32", "fp16", "int8-dynamic", "int8-qdq", "int8-qoperator"]
Optimization = Literal["disable", "basic", "extended", "all"]


class Budget(StrEnum):
    """How much measuring a cell gets: docs/measuring.md, "Budgets". `glance`: one launch, and nothing is compared."""

    GLANCE = "glance"
    QUICK = "quick"
    STANDARD = "standard"
    PRECISE = "precise"


class Runtime(Message):
    """One ONNX Runtime distribution and version, installed on a node as its own virtual environment."""

    distribution: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    version: Annotated[str, StringConstraints(pattern=r"^[0-9][0-9A-Za-z.+-]{0,31}$")]

    def __str__(self) -> str:
        return f"{self.distribution}=={self.version}"


class Recipe(Message):
    """How the measured variant is derived from the uploaded artifact. The default derives nothing."""

    precision: Precision = "fp32"
    opset: int | Literal["as-is", "max-of-runtime"] = "as-is"
    options: dict[str, str] = Field(default_factory=dict)

    @property
    def is_identity(self) -> bool:
        """Whether the uploaded bundle is measured as it is."""
        return self.precision == "fp32" and self.opset == "as-is"


class Workload(Message):
    """What one inference is given. `batch` is None for models whose first dimension is not a batch."""

    batch: Annotated[int, Field(ge=1, le=65536)] | None = None
    shapes: dict[str, Annotated[int, Field(ge=0, le=1 << 24)]] = Field(default_factory=dict)
    concurrency: Annotated[int, Field(ge=1, le=64)] = 1
    seed: int = 0
    # digest of given inputs (.npz); None: seeded ones are made by the workshop
    inputs_sha256: Sha256 | None = None
    # how inputs are made that are not the usual random numbers of their type, by name (see farm.rules.cells.fills)
    # cells of before 22 November 2026 say nothing of it, and keep their digests
    inputs: Annotated[
        dict[str, Annotated[str, StringConstraints(max_length=200)]], Field(exclude_if=lambda inputs: not inputs)
    ] = Field(default_factory=dict)


class LaterAxes(BaseModel):
    """Axes that came after the first version, as fields of a session and of a document's cell alike.

    Each is left out where it has its default (`exclude_if`): the digests of cells of before stay, and nodes of before
    take them. A field here, its entry in `farm.rules.cells.axes` and its line in `worker.runner.session` are an axis.
    """


class SessionSettings(LaterAxes, Message):
    """ONNX Runtime session options that are part of the cell. `config` entries are passed verbatim."""

    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    inter_op_threads: Annotated[int, Field(ge=1, le=1024)] = 1
    execution_mode: Literal["sequential", "parallel"] = "sequential"
    optimization: Optimization = "all"
    spinning: bool = True
    memory_pattern: bool = True
    arena: bool = True
    disabled_optimizers: tuple[str, ...] = ()
    config: dict[str, str] = Field(default_factory=dict)


class CellSpec(Message):
    """One point: variant × runtime × provider × workload × session × hardware."""

    artifact_sha256: Sha256
    recipe: Recipe = Recipe()
    runtime: Runtime
    provider: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,64}$")] = "CPUExecutionProvider"
    provider_options: dict[str, str] = Field(default_factory=dict)
    workload: Workload = Workload()
    session: SessionSettings = SessionSettings()
    hardware: str = "cpu"

    @property
    def digest(self) -> str:
        """Same digest, same measurement: an A/A twin differs only by its arm."""
        return digest_of(self.model_dump(mode="json"))


class FileRef(Message):
    """A stored file: the name it has in its bundle, its digest and size in bytes."""

    name: FileName
    sha256: Sha256
    bytes: Annotated[int, Field(ge=0)]


class Bundle(Message):
    """An artifact's files. `main` is the .onnx; the digest covers names and contents."""

    main: FileName
    files: tuple[FileRef, ...]

    @property
    def digest(self) -> str:
        return digest_of(sorted([f.name, f.sha256, f.bytes] for f in self.files))

    @property
    def main_sha256(self) -> str:
        return next(f.sha256 for f in self.files if f.name == self.main)
