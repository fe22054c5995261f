"""What a cell that generates says: its times in a sentence, its tokens, and how they stand to others. Pure."""

from dataclasses import dataclass

from farm.contract import document as doc
from farm.rules.cells.metrics import TOKENS_RATE, TPOT, TTFT
from farm.rules.cells.numbers import milliseconds, three_digits
from farm.rules.generation import streams
from farm.rules.judging.evidence import Evidence
from farm.rules.judging.summaries import CellSummary
from farm.rules.planning.plans import Arm
from farm.rules.reporting.records import BlockRecord


@dataclass(frozen=True)
class Generated:
    """`text`: how the tokens stand to others. `is_other`: they should be the same, and are not."""

    tokens: tuple[int, ...] = ()
    text: str = ""
    is_other: bool = False


def generated(arm: Arm, one: BlockRecord, evidence: Evidence) -> Generated:
    """The tokens of an arm's first launch, held against its other launches and against the block's first arm.

    A model of another precision may choose other tokens: that is told, and is no failure.
    """
    launches = [sample.tokens for sample in evidence.samples(arm.arm) if sample.tokens]
    if not launches:
        return Generated()
    if apart := streams.among_launches(launches):
        return Generated(launches[0], apart, is_other=True)
    baseline = next((other for other in one.block.arms if any(s.tokens for s in evidence.samples(other.arm))), arm)
    if baseline.arm == arm.arm:
        return Generated(launches[0])
    first = next(sample.tokens for sample in evidence.samples(baseline.arm) if sample.tokens)
    is_alike = baseline.spec.recipe == arm.spec.recipe
    return Generated(
        launches[0],
        streams.against(launches[0], first, named=baseline.id),
        is_other=is_alike and launches[0] != first,
    )


def with_tokens(parity: doc.Parity, found: Generated) -> doc.Parity:
    """Parity that fails where tokens are not those that they should be."""
    if not found.is_other:
        return parity
    return parity.model_copy(update={"verdict": "fail", "text": f"{found.text} {parity.text}".strip()})


def sentence(summary: CellSummary | None, found: Generated) -> str:
    """The first token, the next ones, and how the tokens stand to others; empty for a cell that generates nothing."""
    launched = summary.launched if summary is not None else {}
    if not found.tokens or any(name not in launched for name in (TTFT, TPOT, TOKENS_RATE)):
        return ""
    ttft, tpot, rate = (launched[name].value for name in (TTFT, TPOT, TOKENS_RATE))
    times = f"The first token after {milliseconds(ttft)}, then {milliseconds(tpot)} a token"
    return f"{times}: {three_digits(rate)} tokens/s. {found.text}".strip()
