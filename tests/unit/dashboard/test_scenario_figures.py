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


def test_the_time_per_token_is_drawn_along_the_sequence() -> None:
    phases: list[dict[str, Any]] = [
        {"name": "prefill", "launches": 8, "metrics": {"prefill_ms": 4.0}},
        {"name": "tokens 2 to 9", "launches": 8, "metrics": {"position": 132.5, "tpot_ms": 0.25}},
        {"name": "tokens 10 to 17", "launches": 8, "metrics": {"position": 140.5, "tpot_ms": 0.5}},
    ]
    (figure,) = scenarios.figures_of(cell(phases=phases))
    assert figure.title == "Time per token from 0.250 ms to 0.500 ms along the sequence"
    assert figure.data[0]["x"] == [132.5, 140.5]
    assert [row[0].text for row in figure.table.rows] == ["tokens 2 to 9", "tokens 10 to 17"]


def test_shapes_stand_from_the_fastest_to_the_slowest() -> None:
    _, figure = scenarios.figures_of(cell(phases=[*MEMORY, *SHAPES]))
    assert figure.title == "p50 from 0.500 ms at seq=4 to 2.00 ms at seq=64"
    assert [row[0].text for row in figure.table.rows] == ["seq=4", "seq=64"]


def test_a_load_is_a_curve_over_its_rates_with_the_bound() -> None:
    told = {"goodput_per_s": 100.0, "cpu_ms": 1.0, "late_ms": 0.003, "n": 700.0}
    curve = [
        {
            "name": f"{rate:g} per s",
            "launches": 8,
            "metrics": {"rate_per_s": rate, "p50_ms": p50, "p99_ms": p99, **told},
        }
        for rate, p50, p99 in ((200.0, 2.0, 30.0), (100.0, 1.0, 5.0))
    ]
    loaded = cell(scenario="load:bound=20ms", scenario_text="Keeps it.", phases=curve)
    (figure,) = scenarios.figures_of(loaded)
    assert figure.title == "Keeps it"
    assert [(line["name"], line["x"], line["y"]) for line in figure.data] == [
        ("p50", [100.0, 200.0], [1.0, 2.0]),
        ("p99", [100.0, 200.0], [5.0, 30.0]),
    ]
    assert [(one["y0"], one["y1"]) for one in figure.layout["shapes"]] == [(20.0, 20.0)]
    assert [row[2].text for row in figure.table.rows] == ["5.00", "30.0"]
    (plain,) = scenarios.figures_of(cell(scenario="load:rate=100", phases=curve[1:]))
    assert plain.layout["shapes"] == []
