"""Makes a release's report card: how each model on each node compares with an older release, and the headline.

A *point* is one series on one node. Its newest measurement counts, so that a fresh block may revoke a change. Those of
the farm's own searches count only where there are no others.
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
# kinds of change that one measured pair proves; those of other metrics are shown once an alert has confirmed them
SHOWN_KINDS = tuple(
    kind for kind in KINDS.values() if (kind.compare is not None or kind.key in _LIKE_LATENCY) and kind.key != PLACEMENT
)
OF_SEARCH = "Measured by a search of the farm for an alert."
# how many models are named besides that of the headline
MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """A cell of the older release and the same cell of this release, measured in the run with this number."""

    run: int
    pair: Pair
    # whether one of the farm's own searches measured it
    is_of_search: bool = False


@dataclass(frozen=True, slots=True)
class ConfirmedChange:
    """A change that the alert with this number confirmed."""

    alert: int
    kind: str
    text: str
    # new / old with its interval; None where the change is no ratio
    size: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The result of a model on a node: that of the point with the most serious change, or else of one without.

    `severity_key` is smallest for the most serious result.
    """

    # the word for the result, with its mark and tone
    sign: Sign
    # the kind of the change; empty where there is none that somebody has to look at
    kind: str = ""
    # sentences on the change, or on why the point failed; empty where there is neither
    text: str = ""
    # new / old; None where the change is no ratio
    size: float | None = None
    # the change of latency at the point shown
    change: Change | None = None
    # the run and the cell that measured the point shown
    run: int | None = None
    cell: str = ""
    # the number of the alert with details; None where there is none
    alert: int | None = None
    # how many points the model has on the node
    points: int = 0
    # the smallest change that every point would have shown, as a fraction; None where a point could not be judged or
    # has a change to look at
    detectable: float | None = None
    # the settings that distinguish the point shown from those without its change; empty where all points have it
    point: str = ""
    # a few words on the most serious change of each other kind
    also: tuple[str, ...] = ()

    @property
    def point_and_word(self) -> str:
        return ": ".join(filter(None, (self.point, self.sign.word)))

    @property
    def severity_key(self) -> tuple[int, float]:
        return rank(self.kind), -abs(log(self.size or 1.0))

    @property
    def is_clean(self) -> bool:
        """Whether every point was judged and none has a change to look at, failed or has wrong outputs."""
        return self.detectable is not None and not self.kind and self.sign.tone != "bad"


@dataclass(frozen=True, slots=True)
class Row:
    """The results of the model with this number on all nodes. It is clean where it has results and all are clean.

    `worst_change` is the most serious result of those with a change to look at; None where there is none.
    """

    model: int
    name: str
    # by name of node
    places: Mapping[str, Place] = field(default_factory=dict)
    # `running` or `queued`, by name of the node that measures it or has it queued
    open: Mapping[str, str] = field(default_factory=dict)
    # how many nodes may take the same queued block
    candidate_nodes: int = 1

    def on_node(self, node: str) -> Place:
        """Return the result on a node; without one, a place with no more than the sign of its state."""
        if node in self.places:
            return self.places[node]
        state = self.open.get(node, "not_measured")
        sign = sign_of(state)
        if state == "queued" and self.candidate_nodes > 1:
            sign = replace(sign, word=f"queued for any of {self.candidate_nodes} nodes")
        return Place(sign)

    @property
    def worst_change(self) -> Place | None:
        changed = (place for place in self.places.values() if place.kind)
        return min(changed, key=lambda place: place.severity_key, default=None)

    @property
    def is_clean(self) -> bool:
        return bool(self.places) and all(place.is_clean for place in self.places.values())


@dataclass(frozen=True, slots=True)
class Card:
    """The report card of the release `new`. `measured_nodes` are the names of the nodes with a result, sorted."""

    new: Runtime
    # the release that it is compared with; None where no older one was measured with it
    old: Runtime | None
    rows: Sequence[Row]
    # a few words on the work-around for a change, by the number of its alert
    remedies: Mapping[int, str] = field(default_factory=dict)

    @property
    def measured_nodes(self) -> list[str]:
        return sorted({node for row in self.rows for node in row.places})

    @property
    def changed(self) -> list[tuple[Row, Place]]:
        """Each model with a change to look at: its row and its most serious result, the most serious first."""
        changed = ((row, worst) for row in self.rows if (worst := row.worst_change))
        return sorted(changed, key=lambda row_and_worst: row_and_worst[1].severity_key)

    @property
    def detectable(self) -> float | None:
        """The smallest change that every clean model would have shown, as a fraction; None where no model is clean."""
        detectable = [place.detectable for row in self.rows if row.is_clean for place in row.places.values()]
        return max((change for change in detectable if change is not None), default=None)

    @property
    def headline(self) -> str:
        """The most serious change, or that nothing was found, or that nothing is decided yet, in a few words."""
        if not self.changed:
            return self.nothing_found or self._undecided
        first, worst = self.changed[0]
        release = titles.runtime(self.new)
        name = f"{first.name} ({worst.point})" if worst.point else first.name
        if not kind_of(worst.kind).is_headline:
            return f"{name} with {release}: {worst.sign.word}"
        remedy = self.remedies.get(worst.alert or 0)
        return f"{name} is {worst.sign.word}" + (f": {remedy}" if remedy else f" with {release}")

    @property
    def nothing_found(self) -> str:
        """On how many of the compared models nothing slower or wrong was found, in words; empty where on none."""
        if self.detectable is None:
            return ""
        clean, compared = sum(row.is_clean for row in self.rows), sum(bool(row.places) for row in self.rows)
        models = f"{clean} of {numbers.counted(compared, 'model')}"
        detectable = numbers.share(self.detectable)
        return f"Nothing slower or wrong found on {models} (a change of {detectable} would have been seen)"

    @property
    def because(self) -> str:
        """The sentences after the headline: what else changed, and on how many models nothing was found."""
        others = [f"{row.name} ({also})" for row, worst in self.changed[:1] for also in worst.also]
        others += [f"{row.name} ({worst.point_and_word})" for row, worst in self.changed[1:]]
        parts = [f"Also {numbers.listed(others, most=MAX_NAMED)}."] if others else []
        parts += [f"{self.nothing_found}."] if self.changed and self.nothing_found else []
        return " ".join(parts)

    @property
    def _undecided(self) -> str:
        release = titles.runtime_in_words(self.new)
        if not any(place.points for row in self.rows for place in row.places.values()):
            return f"{release} has not been compared with an older release yet"
        return f"{release}: no model is decided yet"


def list_baselines(models: Mapping[str, Collection[int]], new: str) -> list[str]:
    """List the older versions that a release may be compared with: those with the most models first, then the newest.

    `models` maps each version to the numbers of the models that were measured with it and with the release `new`.
    """
    order = release_order(new)
    older = [version for version in models if release_order(version) < order]
    newest_first = sorted(older, key=release_order, reverse=True)
    return sorted(newest_first, key=lambda version: -len(models[version]))


def lies_between(old: str, new: str, *, good: str, bad: str, first_bad: str) -> bool:
    """Whether the change of an alert surely appeared after the release `old`, and with `new` at the latest.

    `first_bad` is the release in which the change appeared. Where that is not known it is empty, and the change
    appeared after `good` and with `bad` at the latest.
    """
    low, high = release_order(old), release_order(new)
    if first_bad:
        return low < release_order(first_bad) <= high
    return low <= release_order(good) and release_order(bad) <= high


def judge_place(measured: Iterable[MeasuredPair], confirmed: Collection[ConfirmedChange] = ()) -> Place:
    """Choose what to show of a model on a node: the most serious change, or else the result of one of its points.

    Where something was measured, a confirmed change counts only for kinds that a pair cannot prove; of other kinds it
    only lends its alert to the measured change. Raises ValueError where both `measured` and `confirmed` are empty.
    """
    # the last pair of each point is kept, so pairs of searches are sorted first, then older runs
    ordered = sorted(measured, key=lambda point: (not point.is_of_search, point.run))
    points = list({(point.pair.series, point.pair.new.node): point for point in ordered}.values())
    proven_kinds = {kind.key for kind in SHOWN_KINDS} if points else set()
    changed = [
        *(place for point in points for place in _list_changes(point)),
        *(_show_confirmed(change) for change in confirmed if change.kind not in proven_kinds),
    ]
    if changed:
        worst = _choose_worst(changed, points)
        alert = next((change.alert for change in confirmed if change.kind == worst.kind), worst.alert)
        return replace(worst, alert=alert, points=len(points))

    shown = min(map(_show_unchanged, points), key=lambda place: (_rank_unchanged(place), place.severity_key))
    comparisons = [point.pair.comparison for point in points]
    detectable = [comparison.smallest_detectable if comparison else None for comparison in comparisons]
    known = [change for change in detectable if change is not None]
    return replace(shown, points=len(points), detectable=max(known) if len(known) == len(points) else None)


def _show_confirmed(change: ConfirmedChange) -> Place:
    kind, size = kind_of(change.kind), change.size
    words = numbers.change(size, change.low, change.high) if kind.is_headline and size else ""
    return Place(_sign(kind, words), kind=kind.key, text=change.text, size=size, alert=change.alert)


def _choose_worst(changed: Sequence[Place], points: Sequence[MeasuredPair]) -> Place:
    """Choose the most serious change, name its point where other points lack it, and add each other kind of change."""
    cells = {(point.run, point.pair.new.id): point.pair.new for point in points}
    # cells of different runs may have the same id
    cells = {key: cell.model_copy(update={"id": str(key)}) for key, cell in cells.items()}
    worst_of_kind: dict[str, Place] = {}
    for place in sorted(changed, key=lambda place: place.severity_key):
        with_this_kind = {(other.run, other.cell) for other in changed if other.kind == place.kind}
        key = (place.run or 0, place.cell)
        is_named = key in cells and with_this_kind != cells.keys()
        name = name_cells([cells[key]], cells.values()) if is_named else ""
        worst_of_kind.setdefault(place.kind, replace(place, point=name))
    first, *others = worst_of_kind.values()
    also = tuple(place.point_and_word for place in others)
    text = f"{first.text} Also {numbers.listed(also)}." if also else first.text
    return replace(first, text=text, also=also)


def _list_changes(point: MeasuredPair) -> Iterator[Place]:
    """Yield a place for every change of the pair that somebody must look at, however small."""
    pair = point.pair
    for kind in SHOWN_KINDS:
        for change in find_changes(kind, pair, allowed=0.0):
            if change.verdict == "worse":
                headline = _read_change(pair)
                words = headline.text if kind.is_headline and headline is not None else ""
                yield _make_place(point, _sign(kind, words), kind=kind.key, text=change.text, size=change.size)
    if lost := [name for name in lost_providers(pair.new) if name not in lost_providers(pair.old)]:
        text = f"{numbers.listed([titles.provider(name) for name in lost])} did not start on {pair.new.runtime}."
        yield _make_place(point, KINDS[PLACEMENT].title, kind=PLACEMENT, text=text)


def _sign(kind: Kind, words: str) -> Sign:
    return replace(kind.title, word=words or kind.title.word)


def _show_unchanged(point: MeasuredPair) -> Place:
    """Make the place of a point without a change to look at: wrong or failing as before, faster, undecided or equal."""
    pair = point.pair
    if is_wrong(pair.new):
        return _make_place(point, replace(STATES[WRONG], word=f"{WRONG} with both"), text=why_wrong(pair.new))
    if not pair.is_finished:
        return _make_place(point, sign_of(pair.new.status.value), text=pair.new.reason.text if pair.new.reason else "")
    change = _read_change(pair)
    if change is None:
        return _make_place(point, sign_of("undecided"))
    sign = sign_of(change.word)
    if change.is_gain and change.ratio:
        sign = replace(sign, word=change.text)
    return _make_place(point, sign, size=change.ratio)


def _read_change(pair: Pair) -> Change | None:
    if pair.comparison is None:
        return None
    return change_of(pair.comparison, {pair.old.id: pair.old, pair.new.id: pair.new})


def _make_place(point: MeasuredPair, sign: Sign, *, kind: str = "", text: str = "", size: float | None = None) -> Place:
    pair = point.pair
    full_text = " ".join(filter(None, (text, OF_SEARCH if point.is_of_search else "")))
    return Place(sign, kind, full_text, size, change=_read_change(pair), run=point.run, cell=pair.new.id)


def _rank_unchanged(place: Place) -> int:
    """Rank a point without a change to look at: wrong or failing as before, then gains, undecided and equal points."""
    if place.sign.tone == "bad":
        return 0
    if place.change is not None and place.change.is_gain:
        return 1
    return 3 if place.sign.word == "equal" else 2
