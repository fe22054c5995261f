"""Suggests what to try next with an 8-bit variant, from how it was made and where its error is."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from farm.rules.cells import recipes

# a layer is worth leaving out when so little signal is left, and others have much more
WEAK_DB = 20.0
NAMED = 3
FEW, ENOUGH = 100, 500


class Layer(Protocol):
    """A tensor of the ranking: its node, and the signal left in decibels, None where nothing was lost."""

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

    `samples` is the number of calibration samples; `layers` are ordered from the worst; `instruction_sets` are those of
    a processor that measured the variant.
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
    if samples is not None and samples < FEW:
        return [f"Give more calibration data: {samples} samples are few, take at least {FEW}, better {ENOUGH}."]
    if samples is not None and samples < ENOUGH:
        return [f"{ENOUGH} calibration samples or more give steadier ranges than {samples}."]
    return []


def _advise_by_layers(precision: str, options: Mapping[str, str], layers: Sequence[Layer]) -> list[str]:
    weak = [layer for layer in layers if layer.model_db is not None and layer.model_db < WEAK_DB]
    if not weak:
        return []
    ideas = []
    if "per-channel" not in options:
        with_scales = _format_precision(precision, {**options, "per-channel": "true"})
        ideas.append(f"Try {with_scales}: a scale for each channel keeps more of weights that differ between channels.")
    if precision in recipes.STATIC and "calibration" not in options:
        ideas.append("Try calibration=percentile or entropy: minmax lets a single outlier widen the range of a tensor.")
    names = list(dict.fromkeys(layer.node for layer in weak if layer.node))[:NAMED]
    if names and all(not set(",+:") & set(name) for name in names):
        left = sorted({*recipes.split_names(options.get("exclude-nodes", "")), *names})
        recipe = _format_precision(precision, {**options, "exclude-nodes": ",".join(left)})
        ideas.append(f"Try {recipe}: under {WEAK_DB:.0f} dB of signal are left behind {', '.join(names)}.")
    return ideas
