"""Orders to the workshop: each runs in a confined child, so that callers never parse a model in their own process.

This module does not import onnx. A bundle is a folder with the model file `main` and its external data as plain files.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from farm.contract.cells import PROGRAM_ENDING, Recipe
from farm.contract.evaluation import EvaluationRecipe
from farm.contract.reasons import ReasonCode
from farm.rules.cells import recipes
from farm.rules.quality.accuracy_metrics import METRICS
from farm.rules.runtimes.conversions import OpsetReach
from farm.rules.tracing.timeline import MAX_NAME, Timeline
from farm.sandbox import plain_files
from farm.workshop import confined, replies
from farm.workshop.inspection import Coverage, Feed, Inspection, ModelProblem, QuantisedReport

INSPECT_S = 60.0
# planning works without the answer; a conversion that takes longer is tried when the variant is made
REACH_S = 20.0
FEED_S = 90.0
GUESS_S = 20.0
RUN_S = 120.0
VARIANT_S = 600.0
OUTLINE_S = 60.0
TIMELINE_S = 30.0
# limits of an unpacked raw trace, of its events, of the nodes that an inference ran, and of the timeline's file
MAX_TRACE_BYTES = 48 * 1024**2
MAX_EVENTS, MAX_SPANS = 500_000, 20_000
MAX_TIMELINE_BYTES = 16 * 1024**2
# limits of an npm package: files that it lists, and bytes of those to unpack
MAX_PACKED_FILES, MAX_UNPACKED_BYTES = 5_000, 192 * 1024**2
UNPACK_S = 120.0
# the largest graph that a browser can lay out; one of 20,000 nodes has some 5 MB
MAX_OUTLINE_BYTES = 64 * 1024**2

log = logging.getLogger(__name__)
WorkshopError = confined.WorkshopError
_TIMELINE: TypeAdapter[Timeline] = TypeAdapter(Timeline)
FileReplyType = TypeVar("FileReplyType", bound=replies.FileReply)


@dataclass(frozen=True)
class Job(Generic[FileReplyType]):
    """A function of `farm.workshop.child` that writes one file.

    Call the job with a bundle and the further entries of the function's payload. The function then runs in a child,
    which may read every path among these entries, and the call returns its reply with the path of the written file.
    The call raises WorkshopError.
    """

    # as `module:function`
    function: str
    reply: type[FileReplyType]
    file_name: str
    timeout_s: float = RUN_S
    # entries of the payload that a call may leave out
    defaults: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, bundle_dir: Path, main: str, *, out_dir: Path, **entries: object) -> FileReplyType:
        out = out_dir / self.file_name
        reads = _list_paths(list(entries.values()))
        files = confined.ChildFiles(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
        texts = {name: _convert_paths(value) for name, value in entries.items()}
        payload = {**self.defaults, **texts, "out": str(out)}
        reply = confined.ask_child(self.function, payload, files=files, timeout_s=self.timeout_s, expects=self.reply)
        reply.set_path(confined.require_file(out))
        return reply


def _list_paths(value: object) -> list[Path]:
    if isinstance(value, Path):
        return [value]
    if isinstance(value, list | tuple):
        return [path for part in value for path in _list_paths(part)]
    return []


def _convert_paths(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_convert_paths(part) for part in value]
    return value


# Make the inputs of a workload: the same arrays for the same seed, sizes and `inputs` (fills by name). Raises
# WorkshopError with the code fixed_batch, no_batch or not_supported.
prepare_inputs = Job(
    "inputs:make_inputs",
    replies.InputsReply,
    "inputs.npz",
    defaults={"batch": None, "shapes": {}, "seed": 0, "inputs": {}},
)
# Check names, dtypes and shapes of the user's `inputs`, an `.npz`.
accept_inputs = Job("inputs:accept_inputs", replies.InputsReply, "inputs.npz")
# Check ids and shapes of the user's `prompts`, an `.npz`. The same ids give the same file, whatever program saved them.
accept_prompts = Job("prompts:accept_prompts", replies.PromptsReply, "prompts.npz")
# Run the model on `inputs` with the CPU provider and without optimisations. Raises WorkshopError with the code
# model_not_loaded or inference_failed.
make_reference = Job("reference:make_reference", replies.ReferenceReply, "reference.npz")
# Check names, dtypes, shapes and counts of calibration samples: the `.npz` `data`, or `sets`, which holds a list of
# ONNX's own `input_N.pb`, in the model's order, for each set of test data. Raises WorkshopError with the code
# variant_impossible.
accept_calibration = Job(
    "calibration:accept_calibration", replies.CalibrationReply, "calibration.npz", defaults={"data": None, "sets": []}
)
CHECK_EVALUATION = Job("evaluation:check_labelled_data", replies.LabelledDataReply, "evaluation.npz")
# Check the data for a user's own judge: the inputs among them, and that the model runs on the first batch.
accept_samples = Job("evaluation:accept_samples", replies.LabelledDataReply, "evaluation.npz")
_UNPACK = "inputs:unpack_test_data"
UNPACK_TEST_DATA = {side: Job(_UNPACK, replies.FileReply, f"{side}s.npz") for side in ("input", "output")}
MAKE_OUTLINE = Job("outline:write_outline", replies.FileReply, "outline.onnx", OUTLINE_S)
READ_TIMELINE = Job("timelines:write_timeline", replies.FileReply, "timeline.json", TIMELINE_S)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A derived bundle."""

    folder: Path
    main: str
    # names in the folder, the model first
    files: tuple[str, ...]
    # sentences that say how it was made
    history: tuple[str, ...]
    # which operators were quantised; empty for variants that are not
    coverage: tuple[Coverage, ...] = ()


def inspect(bundle_dir: Path, main: str, *, timeout_s: float = INSPECT_S, keep_alive: bool = False) -> Inspection:
    """Inspect a model and return its facts, or its problem. It never raises, whatever the model does.

    With `keep_alive` a process that has imported onnx stays alive for further calls (see `farm.sandbox.forks`).
    """
    files = confined.ChildFiles(bundle_dir=bundle_dir, main=main)
    outcome = confined.ask_child_or_problem(
        "inspection:inspect", {}, files=files, timeout_s=timeout_s, expects=Inspection, keep_alive=keep_alive
    )
    return Inspection(ok=False, problem=outcome) if isinstance(outcome, ModelProblem) else outcome


def choose_feed(bundle_dir: Path, main: str, *, out_dir: Path, timeout_s: float = FEED_S) -> Feed:
    """Choose the sizes and inputs with which the model runs, by trying. It never raises, whatever the model does.

    The feed has a `problem` if the model ran with none of them, or if not even a guess could be made. A model that
    cannot be tried, because it is too slow or ends the process, gets the likeliest sizes and inputs. `out_dir` is a
    folder for scratch files.
    """
    files = confined.ChildFiles(bundle_dir=bundle_dir, main=main, out_dir=out_dir)
    try:
        return confined.ask_child(
            "feed:choose_feed", {"out": str(out_dir)}, files=files, timeout_s=timeout_s, expects=Feed
        )
    except WorkshopError as error:
        log.info("what %s takes was not tried out: %s", main, error.reason.text)
    files = confined.ChildFiles(bundle_dir=bundle_dir, main=main)
    try:
        return confined.ask_child("feed:guess_feed", {}, files=files, timeout_s=GUESS_S, expects=Feed)
    except WorkshopError as error:
        return Feed(problem=error.reason.text)


def find_opset_range(
    bundle_dir: Path, main: str, *, timeout_s: float = REACH_S, keep_alive: bool = False
) -> OpsetReach | None:
    """Find how far the model's operator set can be converted; None if the child failed or took too long."""
    files = confined.ChildFiles(bundle_dir=bundle_dir, main=main)
    outcome = confined.ask_child_or_problem(
        "opset_range:find_opset_range", {}, files=files, timeout_s=timeout_s, expects=OpsetReach, keep_alive=keep_alive
    )
    return None if isinstance(outcome, ModelProblem) else outcome


def unpack_test_data(
    bundle_dir: Path, main: str, *, files: Sequence[Path], side: Literal["input", "output"], out_dir: Path
) -> Path:
    """Write ONNX's own `input_N.pb` or `output_N.pb` files, in order, as one `.npz`. Raises WorkshopError."""
    return UNPACK_TEST_DATA[side](bundle_dir, main, out_dir=out_dir, files=list(files), side=side).path


def make_variant(
    bundle_dir: Path,
    main: str,
    *,
    recipe: Recipe,
    out_dir: Path,
    opset: int | None = None,
    calibration: Path | None = None,
    timeout_s: float = VARIANT_S,
) -> Variant:
    """Make the variant by recipe in `out_dir`, under the name of the original; a program has its own ending.

    `opset` is what a recipe's `max-of-runtime` was resolved to; a number in the recipe stands for itself.
    `calibration` is an `.npz` of samples for static quantisation; without it random ones are used. Raises WorkshopError
    with the reason, such as variant_impossible, and ValueError if max-of-runtime is not resolved.
    """
    if opset is None and isinstance(recipe.opset, int):
        opset = recipe.opset
    if recipe.opset == "max-of-runtime" and opset is None:
        raise ValueError("the caller resolves max-of-runtime before it orders a variant")
    program = f"model{PROGRAM_ENDING}" if recipe.is_program else ""
    payload = {
        "precision": recipe.precision,
        "opset": opset,
        "options": recipes.variant_options(recipe),
        "out": str(out_dir),
        "calibration": str(calibration) if calibration else None,
        "program": program,
    }
    reads = [calibration] if calibration else []
    files = confined.ChildFiles(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
    main = program or main
    answer = confined.ask_child(
        "variants:make_variant", payload, files=files, timeout_s=timeout_s, expects=replies.VariantReply
    )
    # the files are listed from the disk, since the child's reply is not trusted
    data_names = plain_files.list_plain_files(out_dir, re.escape(f"{main}.data"))
    names = (confined.require_file(out_dir / main).name, *data_names)
    return Variant(folder=out_dir, main=main, files=names, history=answer.history, coverage=answer.coverage)


def check_evaluation(
    bundle_dir: Path, main: str, *, data: Path, recipe: EvaluationRecipe, out_dir: Path
) -> replies.LabelledDataReply:
    """Check labelled data against the model's inputs and the first batch's output, and write it into `out_dir`.

    Raises WorkshopError with a sentence on what does not fit.
    """
    if (entry := METRICS.get(recipe.metric)) is None:
        text = f"The accuracy metric {recipe.metric!r} is not known here: install its package, or give another recipe."
        raise WorkshopError(ReasonCode.NOT_SUPPORTED, text)
    entries = {"labels": entry.labels, "at_once": entry.at_once, **recipe.model_dump(mode="json")}
    return CHECK_EVALUATION(bundle_dir, main, out_dir=out_dir, data=data, **entries)


def make_outline(bundle_dir: Path, main: str, *, out_dir: Path) -> Path:
    """Write the model's graph without its large tensors to a file in `out_dir`; only the file `main` is read.

    Raises WorkshopError if there is no graph, or the result has more than MAX_OUTLINE_BYTES bytes.
    """
    out = MAKE_OUTLINE(bundle_dir, main, out_dir=out_dir, limit_bytes=MAX_OUTLINE_BYTES).path
    if out.stat().st_size > MAX_OUTLINE_BYTES:
        text = "The process outlining the graph wrote something else than an outline."
        raise WorkshopError(ReasonCode.GARBLED, text)
    return out


def read_timeline(folder: Path, name: str, *, out_dir: Path) -> Timeline:
    """Read one inference of the gzipped Chrome trace `name`. Raises WorkshopError with why it cannot be drawn."""
    limits = {"limit_bytes": MAX_TRACE_BYTES, "limit_events": MAX_EVENTS, "limit_spans": MAX_SPANS}
    out = READ_TIMELINE(folder, name, out_dir=out_dir, **limits).path
    text = "The process reading the trace wrote something else than a timeline."
    if out.stat().st_size > MAX_TIMELINE_BYTES:
        raise WorkshopError(ReasonCode.GARBLED, text)
    try:
        timeline = _TIMELINE.validate_json(out.read_bytes())
    except ValidationError as problem:
        raise WorkshopError(ReasonCode.GARBLED, text) from problem
    if len(timeline.spans) > MAX_SPANS or any(len(span.name) > MAX_NAME for span in timeline.spans):
        raise WorkshopError(ReasonCode.GARBLED, text)
    return timeline


def unpack_package(folder: Path, name: str, *, names: Sequence[str], out_dir: Path) -> list[Path]:
    """Unpack the named files of an npm package's folder `dist` into `out_dir`, and return their paths in this order.

    Raises WorkshopError, also if one of them is missing.
    """
    files = confined.ChildFiles(bundle_dir=folder, main=name, out_dir=out_dir)
    limits = {"limit_files": MAX_PACKED_FILES, "limit_bytes": MAX_UNPACKED_BYTES}
    order = {**limits, "names": list(names), "out": str(out_dir)}
    confined.ask_child("packages:unpack_package", order, files=files, timeout_s=UNPACK_S, expects=replies.FileReply)
    return [confined.require_file(out_dir / unpacked) for unpacked in names]


def report_quantised(
    bundle_dir: Path, main: str, *, variant_dir: Path, out_dir: Path, data: Path | None = None
) -> QuantisedReport:
    """Report coverage, weight scales and errors by tensor of a quantised variant. Raises WorkshopError.

    The original and the variant run on the samples `data`, or on random ones if it is None. `out_dir` is for scratch
    files.
    """
    reads = [variant_dir, *([data] if data else [])]
    files = confined.ChildFiles(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
    payload = {"variant": str(variant_dir), "data": str(data) if data else None, "out": str(out_dir)}
    return confined.ask_child(
        "quantisation_report:make_report", payload, files=files, timeout_s=VARIANT_S, expects=QuantisedReport
    )
