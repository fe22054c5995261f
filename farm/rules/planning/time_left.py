"""Estimates the time that remains for measuring, from the pace of the rounds that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

from farm.contract.cells import Budget
from farm.rules.comparing.look_levels import LOOKS
from farm.rules.planning.estimates import ROUNDS
from farm.rules.planning.plans import PROMISE_FACTOR, TRACES_SHARE, PlannedBlock, max_rounds_to_order

# the pace is the mean of this many latest rounds
PACE_ROUNDS = 5
# rounds that take this many times as long as usual show that the machine is busy
BUSY_FACTOR = 1.5
# durations from here on are written in minutes, shorter ones in steps of STEP_S seconds
MINUTES_FROM_S = 90.0
STEP_S = 5.0


@dataclass(frozen=True, slots=True)
class BlockProgress:
    """A block, and how much of it is measured.

    Figures that an old plan lacks are 0. `begun_s`, `promised_s` and `limit_s` are counted from the block's first check
    on.
    """

    # planned seconds: of the block, of its checks and first traces, and of a single round
    planned_s: float
    once_s: float
    round_s: float
    # how many rounds are measured
    rounds: int
    # the numbers of rounds after which it may be decided, the maximum last
    ends: Sequence[int]
    # the maximum of rounds if disturbed ones are measured again; 0 if they are not
    replaced: int = 0
    # the block ends by then, unless it has fewer than the minimum of rounds
    promised_s: float = inf
    # the minimum of rounds, which end by `limit_s` in any case
    min_rounds: int = 0
    limit_s: float = inf
    # seconds of what follows the rounds
    after_s: float = 0.0
    # seconds since its first check; None: it has not begun
    begun_s: float | None = None
    # the share of its checks and first traces that is done, and the seconds they took
    checked: float = 0.0
    checked_s: float = 0.0
    # seconds that its latest rounds took, one after another
    rounds_s: Sequence[float] = ()
    # seconds since the last of them, or before rounds since the last check or trace
    since_s: float = 0.0

    @classmethod
    def from_plan(cls, block: PlannedBlock, *, rounds: int = 0) -> BlockProgress:
        """Return the progress of a planned block of which `rounds` rounds are measured."""
        return cls(
            planned_s=60.0 * block.minutes,
            once_s=block.once_s or 0.0,
            round_s=block.round_s or 0.0,
            rounds=rounds,
            ends=list_decision_rounds(block.budget, minimum=block.min_rounds, maximum=block.max_rounds),
            replaced=max_rounds_to_order(block.max_rounds) if block.is_replacing else 0,
            promised_s=block.max_duration_s(block.max_rounds) or inf,
            min_rounds=block.min_rounds,
            limit_s=block.block_timeout_s,
            after_s=block.sustained_s * len({arm.cell for arm in block.arms}),
        )

    @property
    def pace_s(self) -> float | None:
        """Mean seconds of the last five rounds, and of the current one once it takes longer; None before any round."""
        latest = self.rounds_s[-PACE_ROUNDS:]
        if not latest:
            return None
        mean = fmean(latest)
        return mean if self.since_s <= mean else fmean([*latest, self.since_s])

    @property
    def slowdown(self) -> float | None:
        """The time of the block's rounds as a ratio to the planned time; None while it is not known."""
        return pace_s / self.round_s if (pace_s := self.pace_s) is not None and self.round_s > 0 else None

    @property
    def launch_slowdown(self) -> float | None:
        """The slowdown of the rounds, or before any round that of checks and first traces; None while not known."""
        planned_s = self.checked * self.once_s
        return self.checked_s / planned_s if self.slowdown is None and planned_s > 0 else self.slowdown

    @property
    def expected_rounds(self) -> float:
        """How many rounds the block will probably have in all.

        Each look is assumed to decide half of the blocks that are still undecided, which gives the usual number of a
        budget. Beyond the maximum, as many more rounds are expected as were measured there, up to `replaced`.
        """
        *looks, most = [end for end in self.ends if end > self.rounds] or [self.rounds]
        if self.rounds > self.ends[-1]:
            return max(self.rounds, min(2 * self.rounds - self.ends[-1], self.replaced))
        return sum(look / 2.0**place for place, look in enumerate(looks, start=1)) + most / 2.0 ** len(looks)

    @property
    def room_s(self) -> float:
        """Seconds in which new rounds may begin: the rest of the promised time, or what the minimum of rounds needs.

        From eight rounds on, a quarter of the promised time is kept for further traces. It is 0 once that is
        over, and less once the block's timeout is over too.
        """
        begun_s = self.begun_s or 0.0
        least_s = max(0, self.min_rounds - self.rounds) * self.round_s * (self.launch_slowdown or 1.0)
        promised_s = self.promised_s * (1.0 - (TRACES_SHARE if self.rounds >= LOOKS[0] else 0.0))
        return max(promised_s - begun_s, min(least_s, self.limit_s - begun_s))

    def is_slowed(self, *, usual: float = 1.0) -> bool:
        """Whether rounds, or the current one, take at least BUSY_FACTOR times as long as usual.

        `usual` is the slowdown that is usual on this machine.
        """
        return max(self.slowdown or 0.0, self._current_slowdown) >= BUSY_FACTOR * max(1.0, usual)

    @property
    def _current_slowdown(self) -> float:
        """How many times longer than planned the current round takes by now.

        It is 0 where perhaps no round is measured: once the block may be decided, further traces follow.
        """
        if self.round_s <= 0 or (self.rounds and self.rounds in self.ends) or self.rounds > self.ends[-1]:
            return 0.0
        if self.rounds:
            return self.since_s / self.round_s
        return (self.begun_s or 0.0) / (self.once_s + self.round_s)


def list_decision_rounds(budget: Budget, *, minimum: int, maximum: int) -> list[int]:
    """List the numbers of rounds after which a block may be decided: the looks from `minimum` on, and the maximum."""
    looks = (ROUNDS[budget].per_pair * look for look in LOOKS)
    return [*(look for look in looks if minimum <= look < maximum), maximum]


def seconds_left(blocks: Sequence[BlockProgress], *, at_once: int = 1) -> float | None:
    """Estimate the seconds until these blocks are measured, `at_once` of them at a time; None while that is unknown.

    It is also None if nothing is missing, or only further traces, since traces have no pace.
    """
    slowdowns = [slowdown for block in blocks if (slowdown := block.launch_slowdown) is not None]
    slowdown = max(slowdowns, default=1.0)
    estimates = [left_s for block in blocks if (left_s := block_seconds_left(block, slowdown=slowdown)) is not None]
    if len(estimates) < len(blocks):
        return None
    return max(max(estimates, default=0.0), sum(estimates) / max(1, at_once)) or None


def describe_time_left(
    seconds: float,
    *,
    is_measuring: bool = True,
    begins_s: float | None = None,
    least_s: float | None = None,
    is_slowed: bool = False,
) -> str:
    """Describe the remaining time: `time left: about 3 min`, with a note where the machine is busy.

    While other work comes first: `about 20 s once it begins`, or `begins in about 12 min, about 20 s of measuring`.
    `begins_s` is how many seconds it is until then, and `least_s` the minimum of these seconds, used if `begins_s` is
    None.
    """
    if is_measuring:
        return f"time left: {format_about(seconds)}{', longer while this machine is busy' if is_slowed else ''}"
    if begins_s is None and (least_s or 0.0) < STEP_S:
        return f"{format_about(seconds)} once it begins"
    begins = format_about(begins_s) if begins_s is not None else f"at least {format_about(least_s or 0.0)}"
    return f"begins in {begins}, {format_about(seconds)} of measuring"


def format_about(seconds: float) -> str:
    """Format a rounded duration: `about 20 s`, `about 3 min`; at least `about 5 s`."""
    if seconds >= MINUTES_FROM_S:
        return f"about {seconds / 60.0:.0f} min"
    return f"about {max(STEP_S, STEP_S * round(seconds / STEP_S)):.0f} s"


def block_seconds_left(progress: BlockProgress, *, slowdown: float) -> float | None:
    """Estimate the seconds until a block's rounds and the sustained work after them are done.

    None while that is unknown, as during the sustained work, and 0 if nothing is left. Rounds beyond the promised time
    are not counted. `slowdown` is the ratio to the planned time that is assumed before the block's first round.
    """
    missing = max(0.0, progress.expected_rounds - progress.rounds)
    if missing == 0:
        return 0.0 if progress.after_s == 0 else None
    pace = progress.pace_s
    if pace is not None:
        done_s = min(progress.since_s, pace)
        # the current round is measured to its end
        return max(pace - done_s, min(pace * missing - done_s, progress.room_s)) + progress.after_s
    begun_s = progress.begun_s or 0.0
    # before the first round the plan holds, until that round is late
    due_s = progress.once_s + (progress.rounds + 1) * progress.round_s
    slowed = max(slowdown, begun_s / due_s) if due_s > 0 else slowdown
    left_s = slowed * progress.planned_s - begun_s
    promised_s = max(
        PROMISE_FACTOR * progress.planned_s,
        min(slowed * (progress.once_s + progress.min_rounds * progress.round_s), progress.limit_s),
    )
    left_s = max(min(left_s, promised_s - begun_s) if begun_s else left_s, _estimate_by_current_round(progress))
    return left_s if left_s > 0 else None


def _estimate_by_current_round(progress: BlockProgress) -> float:
    """Estimate the seconds left at the pace of the current round; 0 while that takes no longer than planned."""
    if not 0 < progress.round_s < progress.since_s:
        return 0.0
    begun_s = progress.begun_s or 0.0
    done = progress.rounds + 1
    least_s = min((progress.min_rounds - done) * progress.since_s, progress.limit_s - begun_s)
    missing = progress.expected_rounds - done
    return min(missing * progress.since_s, max(progress.promised_s - begun_s, least_s)) + progress.after_s
