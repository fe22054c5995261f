"""Finds the operators that a quantised variant still runs in floating point, from its trace, not from its graph."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farm.contract.document_cells import OperatorTime
from farm.contract.reports import Operator

# by family: the floating-point operators, and the quantised ones that a runtime executes in their place
_FAMILIES = {
    "Conv": (
        {"Conv", "FusedConv", "NhwcFusedConv", "ConvTranspose"},
        {"QLinearConv", "ConvInteger", "QLinearConvTranspose"},
    ),
    "MatMul": (
        {"MatMul", "FusedMatMul", "Gemm", "FusedGemm", "TransposeMatMul"},
        {
            *("QLinearMatMul", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QGemm"),
            *("MatMulNBits", "QOrderedMatMul"),
        },
    ),
    "Attention": ({"Attention", "MultiHeadAttention"}, {"QAttention", "QOrderedAttention"}),
    "LSTM": ({"LSTM"}, {"DynamicQuantizeLSTM"}),
}


@dataclass(frozen=True, slots=True)
class FloatOperators:
    """A family of operators: how many nodes ran, and which of them ran in floating point."""

    family: str
    ran: int
    # the names of the nodes that ran in floating point, and their share of the time of all operators, 0–1
    in_float: tuple[str, ...]
    time_share: float

    def sentence(self) -> str:
        share = f"{100 * self.time_share:.0f} %"
        return f"{len(self.in_float)} of {self.ran} {self.family} stayed FP32, {share} of the time."


def find_float_operators(operators: Iterable[Operator | OperatorTime]) -> list[FloatOperators]:
    """Return for each family of operators the nodes that ran in floating point, the largest share of time first.

    Families that ran only quantised are included, with a time share of 0; families that did not run are not.
    """
    listed = list(operators)
    total = sum(operator.time_us for operator in listed)
    families = []
    for family, (float_types, quantised_types) in _FAMILIES.items():
        floats = [operator for operator in listed if operator.op_type in float_types]
        ran = len(floats) + sum(operator.op_type in quantised_types for operator in listed)
        if ran:
            share = sum(operator.time_us for operator in floats) / total if total else 0.0
            families.append(FloatOperators(family, ran, tuple(operator.node for operator in floats), share))
    return sorted(families, key=lambda family: -family.time_share)


def advise(families: Sequence[FloatOperators], *, precision: str, activation: str, hardware: str) -> list[str]:
    """Suggest what to try next, as sentences, by what ran in floating point; empty where nothing did.

    `families` are ordered as `find_float_operators` does, `activation` is the type of quantised activations, and
    `hardware` is a tag such as `x86`.
    """
    floats = [family for family in families if family.in_float]
    if not floats:
        return []
    advice = []
    if precision in ("int8-qdq", "int8-qoperator") and activation == "int8" and hardware == "x86":
        advice.append("Take activation uint8: the fast kernels of x86 want unsigned activations with signed weights.")
    if precision == "int8-dynamic" and any(family.family == "Conv" for family in families):
        advice.append("Take int8-qdq with calibration data: dynamic quantisation is made for MatMul, not for Conv.")
    if not advice:
        largest = floats[0]
        advice.append(
            f"Look at {', '.join(largest.in_float[:3])}: {largest.family} runs in float where its inputs or outputs "
            "are not quantised on both sides."
        )
    return advice
