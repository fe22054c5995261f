"""What a reader must know of disturbed rounds, and of rounds that the promised time left out, in sentences."""

from farm.rules.comparing import look_levels
from farm.rules.comparing.comparisons import Comparison
from farm.rules.judging.counted_rounds import Paired
from farm.rules.wording.numbers import counted, share

_LATE = (
    " Time ran out (twice the plan): reduce other load on the machine, measure fewer cells in one run, or ask for "
    "more rounds: `onnxfarm more RUN` on a farm, a larger --budget elsewhere."
)


def sentence(paired: Paired, *, wall: Comparison | None) -> str:
    """How many rounds were disturbed, by how much, and what speaks instead; empty where none were.

    `wall`: the figures of wall time, where the verdict rests on processor time.
    """
    if not paired.disturbed:
        return ""
    if paired.verdict_from != "processor":
        return f"{_disturbed(paired)} and {'were' if paired.disturbed > 1 else 'was'} set aside."
    # without a direction, for a comparison may be read from its other side
    factor = "" if wall is None else f"{wall.ci_high / wall.ci_low:.2f}"
    width = factor and f", because wall time is known only to within a factor of {factor}"
    return f"{_disturbed(paired)}: the verdict rests on processor time{width}."


def too_few(counting: int, *, measured: int, least: int, is_out_of_time: bool) -> str:
    """Why so many rounds have no verdict, where it takes at least `least`; and how to get more.

    `counting`: of those that were measured, the rounds that have a pair.
    """
    text = look_levels.too_few(measured, least=least)
    if counting < measured:
        has = "has" if counting == 1 else "have"
        some = f"{counting} of {counted(measured, 'round')} {has} both samples undisturbed"
        text = f"{some}: a verdict takes at least {least}."
    return f"{text}{_LATE if is_out_of_time else ''}"


def unrepeated(*, is_out_of_time: bool) -> str:
    """Why a metric that a repeat decides has no verdict after one round."""
    return f"One round has it on both sides: a verdict takes a second.{_LATE if is_out_of_time else ''}"


def _disturbed(paired: Paired) -> str:
    part = "" if paired.core_share is None else f" (the measured processes got {share(paired.core_share)} of a core)"
    return f"Other programs disturbed {paired.disturbed} of {counted(paired.rounds, 'round')}{part}"
