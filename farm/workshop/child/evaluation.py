"""Checks that labelled data fit the model and the recipe, before a node measures on them. Runs in the child only."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime

from farm.contract.evaluation import MAX_SAMPLES
from farm.workshop import arrays
from farm.workshop.arrays import Array
from farm.workshop.child import inputs as feeding
from farm.workshop.child import label_shapes, model_file, payloads, signature
from farm.workshop.problems import Problem, answer_problems, first_line, printable

LABELS, VOCABULARY = "labels", "vocabulary"
# samples in the first batch for a user's own judge, where the batch is dynamic
AT_ONCE = 64


@answer_problems
def check_labelled_data(payload: payloads.Evaluation) -> dict[str, object]:
    """Check labelled `data` against the model and the recipe, run the first batch, and write the data to `out`.

    Returns the number of samples, the output that is judged, and the number of classes (None if there are none).
    Nothing is judged here: nodes do that, by worker.runner.judges. Returns a problem with the code bad_arrays,
    bad_labels, bad_output, too_many_samples, inputs_*, not_loaded or inference_failed if something does not fit.
    """
    # read the data and run the first batch
    facts = signature.read_signature(model_file.read_model(Path(payload["folder"]), payload["main"]))
    name, inputs = Path(payload["data"]).name, arrays.read_npz(Path(payload["data"]))
    vocabulary = _take_vocabulary(inputs, name) if payload["apply"] == "ctc" else {}
    labels = _take_labels(inputs, name)
    _refuse_many(len(labels))
    session = _load_session(Path(payload["folder"], payload["main"]))
    names = _choose_output_names(session, payload)
    raw = _join_outputs(_run_first_batch(session, names, inputs, facts, count=len(labels), at_once=payload["at_once"]))

    # check the labels against the output that they judge
    outputs = _apply_step(raw, payload, vocabulary)
    classes = label_shapes.SHAPES[payload["labels"]](outputs, labels, payload["metric"])
    if classes is None and payload["labels"] == "class":
        classes = _count_classes(raw, payload["apply"])
        if classes is not None:
            label_shapes.check_class_range(labels, classes)

    ordered = {port["name"]: inputs[port["name"]] for port in facts["inputs"]}
    arrays.write_npz(Path(payload["out"]), {**ordered, LABELS: labels, **vocabulary})
    return {"n": len(labels), "output": ",".join(names), "classes": classes}


@answer_problems
def accept_samples(payload: payloads.JudgedSamples) -> dict[str, object]:
    """Check `data` for a user's own judge, run the first batch, and write all arrays to `out`.

    The arrays are the model's inputs by name and whatever else the judge reads, which is not checked. Returns the
    number of samples, with no output and no classes, or a problem with the code bad_arrays, bad_output,
    too_many_samples, inputs_*, not_loaded or inference_failed where something does not fit.
    """
    facts = signature.read_signature(model_file.read_model(Path(payload["folder"]), payload["main"]))
    path = Path(payload["data"])
    stored = arrays.read_npz(path)
    inputs = {port["name"]: stored[port["name"]] for port in facts["inputs"] if port["name"] in stored}
    counts = {name: len(array) if array.ndim else 0 for name, array in inputs.items()}
    count = min(counts.values(), default=0)
    if count == 0 or max(counts.values()) > count:
        text = (
            f"The inputs in {printable(path.name)} hold {counts or 'no'} samples: give as many of each, at least one."
        )
        raise Problem("bad_arrays", text)
    _refuse_many(count)
    session = _load_session(Path(payload["folder"], payload["main"]))
    names = [str(output.name) for output in session.get_outputs()]
    _run_first_batch(session, names, inputs, facts, count=count, at_once=AT_ONCE)
    arrays.write_npz(Path(payload["out"]), stored)
    return {"n": count, "output": "", "classes": None}


def _refuse_many(count: int) -> None:
    if count > MAX_SAMPLES:
        text = f"There are {count:,} samples; at most {MAX_SAMPLES:,} are taken: give a random part of them."
        raise Problem("too_many_samples", text)


def _run_first_batch(
    session: onnxruntime.InferenceSession,
    names: list[str],
    inputs: arrays.Arrays,
    facts: signature.Signature,
    *,
    count: int,
    at_once: int,
) -> list[Array]:
    """Run the first samples and return the named outputs. Raises Problem if the run fails or rows are missing."""
    feed, size = next(_split_into_feeds(inputs, facts, count=count, at_once=at_once))
    try:
        outputs = [np.asarray(output) for output in session.run(names, feed)]
    except Exception as error:  # onnxruntime raises many undocumented kinds of errors
        raise Problem("inference_failed", f"The model fails on these samples ({first_line(error)}).") from error
    for name, output in zip(names, outputs, strict=True):
        rows = len(output) if output.ndim else 0
        if rows < size:
            text = f"The output {printable(name)!r} has {rows} rows for {size} labels: judge another output."
            raise Problem("bad_output", text)
    return [output[:size] for output in outputs]


def _count_classes(raw: Array, step: str | None) -> int | None:
    """Count the classes that the step chose among; None if the model itself names the class."""
    if step == "threshold":
        return 2
    return int(raw.shape[-1]) if step == "argmax" else None


def _join_outputs(outputs: list[Array]) -> Array:
    """Join several outputs, such as boxes and their scores, along the last axis. Raises Problem for unlike shapes."""
    rank = max(array.ndim for array in outputs)
    wide = [array if array.ndim == rank else array[..., None] for array in outputs]
    if len({array.shape[:-1] for array in wide}) > 1:
        shapes = ", ".join(str(list(array.shape)) for array in outputs)
        raise Problem("bad_output", f"The outputs have the shapes {shapes}, which cannot stand side by side.")
    return wide[0] if len(wide) == 1 else np.concatenate(wide, axis=-1)


def _apply_step(outputs: Array, payload: payloads.Evaluation, vocabulary: arrays.Arrays) -> Array:
    """Apply the recipe's step, if any, to the output: ctc, softmax, argmax or a threshold. Raises Problem."""
    step = payload["apply"]
    if step is None:
        return outputs
    if step == "ctc":
        return _check_decodable(outputs, len(vocabulary[VOCABULARY]))
    if outputs.dtype.kind != "f":
        raise Problem("bad_output", f"The output is {outputs.dtype}: {step} wants numbers with a fraction.")
    if step == "softmax":
        shares = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
    if step == "argmax":
        return np.asarray(outputs.argmax(axis=-1))
    flat = outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs
    return np.asarray((flat > payload["threshold"]).astype(np.int64))


def _check_decodable(outputs: Array, tokens: int) -> Array:
    """Check that ctc can decode the output. Return an empty text for each sample, since only the shape matters here."""
    is_scores = outputs.ndim == 3 and outputs.dtype.kind == "f"
    is_ids = outputs.ndim == 2 and outputs.dtype.kind in "iu"
    if not is_scores and not is_ids:
        layout = f"{outputs.dtype} of shape {list(outputs.shape)}"
        raise Problem("bad_output", f"The output is {layout}: ctc wants scores of [sample, step, token], or tokens.")
    scored = outputs.shape[2] if is_scores else int(outputs.max(initial=-1)) + 1
    if scored > tokens:
        raise Problem("bad_labels", f"The output has {scored} tokens, `{VOCABULARY}` {tokens}: give a text for each.")
    return np.full(len(outputs), "")


def _take_vocabulary(stored: arrays.Arrays, name: str) -> arrays.Arrays:
    """Remove the vocabulary from the stored arrays and return it under its name. Raises Problem bad_labels."""
    vocabulary = stored.pop(VOCABULARY, None)
    if vocabulary is None or vocabulary.ndim != 1 or vocabulary.dtype.kind != "U" or "" not in vocabulary:
        lacks = "holds none" if vocabulary is None else f"has {vocabulary.dtype} of shape {list(vocabulary.shape)}"
        text = (
            f"ctc wants the text of each token in `{VOCABULARY}`, that of the blank empty; {printable(name)} {lacks}."
        )
        raise Problem("bad_labels", text)
    return {VOCABULARY: vocabulary}


def _take_labels(stored: arrays.Arrays, file_name: str) -> Array:
    """Remove the labels from the stored arrays and return them; the inputs stay. Raises Problem bad_labels."""
    if LABELS not in stored:
        raise Problem("bad_labels", f"{printable(file_name)} holds no array called {LABELS!r}: add one label a sample.")
    labels = stored.pop(LABELS)
    counts = {name: len(array) if array.ndim else 0 for name, array in stored.items()}
    wrong = [name for name, count in counts.items() if count != (len(labels) if labels.ndim else 0)]
    if wrong or labels.ndim == 0 or len(labels) == 0:
        complaint = f"{printable(wrong[0])!r} holds {counts[wrong[0]]} samples" if wrong else "there are no samples"
        text = f"In {printable(file_name)} {complaint} for {labels.size} labels: give one label a sample."
        raise Problem("bad_labels", text)
    return labels


def _split_into_feeds(
    inputs: arrays.Arrays, facts: signature.Signature, *, count: int, at_once: int
) -> Iterator[tuple[arrays.Arrays, int]]:
    """Yield feeds along the batch, each with its number of samples; a fixed batch is filled up by repeating samples."""
    batch = facts["batch"]
    if batch is None:
        raise Problem("bad_output", "The model has no batch, so samples cannot be told apart: export one with a batch.")
    size = batch if isinstance(batch, int) else at_once
    for at in range(0, count, size):
        places = np.arange(at, min(at + size, count))
        padded = np.resize(places, size) if isinstance(batch, int) else places
        feed = {name: np.ascontiguousarray(array[padded]) for name, array in inputs.items()}
        feeding.read_given_sizes(feed, facts)
        yield feed, len(places)


def _choose_output_names(session: onnxruntime.InferenceSession, payload: payloads.Evaluation) -> list[str]:
    """Choose the output that the recipe names, else the first; boxes may name several, with commas between them."""
    names, output = [str(port.name) for port in session.get_outputs()], payload["output"]
    if output is None or output in names:
        return [output or names[0]]
    several = output.split(",") if payload["labels"] == "boxes" else [output]
    for name in several:
        if name not in names:
            raise Problem("bad_output", f"The model has no output {printable(name)!r}: it has {', '.join(names[:10])}.")
    return several


def _load_session(path: Path) -> onnxruntime.InferenceSession:
    """Load the model with every optimisation on, as it would be deployed on this CPU."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        text = f"onnxruntime {onnxruntime.__version__} cannot load the model ({first_line(error)})."
        raise Problem("not_loaded", text) from error
