"""Weights in 4 bits: releases of ONNX Runtime that cannot compute with them. Pure."""

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.runtimes import distributions, engines, plugins
from farm.rules.runtimes.order import release_order

# by PyPI's wheels: 1.15 knows no MatMulNBits; that of 1.16.3 takes no accuracy level and errs with blocks of 256
INT4_FROM = "1.17.0"


def refusal(spec: CellSpec) -> Reason | None:
    """Why the cell's runtime does not compute its 4-bit weights; None when it does, or nobody knows."""
    if spec.recipe.precision != "int4":
        return None
    if engines.of(spec.runtime).is_browser:
        text = f"int4 is not measured in browsers yet: leave {spec.runtime} out, or take another precision."
        return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)
    if not distributions.is_known(spec.runtime.distribution) and plugins.plugin_of(spec.runtime) is None:
        return None  # its numbers need not be ONNX Runtime's: its check shows what it loads
    if release_order(plugins.core_of(spec.runtime).version) >= release_order(INT4_FROM):
        return None
    text = f"int4 is computed from ONNX Runtime {INT4_FROM} on: leave {spec.runtime} out, or take another precision."
    return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)
