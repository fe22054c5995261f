"""Orders to the workshop: each runs in a confined child, so that no caller ever parses a model in its own process.

Nothing here imports onnx. A `bundle` is a folder that holds the model file `main` and its external data as plain files.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from farm.contract.cells import PROGRAM_ENDING, Recipe
from farm.contract.evaluation import EvaluationRecipe
from farm.contract.reasons import ReasonCode
from farm.rules.cells import recipes
from farm.rules.runtimes.conversions import OpsetReach
from farm.rules.tracing.timeline import MAX_NAME, Timeline
from farm.sandbox import leavings
from farm.workshop import confined, replies
from farm.workshop.inspection import Coverage, Feed, Inspection, ModelProblem, QuantisedReport

INSPECT_S = 60.0
# a nicety of the plan; what takes longer is found out when somebody asks for the variant
REACH_S = 20.0
FEED_S = 90.0
GUESS_S = 20.0
RUN_S = 120.0
VARIANT_S = 600.0
OUTLINE_S = 60.0
TIMELINE_S = 30.0
# of a raw trace once it is unpacked, of its events, and of the nodes that one inference ran; longer: see Perfetto
LONGEST_TRACE = 48 * 1024**2
MOST_EVENTS, MOST_SPANS = 500_000, 20_000
LARGEST_TIMELINE = 16 * 1024**2
# of a packed release of npm: files that it lists, and bytes of those that are wanted
MOST_PACKED_FILES, LARGEST_UNPACKED = 5_000, 192 * 1024**2
UNPACK_S = 120.0
# what a browser can still lay out; a graph of 20,000 nodes has some 5 MB
LARGEST_OUTLINE = 64 * 1024**2

log = logging.getLogger(__name__)
WorkshopError = confined.WorkshopError
_TIMELINE: TypeAdapter[Timeline] = TypeAdapter(Timeline)
W = TypeVar("W", bound=replies.Written)


@dataclass(frozen=True, kw_only=True)
class Job(Generic[W]):
    """A function of `farm.workshop.child` that writes one file: what it answers, the file's name, its time."""

    function: str
    answer: type[W]
    file: str
    timeout_s: float = RUN_S

    def run(self, place: confined.Place, **payload: object) -> W:
        """The answer with the written file. Raises WorkshopError."""
        assert place.out_dir is not None
        out = place.out_dir / self.file
        order = {**payload, "out": str(out)}
        found = confined.answer(self.function, order, place=place, timeout_s=self.timeout_s, as_a=self.answer)
        found.written_to(confined.made(out))
        return found


MAKE_INPUTS = Job(function="inputs:make_inputs", answer=replies.Fed, file="inputs.npz")
ACCEPT_INPUTS = Job(function="inputs:accept_inputs", answer=replies.Fed, file="inputs.npz")
ACCEPT_PROMPTS = Job(function="prompts:accept", answer=replies.Prompted, file="prompts.npz")
UNPACK_INPUTS = Job(function="inputs:unpack_test_data", answer=replies.Done, file="inputs.npz")
UNPACK_OUTPUTS = Job(function="inputs:unpack_test_data", answer=replies.Done, file="outputs.npz")
MAKE_REFERENCE = Job(function="reference:make_reference", answer=replies.Referenced, file="reference.npz")
ACCEPT_CALIBRATION = Job(function="calibration:accept", answer=replies.Calibrated, file="calibration.npz")
CHECK_EVALUATION = Job(function="evaluation:check", answer=replies.Labelled, file="evaluation.npz")
MAKE_OUTLINE = Job(function="outline:make", answer=replies.Done, file="outline.onnx", timeout_s=OUTLINE_S)
READ_TIMELINE = Job(function="timelines:read", answer=replies.Done, file="timeline.json", timeout_s=TIMELINE_S)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A derived bundle: its files in `folder`, the model first, and what was done to make it, in sentences.

    `coverage`: of an 8-bit one, which operators were quantised.
    """

    folder: Path
    main: str
    files: tuple[str, ...]
    history: tuple[str, ...]
    coverage: tuple[Coverage, ...] = ()


def inspect(bundle_dir: Path, main: str, *, timeout_s: float = INSPECT_S, is_one_of_many: bool = False) -> Inspection:
    """What the model is, or its problem in one sentence; never raises for what a model is or does.

    `is_one_of_many`: the caller inspects all day, so a process with the imports is kept (see `farm.sandbox.forks`).
    """
    place = confined.Place(bundle_dir=bundle_dir, main=main)
    try:
        ending = confined.call(
            "inspection:inspect", {}, place=place, timeout_s=timeout_s, is_one_of_many=is_one_of_many
        )
    except WorkshopError as error:
        return Inspection(ok=False, problem=ModelProblem(code=error.reason.code, text=error.reason.text))
    problem = confined.problem_of(ending, "looking into the model")
    if problem is not None:
        return Inspection(ok=False, problem=problem)
    try:
        return confined.answered(ending, Inspection)
    except (ValidationError, LookupError, TypeError) as error:
        text = confined.garbled_sentence(error)
        return Inspection(ok=False, problem=ModelProblem(code="garbled", text=text))


def choose_feed(bundle_dir: Path, main: str, *, out_dir: Path, timeout_s: float = FEED_S) -> Feed:
    """What the model is fed where nobody says, tried out; a Feed with its problem where nothing runs, never an error.

    A model that does not let itself be tried (too slow, or it ends the process) gets the likeliest.
    """
    place = confined.Place(bundle_dir=bundle_dir, main=main, out_dir=out_dir)
    try:
        return confined.answer("feed:choose", {"out": str(out_dir)}, place=place, timeout_s=timeout_s, as_a=Feed)
    except WorkshopError as error:
        log.info("what %s takes was not tried out: %s", main, error.reason.text)
    place = confined.Place(bundle_dir=bundle_dir, main=main)
    try:
        return confined.answer("feed:guess", {}, place=place, timeout_s=GUESS_S, as_a=Feed)
    except WorkshopError as error:
        return Feed(problem=error.reason.text)


def reach_of(
    bundle_dir: Path, main: str, *, timeout_s: float = REACH_S, is_one_of_many: bool = False
) -> OpsetReach | None:
    """How far the model's operator set can be converted; None where the converter gave no answer, or crashed."""
    place = confined.Place(bundle_dir=bundle_dir, main=main)
    try:
        ending = confined.call("reach:reach", {}, place=place, timeout_s=timeout_s, is_one_of_many=is_one_of_many)
    except WorkshopError:
        return None
    if confined.problem_of(ending, "converting the model") is not None:
        return None
    try:
        return confined.answered(ending, OpsetReach)
    except (ValidationError, LookupError, TypeError):
        return None


def prepare_inputs(
    bundle_dir: Path,
    main: str,
    *,
    out_dir: Path,
    batch: int | None = None,
    shapes: Mapping[str, int] | None = None,
    seed: int = 0,
    inputs: Mapping[str, str] | None = None,
) -> replies.Fed:
    """Inputs for one workload, written to `out_dir`; the same arrays for the same seed, sizes and `inputs`.

    `inputs`: how they are made, by name, as a workload says it.

    Raises WorkshopError: fixed_batch, no_batch, not_supported and those of a child that ended badly.
    """
    place = confined.Place(bundle_dir=bundle_dir, main=main, out_dir=out_dir)
    return MAKE_INPUTS.run(place, batch=batch, shapes=dict(shapes or {}), seed=seed, inputs=dict(inputs or {}))


def accept_inputs(bundle_dir: Path, main: str, *, inputs: Path, out_dir: Path) -> replies.Fed:
    """Given inputs after a look at their names, dtypes and shapes. Raises WorkshopError: not_supported."""
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=[inputs], out_dir=out_dir)
    return ACCEPT_INPUTS.run(place, inputs=str(inputs))


def accept_prompts(bundle_dir: Path, main: str, *, prompts: Path, out_dir: Path) -> replies.Prompted:
    """Given prompts after a look at their ids and shapes. Raises WorkshopError with the sentence of what does not fit.

    What is written is the same for the same ids, whatever wrote the given file.
    """
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=[prompts], out_dir=out_dir)
    return ACCEPT_PROMPTS.run(place, prompts=str(prompts))


def unpack_test_data(
    bundle_dir: Path, main: str, *, files: Sequence[Path], side: Literal["input", "output"], out_dir: Path
) -> Path:
    """ONNX's own `input_N.pb` or `output_N.pb` files, in their order, as one `.npz` by name."""
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=files, out_dir=out_dir)
    job = UNPACK_INPUTS if side == "input" else UNPACK_OUTPUTS
    return job.run(place, files=[str(path) for path in files], side=side).path


def make_reference(bundle_dir: Path, main: str, *, inputs: Path, out_dir: Path) -> replies.Referenced:
    """Outputs of the CPU provider without optimisations. Raises WorkshopError: model_not_loaded, inference_failed."""
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=[inputs], out_dir=out_dir)
    return MAKE_REFERENCE.run(place, inputs=str(inputs))


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
    """The variant by recipe, written into `out_dir` under the name of the original; a program under its own ending.

    `opset` is what a recipe's `max-of-runtime` was resolved to; a number in the recipe stands for itself.
    `calibration`: an `.npz` of samples for static quantisation, seeded random ones are taken without.
    Raises WorkshopError: variant_impossible, with the sentence why.
    """
    target = opset if opset is not None else recipe.opset if isinstance(recipe.opset, int) else None
    if recipe.opset == "max-of-runtime" and target is None:
        raise ValueError("the caller resolves max-of-runtime before it orders a variant")
    program = f"model{PROGRAM_ENDING}" if recipe.is_program else ""
    payload = {
        "precision": recipe.precision,
        "opset": target,
        "options": recipes.for_tools(recipe),
        "out": str(out_dir),
        "calibration": str(calibration) if calibration else None,
        "program": program,
    }
    reads = [calibration] if calibration else []
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
    main = program or main
    found = confined.answer("variants:make_variant", payload, place=place, timeout_s=timeout_s, as_a=replies.Made)
    # which files there are is seen, not told: the model under its name, and its data where it has any
    files = (confined.made(out_dir / main).name, *leavings.names(out_dir, re.escape(f"{main}.data")))
    return Variant(folder=out_dir, main=main, files=files, history=found.history, coverage=found.coverage)


def accept_calibration(
    bundle_dir: Path, main: str, *, data: Path | None = None, sets: Sequence[Sequence[Path]] = (), out_dir: Path
) -> replies.Calibrated:
    """Calibration samples after a look at their names, dtypes, shapes and counts, as one `.npz`.

    `data`: an `.npz`; without it `sets` are ONNX's own `input_N.pb` by set of test data, in the model's order.
    Raises WorkshopError: variant_impossible, with the sentence of what does not fit.
    """
    reads = [data] if data else [path for files in sets for path in files]
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
    laid = [[str(path) for path in files] for files in sets]
    return ACCEPT_CALIBRATION.run(place, data=str(data) if data else None, sets=laid)


def check_evaluation(
    bundle_dir: Path, main: str, *, data: Path, recipe: EvaluationRecipe, out_dir: Path
) -> replies.Labelled:
    """Labelled data after a look at their names, dtypes, shapes, counts and labels, and at the first batch's output.

    Raises WorkshopError with the sentence of what does not fit.
    """
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=[data], out_dir=out_dir)
    return CHECK_EVALUATION.run(place, **recipe.model_dump(mode="json"), data=str(data))


def make_outline(bundle_dir: Path, main: str, *, out_dir: Path) -> Path:
    """The model's graph without its large tensors, as a file in `out_dir`. Only the file `main` is read.

    Raises WorkshopError for what is no graph, or one of more than LARGEST_OUTLINE bytes.
    """
    place = confined.Place(bundle_dir=bundle_dir, main=main, out_dir=out_dir)
    out = MAKE_OUTLINE.run(place, limit_bytes=LARGEST_OUTLINE).path
    if out.stat().st_size > LARGEST_OUTLINE:
        text = "The process outlining the graph wrote something else than an outline."
        raise WorkshopError(ReasonCode.GARBLED, text)
    return out


def read_timeline(folder: Path, name: str, *, out_dir: Path) -> Timeline:
    """One inference of the gzipped Chrome trace `name` in the folder. Raises WorkshopError with why it is not drawn."""
    place = confined.Place(bundle_dir=folder, main=name, out_dir=out_dir)
    limits = {"limit_bytes": LONGEST_TRACE, "limit_events": MOST_EVENTS, "limit_spans": MOST_SPANS}
    out = READ_TIMELINE.run(place, **limits).path
    text = "The process reading the trace wrote something else than a timeline."
    if out.stat().st_size > LARGEST_TIMELINE:
        raise WorkshopError(ReasonCode.GARBLED, text)
    try:
        found = _TIMELINE.validate_json(out.read_bytes())
    except ValidationError as problem:
        raise WorkshopError(ReasonCode.GARBLED, text) from problem
    if len(found.spans) > MOST_SPANS or any(len(span.name) > MAX_NAME for span in found.spans):
        raise WorkshopError(ReasonCode.GARBLED, text)
    return found


def unpack_package(folder: Path, name: str, *, names: Sequence[str], out_dir: Path) -> list[Path]:
    """The named files of a packed release of npm, unpacked into `out_dir`. Raises WorkshopError with why not."""
    place = confined.Place(bundle_dir=folder, main=name, out_dir=out_dir)
    limits = {"limit_files": MOST_PACKED_FILES, "limit_bytes": LARGEST_UNPACKED}
    order = {**limits, "names": list(names), "out": str(out_dir)}
    confined.answer("packages:unpack", order, place=place, timeout_s=UNPACK_S, as_a=replies.Done)
    return [confined.made(out_dir / unpacked) for unpacked in names]


def report_quantised(
    bundle_dir: Path, main: str, *, variant_dir: Path, out_dir: Path, data: Path | None = None
) -> QuantisedReport:
    """Coverage, weight scales and errors by tensor of a quantised variant. Raises WorkshopError: not_supported."""
    reads = [variant_dir, *([data] if data else [])]
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
    payload = {"variant": str(variant_dir), "data": str(data) if data else None, "out": str(out_dir)}
    return confined.answer(
        "quantisation_report:report", payload, place=place, timeout_s=VARIANT_S, as_a=QuantisedReport
    )
