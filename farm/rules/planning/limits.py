"""Where a cell's limit on memory can be held: on the CPU's providers alone. Pure."""

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.runtimes import providers


def refusal(spec: CellSpec) -> Reason | None:
    """Why a cell is not measured under its memory limit; None where it is, or has none."""
    entry = providers.find(spec.provider)
    limit_mb = spec.session.memory_limit_mb
    if not limit_mb or entry is None or entry.device == "cpu":
        return None
    text = (
        f"A memory limit counts addresses, of which {entry.name} takes far more than it uses: leave memory-limit-mb "
        "out, or measure on the CPU."
    )
    return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)
