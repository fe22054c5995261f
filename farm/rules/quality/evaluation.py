"""Converts recipes of accuracy, and the judged samples that nodes send, from and to text.

A recipe is written `[STEP+]METRIC[@OUTPUT]`: `top1`, `cosine`, `softmax+mse`, `threshold=0.3+top1@scores`. A step
without a metric means the metric `top1`. Judged samples are sent as `b1:` and the bits of right (1) and wrong (0), or
as `f4:` and little-endian float32 figures, both compressed by zlib and encoded as base64.
"""

import base64
import binascii
import zlib
from math import isfinite
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from farm.contract.evaluation import MAX_SAMPLES, AccuracyReport, EvaluationRecipe, Step
from farm.rules.quality.accuracy_metrics import METRICS, OUTSIDE
from farm.rules.runtimes.nearest import choice_sentence

STEPS: tuple[str, ...] = get_args(Step)
_MAX_TEXT = 300
# figures take four bytes each
_MAX_UNPACKED = 4 * MAX_SAMPLES
# the mean of figures, which travel as float32, may be beyond the limits of its metric by this much
_ROUNDED = 1e-5

# whether each sample is right, or a float64 figure of each
Judged = NDArray[Any]


class RecipeProblem(ValueError):
    """A recipe that cannot be read; the message names the wrong word and the valid ones."""


class SamplesProblem(ValueError):
    """Packed samples that cannot be unpacked, or that do not fit their report."""


def parse_recipe(text: str) -> EvaluationRecipe:
    """Parse the text of a recipe. Raises RecipeProblem where it cannot be read or names an unknown step or metric."""
    words, at, output = text.strip().partition("@")
    if len(text) > _MAX_TEXT or not text.isprintable() or (at and not output):
        raise RecipeProblem(f"The recipe {text[:60]!r} cannot be read: write it like top1, softmax+mse or top1@scores.")
    step, plus, metric = words.partition("+")
    if not plus and step.partition("=")[0] not in STEPS:
        step, metric = "", step
    apply, threshold = _parse_step(step) if step else (None, 0.5)
    metric = metric or ("" if plus or not words else "top1")
    if metric not in METRICS:
        raise RecipeProblem(OUTSIDE.refused.get(metric) or choice_sentence("metric", metric, (*METRICS, *STEPS)))
    return EvaluationRecipe(metric=metric, output=output or None, apply=apply, threshold=threshold)


def format_recipe(recipe: EvaluationRecipe) -> str:
    step = f"threshold={recipe.threshold:g}" if recipe.apply == "threshold" else recipe.apply
    return (f"{step}+" if step else "") + recipe.metric + (f"@{recipe.output}" if recipe.output else "")


def pack_samples(judged: Judged) -> str:
    """Pack judged samples as text, `b1:BASE64` for booleans or `f4:BASE64` for figures."""
    if judged.dtype.kind == "b":
        return "b1:" + base64.b64encode(zlib.compress(np.packbits(judged).tobytes(), 9)).decode()
    return "f4:" + base64.b64encode(zlib.compress(judged.astype("<f4").tobytes(), 9)).decode()


def unpack_samples(report: AccuracyReport) -> Judged:
    """Unpack the `n` judged samples of a report: booleans, or float64 figures.

    Raises SamplesProblem without samples, where the text is damaged or too long, where a figure is not finite, and
    where the kind of samples or the mean of figures cannot be that of the report's metric.
    """
    kind, _, packed = report.samples.partition(":")
    entry = METRICS.get(report.recipe.metric)
    # samples of a metric whose package is not installed here may be of either kind
    kinds = ["b1", "f4"]
    if entry is not None:
        kinds = ["b1"] if entry.is_yes_or_no else ["f4"]
    if kind not in kinds or report.n == 0:
        raise SamplesProblem(f"{report.n} samples judged by {report.recipe.metric} came as {kind!r:.20}.")
    raw = _unpack_bytes(packed)
    if len(raw) != (4 * report.n if kind == "f4" else -(-report.n // 8)):
        raise SamplesProblem(f"{len(raw)} bytes came for {report.n} samples.")
    if kind == "b1":
        return np.unpackbits(np.frombuffer(raw, np.uint8), count=report.n).astype(bool)
    figures = np.frombuffer(raw, "<f4").astype(np.float64)
    if not bool(np.isfinite(figures).all()):
        raise SamplesProblem(f"Figures of {report.recipe.metric} are finite numbers; these are not.")
    if entry is not None and not entry.least - _ROUNDED <= figures.mean() <= entry.most + _ROUNDED:
        raise SamplesProblem(f"{entry.title} is from {entry.least} to {entry.most} and not {figures.mean():g}.")
    return figures


def _parse_step(text: str) -> tuple[Step, float]:
    name, sign, bound = text.partition("=")
    if name not in STEPS:
        raise RecipeProblem(choice_sentence("step", name, STEPS))
    if not sign:
        return cast(Step, name), 0.5
    if name != "threshold":
        raise RecipeProblem(f"The step {name} takes no number: leave ={bound[:20]} out.")
    try:
        value = float(bound)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise RecipeProblem(f"The threshold {bound[:20]!r} is not a number: write it like threshold=0.5.")
    return cast(Step, name), value


def _unpack_bytes(packed: str) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(base64.b64decode(packed, validate=True), _MAX_UNPACKED + 1)
    except (binascii.Error, ValueError, zlib.error) as problem:
        raise SamplesProblem(f"The samples cannot be unpacked: {problem}.") from problem
    if len(raw) > _MAX_UNPACKED or not unpacker.eof:
        raise SamplesProblem(f"The samples unpack to more than {_MAX_UNPACKED:,} bytes, or are cut short.")
    return raw
