"""Provides the samples of static quantisation: those that the user gave, or seeded random ones. Child only."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader

from farm.workshop import arrays
from farm.workshop.child import feed, inputs, model_file, payloads, signature
from farm.workshop.problems import Problem, answer_problems, printable

_RANDOM_SAMPLES = 100
# fewer samples than the first number bring a warning, and fewer than the second a recommendation
_FEW, _ENOUGH = 100, 500
_MAX_SAMPLES = 100_000
# samples in a feed where the batch is dynamic
_AT_ONCE = 32
# arrays of labelled data, which may serve for calibration too, that are not inputs
_NO_INPUTS = ("labels",)

Feeds = list[arrays.Arrays]


class CalibrationReader(CalibrationDataReader):  # type: ignore[misc]
    """Gives feeds to ONNX Runtime's calibrators one by one, then None; `rewind` starts again from the first."""

    def __init__(self, feeds: Feeds) -> None:
        self._feeds = feeds
        self.rewind()

    def rewind(self) -> None:
        self._remaining: Iterator[arrays.Arrays] = iter(self._feeds)

    def get_next(self) -> arrays.Arrays | None:
        return next(self._remaining, None)


@answer_problems
def accept_calibration(payload: payloads.Samples) -> dict[str, object]:
    """Check samples against the payload's model, write them to `out` as one `.npz`, and return their number.

    `data` is an `.npz`. If it is None, `sets` holds a list of ONNX's own `input_N.pb` for each set of test data.
    Returns a problem with the code bad_calibration or bad_arrays if they do not fit.
    """
    model = model_file.read_model(Path(payload["folder"]), payload["main"])
    facts, out = signature.read_signature(model), Path(payload["out"])
    if payload["data"] is None:
        samples = _join_sets([[Path(name) for name in files] for files in payload["sets"]], facts)
    else:
        samples = _read_samples(Path(payload["data"]), facts)
    _make_checked_feeds(samples, facts)
    arrays.write_npz(out, samples)
    return {"samples": _count_samples(samples, facts)}


def _join_sets(sets: list[list[Path]], facts: signature.Signature) -> arrays.Arrays:
    """Join sets of test data along the batch, or along a new first axis where the model has no batch."""
    ports = [port["name"] for port in facts["inputs"]]
    for files in sets:
        if len(files) != len(ports):
            text = f"A set of test data has {len(files)} inputs, the model takes {len(ports)}: one input_N.pb for each."
            raise Problem("bad_calibration", text)
    sets_by_name = [dict(zip(ports, map(inputs.read_tensor_file, files), strict=True)) for files in sets]
    join = np.stack if facts["batch"] is None else np.concatenate
    try:
        return {name: join([sample[name] for sample in sets_by_name]) for name in ports}
    except ValueError as error:
        text = f"The sets of test data differ in shape ({error}): give calibration data as one .npz."
        raise Problem("bad_calibration", text) from error


def make_feeds(model: onnx.ModelProto, samples_path: Path | None) -> tuple[Feeds, list[str]]:
    """Make calibration feeds for the model, and sentences on where they come from.

    `samples_path` is an `.npz` with samples along the batch, or along a first axis of their own where the model has no
    batch; None takes seeded random samples. A fixed batch takes whole batches only, so that the last samples may be
    left out. Raises Problem with the code bad_calibration or bad_arrays for samples that do not fit, and with the codes
    of `inputs.make_seeded_inputs` where random ones cannot be made.
    """
    facts = signature.read_signature(model)
    if samples_path is None:
        return _make_random_feeds(model, facts)
    samples = _read_samples(samples_path, facts)
    feeds, batch = _make_checked_feeds(samples, facts), facts["batch"]
    # a fixed batch may leave out the last samples
    used = len(feeds) * batch if isinstance(batch, int) else _count_samples(samples, facts)
    history = [f"Calibrated with {used:,} samples of {samples_path.name}."]
    if used < _FEW:
        history.append(f"Warning: {used} samples are few; take at least {_FEW}, better {_ENOUGH}.")
    elif used < _ENOUGH:
        history.append(f"Advice: {_ENOUGH} samples or more give steadier ranges.")
    return feeds, history


def _read_samples(path: Path, facts: signature.Signature) -> arrays.Arrays:
    ports = {port["name"] for port in facts["inputs"]}
    return {name: array for name, array in arrays.read_npz(path).items() if name not in _NO_INPUTS or name in ports}


def _make_checked_feeds(samples: arrays.Arrays, facts: signature.Signature) -> Feeds:
    """Split the samples into what one run takes. Raises Problem bad_calibration if they do not fit the model."""
    feeds = list(_split_into_feeds(samples, facts, count=_count_samples(samples, facts)))
    for sample in feeds:
        try:
            inputs.read_given_sizes(sample, facts)
        except Problem as problem:
            text = problem.text.replace("The given inputs", "The calibration data")
            raise Problem("bad_calibration", text.replace("The given input", "The calibration input")) from problem
    return feeds


def _make_random_feeds(model: onnx.ModelProto, facts: signature.Signature) -> tuple[Feeds, list[str]]:
    batch = facts["batch"]
    at_once = 1
    if batch is not None:
        at_once = batch if isinstance(batch, int) else _AT_ONCE
    rounds = -(-_RANDOM_SAMPLES // at_once)
    chosen = feed.find_feed(model, _serialise(model), batch=at_once)
    feeds = [
        inputs.make_seeded_inputs(model, facts, chosen=chosen.sizes, seed=1000 + number, fills=chosen.inputs)
        for number in range(rounds)
    ]
    text = (
        f"Calibrated with {rounds * at_once} random samples, not with real data: expect other accuracy with real data."
    )
    return feeds, [text]


def _serialise(model: onnx.ModelProto) -> bytes:
    """Serialise the model; b"" if it is too large for a protobuf message."""
    try:
        return bytes(model.SerializeToString())
    except ValueError:
        return b""


def _count_samples(samples: arrays.Arrays, facts: signature.Signature) -> int:
    lacking = [port["name"] for port in facts["inputs"] if port["name"] not in samples]
    if lacking:
        raise Problem("bad_calibration", f"The calibration data lack the input {printable(lacking[0])!r}.")
    counts = {len(array) if array.ndim else 0 for array in samples.values()}
    if len(counts) != 1:
        numbers = ", ".join(str(count) for count in sorted(counts))
        raise Problem("bad_calibration", f"The calibration data hold different numbers of samples: {numbers}.")
    count = counts.pop()
    if not 0 < count <= _MAX_SAMPLES:
        text = f"The calibration data hold {count:,} samples: give 1 to {_MAX_SAMPLES:,}, best 500."
        raise Problem("bad_calibration", text)
    return count


def _split_into_feeds(samples: arrays.Arrays, facts: signature.Signature, *, count: int) -> Iterator[arrays.Arrays]:
    batch = facts["batch"]
    if batch is None:
        for index in range(count):
            # indexing gives a numpy scalar if a sample is a single number, and ONNX Runtime takes only arrays
            yield {name: np.asarray(array[index]) for name, array in samples.items()}
        return
    size = batch if isinstance(batch, int) else _AT_ONCE
    if isinstance(batch, int) and count < batch:
        text = f"The calibration data hold {count} samples, the model's fixed batch is {batch}: give at least {batch}."
        raise Problem("bad_calibration", text)
    # a fixed batch takes whole batches only
    end = count - size + 1 if isinstance(batch, int) else count
    for start in range(0, end, size):
        yield {name: np.ascontiguousarray(array[start : start + size]) for name, array in samples.items()}
