"""Why a point of a matrix was refused, or a cell did not finish: a code for programs, a sentence for people."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from farm.contract.base import Message


class ReasonCode(StrEnum):
    """Codes are part of the interface: never renamed, only added. The reference has what stands above each."""

    # The model's operator set is newer than the release loads.
    # Example: opset 22 on ONNX Runtime 1.20.1, which needs 1.21 or newer.
    # Way out: a newer release, or an opset that the release loads (`opset: [21]`).
    OPSET_TOO_NEW = "opset_too_new"
    # The file's format, its IR version, is newer than the release loads.
    # Example: IR version 11 on ONNX Runtime 1.19.0.
    # Way out: a newer release, or `opset: [max-of-runtime]`, which puts the stamps in order.
    IR_TOO_NEW = "ir_too_new"
    # The model has operators of a domain that no build of ONNX Runtime has.
    # Example: a node of the domain `my.company`.
    # Way out: export the model without them, or with a function in the model that defines them.
    CUSTOM_DOMAIN = "custom_domain"
    # The model, or its given inputs, have one batch.
    # Example: `batch: [8]` of a model with the fixed batch 1.
    # Way out: leave `batch` out, or export it with a dynamic first dimension.
    FIXED_BATCH = "fixed_batch"
    # The first dimension is not a batch.
    # Example: `batch: [8]` of a model whose first dimension is a length.
    # Way out: leave `batch` out and set dimensions by `shapes`.
    NO_BATCH = "no_batch"
    # There is no such release, or its package is not allowed.
    # Example: `onnxruntime==1.31.9`.
    # Way out: the release that the sentence names; a package of others is allowed by the farm and by the node's
    # owner.
    UNKNOWN_RUNTIME = "unknown_runtime"
    # The distribution does not carry the execution provider.
    # Example: `provider: cuda` with `onnxruntime==1.31.1`.
    # Way out: the package that brings it (`onnxruntime-gpu`), or another provider.
    PROVIDER_NOT_IN_BUILD = "provider_not_in_build"
    # The session did not start the provider; it would have fallen back to the CPU.
    # Example: CUDA without its driver.
    # Way out: see what the node's page says of its probe, or take `cpu`.
    PROVIDER_NOT_ACTIVE = "provider_not_active"
    # No node that is online takes the cell: its hardware, its provider or its engine.
    # Example: `provider: openvino` on a farm without such a node.
    # Way out: add a node (`onnxfarm node invite`), or ask an owner to let one try the provider (`onnxfarm node try`).
    NO_NODE = "no_node"
    # The precision or opset cannot be made of this model.
    # Example: `int8-qdq` of a model that is quantised already.
    # Way out: leave `precision` or `opset` out, or upload a model without it.
    VARIANT_IMPOSSIBLE = "variant_impossible"
    # Kept for programs that know it: this release gives it to no point.
    # Example: none.
    # Way out: none is needed.
    EXCLUDED = "excluded"
    # The runtime does not load the model, or its file cannot be read.
    # Example: external data that were not uploaded, or code that was compiled for another provider.
    # Way out: upload it whole; what a provider compiled needs that provider; else another release or precision.
    MODEL_NOT_LOADED = "model_not_loaded"
    # A setting, dimension or scenario does not go with this model, runtime or provider.
    # Example: a dimension that the model does not have, or more threads than cores.
    # Way out: change or leave out what the sentence names.
    NOT_SUPPORTED = "not_supported"
    # No sandbox holds on the machine that was to open the model.
    # Example: a farm on macOS, or a kernel without Landlock and bubblewrap.
    # Way out: a machine with a sandbox; docs/sandbox.md says which, and what its owner may accept.
    SANDBOX_MISSING = "sandbox_missing"
    # The node could not install the runtime.
    # Example: its package index does not answer, or a file has another hash.
    # Way out: look at the node's index, and measure again.
    RUNTIME_INSTALL_FAILED = "runtime_install_failed"
    # The node could not have a file of the model.
    # Example: the download broke off.
    # Way out: measure again; if it stays, look at the gateway and the store.
    ARTIFACT_UNAVAILABLE = "artifact_unavailable"
    # The process needed more memory than its limit or the machine has.
    # Example: `memory_limit_mb: [512]` of a model of 1 GiB.
    # Way out: a larger limit, a smaller batch or shapes, or a node with more memory.
    OUT_OF_MEMORY = "out_of_memory"
    # A step took longer than it may.
    # Example: an inference of minutes.
    # Way out: a smaller shape, or another node.
    TIMEOUT = "timeout"
    # The process ended by a signal.
    # Example: SIGSEGV in a kernel.
    # Way out: another release or provider; it is worth a report to the runtime's tracker.
    CRASHED = "crashed"
    # The process printed or answered more than it may.
    # Example: a provider that logs without end.
    # Way out: switch its log off.
    FLOODED = "flooded"
    # What the process answered cannot be read.
    # Example: an answer of another form.
    # Way out: measure again; if it stays, tell us.
    GARBLED = "garbled"
    # The runtime loaded the model and refused to run it.
    # Example: a shape that does not fit.
    # Way out: other sizes or inputs (`--shape`, `--input`, `--inputs`).
    INFERENCE_FAILED = "inference_failed"
    # The node fell silent while it measured, again and again.
    # Example: a machine that was switched off.
    # Way out: start it, or measure on another node.
    NODE_LOST = "node_lost"
    # A person stopped it.
    # Example: `onnxfarm cancel 7`.
    # Way out: start it again.
    CANCELLED = "cancelled"
    # Another cell failed, and the matrix says `fail-fast: true`.
    # Example: the first of eight cells crashed.
    # Way out: mend that one, or leave `fail-fast` out.
    FAIL_FAST = "fail_fast"
    # A mistake of ours.
    # Example: an order that names no file.
    # Way out: tell us, with the sentence.
    INTERNAL = "internal"


class CellStatus(StrEnum):
    """How a cell ended; the values of `cells[].status` in a bench document."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    CANCELLED = "cancelled"


class Reason(Message):
    """A code and one sentence that says what happened, with which values, and what to do next."""

    code: ReasonCode = Field(description="for programs")
    text: Annotated[str, StringConstraints(min_length=1, max_length=2000)] = Field(
        description="for people: what happened, with which values, and what to do"
    )

    @property
    def status(self) -> CellStatus:
        return _STATUS_OF.get(self.code, CellStatus.REFUSED)


class TrialAsked(Message):
    """A provider that nobody has proven, and a node whose owner can be asked to let it try."""

    node: int = Field(description="the node's number")
    provider: str = Field(description="by its short name")


class WayOut(Message):
    """What to change, so that something like the refused point is measured, as planning has tried it."""

    label: str = Field(description="of a button: what changes")
    axis: str = Field(default="", description="the axis of the matrix that changes; empty: none does")
    values: tuple[int | str | dict[str, object], ...] = Field(
        default=(), description="what it holds then; none: it is left out"
    )
    command: str = Field(default="", description="measures it on the machine at hand; empty: it cannot be")
    ask: TrialAsked | None = Field(
        default=None,
        exclude_if=lambda ask: ask is None,
        description="a trial to ask a node's owner for, in place of all",
    )


class ReasonedError(Exception):
    """What could not be done; `reason` says why, for whoever asked."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason


_STATUS_OF = {
    ReasonCode.TIMEOUT: CellStatus.TIMEOUT,
    ReasonCode.CRASHED: CellStatus.CRASHED,
    ReasonCode.CANCELLED: CellStatus.CANCELLED,
    ReasonCode.FAIL_FAST: CellStatus.CANCELLED,
    **dict.fromkeys(
        (
            ReasonCode.RUNTIME_INSTALL_FAILED,
            ReasonCode.ARTIFACT_UNAVAILABLE,
            ReasonCode.OUT_OF_MEMORY,
            ReasonCode.FLOODED,
            ReasonCode.GARBLED,
            ReasonCode.INFERENCE_FAILED,
            ReasonCode.NODE_LOST,
            ReasonCode.INTERNAL,
        ),
        CellStatus.FAILED,
    ),
}
