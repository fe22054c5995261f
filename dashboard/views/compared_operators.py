"""The operators of compared cells side by side: a row for each group of the model's own nodes, with changes marked.

Runtimes fuse differently, so executed operators are joined into the smallest groups of own nodes that every cell
executes completely, as in farm.rules.tracing.attribution. Times are from traces, in µs per inference. For two cells of
one block they are medians over its traces, with the change of their comparison.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from dashboard.figures import lanes, timelines
from dashboard.figures.figure import script_json, shorten_start
from dashboard.figures.operators import APART
from dashboard.reading.compared_cells import name_cells
from dashboard.reading.judging import ChosenCell
from dashboard.views import lists
from dashboard.views.access import signed_in_user
from farm.base.grouping import group_by
from farm.contract.document_cells import Cell, OperatorTime
from farm.contract.document_comparisons import Comparison, OperatorChange
from farm.rules.comparing.sides import comparison_between, index_by_sides
from farm.rules.presenting.changed_operators import format_operator_sides
from farm.rules.presenting.fusions import GraphChange, describe_graph_changes, find_graph_changes
from farm.rules.presenting.tables import Column, Entry, Head, Number, Prose, Table, as_number
from farm.rules.tracing.executions import join_groups
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import Sign
from farm.runs import selectors
from farm.runs.services import find_or_order_timeline
from farm.runs.services.timelines import WAITS

if TYPE_CHECKING:
    from farm.accounts.models import User


# a group has moved if its change is at least these parts of the base's whole traced time, and of the group's own time
MIN_OF_WHOLE, MIN_OF_OWN = 0.01, 0.1
SHOWN = 300
LONGER, SHORTER = Sign("▲", "longer", "slower"), Sign("▼", "shorter", "faster")
ELSEWHERE = Sign("≠", "differs", "quiet")
FEW = "Fewer than two of these cells were traced, so there are no operators to compare."


@dataclass(frozen=True)
class Side:
    """A cell's part of a group. `time_us`: the time of its operators, None where it executes none of the group; `types`
    and `providers`: of these operators, the longest first."""

    time_us: float | None = None
    types: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Nodes of the model that at least one cell executes together. `node`: the node that names the group; `covers`: its
    other nodes; `sides`: the part of each cell, the base first; `moved`: for each cell except the base a sign, None
    where its time changed too little or not for certain; `pairs`: the change of exactly these nodes in the comparison
    of two cells, None without it; `size`: the largest change of any cell in µs, without its sign."""

    node: str
    covers: tuple[str, ...]
    sides: tuple[Side, ...]
    moved: tuple[Sign | None, ...] = ()
    pairs: OperatorChange | None = None

    def change_us(self, place: int) -> float:
        """Compute how many µs the cell at this place takes longer than the base, below 0 where it is faster. A cell
        that executes nothing of the group counts as 0 µs."""
        if self.pairs is not None:
            return self.pairs.moved_us
        return (self.sides[place].time_us or 0.0) - (self.sides[0].time_us or 0.0)

    def time(self, place: int) -> str:
        """Write the time of the cell at this place in µs, without the unit. “not executed” where the cell executes
        nothing of the group, and empty where the two cells' times would contradict the shown change."""
        time_us = self.sides[place].time_us
        if time_us is None:
            return "not executed"
        if self.pairs is None:
            return numbers.plain(time_us)
        sides = format_operator_sides(self.pairs)
        return sides[place] if sides else ""

    @property
    def size(self) -> float:
        return max((abs(self.change_us(place)) for place in range(1, len(self.sides))), default=0.0)

    @property
    def has_moved(self) -> bool:
        return any(self.moved)


def group_operators(chosen: Sequence[ChosenCell], paired: Sequence[Comparison | None]) -> list[Group]:
    """Group the operators of all cells, the largest change first. `paired`: for each cell except the base its
    comparison with the base as baseline, with operators; None where no block compared the two."""
    cells = [choice.cell for choice in chosen]
    group_of = join_groups(*(cell.operators for cell in cells))
    known: dict[str, list[list[OperatorTime]]] = {}
    for place, cell in enumerate(cells):
        for row in cell.operators:
            known.setdefault(group_of[row.node], [[] for _ in cells])[place].append(row)
    members = group_by(group_of, group_of.__getitem__)
    made = []
    for group, sides in known.items():
        head = max((row for side in sides for row in side), key=lambda row: row.time_us)
        covers = tuple(node for node in members[group] if node != head.node)
        made.append(Group(head.node, covers, tuple(map(_sum_side, sides))))
    if len(cells) == 2 and paired[0] is not None:
        made = [_apply_comparison(group, paired[0]) for group in made]
    marked = [replace(group, moved=_mark_moves(group, cells, paired)) for group in made]
    return sorted(marked, key=lambda group: (-group.size, group.node))


def _apply_comparison(group: Group, known: Comparison) -> Group:
    """Give the group the times of the comparison if it has a change of exactly the same nodes, else return it as it
    is."""
    change = _find_measured_change(group, known)
    if change is None or {change.node, *change.covers} != {group.node, *group.covers}:
        return group
    times = change.baseline_us, change.candidate_us
    sides = [
        side if side.time_us is None else replace(side, time_us=time)
        for side, time in zip(group.sides, times, strict=True)
    ]
    return replace(group, sides=tuple(sides), pairs=change)


def _sum_side(rows: Sequence[OperatorTime]) -> Side:
    if not rows:
        return Side()
    longest = sorted(rows, key=lambda row: -row.time_us)
    types = dict.fromkeys(row.op_type for row in longest)
    ran_on = dict.fromkeys(row.provider for row in longest)
    return Side(sum(row.time_us for row in rows), tuple(types), tuple(ran_on))


def _mark_moves(group: Group, cells: Sequence[Cell], paired: Sequence[Comparison | None]) -> tuple[Sign | None, ...]:
    whole = sum(row.time_us for row in cells[0].operators)
    return tuple(
        _mark_move(group, place, whole, is_like=_is_same_work(cells[0], cells[place]), known=known)
        if cells[place].operators and whole
        else None
        for place, known in enumerate(paired, 1)
    )


def _is_same_work(base: Cell, other: Cell) -> bool:
    # only on the same node, model and inputs is a longer time worse
    fed = ("node", "model", "batch", "shapes")
    return all(getattr(base, name) == getattr(other, name) for name in fed)


def _mark_move(group: Group, place: int, whole: float, *, is_like: bool, known: Comparison | None) -> Sign | None:
    """Return the sign of a group whose time moved; None where the change is small or its interval includes 0."""
    change = group.change_us(place)
    longest = max(group.sides[0].time_us or 0.0, group.sides[place].time_us or 0.0)
    if abs(change) < MIN_OF_WHOLE * whole or abs(change) < MIN_OF_OWN * longest:
        return None
    measured = _find_measured_change(group, known)
    low, high = (None, None) if measured is None else (measured.change_low_us, measured.change_high_us)
    # the interval is of paired traces; where it contradicts the change of the cells' own traces, nothing is certain
    if low is not None and high is not None and (low <= 0 <= high or (low > 0) != (change > 0)):
        return None
    if not is_like:
        return ELSEWHERE
    return LONGER if change > 0 else SHORTER


def _find_measured_change(group: Group, known: Comparison | None) -> OperatorChange | None:
    """Find the comparison's change of any node of the group; None where it has none."""
    nodes = {group.node, *group.covers}
    operators = known.operators if known is not None else ()
    return next((operator for operator in operators if operator.node in nodes), None)


def write_headline(chosen: Sequence[ChosenCell], found: Sequence[Group]) -> str:
    """Say how many groups moved, and name the largest change with its cell. `found`: in the order of
    group_operators."""
    moved = [group for group in found if group.has_moved]
    counted = numbers.counted(len(found), "operator")
    if not moved:
        return f"None of {counted} moved"
    top = moved[0]
    place = max(range(1, len(top.sides)), key=lambda place: abs(top.change_us(place)))
    longest = max(top.sides, key=lambda side: side.time_us or 0.0)
    top_type = longest.types[0] if longest.types else ""
    verb = "moved" if len(chosen) == 2 else "moved in at least one cell"
    return (
        f"{len(moved)} of {counted} {verb}, most {top_type} {shorten_start(top.node, most=40)}: "
        f"{numbers.signed(top.change_us(place))} µs in {name_cells(chosen)[place]}"
    )


def select_groups(found: Sequence[Group], *, every: bool, wanted: str) -> list[Group]:
    """Select the groups that moved, or all groups with `every`. Of these only groups are kept that contain every word
    of `wanted` in a node's name, type or provider, whatever the case; an empty `wanted` keeps all."""
    shown = []
    for group in (group for group in found if every or group.has_moved):
        types = [name for side in group.sides for name in (*side.types, *side.providers)]
        text = " ".join((group.node, *group.covers, *types)).lower()
        if all(word in text for word in wanted.lower().split()):
            shown.append(group)
    return shown


def make_table(chosen: Sequence[ChosenCell], rows: Sequence[Group]) -> Table:
    """Make the table of the first SHOWN groups: the operators and the time of each cell, the base first."""
    base, *others = name_cells(chosen)
    heads = [Head("Operator", note="the model's own node"), Head("Runs as"), Head(f"{base} (base), µs", is_number=True)]
    for name in others:
        heads += [Head(f"{name}, µs", is_number=True), Head("change, µs", is_number=True), Head("Moved")]
    heads.append(Head("Fused with", is_text=True, note="own nodes that at least one cell executes together with it"))
    longest = max((side.time_us or 0.0 for row in rows for side in row.sides), default=0.0)
    return Table("operators", "Operators side by side", heads, [_make_row(row, longest) for row in rows[:SHOWN]])


def _make_row(group: Group, longest: float) -> tuple[Entry, ...]:
    entries = [Entry(group.node, is_name=True), Entry(_describe_execution(group)), _time_entry(group, 0, longest)]
    for place, sign in enumerate(group.moved, 1):
        change = group.change_us(place)
        entries += [_time_entry(group, place, longest), Entry(numbers.signed(change), change)]
        entries.append(Entry(sign=sign, value=sign.word) if sign else Entry())
    return (*entries, Entry(numbers.listed(group.covers, most=4), is_name=True))


def _time_entry(group: Group, place: int, longest: float) -> Entry:
    time_us, text = group.sides[place].time_us, group.time(place)
    if time_us is None:
        return Entry(text)
    return Entry(text, time_us, share=time_us / (longest or 1.0), title="" if text else APART)


def _describe_execution(group: Group) -> str:
    """Name the operators that execute the group: once where all cells agree, else for each cell. Providers are named
    only where they differ."""
    executed = [side for side in group.sides if side.time_us is not None]
    with_provider = len({side.providers for side in executed}) > 1
    kernels = []
    for side in executed:
        types = " + ".join(filter(None, side.types[:3])) or "further operators"
        kernels.append(f"{types} on {', '.join(map(titles.provider, side.providers))}" if with_provider else types)
    return " | ".join(dict.fromkeys(kernels))


def make_file_row(chosen: Sequence[ChosenCell], group: Group) -> dict[str, str | float | None]:
    """Make the row of a group in a file: each cell's operators and time, and its change and sign against the base."""
    row: dict[str, str | float | None] = {"node": group.node, "covers": " ".join(group.covers)}
    for place, (cell, side) in enumerate(zip(chosen, group.sides, strict=True)):
        row |= {f"{cell.key} executes": " ".join(side.types), f"{cell.key} us": side.time_us}
        if place:
            sign = group.moved[place - 1]
            row |= {f"{cell.key} change_us": group.change_us(place), f"{cell.key} moved": sign.word if sign else None}
    return row


def write_graph_notes(found: Sequence[Group]) -> str:
    """Write the notes that the graph's frame shows on nodes for the base and the first other cell, as JSON that is safe
    inside a script element (see views.graph).

    A node's note has both times; its `step` is `longer` or `shorter` where the node moved, else 0. The note of a node
    that is fused into another names that node.
    """
    notes: dict[str, dict[str, str | int]] = {}
    for group in found:
        sign = group.moved[0]
        step = {LONGER.mark: "longer", SHORTER.mark: "shorter"}.get(sign.mark if sign else "", 0)
        notes[group.node] = {"text": _both_times(group), "more": _describe_execution(group), "step": step}
    for group in found:
        for inner in group.covers:
            notes.setdefault(
                inner, {"text": f"with {shorten_start(group.node, most=24)}", "more": _both_times(group), "step": 0}
            )
    return script_json(notes)


def _both_times(group: Group) -> str:
    old, new = group.time(0), group.time(1)
    change = numbers.signed(group.change_us(1))
    return f"{old} → {new} µs ({change})" if old and new else f"{change} µs"


VIEWS = ("operators", "timeline")


def read_view(request: HttpRequest, chosen: list[ChosenCell]) -> str:
    """Read from the address which of VIEWS is shown; empty for none, and for fewer than two cells."""
    view = request.GET.get("view", "")
    return view if view in VIEWS and len(chosen) > 1 else ""


def find_groups(user: "User", chosen: list[ChosenCell]) -> list[Group]:
    """Group the operators of the cells as group_operators does; empty where fewer than two cells were traced."""
    if sum(bool(choice.cell.operators) for choice in chosen) < 2:
        return []
    return group_operators(chosen, find_comparisons(user, chosen))


def find_comparisons(user: "User", chosen: list[ChosenCell]) -> list[Comparison | None]:
    """Find the comparison of each cell except the first with the first cell, with operators. None where no block
    compared the two, and for cells of another run."""
    base, *others = chosen
    run = selectors.run(user, base.run_id)
    known = index_by_sides(selectors.comparisons_of(run, name=base.cell.id))
    return [
        comparison_between(known, base.cell.id, other.cell.id) if other.run_id == base.run_id else None
        for other in others
    ]


def make_panel(request: HttpRequest, view: str, chosen: list[ChosenCell], found: list[Group]) -> dict[str, object]:
    """Make the context of the page: the table of operators or, for the view `timeline`, the chart of traced inferences.
    Timelines that do not exist yet are ordered. `found`: all groups."""
    if view == "timeline":
        return _draw_timelines(request, chosen, found)
    every, wanted, rows = _read_question(request, found)
    return {
        "said": write_headline(chosen, found) if found else FEW,
        "found": found,
        "every": every,
        "find": wanted,
        "still": sum(not group.has_moved for group in found),
        "left_out": max(0, len(rows) - SHOWN),
        "table": make_table(chosen, rows),
        "graphs": _list_graphs(chosen) if found else [],
    }


def _list_graphs(chosen: list[ChosenCell]) -> list[tuple[str, str]]:
    """List the pages that show the base and another cell of the same version on the model's graph, as pairs of the
    other cell's name and the address."""
    base, *others = chosen
    called = name_cells(chosen)[1:]
    address = reverse("dashboard:graph", args=[base.version_id])
    return [
        (name, f"{address}?cell={other.key}&against={base.key}")
        for name, other in zip(called, others, strict=True)
        if other.version_id == base.version_id
    ]


def _draw_timelines(request: HttpRequest, chosen: list[ChosenCell], found: list[Group]) -> dict[str, object]:
    rows = [selectors.run(signed_in_user(request), choice.run_id) for choice in chosen]
    read = [find_or_order_timeline(row, choice.cell.id) for row, choice in zip(rows, chosen, strict=True)]
    traced = [lanes.Traced(name, trace) for name, trace in zip(name_cells(chosen), read, strict=True)]
    matched = {
        node: timelines.Matched(group.node, group.moved) for group in found for node in (group.node, *group.covers)
    }
    return {"figure": lanes.draw_lanes(traced, matched), "waits": WAITS in read, **_list_graph_changes(chosen, found)}


CHANGES: tuple[Column[GraphChange], ...] = (
    Column("Graph", lambda change: Entry(sign=change.sign, value=change.sign.word)),
    Prose("Nodes", lambda change: Entry(change.text)),
    Number(
        "change, µs", lambda change: Entry() if change.moved_us is None else as_number(change.moved_us, numbers.signed)
    ),
)


def _list_graph_changes(chosen: list[ChosenCell], found: list[Group]) -> dict[str, object]:
    """Make the context with the changes between the executed graphs of two cells; empty for more cells."""
    if len(chosen) != 2:
        return {}
    old, new = (choice.cell for choice in chosen)
    moved = [({group.node, *group.covers}, group.change_us(1)) for group in found]
    changes = find_graph_changes(old, new, moved)
    table = Table.of("graph-changes", "What changed in the executed graph", CHANGES, changes)
    return {
        "diff": table,
        "executed": "".join(describe_graph_changes(old, new, moved)[-1:]),
        "graphs": _list_graphs(chosen) if found else [],
    }


def render_file(request: HttpRequest, chosen: list[ChosenCell], found: list[Group]) -> HttpResponse:
    *_, rows = _read_question(request, found)
    return lists.render_file(request, "compared-operators", rows, lambda group: make_file_row(chosen, group))


def _read_question(request: HttpRequest, found: list[Group]) -> tuple[bool, str, list[Group]]:
    """Read from the address whether all operators are wanted and the searched words; return both and their groups."""
    every, wanted = request.GET.get("every") == "yes", lists.read_search_words(request, "find")
    return every, wanted, select_groups(found, every=every, wanted=wanted)
