"""Why a point of a matrix was refused, or a cell did not finish: a code for programs, a sentence for people."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from farm.contract.base import Message


class ReasonCode(StrEnum):
    """Codes are part of the interface: never renamed, only added. `farm.rules.wording.reasons` explains each."""

    OPSET_TOO_NEW = "opset_too_new"
    IR_TOO_NEW = "ir_too_new"
    CUSTOM_DOMAIN = "custom_domain"
    FIXED_BATCH = "fixed_batch"
    NO_BATCH = "no_batch"
    UNKNOWN_RUNTIME = "unknown_runtime"
    PROVIDER_NOT_IN_BUILD = "provider_not_in_build"
    PROVIDER_NOT_ACTIVE = "provider_not_active"
    NO_NODE = "no_node"
    VARIANT_IMPOSSIBLE = "variant_impossible"
    EXCLUDED = "excluded"
    MODEL_NOT_LOADED = "model_not_loaded"
    NOT_SUPPORTED = "not_supported"
    SANDBOX_MISSING = "sandbox_missing"
    RUNTIME_INSTALL_FAILED = "runtime_install_failed"
    ARTIFACT_UNAVAILABLE = "artifact_unavailable"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    FLOODED = "flooded"
    GARBLED = "garbled"
    INFERENCE_FAILED = "inference_failed"
    NODE_LOST = "node_lost"
    CANCELLED = "cancelled"
    FAIL_FAST = "fail_fast"
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
    """The base of errors with a `reason`, a code and a sentence that are shown to people."""

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
