"""What a cell under load says: the highest rate that kept its bound, or what became of the one asked for. Pure."""

from collections.abc import Mapping, Sequence

from farm.contract.document_cells import CellPhase, Figure
from farm.rules.cells.scenario_metrics import GOODPUT, MAX_RATE
from farm.rules.cells.scenarios import Scenario
from farm.rules.wording.numbers import plain

# of a rate that is held, so many of the requests keep up with their arrivals
HELD = 0.95


def sentence(
    launched: Mapping[str, Figure], scenario: Scenario, *, p99_ms: float | None, phases: Sequence[CellPhase] = ()
) -> str:
    """One sentence on the rate. `phases`: the rates that launches drove."""
    if scenario.rate is None:
        return _of_search(launched.get(MAX_RATE), scenario, phases)
    told = "" if p99_ms is None else f"p99 {plain(p99_ms)} ms at {scenario.rate:g} per s"
    goodput = launched.get(GOODPUT)
    if goodput is None:
        return f"{told}." if told else ""
    within = "" if scenario.bound_ms is None else f" within {scenario.bound_ms:g} ms"
    if goodput.value < HELD * scenario.rate:
        return f"{scenario.rate:g} per s are not held: {plain(goodput.value)} per s were answered{within}."
    return f"{told or f'{scenario.rate:g} per s are held'}, {plain(goodput.value)} per s answered{within}."


def up_to(most: float, phases: Sequence[CellPhase]) -> str:
    """`up to 812`, or `up to at least 812` where the highest rate that was driven kept the bound too."""
    driven = [phase.metrics["rate_per_s"] for phase in phases if "rate_per_s" in phase.metrics]
    return f"up to {'at least ' if driven and most >= max(driven) else ''}{plain(most)}"


def _of_search(most: Figure | None, scenario: Scenario, phases: Sequence[CellPhase]) -> str:
    bound = f"p99 within {scenario.bound_ms:g} ms"
    if most is None:
        return f"No rate that was tried kept its {bound}."
    interval = ""
    if most.low is not None and most.high is not None:
        interval = f" (95 % interval {plain(most.low)} to {plain(most.high)}, {len(most.samples)} launches)"
    return f"Keeps its {bound} {up_to(most.value, phases)} requests per s{interval}."
