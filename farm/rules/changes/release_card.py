"""A release's report card: models × nodes compared with an older release, and the headline. Pure.

A point is one series on one node. Of several measurements the newest counts, so that a fresh block may take a change
back; the measurements of a search count only where there are no others.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

from farm.contract.cells import Runtime
from farm.rules.cells.metrics import ALERTING
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.findings.cell_pairs import Pair
from farm.rules.findings.checks import find_changes
from farm.rules.findings.kind import Kind
from farm.rules.findings.kinds import KINDS, kind_of, rank
from farm.rules.presenting.headlines import lost_providers, name_cells
from farm.rules.presenting.lines import is_wrong, why_wrong
from farm.rules.runtimes.order import release_order
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import STATES, WRONG, Sign, sign_of

PLACEMENT = "placement"
# metrics that are judged as latency is, by the same pairs of launches
_LIKE_LATENCY = {judging.alerts_as for judging in ALERTING.values() if judging.by == "ratio"}
# kinds that a pair shows by itself; changes of other metrics are shown once an alert has confirmed them
SHOWN = tuple(
    kind for kind in KINDS.values() if (kind.compare is not None or kind.key in _LIKE_LATENCY) and kind.key != PLACEMENT
)
OF_SEARCH = "Measured by a search of the farm for an alert."
# how many models are named after the headline's
NAMED = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """A pair of cells of the older release and of this one, in the run of this number. `is_of_search`: a search of the
    farm measured it, for the release that brought a change or for a work-around."""

    run: int
    pair: Pair
    is_of_search: bool = False


@dataclass(frozen=True, slots=True)
class Raised:
    """A change that an alert confirmed. `size`: new / old, where it is a ratio; `low`, `high`: its interval."""

    alert: int
    kind: str
    text: str
    size: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The result of a model on a node. `kind`: of the most serious change to look at; empty: none was found.

    `change`: the latency of the point that is shown, which `run` and `cell` measured; `points`: how many there are.
    `detectable`: the smallest change that every point would have shown, as a fraction; None where a point could not be
    judged. `alert`: the number of the alert with details. `point`: what tells the point from those without this change;
    `also`: the most serious change of each other kind.
    """

    sign: Sign
    kind: str = ""
    text: str = ""
    size: float | None = None
    change: Change | None = None
    run: int | None = None
    cell: str = ""
    alert: int | None = None
    points: int = 0
    detectable: float | None = None
    point: str = ""
    also: tuple[str, ...] = ()

    @property
    def point_and_word(self) -> str:
        return ": ".join(filter(None, (self.point, self.sign.word)))

    @property
    def weight(self) -> tuple[int, float]:
        return rank(self.kind), -abs(log(self.size or 1.0))

    @property
    def is_clean(self) -> bool:
        return self.detectable is not None and not self.kind and self.sign.tone != "bad"


@dataclass(frozen=True, slots=True)
class Row:
    """One model, by its number. `places`: its results by node; `open`: the nodes where it is running or queued; where
    the same block may go to any of several of them, `takers` says to how many."""

    model: int
    name: str
    places: Mapping[str, Place] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    takers: int = 1

    def at(self, node: str) -> Place:
        if node in self.places:
            return self.places[node]
        state = self.open.get(node, "not_measured")
        sign = sign_of(state)
        is_shared = state == "queued" and self.takers > 1
        return Place(replace(sign, word=f"queued for any of {self.takers} nodes") if is_shared else sign)

    @property
    def worst(self) -> Place | None:
        return min(
            (place for place in self.places.values() if place.kind), key=lambda place: place.weight, default=None
        )

    @property
    def is_clean(self) -> bool:
        return bool(self.places) and all(place.is_clean for place in self.places.values())


@dataclass(frozen=True, slots=True)
class Card:
    """The report card of `new`. `old`: the release it is compared with; None where no older one was measured with it.

    `remedies`: a few words on what takes a change back, by the number of its alert.
    """

    new: Runtime
    old: Runtime | None
    rows: Sequence[Row]
    remedies: Mapping[int, str] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        return sorted({node for row in self.rows for node in row.places})

    @property
    def found(self) -> list[tuple[Row, Place]]:
        """The models with a change to look at, each with its most serious result; the most serious model first."""
        return sorted(((row, worst) for row in self.rows if (worst := row.worst)), key=lambda found: found[1].weight)

    @property
    def detectable(self) -> float | None:
        """The smallest change, a fraction, that would have been seen on every model without one; None for no model."""
        clean = [place.detectable for row in self.rows if row.is_clean for place in row.places.values()]
        return max((smallest for smallest in clean if smallest is not None), default=None)

    @property
    def headline(self) -> str:
        """The answer: the most serious change, else that nothing was found, else that nothing is decided yet."""
        if not self.found:
            return self.nothing_found or self._not_known
        first, worst = self.found[0]
        release = titles.runtime(self.new)
        name = f"{first.name} ({worst.point})" if worst.point else first.name
        if not kind_of(worst.kind).is_headline:
            return f"{name} with {release}: {worst.sign.word}"
        remedy = self.remedies.get(worst.alert or 0)
        return f"{name} is {worst.sign.word}" + (f": {remedy}" if remedy else f" with {release}")

    @property
    def nothing_found(self) -> str:
        """`Nothing slower or wrong found on 3 of 4 models (a change of 4 % would have been seen)`, of those that were
        compared; empty of none."""
        clean, compared = sum(row.is_clean for row in self.rows), sum(bool(row.places) for row in self.rows)
        if self.detectable is None:
            return ""
        on = f"{clean} of {numbers.counted(compared, 'model')}"
        return (
            f"Nothing slower or wrong found on {on} (a change of {numbers.share(self.detectable)} would have been seen)"
        )

    @property
    def because(self) -> str:
        """The sentences after the headline: what else changed, on which models, and where nothing was found."""
        others = [f"{row.name} ({also})" for row, worst in self.found[:1] for also in worst.also]
        others += [f"{row.name} ({worst.point_and_word})" for row, worst in self.found[1:]]
        parts = [f"Also {numbers.listed(others, most=NAMED)}."] if others else []
        parts += [f"{self.nothing_found}."] if self.found and self.nothing_found else []
        return " ".join(parts)

    @property
    def _not_known(self) -> str:
        release = titles.runtime_in_words(self.new)
        if not any(place.points for row in self.rows for place in row.places.values()):
            return f"{release} has not been compared with an older release yet"
        return f"{release}: no model is decided yet"


def list_baselines(models: Mapping[str, Collection[int]], new: str) -> list[str]:
    """List the older versions that a release may be compared with: those with the most models first, then the newest.

    `models`: the numbers of the models that were measured with each version and the release.
    """
    order = release_order(new)
    older = [version for version in models if release_order(version) < order]
    newest_first = sorted(older, key=release_order, reverse=True)
    return sorted(newest_first, key=lambda version: -len(models[version]))


def is_within(*, good: str, bad: str, first_bad: str, old: str, new: str) -> bool:
    """Whether the change of an alert surely came after `old`, and with `new` at the latest.

    `first_bad`: the release that brought it, empty where that is not known: then it lies between `good` and `bad`.
    """
    low, high = release_order(old), release_order(new)
    if first_bad:
        return low < release_order(first_bad) <= high
    return low <= release_order(good) and release_order(bad) <= high


def judge_place(measured: Iterable[Measured], raised: Collection[Raised] = ()) -> Place:
    """Choose what to show of a model on a node: the most serious change, else the result of its points.

    At least one of `measured` and `raised` must not be empty.
    """
    # what a search measured stands where nothing else did
    ordered = sorted(measured, key=lambda point: (not point.is_of_search, point.run))
    newest = {(point.pair.series, point.pair.new.node): point for point in ordered}
    points = list(newest.values())
    shown_kinds = {kind.key for kind in SHOWN} if points else set()
    found = [change for point in points for change in _find_worse(point)]
    for raised_alert in (alert for alert in raised if alert.kind not in shown_kinds):
        kind, size, text = kind_of(raised_alert.kind), raised_alert.size, raised_alert.text
        words = numbers.change(size, raised_alert.low, raised_alert.high) if kind.is_headline and size else ""
        found.append(Place(_sign(kind, words), kind=kind.key, text=text, size=size, alert=raised_alert.alert))
    if found:
        first = min(found, key=lambda change: change.weight)
        alert = next((known.alert for known in raised if known.kind == first.kind), first.alert)
        return replace(_choose_gravest(found, points), alert=alert, points=len(points))
    shown = min(map(_describe_unchanged, points), key=lambda place: (_order(place), place.weight))
    known = [comparison.smallest_detectable if (comparison := point.pair.comparison) else None for point in points]
    detectable = None if None in known else max(smallest for smallest in known if smallest is not None)
    return replace(shown, points=len(points), detectable=detectable)


def _choose_gravest(found: Sequence[Place], points: Sequence[Measured]) -> Place:
    """Choose the most serious change, and note its point where other points lack it, and each other kind of change."""
    cells = {(point.run, point.pair.new.id): point.pair.new for point in points}
    # one run's cell may be called as another's
    apart = {place: cell.model_copy(update={"id": str(place)}) for place, cell in cells.items()}
    gravest: dict[str, Place] = {}
    for place in sorted(found, key=lambda place: place.weight):
        having = {(other.run, other.cell) for other in found if other.kind == place.kind}
        own = [apart[key] for key in [(place.run or 0, place.cell)] if key in apart and having != apart.keys()]
        gravest.setdefault(place.kind, replace(place, point=name_cells(own, apart.values()) if own else ""))
    first, *others = gravest.values()
    also = tuple(place.point_and_word for place in others)
    text = f"{first.text} Also {numbers.listed(also)}." if also else first.text
    return replace(first, text=text, also=also)


def _find_worse(point: Measured) -> Iterator[Place]:
    """Find every change of the pair that somebody must look at, however small."""
    pair = point.pair
    for kind in SHOWN:
        for change in find_changes(kind, pair, allowed=0.0):
            if change.verdict == "worse":
                headline = _change(pair)
                words = headline.text if kind.is_headline and headline is not None else ""
                yield _place(point, _sign(kind, words), kind=kind.key, text=change.text, size=change.size)
    if lost := [name for name in lost_providers(pair.new) if name not in lost_providers(pair.old)]:
        text = f"{numbers.listed([titles.provider(name) for name in lost])} did not start on {pair.new.runtime}."
        yield _place(point, KINDS[PLACEMENT].title, kind=PLACEMENT, text=text)


def _sign(kind: Kind, words: str) -> Sign:
    return replace(kind.title, word=words or kind.title.word)


def _describe_unchanged(point: Measured) -> Place:
    """Show a point without a change to look at: wrong or failing as before, faster, undecided or equal."""
    pair = point.pair
    if is_wrong(pair.new):
        return _place(point, replace(STATES[WRONG], word=f"{WRONG} with both"), text=why_wrong(pair.new))
    if not pair.is_finished:
        return _place(point, sign_of(pair.new.status.value), text=pair.new.reason.text if pair.new.reason else "")
    change = _change(pair)
    if change is None:
        return _place(point, sign_of("undecided"))
    word = sign_of(change.word)
    sign = Sign(word.mark, change.text, word.tone) if change.is_gain and change.ratio else word
    return _place(point, sign, size=change.ratio)


def _change(pair: Pair) -> Change | None:
    if pair.comparison is None:
        return None
    return change_of(pair.comparison, {pair.old.id: pair.old, pair.new.id: pair.new})


def _place(point: Measured, sign: Sign, *, kind: str = "", text: str = "", size: float | None = None) -> Place:
    pair = point.pair
    told = " ".join(filter(None, (text, OF_SEARCH if point.is_of_search else "")))
    return Place(sign, kind, told, size, change=_change(pair), run=point.run, cell=pair.new.id)


def _order(place: Place) -> int:
    """Order points without a change to look at: wrong or failing as before, gains, undecided ones, equal ones."""
    if place.sign.tone == "bad":
        return 0
    if place.change is not None and place.change.is_gain:
        return 1
    return 3 if place.sign.word == "equal" else 2
