"""Judges whether outputs are right, by tolerances for each precision, and says why.

Element-wise rule of the float presets: |candidate - reference| <= atol * scale + rtol * |reference|, where the scale is
the root mean square of the reference, and at least 1 (docs/accuracy.md has the sources). Quantised variants are judged
by direction (cosine) and by the class they choose.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from farm.contract.blocks import Tolerance
from farm.contract.cells import CellSpec, Precision
from farm.contract.reports import OutputParity

Verdict = Literal["pass", "fail", "not_measured"]

# so wide that only values that are not finite exceed it
_NO_TOLERANCE = 1e30


@dataclass(frozen=True, slots=True)
class Preset:
    """The limits that an output must keep. Shares and cosines are 0–1.

    `elementwise_bound` has `atol` and `rtol` as text, also where the cosine is judged in their place.
    """

    name: str
    atol: float = 0.0
    rtol: float = 0.0
    # None where the cosine to the reference is not judged
    min_cosine: float | None = None
    # the share of the same choices, as of the largest score; None where it is not judged
    min_agreement: float | None = None
    # the largest allowed difference of 8-bit integers, which stand for steps of a scale
    max_step: int = 0

    @property
    def elementwise_bound(self) -> str:
        return f"atol {self.atol:g}{'' if self.name == OWN else ' × scale'} + rtol {self.rtol:g}"

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance by which violations are counted.

        Where the cosine is judged instead, it is so wide that only values that are not finite violate it.
        """
        if self.min_cosine is not None:
            return Tolerance(atol=_NO_TOLERANCE, rtol=0.0)
        return Tolerance(atol=self.atol, rtol=self.rtol)


OWN: Final = "own"
FP32 = Preset("fp32", atol=1e-5, rtol=1e-4)
# eight units in the last place of the scale, and of the value: rounding after each operator of 24 layers costs six
FP16 = Preset("fp16", atol=2**-7, rtol=2**-7)
BF16 = Preset("bf16", atol=2**-4, rtol=2**-4)
# a model that was quantised before its upload
STEPS = Preset("few bits", atol=1e-5, rtol=1e-4, max_step=1)
INT8 = Preset("int8", min_cosine=0.99, min_agreement=0.99, max_step=1)
INT4 = Preset("int4", min_cosine=0.95, min_agreement=0.9, max_step=1)
# one optimisation level against another of the same variant
LEVELS = Preset("optimisation levels", atol=1e-4)
# a figure below its limit is written with fewer decimals than this
MAX_PLACES: Final = 16
# one model against another, without a given tolerance
ANY = Preset("any", atol=_NO_TOLERANCE)
_WIDTH = (FP32, STEPS, LEVELS, FP16, BF16, INT8, INT4)
_UPLOADED = {"fp16": FP16, "bf16": BF16, "int8": STEPS, "int8 QDQ": STEPS, "int4": STEPS}
_TYPES = {"float16": FP16, "bfloat16": BF16}


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and the sentence that says why."""

    verdict: Verdict
    text: str
    # the preset that the sentence is about, where outputs were judged by several
    preset: Preset | None = field(default=None, compare=False)
    # whether outputs differ or are random, and nothing says what is right
    is_unjudged: bool = field(default=False, compare=False)

    def with_reference_named(self, other: str) -> "Judgement":
        return replace(self, text=self.text.replace("the reference", other))


def preset_for(precision: Precision, uploaded: str = "") -> Preset:
    """Return the preset for the precision of a recipe.

    `uploaded` is the number type of the uploaded model, as `recipes.describe_uploaded` names it. It decides for fp32,
    which leaves the model as it is, and may widen the preset of fp16.
    """
    of_upload = _UPLOADED.get(uploaded, FP32)
    return {"fp32": of_upload, "fp16": max(of_upload, FP16, key=_WIDTH.index), "int4": INT4}.get(precision, INT8)


def presets_from_tolerances(tolerances: Mapping[str, Tolerance]) -> dict[str, Preset]:
    return {name: Preset(OWN, atol=tolerance.atol, rtol=tolerance.rtol) for name, tolerance in tolerances.items()}


def preset_between(spec: CellSpec, other: CellSpec, uploaded: str = "") -> Preset:
    """Return the preset for comparing two cells with each other: the wider of those of both precisions.

    It is LEVELS where their optimisation levels differ and neither is wider than FP32 or STEPS. `uploaded` is as for
    `preset_for`.
    """
    first, second = (preset_for(side.recipe.precision, uploaded) for side in (spec, other))
    wider = max(first, second, key=_WIDTH.index)
    is_level = spec.session.optimization != other.session.optimization
    return LEVELS if is_level and wider in (FP32, STEPS) else wider


def judge(
    outputs: Sequence[OutputParity],
    preset: Preset,
    *,
    by_output: Mapping[str, Preset] | None = None,
    missing: Sequence[str] = (),
) -> Judgement:
    """Judge all outputs against the reference.

    `by_output` has the presets of outputs, by name, that replace `preset`. `missing` are outputs of the reference that
    were not computed; a single one makes the verdict `fail`. Outputs without a reference are ignored. The verdict is
    `not_measured` if all are, and if no output fails but one is NaN everywhere on both sides. The sentence is about the
    first output at fault, and counts the others.
    """
    compared = [output for output in outputs if output.reference_shape is not None]
    if missing:
        return Judgement("fail", f"The output {missing[0]!r} of the reference was not computed.")
    if not compared:
        return Judgement("not_measured", "There is no reference to compare the outputs with.")

    presets = {output.name: preset_for_dtype(preset, output.dtype) for output in compared}
    presets |= {name: given for name, given in (by_output or {}).items() if name in presets}
    all_nan = [output for output in compared if output.is_nan_everywhere]
    faults = {
        output.name: fault
        for output in compared
        if output not in all_nan and (fault := _find_fault(output, presets[output.name])) is not None
    }
    if faults:
        name, fault = next(iter(faults.items()))
        others = f" (and {len(faults) - 1} more of {len(compared)} outputs)" if len(faults) > 1 else ""
        return Judgement("fail", f"{fault}{others}.", presets[name])
    if all_nan:
        values = f"all {all_nan[0].elements:,} values of {all_nan[0].name!r} are NaN, here and in the reference"
        return _make_unjudged(f": {values}; --inputs gives values that the model takes.")
    widest = max(presets.values(), key=lambda preset: preset.atol)
    return Judgement("pass", _describe_pass(compared, widest), widest)


def preset_for_dtype(preset: Preset, dtype: str) -> Preset:
    """Return the preset, or that of float16 or bfloat16 where an output of this type needs a wider one.

    A preset of given tolerances comes back unchanged.
    """
    return max(preset, _TYPES.get(dtype, preset), key=_WIDTH.index) if preset in _WIDTH else preset


def judge_models(
    outputs: Sequence[OutputParity], *, by_output: Mapping[str, Preset], is_labelled: bool = False
) -> Judgement:
    """Judge a model's outputs against those of another model, by the presets that the user gave for outputs.

    An output that differs and has no preset is not judged, because only the team knows how close a retrained or pruned
    model should be. Another shape always fails, as do values that are not finite where the other model's are.
    `is_labelled` says that labelled data judge the difference.
    """
    judgement = _judge_model_outputs(outputs, by_output, is_labelled=is_labelled)
    renamed = [f"{out.reference_name!r} is now called {out.name!r}" for out in outputs if out.reference_name]
    if not renamed:
        return judgement
    return replace(judgement, text=f"{judgement.text} Output {', '.join(renamed)}: callers that name it break.")


def _judge_model_outputs(
    outputs: Sequence[OutputParity], presets: Mapping[str, Preset], *, is_labelled: bool
) -> Judgement:
    compared = [output for output in outputs if output.reference_shape is not None]
    if not compared:
        return Judgement("not_measured", "No outputs of the two models could be compared.")
    faults = [
        fault
        for output in compared
        if (fault := _find_fault_between_models(output, presets.get(output.name))) is not None
    ]
    if faults:
        return Judgement("fail", f"{faults[0]}.")
    unjudged = [output for output in compared if output.name not in presets and not output.is_same]
    if not unjudged:
        text = _describe_pass(compared, next(iter(presets.values()))) if presets else "All outputs are the same."
        return Judgement("pass", text)
    largest = max(unjudged, key=lambda output: output.max_abs or 0.0)
    gap = "" if largest.max_abs is None else f": {largest.name!r} differs by up to {largest.max_abs:.3g}"
    if is_labelled:
        return Judgement("not_measured", f"Outputs differ{gap}; labelled data judge them.")
    way_out = f"--tolerance {largest.name}=ATOL or labelled data say whether that is right"
    return _make_unjudged(f"{gap}; {way_out}.")


def judge_random_model(operators: str) -> Judgement:
    return _make_unjudged(f": the model draws random numbers ({operators}).")


def _make_unjudged(reason: str) -> Judgement:
    return Judgement("not_measured", f"Outputs are not judged{reason}", is_unjudged=True)


def _find_fault_between_models(output: OutputParity, preset: Preset | None) -> str | None:
    if preset is not None or output.shape != output.reference_shape:
        return _find_fault(output, preset or ANY)
    if not output.violations or not (output.nan_count or output.inf_count):
        return None
    return f"Output {output.name!r} has {_count_violations(output)} that are not finite where the reference is"


def _find_fault(output: OutputParity, preset: Preset) -> str | None:
    """Say what is wrong with an output, without a full stop; None if it is right."""
    if output.reference_shape is not None and output.shape != output.reference_shape:
        return f"Output {output.name!r} has the shape {list(output.shape)}, not {list(output.reference_shape)}"
    if output.dtype in ("int8", "uint8") and output.max_abs is not None and output.max_abs <= preset.max_step:
        return None
    if preset.min_cosine is None or preset.min_agreement is None:
        return _describe_gap(output, preset) if output.violations else None
    if _is_exact(output):
        return _describe_disagreement(output, 1 - output.violations / max(1, output.elements), preset.min_agreement)
    if output.violations:
        violations = _count_violations(output)
        return f"Output {output.name!r} has {violations} that are not finite where the reference is, or the reverse"
    if output.elements and (output.cosine is None or output.cosine < preset.min_cosine):
        zeros = "none, as one of the two is all zeros"
        cosine = zeros if output.cosine is None else _format_below(output.cosine, preset.min_cosine)
        return f"Output {output.name!r}: cosine to the reference is {cosine}, below {preset.min_cosine:g}"
    if output.top1_agreement is not None:
        return _describe_disagreement(output, output.top1_agreement, preset.min_agreement)
    return None


def _describe_gap(output: OutputParity, preset: Preset) -> str:
    if _is_exact(output):
        return f"Output {output.name!r}: {_count_violations(output)} differ from the reference"
    largest = "" if output.max_abs is None else f", largest difference {output.max_abs:.3g}"
    nans = f", {output.nan_count} NaN" if output.nan_count else ""
    beyond = f"{_count_violations(output)} are beyond {preset.elementwise_bound} of the reference"
    return f"Output {output.name!r}: {beyond}{largest}{nans}"


def _describe_disagreement(output: OutputParity, share: float, wanted: float) -> str | None:
    if share >= wanted:
        return None
    agreement = _format_below(100 * share, 100 * wanted, decimals=2)
    return f"Output {output.name!r} agrees with the reference in {agreement}% of its choices, below {wanted:.0%}"


def _format_below(value: float, limit: float, *, decimals: int = 4) -> str:
    """Format a value that is below the limit with as many decimals as it takes to see that."""
    texts = (f"{value:.{places}f}" for places in range(decimals, MAX_PLACES))
    return next((text for text in texts if float(text) < limit), repr(value))


def _describe_pass(compared: Sequence[OutputParity], preset: Preset) -> str:
    subject = "The output is" if len(compared) == 1 else f"All {len(compared)} outputs are"
    if preset.min_cosine is not None:
        cosines = [output.cosine for output in compared if output.cosine is not None]
        lowest = f", lowest cosine {min(cosines):.5f}" if cosines else ""
        return f"{subject} close to the reference by the {preset.name} preset{lowest}."
    return f"{subject} within {preset.elementwise_bound} of the reference."


def _count_violations(output: OutputParity) -> str:
    return f"{output.violations:,} of {output.elements:,} values"


def _is_exact(output: OutputParity) -> bool:
    return not output.dtype.startswith(("float", "bfloat", "complex"))
