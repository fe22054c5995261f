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

# limit of all tries together; less than a child's own limit
_MAX_TRYING_S = 30.0
# work that differs by more between seeds would be measured as a difference between runs
_MAX_DIFFERENCE = 0.1
_SEEDS = (0, 1, 2)
# operators whose work depends on the values of their inputs
_VALUE_DEPENDENT = {"NonZero", "Loop", "NonMaxSuppression", "Unique", "Compress", "Range"}
# kinds of fills whose values follow from the seed
_RANDOM_FILLS = (fills.NORMAL, "range", fills.OF, fills.BOXES)
# a model whose one run takes longer is not run three times more
_QUICK_S = 4.0
# how many times as long as the first run each run with another seed may take
_MAX_SLOWDOWN = 4


@dataclass
class FoundFeed:
    """The chosen sizes by dimension and fills by input. `problem`: why the model did not run, in words; else empty."""

    sizes: dict[str, int]
    inputs: dict[str, str]
    tries: int = 0
    problem: str = ""
    # seconds of the run that worked; None: none was made or none worked
    run_s: float | None = field(default=None, kw_only=True)
    prompt: dict[str, int] = field(default_factory=dict, kw_only=True)
    session: onnxruntime.InferenceSession | None = field(default=None, kw_only=True)


@answer_problems
def choose_feed(payload: payloads.Written) -> dict[str, object]:
    """Try sizes on {folder, main} until it runs, and answer the fields of an `inspection.Feed`.

    `out` is a folder for scratch files.
    """
    path = Path(payload["folder"], payload["main"])
    model = model_file.read_model(path.parent, path.name)
    feed = find_feed(model, path, profile=Path(payload["out"], "profile"))
    if feed.run_s is not None:
        feed.inputs = _fix_seeds(model, feed)
    return {name: getattr(feed, name) for name in ("sizes", "inputs", "prompt", "tries", "problem")}


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

    Where it ran in no try, or cannot be fed, the likeliest are returned with a `problem`. `stored` is the same model as
    a file or as bytes; `profile` is a path prefix under which the session writes its profile where the model's work may
    depend on values.
    """
    facts = signature.read_signature(model)
    required = consumers.find_required_sizes(model, facts)
    candidates = list(size_candidates.list_candidates(model, facts, required=required, batch=batch))
    sizes, fill_texts = candidates[0], input_values.choose_fills(model, facts, required)
    if problem := signature.explain_unfeedable(facts["inputs"]):
        return FoundFeed(sizes, fill_texts, problem=problem)
    if any(port["shape"] is None for port in facts["inputs"]) or not _is_open(facts):
        return FoundFeed(sizes, fill_texts)
    try:
        session = trials.load_session(stored, profile=profile if _depends_on_values(model, fill_texts) else None)
    except trials.NoSessionError:
        return FoundFeed(sizes, fill_texts)
    feed = _try_sizes(model, facts, fill_texts, session=session, candidates=candidates)
    feed.session = session
    if feed.run_s is not None:
        prompt = size_candidates.make_prompt_sizes(feed.sizes, facts, required)
        feed.prompt = prompt if prompt and _runs_with(session, model, facts, fill_texts, prompt) else {}
    if feed.problem and (disagreements := required.describe_disagreements()):
        feed.problem = f"The model ran in none of {_count_tries(feed.tries)}: {disagreements}"
    return feed


def _is_open(facts: signature.Signature) -> bool:
    """Say whether anything is open: a size beside the batch, or the meaning of inputs that are no floats."""
    return bool(set(facts["dims"]) - {facts["batch"]}) or any(
        signature.find_numpy_kind(port) != "f" for port in facts["inputs"]
    )


def _try_sizes(
    model: onnx.ModelProto,
    facts: signature.Signature,
    fill_texts: dict[str, str],
    *,
    session: onnxruntime.InferenceSession,
    candidates: list[dict[str, int]],
) -> FoundFeed:
    ends_at = time.monotonic() + _MAX_TRYING_S
    tried: list[dict[str, int]] = []
    first_complaint = ""
    hinted: list[dict[str, int]] = []
    while (hinted or candidates) and len(tried) < size_candidates.MAX_TRIES:
        if tried and time.monotonic() >= ends_at:
            break
        sizes = (hinted or candidates).pop(0)
        if sizes in tried:
            continue
        tried.append(sizes)
        began = time.monotonic()
        try:
            feed = inputs.make_seeded_inputs(model, facts, chosen=sizes, seed=0, fills=fill_texts)
            complaint = trials.find_run_error(session, feed)
        except trials.TookTooLongError:
            return FoundFeed(sizes, fill_texts, len(tried))
        except Problem as problem:
            complaint = problem.text
        if complaint is None:
            return FoundFeed(sizes, fill_texts, len(tried), run_s=time.monotonic() - began)
        first_complaint = first_complaint or complaint
        hinted += size_candidates.suggest_sizes_from_error(complaint, sizes)
    failure = _explain_failure(facts, fill_texts, tried=tried, complaint=first_complaint)
    return FoundFeed(tried[0], fill_texts, len(tried), failure)


def _runs_with(
    session: onnxruntime.InferenceSession,
    model: onnx.ModelProto,
    facts: signature.Signature,
    fill_texts: Mapping[str, str],
    sizes: dict[str, int],
) -> bool:
    try:
        feed = inputs.make_seeded_inputs(model, facts, chosen=sizes, seed=0, fills=fill_texts)
        return trials.find_run_error(session, feed) is None
    except (Problem, trials.TookTooLongError):
        return False


def _explain_failure(
    facts: signature.Signature, fill_texts: Mapping[str, str], *, tried: list[dict[str, int]], complaint: str
) -> str:
    """Name the inputs, what was tried, what the model said, and what the user can do."""
    ranges = []
    for dim in facts["dims"][:6]:
        sizes = sorted({way[dim] for way in tried})
        ranges.append(f"{printable(dim)} {sizes[0]}" + (f" to {sizes[-1]}" if len(sizes) > 1 else ""))
    ports = [f"{printable(port['name'])} {port['dtype']} ({fill_texts[port['name']]})" for port in facts["inputs"][:6]]
    return (
        f"The model ran in none of {_count_tries(len(tried))}, with {', '.join(ports)}"
        + (f" and sizes {', '.join(ranges)}" if ranges else "")
        + f"; it said first: {complaint}. Give sizes that it takes with --shape NAME=SIZE, one input with "
        "--input NAME=VALUE, or all of them with --inputs FILE.npz."
    )


def _count_tries(tries: int) -> str:
    return "1 try" if tries == 1 else f"{tries} tries"


def _fix_seeds(model: onnx.ModelProto, feed: FoundFeed) -> dict[str, str]:
    """Return the fills, with a fixed seed where the model's work may depend on the values."""
    if not _depends_on_values(model, feed.inputs) or _is_same_work(model, feed):
        return feed.inputs
    random_inputs = _list_random_inputs(feed.inputs)
    return {name: f"{text}@0" if name in random_inputs else text for name, text in feed.inputs.items()}


def _depends_on_values(model: onnx.ModelProto, fill_texts: Mapping[str, str]) -> bool:
    return bool(_list_random_inputs(fill_texts)) and any(
        node.op_type in _VALUE_DEPENDENT for node in traversal.iterate_nodes(model)
    )


def _list_random_inputs(fill_texts: Mapping[str, str]) -> list[str]:
    return [name for name, text in fill_texts.items() if fills.parse(text).kind in _RANDOM_FILLS]


def _is_same_work(model: onnx.ModelProto, feed: FoundFeed) -> bool:
    """Say whether the model was seen to do the same work for several seeds; False where that took too long to see."""
    run_s = feed.run_s or 0.0
    if run_s >= _QUICK_S or feed.session is None:
        return False
    facts = signature.read_signature(model)
    feeds = [
        inputs.make_seeded_inputs(model, facts, chosen=feed.sizes, seed=seed, fills=feed.inputs) for seed in _SEEDS
    ]
    try:
        work = trials.count_output_bytes(feed.session, feeds, limit_s=1.0 + _MAX_SLOWDOWN * run_s)
    except (trials.TookTooLongError, OSError, ValueError, LookupError, TypeError):
        return False
    return bool(work) and max(work) <= (1 + _MAX_DIFFERENCE) * min(work)
