"""Orders to the workshop: each runs in a confined child, so that no caller ever parses a model in its own process.

Nothing here imports onnx. A `bundle` is a folder that holds the model file `main` and its external data as plain files.
"""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from farm.contract.reasons import Reason, ReasonCode
from farm.sandbox import child
from farm.sandbox.endings import Ending
from farm.sandbox.policy import Policy
from farm.workshop.inspection import Inspection, ModelProblem

INSPECT_S = 60.0
_BASE_BYTES = 3 << 30
_TIMES_BUNDLE = 8


class WorkshopError(Exception):
    """An order that could not be carried out; `reason` says why in words."""

    def __init__(self, code: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = Reason(code=code, text=text[:2000])


def inspect(bundle_dir: Path, main: str, *, timeout_s: float = INSPECT_S) -> Inspection:
    """What the model is, or its problem in one sentence; never raises for what a model is or does."""
    payload = {"folder": str(bundle_dir), "main": main}
    ending = _call("farm.workshop.inspecting:inspect", payload, reads=bundle_dir, timeout_s=timeout_s)
    problem = _problem_of(ending, "looking into the model")
    if problem is not None:
        return Inspection(ok=False, problem=problem)
    try:
        return Inspection.model_validate(ending.answer()["answer"])
    except (ValidationError, ValueError, KeyError) as error:
        return Inspection(ok=False, problem=ModelProblem(code="garbled", text=_garbled(error)))


def _call(function: str, payload: Any, *, reads: Path, timeout_s: float, writes: Path | None = None) -> Ending:
    size = sum(path.stat().st_size for path in reads.iterdir() if path.is_file())
    policy = Policy(
        read_only=(reads,),
        read_write=(writes,) if writes else (),
        memory_bytes=_BASE_BYTES + _TIMES_BUNDLE * size,
        cpu_s=timeout_s * 4,
    )
    return child.run_function(function, payload, policy=policy, timeout_s=timeout_s)


def _problem_of(ending: Ending, doing: str) -> ModelProblem | None:
    """The problem that a child answered, or the one that its end is."""
    if not ending.is_done:
        what = doing.capitalize()
        texts = {
            "timeout": f"{what} did not end in time: {ending.limit}. Simplify the model, or its functions.",
            "out_of_memory": f"{what} took too much memory: {ending.limit}. Make the model smaller.",
        }
        text = texts.get(ending.kind, f"{what} failed. {ending.sentence()}")
        return ModelProblem(code=ending.kind, text=text[:2000])
    try:
        answer = ending.answer()
        return ModelProblem.model_validate(answer["problem"]) if "problem" in answer else None
    except (ValidationError, ValueError, TypeError) as error:
        return ModelProblem(code="garbled", text=_garbled(error))


def _garbled(error: Exception) -> str:
    return f"The process looking into the model answered something else than facts ({type(error).__name__})."
