"""What a cell under load says: the highest rate that kept its bound, or what became of the one asked for. Pure."""

from collections.abc import Mapping

from farm.contract.document import Figure
from farm.rules.cells.metrics import GOODPUT, MAX_RATE
from farm.rules.cells.numbers import three_digits
from farm.rules.cells.scenarios import Scenario

# of a rate that is held, so many of the requests keep up with their arrivals
HELD = 0.95


def sentence(launched: Mapping[str, Figure], scenario: Scenario, *, p99_ms: float | None) -> str:
    """One sentence on the rate."""
    if scenario.rate is None:
        return _of_search(launched.get(MAX_RATE), scenario)
    told = "" if p99_ms is None else f"p99 {three_digits(p99_ms)} ms at {scenario.rate:g} per s"
    goodput = launched.get(GOODPUT)
    if goodput is None:
        return f"{told}." if told else ""
    within = "" if scenario.bound_ms is None else f" within {scenario.bound_ms:g} ms"
    if goodput.value < HELD * scenario.rate:
        return f"{scenario.rate:g} per s are not held: {three_digits(goodput.value)} per s were answered{within}."
    return f"{told or f'{scenario.rate:g} per s are held'}, {three_digits(goodput.value)} per s answered{within}."


def _of_search(most: Figure | None, scenario: Scenario) -> str:
    bound = f"p99 within {scenario.bound_ms:g} ms"
    if most is None:
        return f"No rate that was tried kept its {bound}."
    interval = ""
    if most.low is not None and most.high is not None:
        interval = (
            f" (95 % interval {three_digits(most.low)} to {three_digits(most.high)}, {len(most.samples)} launches)"
        )
    return f"Keeps its {bound} up to {three_digits(most.value)} requests per s{interval}."
