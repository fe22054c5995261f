"""Chooses sizes of dynamic dimensions and kinds of input values for a model where the user names none. Child only.

Sizes are tried on the CPU, the likeliest first, until the model runs.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx
import onnxruntime

from farm.rules.cells import fills
from farm.workshop.child import (
    consumers,
    input_values,
    inputs,
    model_file,
    payloads,
    signature,
    size_candidates,
    traversal,
    trials,
)
from farm.workshop.problems import Problem, answer_problems, printable

# all tries together; what a child gets is more
_ALL_S = 30.0
# work that differs by more between seeds would be measured as a difference between runs
_MOST_DIFFERENCE = 0.1
_SEEDS = (0, 1, 2)
# what they put out, or whether they run, follows from values
_BY_VALUE = {"NonZero", "Loop", "NonMaxSuppression", "Unique", "Compress", "Range"}
# kinds of values that follow the seed
_DRAWN = (fills.NORMAL, "range", fills.OF, fills.BOXES)
# a model whose one run takes longer is not run three times more
_QUICK_S = 4.0
# times that run, within which the others end
_MANY = 4


@dataclass
class FoundFeed:
    """The chosen sizes by dimension and fills by input. `problem`: why the model did not run, in words; else empty."""

    sizes: dict[str, int]
    inputs: dict[str, str]
    tries: int = 0
    problem: str = ""
    # seconds of the run that worked; None: none was made or none worked
    took_s: float | None = field(default=None, kw_only=True)
    prompt: dict[str, int] = field(default_factory=dict, kw_only=True)
    session: onnxruntime.InferenceSession | None = field(default=None, kw_only=True)


@answer_problems
def choose_feed(payload: payloads.Written) -> dict[str, object]:
    """Try sizes on {folder, main} until it runs, and answer the fields of an `inspection.Feed`.

    `out` is a folder for scratch files.
    """
    path = Path(payload["folder"], payload["main"])
    model = model_file.read_model(path.parent, path.name)
    found = find_feed(model, path, profile=Path(payload["out"], "profile"))
    if found.took_s is not None:
        found.inputs = _fix_seeds(model, found)
    named = ("sizes", "inputs", "prompt", "tries", "problem")
    return {name: getattr(found, name) for name in named}


@answer_problems
def guess_feed(payload: payloads.Model) -> dict[str, object]:
    """Answer the likeliest sizes and fills for {folder, main} without running the model."""
    model = model_file.read_model(Path(payload["folder"]), payload["main"])
    facts = signature.read_signature(model)
    required = consumers.find_required_sizes(model, facts)
    sizes = next(size_candidates.list_candidates(model, facts, required=required))
    return {"sizes": sizes, "inputs": input_values.choose_fills(model, facts, required)}


def find_feed(
    model: onnx.ModelProto, stored: Path | bytes, *, batch: int = 1, profile: Path | None = None
) -> FoundFeed:
    """Find sizes and fills that the model runs with, or the likeliest where nothing is open or nothing can be tried.

    `stored` is the same model as a file or as bytes; `profile` is a path prefix under which the session writes its
    profile where the model's work may depend on values.
    """
    facts = signature.read_signature(model)
    required = consumers.find_required_sizes(model, facts)
    ways = list(size_candidates.list_candidates(model, facts, required=required, batch=batch))
    sizes, texts = ways[0], input_values.choose_fills(model, facts, required)
    if problem := signature.explain_unfeedable(facts["inputs"]):
        return FoundFeed(sizes, texts, problem=problem)
    if any(port["shape"] is None for port in facts["inputs"]) or not _is_open(facts):
        return FoundFeed(sizes, texts)
    try:
        session = trials.load_session(stored, profile=profile if _follows_values(model, texts) else None)
    except trials.NoSessionError:
        return FoundFeed(sizes, texts)
    found = _try_sizes(model, facts, texts, session=session, ways=ways)
    found.session = session
    if found.took_s is not None:
        prompt = size_candidates.make_prompt_sizes(found.sizes, facts, required)
        found.prompt = prompt if prompt and _can_take(session, model, facts, texts, prompt) else {}
    if found.problem and (asked := required.describe_disagreements()):
        found.problem = f"The model ran in none of {_count_tries(found.tries)}: {asked}"
    return found


def _is_open(facts: signature.Signature) -> bool:
    """Say whether anything is open: a size beside the batch, or the meaning of inputs that are no floats."""
    return bool(set(facts["dims"]) - {facts["batch"]}) or any(
        signature.find_numpy_kind(port) != "f" for port in facts["inputs"]
    )


def _try_sizes(
    model: onnx.ModelProto,
    facts: signature.Signature,
    texts: dict[str, str],
    *,
    session: onnxruntime.InferenceSession,
    ways: list[dict[str, int]],
) -> FoundFeed:
    ends_at = time.monotonic() + _ALL_S
    tried: list[dict[str, int]] = []
    asked: list[dict[str, int]] = []
    said = ""
    while (asked or ways) and len(tried) < size_candidates.MAX_TRIES and not (tried and time.monotonic() >= ends_at):
        sizes = (asked or ways).pop(0)
        if sizes in tried:
            continue
        tried.append(sizes)
        began = time.monotonic()
        try:
            feed = inputs.make_seeded_inputs(model, facts, chosen=sizes, seed=0, asked=texts)
            complaint = trials.find_complaint(session, feed)
        except trials.TookTooLongError:
            return FoundFeed(sizes, texts, len(tried))
        except Problem as problem:
            complaint = problem.text
        if complaint is None:
            return FoundFeed(sizes, texts, len(tried), took_s=time.monotonic() - began)
        said = said or complaint
        asked += size_candidates.suggest_sizes_from_complaint(complaint, sizes)
    return FoundFeed(tried[0], texts, len(tried), _explain_failure(facts, texts, tried=tried, said=said))


def _can_take(
    session: onnxruntime.InferenceSession,
    model: onnx.ModelProto,
    facts: signature.Signature,
    texts: Mapping[str, str],
    sizes: dict[str, int],
) -> bool:
    try:
        feed = inputs.make_seeded_inputs(model, facts, chosen=sizes, seed=0, asked=texts)
        return trials.find_complaint(session, feed) is None
    except (Problem, trials.TookTooLongError):
        return False


def _explain_failure(
    facts: signature.Signature, texts: Mapping[str, str], *, tried: list[dict[str, int]], said: str
) -> str:
    """Name the inputs, what was tried, what the model said, and what the user can do."""
    ranges = []
    for dim in facts["dims"][:6]:
        sizes = sorted({way[dim] for way in tried})
        ranges.append(f"{printable(dim)} {sizes[0]}" + (f" to {sizes[-1]}" if len(sizes) > 1 else ""))
    made = [f"{printable(port['name'])} {port['dtype']} ({texts[port['name']]})" for port in facts["inputs"][:6]]
    return (
        f"The model ran in none of {_count_tries(len(tried))}, with {', '.join(made)}"
        + (f" and sizes {', '.join(ranges)}" if ranges else "")
        + f"; it said first: {said}. Give sizes that it takes with --shape NAME=SIZE, one input with "
        "--input NAME=VALUE, or all of them with --inputs FILE.npz."
    )


def _count_tries(tries: int) -> str:
    return "1 try" if tries == 1 else f"{tries} tries"


def _fix_seeds(model: onnx.ModelProto, found: FoundFeed) -> dict[str, str]:
    """Return the fills, with a fixed seed where the model's work may depend on the values."""
    if not _follows_values(model, found.inputs) or _is_same_work(model, found):
        return found.inputs
    drawn = _list_drawn(found.inputs)
    return {name: f"{text}@0" if name in drawn else text for name, text in found.inputs.items()}


def _follows_values(model: onnx.ModelProto, texts: Mapping[str, str]) -> bool:
    return bool(_list_drawn(texts)) and any(node.op_type in _BY_VALUE for node in traversal.iterate_nodes(model))


def _list_drawn(texts: Mapping[str, str]) -> list[str]:
    return [name for name, text in texts.items() if fills.parse(text).kind in _DRAWN]


def _is_same_work(model: onnx.ModelProto, found: FoundFeed) -> bool:
    """Say whether the model was seen to do the same work for several seeds; False where that took too long to see."""
    took_s = found.took_s or 0.0
    if took_s >= _QUICK_S or found.session is None:
        return False
    facts = signature.read_signature(model)
    feeds = [
        inputs.make_seeded_inputs(model, facts, chosen=found.sizes, seed=seed, asked=found.inputs) for seed in _SEEDS
    ]
    try:
        work = trials.count_output_bytes(found.session, feeds, limit_s=1.0 + _MANY * took_s)
    except (trials.TookTooLongError, OSError, ValueError, LookupError, TypeError):
        return False
    return bool(work) and max(work) <= (1 + _MOST_DIFFERENCE) * min(work)
