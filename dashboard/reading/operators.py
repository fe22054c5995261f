"""The operators that a cell executed, from a trace, each with its share of the time, and the time in no operator."""

from collections.abc import Sequence
from dataclasses import replace

from farm.contract.document_cells import Cell, OperatorTime, PromptTime
from farm.rules.cells.scenario_metrics import OUTSIDE, OUTSIDE_CPU, TPOT
from farm.rules.presenting.lines import OUTSIDE_LEFT_OUT, outside_us
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_number
from farm.rules.wording import numbers, titles

NODE: Column[OperatorTime] = Column(
    "Operator", lambda operator: Entry(operator.node, is_name=True), "the model's own node"
)
TYPE: Column[OperatorTime] = Column("Type", lambda operator: Entry(operator.op_type), "as executed")
RAN_ON: Column[OperatorTime] = Column("Provider", lambda operator: Entry(titles.provider(operator.provider)))
COVERS: Column[OperatorTime] = Prose(
    "Covers", lambda operator: Entry(numbers.listed(operator.covers, most=6), is_name=True), "own nodes fused into it"
)
MEMORY: Column[OperatorTime] = Number(
    "memory",
    lambda operator: (
        Entry("not told") if operator.memory_bytes is None else as_number(operator.memory_bytes, numbers.small_memory)
    ),
    "what one call asked for and still held when it ended",
)
MEMORY_ABSENT = (
    "Memory by operator is not in this profile: ONNX Runtime writes it from 1.28 on, for sessions that have an arena."
)
# the time outside the listed operators: each part as if it were an operator, with an explanation
Rest = list[tuple[OperatorTime, str]]


def total_us(cell: Cell) -> float:
    """Compute the whole traced time of a cell, in µs: the time of all listed operators plus, where it is known, the
    time in no operator."""
    return sum(operator.time_us for operator in cell.operators) + (outside_us(cell) or 0.0)


def operator_table(cell: Cell) -> Table:
    """Make the table of executed operators, the longest first, each with the model's node. Rows follow, where they are
    known, for the time in no operator and for the operators that are too fast to be listed.

    For a cell that generates there is also a row for choosing a token, and where the cell was not traced a row for the
    graph as a whole.
    """
    title = "Executed operators of a token, from a trace" if cell.prompt else "Executed operators, from a trace"
    title = title if cell.operators else "Where the time of a token goes"
    if cell.operators and cell.unaccounted_us and outside_us(cell) is None:
        title = f"{title}; time in no operator is {OUTSIDE_LEFT_OUT}"
    head = "µs per token" if TPOT in cell.figures else "µs per inference"
    return _make_table("operators", title, cell.operators, [*_beside_graph(cell), *_list_of_tokens(cell)], head)


def prompt_table(cell: Cell) -> Table | None:
    """Make the table of the operators that the prompt executed, the longest first; None without a separate trace of the
    prompt."""
    if cell.prompt is None:
        return None
    title = f"Executed operators over a prompt of {cell.prompt.tokens}, from a trace"
    return _make_table("prompt-operators", title, cell.prompt.operators, _beside_graph(cell.prompt), "µs per prompt")


def _make_table(name: str, title: str, operators: Sequence[OperatorTime], rest: Rest, head: str) -> Table:
    """Make a table of the operators, the longest first, and then the rest. The shares of all rows add up to 100 %."""
    times_us = [part.time_us for part in (*operators, *(part for part, _ in rest))]
    has_memory = any(operator.memory_bytes is not None for operator in operators)
    time, share = time_columns(times_us, sum(times_us), head)
    none = [Entry()] * has_memory
    left = [
        (Entry(part.node), Entry(), Entry(), time.entry(part), share.entry(part), *none, Entry(what))
        for part, what in rest
    ]
    shown = (NODE, TYPE, RAN_ON, time, share, *([MEMORY] if has_memory else []), COVERS)
    table = Table.of(name, title, shown, sorted(operators, key=lambda operator: -operator.time_us))
    return replace(table, rows=[*table.rows, *left])


def _beside_graph(traced: Cell | PromptTime) -> Rest:
    """List the time of a trace outside the listed operators: the time between operators, and the time in operators that
    are too fast to be listed."""
    if not traced.operators or traced.unaccounted_us is None:
        return []
    outside = outside_us(traced) if isinstance(traced, Cell) else traced.unaccounted_us
    listed_us = sum(operator.time_us for operator in traced.operators)
    faster_us = (traced.traced_us or 0.0) - listed_us - traced.unaccounted_us
    rest = []
    if outside is not None:
        rest.append((_make_part("in no operator", outside), "between them, and the profiler's own"))
    # a smaller remainder is only a rounding error
    if faster_us > 1e-3 * listed_us:
        rest.append((_make_part("faster operators", faster_us), f"all but the {len(traced.operators)} slowest"))
    return rest


def _make_part(name: str, time_us: float) -> OperatorTime:
    return OperatorTime(node=name, op_type="", provider="", time_us=time_us)


def _list_of_tokens(cell: Cell) -> Rest:
    """List the time of a token outside the graph, and where the graph was not traced, also the time in it as a
    whole."""
    found: Rest = []
    if OUTSIDE in cell.figures:
        choosing_us = 1000 * cell.figures[OUTSIDE].value
        if not cell.operators:
            graph_us = 1000 * cell.figures[TPOT].value - (choosing_us if OUTSIDE_CPU in cell.figures else 0.0)
            found.append((_make_part("in the graph", max(0.0, graph_us)), "not traced"))
        found.append((_make_part("outside the graph", choosing_us), "choosing a token, as launches timed it"))
    return found


def time_columns(
    times_us: Sequence[float], whole_us: float, head: str
) -> tuple[Column[OperatorTime], Column[OperatorTime]]:
    """Make two columns: an operator's time in µs with the heading `head`, and its share of `whole_us` with a bar. The
    longest of `times_us` has a full bar."""
    longest_us = max(times_us, default=0.0)

    def share(operator: OperatorTime) -> Entry:
        part = operator.time_us / whole_us if whole_us else None
        return Entry(numbers.share(part), part, share=operator.time_us / longest_us if longest_us else 0.0)

    return Number(head, lambda operator: as_number(operator.time_us)), Number("share", share)


def describe_memory(cell: Cell) -> str:
    """Explain the column of memory, or why it is missing; empty for a cell that was not traced."""
    if not cell.operators:
        return ""
    if all(operator.memory_bytes is None for operator in cell.operators):
        return MEMORY_ABSENT
    return (
        "Memory is what one call of an operator asked of its provider’s arena and still held when it ended, the most "
        "of any profiled inference: what it used in between and gave back is not in it. One of 0 B worked in memory "
        "that was there already, such as a buffer that operators before it were done with."
    )
