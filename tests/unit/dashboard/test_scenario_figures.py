"""Figures of a scenario: memory over inferences and latency by shape, each with its table."""

from typing import Any

from dashboard import numbers
from dashboard.figures import scenarios
from tests.unit.rules.test_cell_axes import cell

MEMORY = [
    {"name": f"memory {n}", "launches": 8, "metrics": {"inferences": 125.0 * n, "resident_bytes": 70e6 + n}}
    for n in range(1, 9)
]
SHAPES: list[dict[str, Any]] = [
    {"name": "seq=64", "launches": 8, "metrics": {"p50_ms": 2.0, "n": 500.0}},
    {"name": "seq=4", "launches": 8, "metrics": {"p50_ms": 0.5, "n": 500.0}},
]


def test_a_cell_without_phases_has_no_figures() -> None:
    assert scenarios.figures_of(cell()) == []


def test_memory_is_drawn_over_inferences_under_what_was_found() -> None:
    text = "Memory settles: 0.00 MiB in 1,000 inferences."
    (figure,) = scenarios.figures_of(cell(phases=MEMORY, scenario_text=text))
    assert figure.title == "Memory settles: 0.00 MiB in 1,000 inferences"
    (line,) = figure.data
    assert line["x"] == [125.0 * n for n in range(1, 9)]
    assert [row[0].text for row in figure.table.rows] == [numbers.fixed(125 * n, 0) for n in range(1, 9)]


def test_shapes_stand_from_the_fastest_to_the_slowest() -> None:
    _, figure = scenarios.figures_of(cell(phases=[*MEMORY, *SHAPES]))
    assert figure.title == "p50 from 0.500 ms at seq=4 to 2.00 ms at seq=64"
    assert [row[0].text for row in figure.table.rows] == ["seq=4", "seq=64"]
