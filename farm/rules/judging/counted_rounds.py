"""Chooses which rounds of a comparison count, and whether wall time or processor time decides, by disturbance alone.

Nothing here looks at a ratio, so that the choice favours neither side. Other programs on a busy machine slow both arms
of a round alike, and the processor time of an arm's own thread does not contain their turns.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import median
from typing import Literal

from farm.contract.reports import Sample
from farm.rules.cells.metrics import BY_NAME
from farm.rules.cells.scenario_metrics import MAX_RATE
from farm.rules.comparing import look_levels
from farm.rules.comparing.comparisons import Comparison
from farm.rules.comparing.pooled import Pair
from farm.rules.judging.evidence import Evidence, read_pairs
from farm.rules.planning.estimates import OUT_OF_TIME
from farm.rules.wording.numbers import counted, share

VerdictFrom = Literal["wall", "processor", "rate"]
RATE = BY_NAME[MAX_RATE]
# if a larger share of the rounds stayed disturbed, the machine is busy and all rounds count
BUSY_SHARE = 1 / 3
# The interval of wall time, high / low, is named as the reason from MIN_FACTOR on, and as a number up to MAX_FACTOR.
MAX_FACTOR = 10.0
MIN_FACTOR = 1.1


@dataclass(frozen=True, slots=True)
class Paired:
    """The rounds of a comparison that count, as pairs of the baseline's and the candidate's p50 in ms.

    `deciding` are the pairs that the verdict rests on.
    """

    # wall time, or the time between two requests where a load looks for the highest rate
    wall: list[Pair]
    # processor time; empty where any launch has none
    processor: list[Pair]
    verdict_from: VerdictFrom
    # the numbers of the rounds that count, in the order of the pairs
    numbers: tuple[int, ...] = ()
    # the numbers of all rounds in which both arms have a sample
    measured: tuple[int, ...] = ()
    # the numbers of the measured rounds that stayed disturbed
    disturbed: tuple[int, ...] = ()
    # the median share of a core that disturbed launches got; None where it is not known
    core_share: float | None = None

    @property
    def deciding(self) -> list[Pair]:
        return self.processor if self.verdict_from == "processor" else self.wall

    def limit_to_pairs(self, count: int) -> "Paired":
        """Leave out of `measured` and `disturbed` the rounds after that of the pair number `count`.

        The pairs and their `numbers` stay. Nothing is left out where `count` is 0, or that of all pairs.
        """
        if not 0 < count < len(self.numbers):
            return self
        last = self.numbers[count - 1]
        measured = tuple(number for number in self.measured if number <= last)
        disturbed = tuple(number for number in self.disturbed if number <= last)
        return replace(self, measured=measured, disturbed=disturbed)


def pair_rates(evidence: Evidence, baseline: int, candidate: int) -> Paired:
    """Pair the rounds of two arms that look for a rate, where both found one, by the ms between two requests."""
    pairs = {
        number: (1000.0 / before, 1000.0 / after)
        for number, (old, new) in evidence.sample_pairs(baseline, candidate).items()
        if (before := RATE.read_figure(old)) and (after := RATE.read_figure(new))
    }
    numbers = tuple(pairs)
    return Paired(wall=list(pairs.values()), processor=[], verdict_from="rate", numbers=numbers, measured=numbers)


def pair_rounds(
    evidence: Evidence, baseline: int, candidate: int, *, min_rounds: int, by_processor: bool = False
) -> Paired:
    """Pair the rounds of two arms that count.

    These are the undisturbed rounds, by wall time, where there are at least `min_rounds` of them and two thirds of all.
    Otherwise all rounds count, by processor time. If a launch has no processor time, as on several threads and from
    older nodes, only the undisturbed rounds count, by wall time. `by_processor` prefers processor time on a calm
    machine too.
    """
    rounds = evidence.sample_pairs(baseline, candidate)
    calm = {number: (old, new) for number, (old, new) in rounds.items() if not (old.is_disturbed or new.is_disturbed)}
    disturbed = tuple(number for number in rounds if number not in calm)
    is_busy = bool(disturbed) and (len(calm) < min_rounds or len(disturbed) > BUSY_SHARE * len(rounds))
    rests_on_processor = (is_busy or by_processor) and bool(_pair_processor_times(rounds.values()))
    counting = rounds if rests_on_processor else calm
    launches = [launch for samples in rounds.values() for launch in samples if launch.is_disturbed]
    core_shares = [launch.cpu_share for launch in launches if launch.cpu_share is not None]
    return Paired(
        wall=[(old.p50_ms, new.p50_ms) for old, new in counting.values()],
        processor=_pair_processor_times(counting.values()),
        verdict_from="processor" if rests_on_processor else "wall",
        numbers=tuple(counting),
        measured=tuple(rounds),
        disturbed=disturbed,
        core_share=median(core_shares) if core_shares else None,
    )


def _pair_processor_times(rounds: Collection[tuple[Sample, Sample]]) -> list[Pair]:
    pairs = read_pairs(rounds, attrgetter("cpu_p50_ms"))
    # all launches have one, or none is used
    return pairs if len(pairs) == len(rounds) else []


def describe_disturbance(paired: Paired, *, wall: Comparison | None) -> str:
    """Say how many rounds were disturbed, and whether they were set aside or judged by processor time; empty for none.

    `wall` is the comparison by wall time. Its interval is given as the reason for using processor time where its ends
    differ by 10 % or more.
    """
    if not paired.disturbed:
        return ""
    if paired.verdict_from != "processor":
        return f"{_count_disturbed(paired)} and {'were' if len(paired.disturbed) > 1 else 'was'} set aside."
    # the factor has no direction, because a comparison may be read from its other side
    factor = 1.0 if wall is None else wall.ci_high / wall.ci_low
    precision = f"only to within a factor of {factor:.2f}" if factor <= MAX_FACTOR else "to no useful factor"
    width = f", because wall time is known {precision}" if factor >= MIN_FACTOR else ""
    return f"{_count_disturbed(paired)}: the verdict rests on processor time{width}."


def explain_too_few_pairs(counting: int, *, measured: int, min_rounds: int, is_out_of_time: bool) -> str:
    """Say why there is no verdict, which takes at least `min_rounds` pairs; `is_out_of_time` adds how to get more.

    `counting` is how many of the `measured` rounds have a pair that counts.
    """
    text = look_levels.explain_too_few_rounds(measured, min_rounds=min_rounds)
    if counting < measured:
        has = "has" if counting == 1 else "have"
        undisturbed = f"{counting} of {counted(measured, 'round')} {has} both samples undisturbed"
        text = f"{undisturbed}: a verdict takes at least {min_rounds}."
    return f"{text}{f' {OUT_OF_TIME}' if is_out_of_time else ''}"


def explain_single_pair(*, is_out_of_time: bool) -> str:
    return f"One round has it on both sides: a verdict takes a second.{f' {OUT_OF_TIME}' if is_out_of_time else ''}"


def _count_disturbed(paired: Paired) -> str:
    part = "" if paired.core_share is None else f" (the measured processes got {share(paired.core_share)} of a core)"
    return f"Other programs disturbed {len(paired.disturbed)} of {counted(len(paired.measured), 'round')}{part}"
