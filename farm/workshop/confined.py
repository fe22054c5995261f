"""Calls a function of the workshop in a confined child, and explains failures. Imports no onnx."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, TypeVar, Unpack

from pydantic import BaseModel, ValidationError

from farm.contract.reasons import Reason, ReasonCode, ReasonedError
from farm.sandbox import child, plain_files
from farm.sandbox.ending import Ending
from farm.sandbox.policy import Policy, SandboxError
from farm.sandbox.unconfined import NoSandboxError
from farm.workshop.inspection import ModelProblem

log = logging.getLogger(__name__)
NO_SANDBOX = (
    "The model was not opened: no sandbox works on this machine. Ask the administrator, who finds "
    "the reason in the farm's log, then inspect it again."
)
# the memory limit of a child: a base, and a multiple of the size of the files that it may read
_BASE_BYTES = 3 << 30
_BYTES_PER_BUNDLE_BYTE = 8
# what a fork server calls before its first fork; it starts no thread, which a fork would lose
_PRELOADED = ("farm.workshop.child.warm_up:load_onnx_tables",)
_ACTIVITIES = {
    "inspection": "looking into the model",
    "opset_range": "converting the model",
    "inputs": "preparing the inputs",
    "prompts": "reading the prompts",
    "feed": "choosing sizes and inputs",
    "reference": "making the reference",
    "variants": "making the variant",
    "calibration": "looking at the calibration data",
    "evaluation": "looking at the labelled data",
    "quantisation_report": "reading what quantisation did",
    "subgraphs": "looking between the nodes",
    "outline": "outlining the graph",
    "timelines": "reading the trace",
    "packages": "unpacking the package",
}
# by the code of a workshop's problem: the reason code of the error; other problems become NOT_SUPPORTED
_CODES = {
    "fixed_batch": ReasonCode.FIXED_BATCH,
    "no_batch": ReasonCode.NO_BATCH,
    "not_loaded": ReasonCode.MODEL_NOT_LOADED,
    "bad_program": ReasonCode.MODEL_NOT_LOADED,
    "inference_failed": ReasonCode.INFERENCE_FAILED,
    "timeout": ReasonCode.TIMEOUT,
    "out_of_memory": ReasonCode.OUT_OF_MEMORY,
    "crashed": ReasonCode.CRASHED,
    "flooded": ReasonCode.FLOODED,
    "garbled": ReasonCode.GARBLED,
    "sandbox_missing": ReasonCode.SANDBOX_MISSING,
    "bad_package": ReasonCode.RUNTIME_INSTALL_FAILED,
    "missing_file": ReasonCode.RUNTIME_INSTALL_FAILED,
    **dict.fromkeys(
        (
            *("already_quantised", "bad_option", "no_adapter", "conversion_failed", "nothing_quantised"),
            *("quantising_failed", "nothing_halved", "halving_failed", "bad_calibration", "bad_arrays"),
        ),
        ReasonCode.VARIANT_IMPOSSIBLE,
    ),
}


Answer = TypeVar("Answer", bound=BaseModel)


class WorkshopError(ReasonedError):
    """Raised if an order to the workshop could not be carried out; `reason` has the code and the sentence."""

    def __init__(self, code: ReasonCode, text: str) -> None:
        super().__init__(Reason(code=code, text=text[:2000]))


@dataclass(frozen=True, kw_only=True)
class ChildFiles:
    """The files of a child: the model file `main` in `bundle_dir`, what else it may read, and where it may write."""

    bundle_dir: Path
    main: str
    # further files and folders that it may read
    reads: Sequence[Path] = ()
    # the folder that it may write in; None if it may write nothing
    out_dir: Path | None = None


class CallOptions(TypedDict):
    """The options of `call_child`."""

    files: ChildFiles
    timeout_s: float
    keep_alive: NotRequired[bool]


def ask_child(
    function: str, payload: Mapping[str, object], *, expects: type[Answer], **options: Unpack[CallOptions]
) -> Answer:
    """Call `module:function` of farm.workshop.child and return its answer, validated as the model `expects`.

    Afterwards the folder `out_dir` of the files holds plain files and folders only. Raises WorkshopError if the child
    answers with a problem or with anything unexpected, or does not end normally.
    """
    outcome = ask_child_or_problem(function, payload, expects=expects, **options)
    if isinstance(outcome, ModelProblem):
        raise WorkshopError(_CODES.get(outcome.code, ReasonCode.NOT_SUPPORTED), outcome.text)
    return outcome


def ask_child_or_problem(
    function: str, payload: Mapping[str, object], *, expects: type[Answer], **options: Unpack[CallOptions]
) -> Answer | ModelProblem:
    """Call the function as `ask_child` does, but return a ModelProblem instead of raising WorkshopError."""
    out_dir = options["files"].out_dir
    try:
        ending = call_child(function, payload, **options)
        if (problem := _find_problem(ending, _ACTIVITIES[function.split(":")[0]])) is not None:
            return problem
        if out_dir is not None:
            plain_files.check_plain_files(out_dir)
        return expects.model_validate(_read_reply(ending)["answer"])
    except WorkshopError as error:
        return ModelProblem(code=error.reason.code, text=error.reason.text)
    except plain_files.NotPlainFileError as error:
        # from here on the folder holds plain files only
        return ModelProblem(code="garbled", text=f"The process working on the model left what it may not. {error}")
    except (ValidationError, LookupError, TypeError) as error:
        return ModelProblem(code="garbled", text=_explain_garbled(error))


def require_file(path: Path) -> Path:
    """Return the path of a file that a child had to write. Raises WorkshopError if no plain file is there."""
    if not plain_files.is_plain(path):
        raise WorkshopError(ReasonCode.GARBLED, f"The process working on the model left no {path.name}.")
    return path


def call_child(
    function: str, payload: Mapping[str, object], *, files: ChildFiles, timeout_s: float, keep_alive: bool = False
) -> Ending:
    """Run `module:function` of farm.workshop.child on the model, and return how the child ended.

    With `keep_alive` a process that has imported onnx stays alive for later calls: fast, but it takes memory.
    Raises WorkshopError with the code sandbox_missing if the child cannot be started or confined.
    """
    # a model takes several times its size in memory
    readable = (files.bundle_dir, *files.reads)
    paths = (path for root in readable for path in (root, *root.glob("*")))
    size = sum(path.stat().st_size for path in paths if path.is_file())
    policy = Policy(
        read_only=readable,
        read_write=(files.out_dir,) if files.out_dir else (),
        memory_bytes=_BASE_BYTES + _BYTES_PER_BUNDLE_BYTE * size,
        cpu_s=timeout_s * 4,
    )
    order = {"folder": str(files.bundle_dir), "main": files.main, **payload}
    preloaded = _PRELOADED if keep_alive else ()
    name = f"farm.workshop.child.{function}"
    try:
        return child.run_function(name, order, policy=policy, timeout_s=timeout_s, preloaded=preloaded)
    except NoSandboxError as problem:
        log.error("A model was not opened. %s", problem)
        raise WorkshopError(ReasonCode.SANDBOX_MISSING, NO_SANDBOX) from problem
    except SandboxError as problem:
        raise WorkshopError(ReasonCode.SANDBOX_MISSING, str(problem)) from problem


def _find_problem(ending: Ending, activity: str) -> ModelProblem | None:
    """Return the problem that a child answered with, or one that explains its end; None if it ended well."""
    if not ending.is_done:
        doing = activity.capitalize()
        texts = {
            "timeout": f"{doing} did not end in time: {ending.limit}. Simplify the model, or its functions.",
            "out_of_memory": f"{doing} took too much memory: {ending.limit}. Make the model smaller.",
        }
        text = texts.get(ending.kind, f"{doing} failed. {ending.describe()}")
        return ModelProblem(code=ending.kind, text=text[:2000])
    try:
        reply = _read_reply(ending)
        return ModelProblem.model_validate(reply["problem"]) if "problem" in reply else None
    except (ValidationError, ValueError, TypeError) as error:
        return ModelProblem(code="garbled", text=_explain_garbled(error))


def _read_reply(ending: Ending) -> dict[str, object]:
    reply = ending.parse_reply()
    if not isinstance(reply, dict):
        raise TypeError(f"a JSON object was expected, not {type(reply).__name__}")
    return reply


def _explain_garbled(error: Exception) -> str:
    return f"The process looking into the model answered something else than facts ({type(error).__name__})."
