"""Orders to the workshop: each runs in a confined child, so that no caller ever parses a model in its own process.

Nothing here imports onnx. A `bundle` is a folder that holds the model file `main` and its external data as plain files.
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
# planning works without the answer; where it takes longer, making the variant shows whether it works
REACH_S = 20.0
FEED_S = 90.0
GUESS_S = 20.0
RUN_S = 120.0
VARIANT_S = 600.0
OUTLINE_S = 60.0
TIMELINE_S = 30.0
# limits of an unpacked raw trace, its events, the nodes that one inference ran, and the timeline's file
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
W = TypeVar("W", bound=replies.Written)


@dataclass(frozen=True)
class Job(Generic[W]):
    """A function of `farm.workshop.child` that writes one file: its answer, the file's name, and its time limit.

    Calling the job with a bundle and further entries of the payload, for which `defaults` stand in, runs it in a child
    that may read the files among these entries, and returns the answer with the written file's path. The call raises
    WorkshopError.
    """

    function: str
    answer: type[W]
    file: str
    timeout_s: float = RUN_S
    defaults: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, bundle_dir: Path, main: str, *, out_dir: Path, **arguments: object) -> W:
        out = out_dir / self.file
        place = confined.Place(
            bundle_dir=bundle_dir, main=main, reads=_list_paths(list(arguments.values())), out_dir=out_dir
        )
        order = {**self.defaults, **{name: _convert_paths(value) for name, value in arguments.items()}, "out": str(out)}
        answer = confined.ask_child(self.function, order, place=place, timeout_s=self.timeout_s, as_a=self.answer)
        answer.set_path(confined.require_file(out))
        return answer


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


# make the inputs of a workload, the same arrays for the same seed, sizes and `inputs` (fills by name); refused as
# fixed_batch, no_batch, not_supported
prepare_inputs = Job(
    "inputs:make_inputs", replies.Fed, "inputs.npz", defaults={"batch": None, "shapes": {}, "seed": 0, "inputs": {}}
)
# check names, dtypes and shapes of the user's `inputs`
accept_inputs = Job("inputs:accept_inputs", replies.Fed, "inputs.npz")
# check ids and shapes of the user's `prompts`; the same ids give the same file, whichever program saved them
accept_prompts = Job("prompts:accept_prompts", replies.Prompted, "prompts.npz")
# run the model on `inputs` by the CPU provider without optimisations; refused as model_not_loaded, inference_failed
make_reference = Job("reference:make_reference", replies.Referenced, "reference.npz")
# check names, dtypes, shapes and counts of samples: an `.npz` (`data`), else `sets` of ONNX's own `input_N.pb` by set
# of test data, in the model's order; refused as variant_impossible
accept_calibration = Job(
    "calibration:accept_calibration", replies.Calibrated, "calibration.npz", defaults={"data": None, "sets": []}
)
CHECK_EVALUATION = Job("evaluation:check_labelled_data", replies.Labelled, "evaluation.npz")
# check the data of a user's own judge: the inputs among them, and the first batch's outputs
accept_samples = Job("evaluation:accept_samples", replies.Labelled, "evaluation.npz")
UNPACK_TEST_DATA = {side: Job("inputs:unpack_test_data", replies.Done, f"{side}s.npz") for side in ("input", "output")}
MAKE_OUTLINE = Job("outline:write_outline", replies.Done, "outline.onnx", OUTLINE_S)
READ_TIMELINE = Job("timelines:write_timeline", replies.Done, "timeline.json", TIMELINE_S)


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


def inspect(bundle_dir: Path, main: str, *, timeout_s: float = INSPECT_S, is_one_of_many: bool = False) -> Inspection:
    """Inspect a model and return its facts, or its problem; it never raises, whatever the model does.

    With `is_one_of_many` a process with the imports stays alive for further calls (see `farm.sandbox.forks`).
    """
    place = confined.Place(bundle_dir=bundle_dir, main=main)
    outcome = confined.ask_child_for_outcome(
        "inspection:inspect", {}, place=place, timeout_s=timeout_s, as_a=Inspection, is_one_of_many=is_one_of_many
    )
    return Inspection(ok=False, problem=outcome) if isinstance(outcome, ModelProblem) else outcome


def choose_feed(bundle_dir: Path, main: str, *, out_dir: Path, timeout_s: float = FEED_S) -> Feed:
    """Choose, by trying, the sizes and inputs with which the model runs; it never raises for what a model does.

    The Feed has a `problem` where nothing runs. A model that cannot be tried, because it is too slow or ends the
    process, gets the likeliest sizes and inputs. `out_dir` is a folder for scratch files.
    """
    place = confined.Place(bundle_dir=bundle_dir, main=main, out_dir=out_dir)
    try:
        return confined.ask_child(
            "feed:choose_feed", {"out": str(out_dir)}, place=place, timeout_s=timeout_s, as_a=Feed
        )
    except WorkshopError as error:
        log.info("what %s takes was not tried out: %s", main, error.reason.text)
    place = confined.Place(bundle_dir=bundle_dir, main=main)
    try:
        return confined.ask_child("feed:guess_feed", {}, place=place, timeout_s=GUESS_S, as_a=Feed)
    except WorkshopError as error:
        return Feed(problem=error.reason.text)


def find_opset_range(
    bundle_dir: Path, main: str, *, timeout_s: float = REACH_S, is_one_of_many: bool = False
) -> OpsetReach | None:
    """Find how far the model's operator set can be converted; None where the converter failed or took too long."""
    place = confined.Place(bundle_dir=bundle_dir, main=main)
    outcome = confined.ask_child_for_outcome(
        "opset_range:find_opset_range",
        {},
        place=place,
        timeout_s=timeout_s,
        as_a=OpsetReach,
        is_one_of_many=is_one_of_many,
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
    with the reason, such as variant_impossible, and ValueError where max-of-runtime is not resolved.
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
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
    main = program or main
    answer = confined.ask_child("variants:make_variant", payload, place=place, timeout_s=timeout_s, as_a=replies.Made)
    # the files are listed from the disk, as the child's answer is not trusted
    files = (
        confined.require_file(out_dir / main).name,
        *plain_files.list_plain_files(out_dir, re.escape(f"{main}.data")),
    )
    return Variant(folder=out_dir, main=main, files=files, history=answer.history, coverage=answer.coverage)


def check_evaluation(
    bundle_dir: Path, main: str, *, data: Path, recipe: EvaluationRecipe, out_dir: Path
) -> replies.Labelled:
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

    Raises WorkshopError where there is no graph, or the result has more than MAX_OUTLINE_BYTES bytes.
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
    """Unpack the named files of an npm package into `out_dir`, and return their paths. Raises WorkshopError."""
    place = confined.Place(bundle_dir=folder, main=name, out_dir=out_dir)
    limits = {"limit_files": MAX_PACKED_FILES, "limit_bytes": MAX_UNPACKED_BYTES}
    order = {**limits, "names": list(names), "out": str(out_dir)}
    confined.ask_child("packages:unpack_package", order, place=place, timeout_s=UNPACK_S, as_a=replies.Done)
    return [confined.require_file(out_dir / unpacked) for unpacked in names]


def report_quantised(
    bundle_dir: Path, main: str, *, variant_dir: Path, out_dir: Path, data: Path | None = None
) -> QuantisedReport:
    """Report coverage, weight scales and errors by tensor of a quantised variant. Raises WorkshopError.

    The original and the variant run on the samples `data`, or on random ones where it is None. `out_dir` is for scratch
    files.
    """
    reads = [variant_dir, *([data] if data else [])]
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
    payload = {"variant": str(variant_dir), "data": str(data) if data else None, "out": str(out_dir)}
    return confined.ask_child(
        "quantisation_report:make_report", payload, place=place, timeout_s=VARIANT_S, as_a=QuantisedReport
    )
