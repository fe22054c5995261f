"""Which rounds of a comparison count, and whether wall time or processor time decides: by disturbance alone.

Nothing here looks at a ratio, so that the choice favours neither side. Other programs on a busy machine slow both arms
of a round alike, and the processor time of their own thread leaves the turns of the others out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from farm.contract.reports import Sample
from farm.rules.cells.metrics import BY_NAME
from farm.rules.cells.scenario_metrics import MAX_RATE
from farm.rules.comparing import look_levels
from farm.rules.comparing.comparisons import Comparison
from farm.rules.judging.evidence import Evidence
from farm.rules.planning.estimates import OUT_OF_TIME
from farm.rules.wording.numbers import counted, share

VerdictFrom = Literal["wall", "processor", "rate"]
Pair = tuple[float, float]
RATE = BY_NAME[MAX_RATE]
# where a larger share of the rounds stayed disturbed, the machine is busy and all of them count
BUSY_SHARE = 1 / 3
# a wider interval of wall time is not worth a figure
MAX_FACTOR = 10.0
# and a narrower one is no reason
MIN_FACTOR = 1.1


@dataclass(frozen=True, slots=True)
class Paired:
    """The rounds that count, as pairs of (baseline, candidate) p50 in ms; `numbers` are the numbers of these rounds.

    `wall` is wall time; where a load looks for a rate it is the time between two requests at the highest rate.
    `processor` is processor time, empty where any launch has none. `both` are the numbers of all rounds with both
    samples, and `disturbed` those that stayed disturbed; `core_share`: what these launches got of a core.
    """

    wall: list[Pair]
    processor: list[Pair]
    verdict_from: VerdictFrom
    numbers: tuple[int, ...] = ()
    both: tuple[int, ...] = ()
    disturbed: tuple[int, ...] = ()
    core_share: float | None = None

    @property
    def deciding(self) -> list[Pair]:
        return self.processor if self.verdict_from == "processor" else self.wall

    def until(self, counted: int) -> "Paired":
        """Limit `both` and `disturbed` to the rounds up to the last look, which used the first `counted` pairs."""
        if not 0 < counted < len(self.numbers):
            return self
        last = self.numbers[counted - 1]
        both, disturbed = (tuple(number for number in some if number <= last) for some in (self.both, self.disturbed))
        return replace(self, both=both, disturbed=disturbed)


def pair_rates(evidence: Evidence, baseline: int, candidate: int) -> Paired:
    """Pair the rounds of two arms that look for a rate, where both found one."""
    found = {
        number: (1000.0 / before, 1000.0 / after)
        for number, (old, new) in _rounds_of_both(evidence, baseline, candidate).items()
        if (before := RATE.read_figure(old)) and (after := RATE.read_figure(new))
    }
    return Paired(wall=list(found.values()), processor=[], verdict_from="rate", numbers=tuple(found), both=tuple(found))


def pair_rounds(evidence: Evidence, baseline: int, candidate: int, *, least: int, by_processor: bool = False) -> Paired:
    """Pair the rounds of two arms that count.

    These are the undisturbed rounds, by wall time, where there are at least `least` of them and two thirds of all. Else
    they are all rounds, by processor time; where a launch has none, as on several threads and from older nodes, the
    undisturbed ones again. `by_processor`: prefer processor time on a calm machine too.
    """
    by_round = _rounds_of_both(evidence, baseline, candidate)
    both = list(by_round.values())
    calm = {number: (old, new) for number, (old, new) in by_round.items() if not (old.is_disturbed or new.is_disturbed)}
    disturbed = tuple(number for number in by_round if number not in calm)
    is_busy = bool(disturbed) and (len(calm) < least or len(disturbed) > BUSY_SHARE * len(both))
    by_processor = (is_busy or by_processor) and 0 < len(_processor(both)) == len(both)
    counted = by_round if by_processor else calm
    shares = [launch.cpu_share for pair in both for launch in pair if launch.is_disturbed]
    known = [share for share in shares if share is not None]
    return Paired(
        wall=[(old.p50_ms, new.p50_ms) for old, new in counted.values()],
        processor=_processor(list(counted.values())),
        verdict_from="processor" if by_processor else "wall",
        numbers=tuple(counted),
        both=tuple(by_round),
        disturbed=disturbed,
        core_share=median(known) if known else None,
    )


def _rounds_of_both(evidence: Evidence, baseline: int, candidate: int) -> dict[int, tuple[Sample, Sample]]:
    found = {}
    for number, report in sorted(evidence.rounds.items()):
        samples = {place.arm: place.sample for place in report.samples}
        old, new = samples.get(baseline), samples.get(candidate)
        if old is not None and new is not None:
            found[number] = (old, new)
    return found


def _processor(rounds: Sequence[tuple[Sample, Sample]]) -> list[Pair]:
    """Pair the processor times of all rounds; empty where a launch has none."""
    pairs = [
        (old.cpu_p50_ms, new.cpu_p50_ms)
        for old, new in rounds
        if old.cpu_p50_ms is not None and new.cpu_p50_ms is not None
    ]
    return pairs if len(pairs) == len(rounds) else []


def describe_disturbance(paired: Paired, *, wall: Comparison | None) -> str:
    """Say how many rounds were disturbed and what was done about it; empty where none were.

    `wall`: the comparison by wall time, where the verdict rests on processor time.
    """
    if not paired.disturbed:
        return ""
    if paired.verdict_from != "processor":
        return f"{_disturbed(paired)} and {'were' if len(paired.disturbed) > 1 else 'was'} set aside."
    # without a direction, for a comparison may be read from its other side
    factor = 1.0 if wall is None else wall.ci_high / wall.ci_low
    known = f"only to within a factor of {factor:.2f}" if factor <= MAX_FACTOR else "to no useful factor"
    width = f", because wall time is known {known}" if factor >= MIN_FACTOR else ""
    return f"{_disturbed(paired)}: the verdict rests on processor time{width}."


def too_few_sentence(counting: int, *, measured: int, least: int, is_out_of_time: bool) -> str:
    """Say why there is no verdict where it takes at least `least` rounds, and how to get more.

    `counting`: how many of the `measured` rounds have a pair that counts.
    """
    text = look_levels.too_few_sentence(measured, least=least)
    if counting < measured:
        has = "has" if counting == 1 else "have"
        some = f"{counting} of {counted(measured, 'round')} {has} both samples undisturbed"
        text = f"{some}: a verdict takes at least {least}."
    return f"{text}{f' {OUT_OF_TIME}' if is_out_of_time else ''}"


def single_round_sentence(*, is_out_of_time: bool) -> str:
    return f"One round has it on both sides: a verdict takes a second.{f' {OUT_OF_TIME}' if is_out_of_time else ''}"


def _disturbed(paired: Paired) -> str:
    part = "" if paired.core_share is None else f" (the measured processes got {share(paired.core_share)} of a core)"
    return f"Other programs disturbed {len(paired.disturbed)} of {counted(len(paired.both), 'round')}{part}"
