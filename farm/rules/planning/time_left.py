"""How long measuring goes on, from the pace of what was measured; bench, runs' pages and the API say the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from farm.contract.cells import Budget
from farm.rules.planning.estimates import ROUNDS
from farm.rules.planning.plans import PROMISE_FACTOR, PlannedBlock

# the pace is that of so many rounds at the end
PACE_ROUNDS = 5
# from here on in minutes, before in steps of so many seconds
MINUTES_FROM_S = 90.0
STEP_S = 5.0


@dataclass(frozen=True, slots=True)
class Ahead:
    """A block as far as it is. Planned: `planned_s` for all of it, `once_s` for its checks and first traces, `round_s`
    for one round, `after_s` for what follows its rounds; what an old plan does not say is 0.

    `expected`: rounds that it will probably have. `begun_s`: since its first check, None: not begun. `rounds_s`: what
    its latest rounds took, one after another; `since_s`: since the last of them.
    """

    planned_s: float
    once_s: float
    round_s: float
    rounds: int
    expected: int
    after_s: float = 0.0
    begun_s: float | None = None
    rounds_s: Sequence[float] = ()
    since_s: float = 0.0

    @classmethod
    def of_plan(cls, block: PlannedBlock, *, rounds: int = 0) -> Ahead:
        """A block of a plan that has measured so many rounds."""
        return cls(
            planned_s=60.0 * block.minutes,
            once_s=block.once_s or 0.0,
            round_s=block.round_s or 0.0,
            rounds=rounds,
            expected=expected_rounds(block.budget, rounds=rounds, least=block.min_rounds, most=block.max_rounds),
            after_s=block.sustained_s * len({arm.cell for arm in block.arms}),
        )

    @property
    def pace_s(self) -> float | None:
        """What a round takes here; the one under way counts as soon as it takes longer. None before two rounds."""
        latest = self.rounds_s[-PACE_ROUNDS:]
        if not latest:
            return None
        mean = fmean(latest)
        return mean if self.since_s <= mean else fmean([*latest, self.since_s])

    @property
    def stretch(self) -> float | None:
        """How many times longer than planned its rounds take; None where nobody can tell."""
        pace = self.pace_s
        return pace / self.round_s if pace is not None and self.round_s > 0 else None


def expected_rounds(budget: Budget, *, rounds: int, least: int, most: int) -> int:
    """The usual number of a budget within what a block may have; beyond it the most, for nobody knows how many."""
    usual = min(max(ROUNDS[budget].usual, least), most)
    return usual if rounds < usual else max(rounds, most)


def seconds_left(blocks: Sequence[Ahead], *, at_once: int = 1) -> float | None:
    """Seconds until these blocks are measured, so many of them at once; None while nobody can tell.

    None too where only what follows the last round is missing: further traces have no pace.
    """
    paces = [block.stretch for block in blocks if block.stretch is not None]
    lefts = [left_of_block(block, stretch=max(paces, default=1.0)) for block in blocks]
    known = [left for left in lefts if left is not None]
    if len(known) < len(lefts):
        return None
    return max(max(known, default=0.0), sum(known) / max(1, at_once)) or None


def words_left(seconds: float, *, is_measuring: bool = True, begins_s: float | None = None) -> str:
    """`about 3 min left`; while something else comes first, `about 20 s once it begins`, or `begins in about 12 min,
    about 20 s of measuring` where somebody can tell when."""
    if is_measuring:
        return f"{about(seconds)} left"
    return (
        f"begins in {about(begins_s)}, {about(seconds)} of measuring"
        if begins_s is not None
        else f"{about(seconds)} once it begins"
    )


def about(seconds: float) -> str:
    """`about 20 s`, `about 3 min`; never nothing."""
    if seconds >= MINUTES_FROM_S:
        return f"about {seconds / 60.0:.0f} min"
    return f"about {max(STEP_S, STEP_S * round(seconds / STEP_S)):.0f} s"


def left_of_block(ahead: Ahead, *, stretch: float) -> float | None:
    """Seconds until its rounds are measured and what follows them; before two rounds `stretch` times as planned."""
    missing = max(0, ahead.expected - ahead.rounds)
    if missing == 0:
        return 0.0 if ahead.after_s == 0 else None
    pace = ahead.pace_s
    if pace is not None:
        return pace * missing - min(ahead.since_s, pace) + ahead.after_s
    begun_s = ahead.begun_s or 0.0
    # without two rounds yet: as planned, until so much should have been done and is not
    due_s = ahead.once_s + (ahead.rounds + 1) * ahead.round_s
    slowed = max(stretch, begun_s / due_s) if due_s > 0 else stretch
    left_s = slowed * ahead.planned_s - begun_s
    promised_s = PROMISE_FACTOR * ahead.planned_s
    left_s = min(left_s, promised_s - begun_s) if begun_s else left_s
    return left_s if left_s > 0 else None
