"""Where the time goes: each cell's share of time by execution provider."""

from collections.abc import Sequence

from dashboard import axes
from dashboard.figures import colours, columns, theme
from dashboard.figures.figure import Address, Figure, nothing
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell, ProviderTime
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted
from farm.rules.wording import numbers, titles

NAME = "providers"


def placement(cells: Sequence[Cell], address: Address) -> Figure:
    """A stacked bar of time shares for every traced cell."""
    traced = [cell for cell in cells if cell.providers and cell.twin_of is None]
    if not traced:
        return nothing(NAME, "No cell has been traced yet.", _table([], [], address))
    along = axes.varying(traced)
    providers = list(dict.fromkeys(part.name for cell in traced for part in cell.providers))
    return Figure(
        name=NAME,
        title=finding(traced, along),
        summary=(
            f"Share of inference time of {numbers.listed([titles.provider(name) for name in providers])} in "
            f"{numbers.counted(len(traced), 'cell')}, from a trace of each. The table below has every number."
        ),
        data=[_bars(provider, traced, along, address) for provider in providers],
        layout=theme.row_layout(
            len(traced),
            theme.axis("share of inference time, %", range=[0, 100], dtick=25),
            barmode="stack",
            showlegend=True,
        ),
        table=_table(traced, along, address),
        note="Shares are from traces, which add some time to every node.",
    )


def finding(cells: Sequence[Cell], along: Sequence[axes.Axis]) -> str:
    """Whether any cell spends time on a provider other than the one asked for, judged by time."""
    mixed = [(_share_elsewhere(cell), cell) for cell in cells if _share_elsewhere(cell) > 0]
    if not mixed:
        asked = sorted({titles.provider(cell.provider) for cell in cells})
        return f"All time is spent where it was asked for: {numbers.listed(asked)}"
    elsewhere, worst = max(mixed, key=lambda pair: pair[0])
    wished = titles.provider(worst.provider)
    return f"{axes.name_of(worst, along)} spends {numbers.share(elsewhere)} of its time outside {wished}"


def _share_elsewhere(cell: Cell) -> float:
    return sum(part.time_share for part in cell.providers if part.name != cell.provider)


def _bars(provider: str, cells: Sequence[Cell], along: Sequence[axes.Axis], address: Address) -> Json:
    shares = [next((part for part in cell.providers if part.name == provider), None) for cell in cells]
    return {
        "type": "bar",
        "orientation": "h",
        "name": titles.provider(provider),
        "y": [axes.name_of(cell, along) for cell in cells],
        "x": [100 * part.time_share if part else 0 for part in shares],
        "text": [numbers.share(part.time_share) if part and part.time_share >= 0.08 else "" for part in shares],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textfont": {"color": "@paper"},
        "marker": {"color": colours.provider(provider), "line": {"color": "@paper", "width": 1}},
        "customdata": [[address(cell.id), part.nodes if part else 0] for cell, part in zip(cells, shares, strict=True)],
        "hovertemplate": "%{fullData.name}, %{y}<br>%{x:.3~g} % of the time, %{customdata[1]} nodes<extra></extra>",
    }


def _table(cells: Sequence[Cell], along: Sequence[axes.Axis], address: Address) -> Table:
    shown: tuple[Column[tuple[Cell, ProviderTime]], ...] = (
        Column("Cell", lambda row: columns.name(along, address).entry(row[0])),
        Column("Provider", lambda row: Entry(row[1].name, is_name=True)),
        Number(
            "share of time",
            lambda row: Entry(numbers.share(row[1].time_share), row[1].time_share, share=row[1].time_share),
        ),
        Number("executed nodes", lambda row: counted(row[1].nodes)),
    )
    rows = [(cell, part) for cell in cells for part in cell.providers]
    return Table.of(NAME, "Time and executed nodes by provider", shown, rows)
