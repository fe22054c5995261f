"""Orders to the workshop: each runs in a confined child, so that no caller ever parses a model in its own process.

Nothing here imports onnx. A `bundle` is a folder that holds the model file `main` and its external data as plain files.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from farm.contract.cells import PROGRAM_ENDING, Recipe
from farm.contract.evaluation import EvaluationRecipe
from farm.contract.reasons import ReasonCode
from farm.rules.cells import recipes
from farm.rules.runtimes.conversions import OpsetReach
from farm.rules.tracing.timeline import LONGEST_NAME, Timeline
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


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Inputs for one workload: the `.npz` by name, the batch they hold, the size of every dynamic dimension."""

    path: Path
    batch: int | None
    sizes: dict[str, int]
    shapes: dict[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """Accepted prompts: the `.npz`, how many rows of how many tokens, and how many the text to score has."""

    path: Path
    rows: int
    tokens: int
    text_tokens: int


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Reference outputs: the `.npz` by name, who made them, and the outputs that are no tensors."""

    path: Path
    made_by: str
    skipped: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Accepted calibration data: the `.npz` by name, and how many samples it holds."""

    path: Path
    samples: int


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


@dataclass(frozen=True, kw_only=True)
class LabelledData:
    """Accepted labelled data: the `.npz`, how many samples, the output that is judged, how many classes it has."""

    path: Path
    n: int
    output: str
    classes: int | None


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
) -> Prepared:
    """Inputs for one workload, written to `out_dir`; the same arrays for the same seed, sizes and `inputs`.

    `inputs`: how they are made, by name, as a workload says it.

    Raises WorkshopError: fixed_batch, no_batch, not_supported and those of a child that ended badly.
    """
    payload = {"batch": batch, "shapes": dict(shapes or {}), "seed": seed, "inputs": dict(inputs or {})}
    place = confined.Place(bundle_dir=bundle_dir, main=main, out_dir=out_dir)
    return _prepared("make_inputs", payload, place=place, out=out_dir / "inputs.npz")


def accept_inputs(bundle_dir: Path, main: str, *, inputs: Path, out_dir: Path) -> Prepared:
    """Given inputs after a look at their names, dtypes and shapes. Raises WorkshopError: not_supported."""
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=[inputs], out_dir=out_dir)
    return _prepared("accept_inputs", {"inputs": str(inputs)}, place=place, out=out_dir / "inputs.npz")


def accept_prompts(bundle_dir: Path, main: str, *, prompts: Path, out_dir: Path) -> Prompts:
    """Given prompts after a look at their ids and shapes. Raises WorkshopError with the sentence of what does not fit.

    What is written is the same for the same ids, whatever wrote the given file.
    """
    out = out_dir / "prompts.npz"
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=[prompts], out_dir=out_dir)
    payload = {"prompts": str(prompts), "out": str(out)}
    found = confined.answer("prompts:accept", payload, place=place, timeout_s=RUN_S, as_a=replies.Prompted)
    return Prompts(path=confined.made(out), rows=found.rows, tokens=found.tokens, text_tokens=found.text_tokens)


def unpack_test_data(
    bundle_dir: Path, main: str, *, files: Sequence[Path], side: Literal["input", "output"], out_dir: Path
) -> Path:
    """ONNX's own `input_N.pb` or `output_N.pb` files, in their order, as one `.npz` by name."""
    out = out_dir / f"{side}s.npz"
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=files, out_dir=out_dir)
    payload = {"files": [str(path) for path in files], "side": side, "out": str(out)}
    confined.answer("inputs:unpack_test_data", payload, place=place, timeout_s=RUN_S, as_a=replies.Done)
    return confined.made(out)


def make_reference(bundle_dir: Path, main: str, *, inputs: Path, out_dir: Path, timeout_s: float = RUN_S) -> Reference:
    """Outputs of the CPU provider without optimisations. Raises WorkshopError: model_not_loaded, inference_failed."""
    out = out_dir / "reference.npz"
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=[inputs], out_dir=out_dir)
    payload = {"inputs": str(inputs), "out": str(out)}
    found = confined.answer(
        "reference:make_reference", payload, place=place, timeout_s=timeout_s, as_a=replies.Referenced
    )
    made_by = f"{found.made_by} CPU, no optimisations"
    return Reference(path=confined.made(out), made_by=made_by, skipped=found.skipped)


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
) -> Calibration:
    """Calibration samples after a look at their names, dtypes, shapes and counts, as one `.npz`.

    `data`: an `.npz`; without it `sets` are ONNX's own `input_N.pb` by set of test data, in the model's order.
    Raises WorkshopError: variant_impossible, with the sentence of what does not fit.
    """
    out = out_dir / "calibration.npz"
    reads = [data] if data else [path for files in sets for path in files]
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=reads, out_dir=out_dir)
    payload = {"data": str(data) if data else None, "sets": [[str(path) for path in files] for files in sets]}
    order = {**payload, "out": str(out)}
    found = confined.answer("calibration:accept", order, place=place, timeout_s=RUN_S, as_a=replies.Calibrated)
    return Calibration(path=confined.made(out), samples=found.samples)


def check_evaluation(
    bundle_dir: Path, main: str, *, data: Path, recipe: EvaluationRecipe, out_dir: Path, timeout_s: float = RUN_S
) -> LabelledData:
    """Labelled data after a look at their names, dtypes, shapes, counts and labels, and at the first batch's output.

    Raises WorkshopError with the sentence of what does not fit.
    """
    out = out_dir / "evaluation.npz"
    place = confined.Place(bundle_dir=bundle_dir, main=main, reads=[data], out_dir=out_dir)
    payload = {**recipe.model_dump(mode="json"), "data": str(data), "out": str(out)}
    found = confined.answer("evaluation:check", payload, place=place, timeout_s=timeout_s, as_a=replies.Labelled)
    return LabelledData(path=confined.made(out), n=found.n, output=found.output, classes=found.classes)


def make_outline(bundle_dir: Path, main: str, *, out_dir: Path, timeout_s: float = OUTLINE_S) -> Path:
    """The model's graph without its large tensors, as a file in `out_dir`. Only the file `main` is read.

    Raises WorkshopError for what is no graph, or one of more than LARGEST_OUTLINE bytes.
    """
    out = out_dir / "outline.onnx"
    place = confined.Place(bundle_dir=bundle_dir, main=main, out_dir=out_dir)
    payload = {"out": str(out), "limit_bytes": LARGEST_OUTLINE}
    confined.answer("outline:make", payload, place=place, timeout_s=timeout_s, as_a=replies.Done)
    if confined.made(out).stat().st_size > LARGEST_OUTLINE:
        text = "The process outlining the graph wrote something else than an outline."
        raise WorkshopError(ReasonCode.GARBLED, text)
    return out


def read_timeline(folder: Path, name: str, *, out_dir: Path) -> Timeline:
    """One inference of the gzipped Chrome trace `name` in the folder. Raises WorkshopError with why it is not drawn."""
    out = out_dir / "timeline.json"
    place = confined.Place(bundle_dir=folder, main=name, out_dir=out_dir)
    limits = {"limit_bytes": LONGEST_TRACE, "limit_events": MOST_EVENTS, "limit_spans": MOST_SPANS}
    order = {**limits, "out": str(out)}
    confined.answer("timelines:read", order, place=place, timeout_s=TIMELINE_S, as_a=replies.Done)
    text = "The process reading the trace wrote something else than a timeline."
    if confined.made(out).stat().st_size > LARGEST_TIMELINE:
        raise WorkshopError(ReasonCode.GARBLED, text)
    try:
        found = _TIMELINE.validate_json(out.read_bytes())
    except ValidationError as problem:
        raise WorkshopError(ReasonCode.GARBLED, text) from problem
    if len(found.spans) > MOST_SPANS or any(len(one.name) > LONGEST_NAME for one in found.spans):
        raise WorkshopError(ReasonCode.GARBLED, text)
    return found


def unpack_package(folder: Path, name: str, *, names: Sequence[str], out_dir: Path) -> list[Path]:
    """The named files of a packed release of npm, unpacked into `out_dir`. Raises WorkshopError with why not."""
    place = confined.Place(bundle_dir=folder, main=name, out_dir=out_dir)
    limits = {"limit_files": MOST_PACKED_FILES, "limit_bytes": LARGEST_UNPACKED}
    order = {**limits, "names": list(names), "out": str(out_dir)}
    confined.answer("packages:unpack", order, place=place, timeout_s=UNPACK_S, as_a=replies.Done)
    return [confined.made(out_dir / one) for one in names]


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


def _prepared(function: str, payload: Mapping[str, object], *, place: confined.Place, out: Path) -> Prepared:
    order = {**payload, "out": str(out)}
    found = confined.answer(f"inputs:{function}", order, place=place, timeout_s=RUN_S, as_a=replies.Fed)
    shapes = {given.name: given.shape for given in found.inputs}
    return Prepared(path=confined.made(out), batch=found.batch, sizes=found.sizes, shapes=shapes)
