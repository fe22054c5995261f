"""Suggests what to try next with an 8-bit variant, by its recipe and by the layers that lose the most signal."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from farm.rules.cells import recipes

# a layer with a lower signal-to-noise ratio may be left in floating point
WEAK_DB = 20.0
MAX_NAMED_LAYERS = 3
MIN_SAMPLES, GOOD_SAMPLES = 100, 500


class Layer(Protocol):
    """A quantised tensor: its node, and its signal-to-noise ratio in decibels, None where nothing was lost."""

    @property
    def node(self) -> str: ...
    @property
    def model_db(self) -> float | None: ...


def advise(
    precision: str,
    options: Mapping[str, str],
    *,
    samples: int | None,
    layers: Sequence[Layer] = (),
    instruction_sets: Collection[str] = (),
) -> list[str]:
    """Suggest what to try next, as sentences, the most important first.

    `options` are those of the recipe. `samples` is the number of calibration samples, None where it is not known.
    `layers` are ordered from the lowest ratio; those below 20 dB count. `instruction_sets` are those of a processor
    that measured the variant. Empty without suggestions.
    """
    return [
        *_advise_by_samples(precision, options, samples),
        *_advise_by_processor(precision, options, instruction_sets),
        *_advise_by_layers(precision, options, layers),
    ]


def _advise_by_processor(precision: str, options: Mapping[str, str], instruction_sets: Collection[str]) -> list[str]:
    """Advise for x86 without VNNI: it adds two products of unsigned and signed bytes in 16 bits, and may saturate."""
    is_mixed = options.get("activation", "uint8") == "uint8" and options.get("weight", "int8") == "int8"
    saturates = "avx2" in instruction_sets and not any("vnni" in name for name in instruction_sets)
    if precision not in recipes.EIGHT_BITS or "reduce-range" in options or not (is_mixed and saturates):
        return []
    recipe = _format_precision(precision, {**options, "reduce-range": "true"})
    return [
        f"Try {recipe}: the processor that measured it has no VNNI, so that sums of U8S8 products can saturate; "
        "weights of 7 bits leave them room."
    ]


def _format_precision(precision: str, options: Mapping[str, str]) -> str:
    plain = {name: value for name, value in sorted(options.items()) if name != recipes.SAMPLES}
    return recipes.format_precision(precision, plain)


def _advise_by_samples(precision: str, options: Mapping[str, str], samples: int | None) -> list[str]:
    if precision not in recipes.STATIC:
        return []
    if options.get(recipes.SAMPLES, recipes.RANDOM) == recipes.RANDOM:
        text = (
            "Give calibration data with the model: the ranges were read off random samples, "
            "so that its accuracy says nothing about real ones."
        )
        return [text]
    if samples is not None and samples < MIN_SAMPLES:
        wanted = f"take at least {MIN_SAMPLES}, better {GOOD_SAMPLES}"
        return [f"Give more calibration data: {samples} samples are few, {wanted}."]
    if samples is not None and samples < GOOD_SAMPLES:
        return [f"{GOOD_SAMPLES} calibration samples or more give steadier ranges than {samples}."]
    return []


def _advise_by_layers(precision: str, options: Mapping[str, str], layers: Sequence[Layer]) -> list[str]:
    weak = [layer for layer in layers if layer.model_db is not None and layer.model_db < WEAK_DB]
    if not weak:
        return []
    advice = []
    if "per-channel" not in options:
        recipe = _format_precision(precision, {**options, "per-channel": "true"})
        advice.append(f"Try {recipe}: a scale for each channel keeps more of weights that differ between channels.")
    if precision in recipes.STATIC and "calibration" not in options:
        advice.append(
            "Try calibration=percentile or entropy: minmax lets a single outlier widen the range of a tensor."
        )
    names = list(dict.fromkeys(layer.node for layer in weak if layer.node))[:MAX_NAMED_LAYERS]
    # names with these signs cannot be written in a recipe
    if names and not set(",+:") & set("".join(names)):
        excluded = sorted({*recipes.split_names(options.get("exclude-nodes", "")), *names})
        recipe = _format_precision(precision, {**options, "exclude-nodes": ",".join(excluded)})
        advice.append(f"Try {recipe}: under {WEAK_DB:.0f} dB of signal are left behind {', '.join(names)}.")
    return advice
