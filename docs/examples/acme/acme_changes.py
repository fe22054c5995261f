# acme_changes.py
from collections.abc import Iterator

from farm.rules.findings.cell_pairs import Pair, series_label
from farm.rules.findings.checks import describe_parity_growth
from farm.rules.findings.kind import Change, Kind
from farm.rules.wording.vocabulary import Sign


def drifts(pair: Pair, allowed: float) -> Iterator[Change]:
    """Outputs that pass, and are much further from the reference than before."""
    before, after = pair.old.parity, pair.new.parity
    if after.verdict == before.verdict == "pass":
        grown = describe_parity_growth(before.outputs, after.outputs)
        yield Change("worse", f"{series_label(pair.new)} on {pair.new.runtime}: {grown}") if grown else Change("well")


WAITS = Kind("waits", Sign("▲", "waits longer", "slower"), "a wait for the card that is longer", before="session")
DRIFT = Kind(
    "drift",
    Sign("≈", "drifting outputs", "warn"),
    "outputs that pass and are twice as far from the reference",
    compare=drifts,
    is_noisy=False,
)
