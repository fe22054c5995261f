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
# if the work differs by a larger share between seeds, it would look like a difference between runs
_MAX_DIFFERENCE = 0.1
_SEEDS = (0, 1, 2)
# operators whose work depends on the values of their inputs
_VALUE_DEPENDENT = {"NonZero", "Loop", "NonMaxSuppression", "Unique", "Compress", "Range"}
# kinds of fills whose values follow from the seed
_RANDOM_FILLS = (fills.NORMAL, "range", fills.OF, fills.BOXES)
# a model whose run takes longer is not run again with other seeds
_MAX_REPEATED_RUN_S = 4.0
# how many times as long as the first run each run with another seed may take
_MAX_SLOWDOWN = 4


@dataclass
class FoundFeed:
    """Sizes and fills for a model, and the session that they were tried with."""

    # by dimension
    sizes: dict[str, int]
    # fills by input (farm.rules.cells.fills)
    inputs: dict[str, str]
    # how often the model was run
    tries: int = 0
    # why the model did not run, in words; empty if it ran or was not tried
    problem: str = ""
    # seconds of the run that worked; None if no run was made or none worked
    run_s: float | None = field(default=None, kw_only=True)
    # sizes with which a decoder also took a whole prompt without a cache; else empty
    prompt: dict[str, int] = field(default_factory=dict, kw_only=True)
    session: onnxruntime.InferenceSession | None = field(default=None, kw_only=True)


@answer_problems
def choose_feed(payload: payloads.Written) -> dict[str, object]:
    """Try sizes on the payload's model until it runs, and return the fields of an `inspection.Feed`.

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
    """Return the likeliest sizes and fills for the payload's model without running the model."""
    model = model_file.read_model(Path(payload["folder"]), payload["main"])
    facts = signature.read_signature(model)
    required = consumers.find_required_sizes(model, facts)
    sizes = next(size_candidates.list_candidates(model, facts, required=required))
    return {"sizes": sizes, "inputs": input_values.choose_fills(model, facts, required)}


def find_feed(
    model: onnx.ModelProto, stored: Path | bytes, *, batch: int = 1, profile: Path | None = None
) -> FoundFeed:
    """Find sizes and fills that the model runs with.

    The likeliest are returned untried if nothing has to be chosen, an input has an open rank, or the model cannot be
    loaded here. They have a `problem` if the model ran in no try or cannot be fed. A try that takes too long ends the
    search with its sizes, without a `problem`. `stored` is the same model, as a file or as bytes. `profile` is the path
    prefix of a profile, which the session writes only if the model's work may depend on its input values.
    """
    facts = signature.read_signature(model)
    required = consumers.find_required_sizes(model, facts)
    candidates = list(size_candidates.list_candidates(model, facts, required=required, batch=batch))
    sizes, fill_texts = candidates[0], input_values.choose_fills(model, facts, required)
    if problem := signature.explain_unfeedable(facts["inputs"]):
        return FoundFeed(sizes, fill_texts, problem=problem)
    has_open_rank = any(port["shape"] is None for port in facts["inputs"])
    if has_open_rank or not _has_choices(facts):
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


def _has_choices(facts: signature.Signature) -> bool:
    """Say whether anything has to be chosen: a size other than the batch, or values of inputs that are not floats."""
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
    """Try the candidates in order; sizes that an error of ONNX Runtime suggests are tried before the next candidate."""
    ends_at = time.monotonic() + _MAX_TRYING_S
    tried: list[dict[str, int]] = []
    suggested: list[dict[str, int]] = []
    first_error = ""
    while (suggested or candidates) and len(tried) < size_candidates.MAX_TRIES:
        if tried and time.monotonic() >= ends_at:
            break
        sizes = (suggested or candidates).pop(0)
        if sizes in tried:
            continue
        tried.append(sizes)

        began = time.monotonic()
        try:
            feed = inputs.make_seeded_inputs(model, facts, chosen=sizes, seed=0, fills=fill_texts)
            error = trials.find_run_error(session, feed)
        except trials.TookTooLongError:
            return FoundFeed(sizes, fill_texts, len(tried))
        except Problem as problem:
            error = problem.text
        if error is None:
            return FoundFeed(sizes, fill_texts, len(tried), run_s=time.monotonic() - began)
        first_error = first_error or error
        suggested += size_candidates.suggest_sizes_from_error(error, sizes)
    failure = _explain_failure(facts, fill_texts, tried=tried, error=first_error)
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
    facts: signature.Signature, fill_texts: Mapping[str, str], *, tried: list[dict[str, int]], error: str
) -> str:
    """Name the inputs, the sizes that were tried, the first error, and what the user can do."""
    ranges = []
    for dim in facts["dims"][:6]:
        sizes = sorted({candidate[dim] for candidate in tried})
        ranges.append(f"{printable(dim)} {sizes[0]}" + (f" to {sizes[-1]}" if len(sizes) > 1 else ""))
    ports = [f"{printable(port['name'])} {port['dtype']} ({fill_texts[port['name']]})" for port in facts["inputs"][:6]]
    return (
        f"The model ran in none of {_count_tries(len(tried))}, with {', '.join(ports)}"
        + (f" and sizes {', '.join(ranges)}" if ranges else "")
        + f"; it said first: {error}. Give sizes that it takes with --shape NAME=SIZE, one input with "
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
    """Say whether the model does the same work for several seeds; False where finding out takes too long or fails."""
    run_s = feed.run_s or 0.0
    if run_s >= _MAX_REPEATED_RUN_S or feed.session is None:
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
