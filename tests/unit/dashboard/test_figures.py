"""Figures are pure: rows in, a Plotly dictionary out. Drawn from the made-up document."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dashboard.figures import cell_bars, latency, operators, ratios, samples, theme, throughput
from dashboard.figures.figure import Figure
from dashboard.reading import comparisons
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.presenting.changed_operators import sort_operators
from tests.unit.dashboard.conftest import address

FOLDER = Path(theme.__file__).parents[1]
STYLESHEET = FOLDER / "static/dashboard/farm.css"
# of plotly.js-basic-dist-min 4.1.1
SHA256_OF_PLOTLY_BASIC = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"


def all_figures(document: Document) -> list[Figure]:
    by_id = {cell.id: cell for cell in document.cells}
    runtime = comparisons.select_axis(document.comparisons, "runtime", by_id)
    return [
        latency.draw_latency(document.cells, document.comparisons, address),
        throughput.draw_throughput(document.cells, address),
        cell_bars.draw_providers(document.cells, address),
        operators.draw_operators(document.comparisons[0], operators.name_sides(by_id["b1-a0"], by_id["b1-a1"])),
        samples.draw_samples(by_id["b1-a0"]),
        samples.draw_samples(by_id["b1-a6"]),
        ratios.draw_ratios(comparisons.name_comparisons(runtime, by_id, address)),
    ]


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in strings(inner)]
    if isinstance(value, list | tuple):
        return [text for inner in value for text in strings(inner)]
    return [value] if isinstance(value, str) else []


def test_every_figure_has_a_finding_a_summary_and_a_table_with_as_many_entries_as_heads(document: Document) -> None:
    for figure in all_figures(document):
        assert figure.title, figure.name
        assert figure.summary.endswith("."), figure.name
        assert figure.table.rows, figure.name
        assert all(len(row) == len(figure.table.heads) for row in figure.table.rows)


def test_no_figure_holds_a_number_that_json_does_not_know_or_a_colour_of_its_own(document: Document) -> None:
    for figure in all_figures(document):
        drawn = json.loads(figure.json)
        assert drawn["data"]
        assert "NaN" not in figure.json
        assert not [text for text in strings(drawn) if re.fullmatch(r"#[0-9a-fA-F]{3,8}", text)]


def test_pages_carry_the_small_plotly_as_npm_has_it_and_no_figure_wants_more_than_it_draws() -> None:
    script = FOLDER / "static/dashboard/plotly/plotly-basic.min.js"
    assert sha256(script.read_bytes()).hexdigest() == SHA256_OF_PLOTLY_BASIC
    source = "".join(path.read_text() for path in (FOLDER / "figures").glob("*.py"))
    kinds = set(re.findall(r'"type": "([a-z]+)"', source))
    # beside traces: shapes, axes, and the form of error bars
    assert {"scatter", "bar"} <= kinds <= {"scatter", "bar", "pie", "line", "rect", "data", "log", "category", "date"}


def test_every_colour_token_of_a_figure_is_in_the_stylesheet(document: Document) -> None:
    known = set(re.findall(r"--([a-z0-9-]+):", STYLESHEET.read_text()))
    for figure in all_figures(document):
        tokens = {text[1:].split("/")[0] for text in strings([figure.data, figure.layout]) if text.startswith("@")}
        assert tokens <= known, tokens - known


def test_a_figures_json_cannot_end_its_script_element(document: Document) -> None:
    sneaky = latency.draw_latency(document.cells, document.comparisons, address)
    sneaky.data[0]["name"] = "</script><script>alert(1)"
    assert "</script>" not in sneaky.json
    assert json.loads(sneaky.json)["data"][0]["name"] == "</script><script>alert(1)"


def test_latency_points_carry_their_interval_and_lead_to_their_cell(document: Document) -> None:
    figure = latency.draw_latency(document.cells, document.comparisons, address)
    old = next(series for series in figure.data if series["name"] == "1.29.0")
    assert len(old["x"]) == len(old["error_x"]["array"]) == 4
    assert all(size > 0 for size in old["error_x"]["array"])
    assert old["customdata"][0] == "/runs/1/cells/b1-a0/"
    assert figure.layout["xaxis"]["type"] == "log"
    assert figure.title == "Of 4 comparisons of runtimes: 3 slower"


def test_latencies_of_one_size_stand_on_a_linear_axis_that_shows_their_difference(by_id: dict[str, Cell]) -> None:
    near = [by_id["b1-a0"], by_id["b1-a1"]]
    low, high = latency.draw_latency(near, [], address).layout["xaxis"]["range"]
    ends = [end for cell in near for end in cell.p50_ci_ms or (cell.p50_ms,) if end is not None]
    assert 0 < low <= min(ends)
    assert max(ends) <= high < 2 * max(ends)
    alone = near[0].model_copy(update={"p50_ci_ms": None})
    assert latency.draw_latency([alone], [], address).layout["xaxis"]["range"][0] == 0


def test_ratios_lie_on_a_logarithmic_axis_around_one_with_the_margin_as_a_band(document: Document) -> None:
    by_id = {cell.id: cell for cell in document.cells}
    figure = ratios.draw_ratios(
        comparisons.name_comparisons(comparisons.select_axis(document.comparisons, "", by_id), by_id, address)
    )
    low, high = figure.layout["xaxis"]["range"]
    assert figure.layout["xaxis"]["type"] == "log"
    assert low < 0 < high
    band = figure.layout["shapes"][0]
    assert band["x0"] == pytest.approx(1 / 1.02)
    assert band["x1"] == pytest.approx(1.02)
    assert figure.title == "4 comparisons: 3 slower and 1 equal"
    assert "0 %" in figure.layout["xaxis"]["ticktext"]


def test_more_comparisons_than_fit_leave_the_smallest_changes_to_the_table(document: Document) -> None:
    by_id = {cell.id: cell for cell in document.cells}
    named = comparisons.name_comparisons(document.comparisons, by_id, address) * 10
    figure = ratios.draw_ratios(named)
    assert sum(len(series["x"]) for series in figure.data) == ratios.MAX_ROWS
    assert len(figure.table.rows) == len(named)


def test_operators_are_sorted_by_their_change_and_the_finding_adds_up_a_type(
    document: Document, by_id: dict[str, Cell]
) -> None:
    figure = operators.draw_operators(document.comparisons[0], operators.name_sides(by_id["b1-a0"], by_id["b1-a1"]))
    assert "LayerNormalization" in figure.data[0]["y"][0]
    assert figure.title.startswith("SkipLayerNormalization (4 nodes) +4")
    assert "explains" in figure.title
    assert len(figure.data[0]["x"]) == operators.MAX_OPERATORS
    assert len(figure.table.rows) == 12


def test_a_list_of_operators_ends_in_what_explains_the_change_or_that_nothing_does(
    document: Document, by_id: dict[str, Cell]
) -> None:
    comparison = document.comparisons[0]
    sides = operators.name_sides(by_id["b1-a0"], by_id["b1-a1"])

    def title(share: float | None, verdict: str = "slower", traces: int = 4) -> str:
        rows = [operator.model_copy(update={"share": share}) for operator in comparison.operators]
        changed = comparison.model_copy(update={"operators": rows, "verdict": verdict, "traces": traces})
        return operators.draw_operators(changed, sides).title

    most = "SkipLayerNormalization (4 nodes) +4"
    assert re.fullmatch(rf"{re.escape(most)}\d+ µs, explains 80 % of the \d+ µs", title(0.2))
    assert title(None).startswith(f"Too few traces to say what explains the change: most {most}")
    assert title(None, traces=5).startswith("The traces do not add up")
    assert title(0.001).startswith(f"No operator explains the change: most {most}")
    assert title(None, "equal").startswith(f"No change to explain, it is equal: most {most}")


def test_operators_with_verdicts_of_their_own_have_them_in_the_table_and_in_the_finding(
    document: Document, by_id: dict[str, Cell]
) -> None:
    comparison = document.comparisons[0]
    sides = operators.name_sides(by_id["b1-a0"], by_id["b1-a1"])
    plain = operators.draw_operators(comparison, sides)
    assert "Verdict" not in [head.text for head in plain.table.heads]
    judged = {"verdict": "slower", "ratio": 1.1, "ci_low": 1.08, "ci_high": 1.12, "rounds": 16}
    first, *rest = sort_operators(comparison)
    both = [first.model_copy(update=judged), *rest]
    figure = operators.draw_operators(comparison.model_copy(update={"operators": both}), sides)
    assert [head.text for head in figure.table.heads][-5:] == ["Verdict", "ratio", "ratio from, to", "rounds", "Why"]
    assert figure.table.rows[0][-3].text == "1.08 to 1.12"
    assert figure.title.endswith(f"; significant on their own, of all {len(both)} operators: 1 slower")
    quiet = [one.model_copy(update={**judged, "verdict": "undecided"}) for one in both]
    title = operators.draw_operators(comparison.model_copy(update={"operators": quiet}), sides).title
    assert title.endswith("; no single operator is significantly slower or faster")


def test_a_candidate_has_the_colour_of_each_operator_beside_a_grey_baseline(
    document: Document, by_id: dict[str, Cell]
) -> None:
    names = operators.name_sides(by_id["b1-a0"], by_id["b1-a0"].model_copy(update={"precision": "int8-dynamic"}))
    assert names == ("fp32", "int8-dynamic")
    chance = {"change_low_us": -1.0, "change_high_us": 1.0}
    shorter, longer = {"baseline_us": 9.0, "candidate_us": 8.0}, {"baseline_us": 8.0, "candidate_us": 9.0}
    cases = (
        ({**longer, "verdict": "slower"}, "slower"),
        ({**longer, **chance, "verdict": "equal"}, "equal"),
        (longer, "slower"),
        (shorter, "faster"),
        ({**shorter, **chance}, "undecided"),
    )
    comparison = document.comparisons[0].model_copy(update={"verdict": "slower"})
    plain = {"share": 0.1, "verdict": None, "change_low_us": None, "change_high_us": None}
    for known, word in cases:
        changes = [change.model_copy(update={**plain, **known}) for change in comparison.operators]
        figure = operators.draw_operators(comparison.model_copy(update={"operators": changes}), names)
        first, second = (series["marker"]["color"] for series in figure.data)
        assert (first, set(second)) == (theme.OTHER, {theme.verdict_colour(word)})
        assert [entry.colour for entry in figure.key] == [first[1:], second[0][1:]]


def test_launches_in_two_groups_are_marked_as_such(by_id: dict[str, Cell]) -> None:
    figure = samples.draw_samples(by_id["b1-a6"])
    assert figure.title.startswith("Launches fall into two groups: 7.7")
    assert len(figure.layout["annotations"]) == 2
    assert {(note["x"], note["xanchor"]) for note in figure.layout["annotations"]} == {(1, "left")}
    assert {row[2].text for row in figure.table.rows} == {"upper", "lower"}


def test_launches_in_one_group_say_how_close_they_lie(by_id: dict[str, Cell]) -> None:
    figure = samples.draw_samples(by_id["b1-a0"])
    assert re.fullmatch(r"8 launches within [\d.]+ % of each other", figure.title)
    assert figure.layout["annotations"] == []


def test_launches_far_apart_are_named_by_their_ends(by_id: dict[str, Cell]) -> None:
    wide = by_id["b1-a0"].model_copy(update={"samples_ms": [2.0, 3.0, 7.5]})
    assert samples.draw_samples(wide).title == "3 launches spread from 2.00 to 7.50 ms"


def test_one_launch_shows_no_spread(by_id: dict[str, Cell]) -> None:
    single = by_id["b1-a0"].model_copy(update={"samples_ms": [1.9], "p50_ci_ms": None})
    assert samples.draw_samples(single).title == "One launch: no spread is known"


def test_time_outside_the_asked_provider_is_the_finding(document: Document) -> None:
    figure = cell_bars.draw_providers(document.cells, address)
    assert "spends 38 % of its time outside OpenVINO" in figure.title
    alone = cell_bars.draw_providers([document.cells[0]], address)
    assert alone.title == "All time is spent where it was asked for: CPU"


def test_throughput_joins_the_batches_of_one_line_in_order(document: Document) -> None:
    figure = throughput.draw_throughput(document.cells, address)
    lines = {series["name"]: series for series in figure.data}
    assert lines["CPU · fp32 · 1.29.0"]["x"] == ["1", "8"]
    assert figure.title.startswith("Most: ")


@pytest.mark.parametrize(
    "empty",
    [
        lambda: latency.draw_latency([], [], address),
        lambda: throughput.draw_throughput([], address),
        lambda: cell_bars.draw_providers([], address),
        lambda: ratios.draw_ratios([]),
    ],
)
def test_a_figure_without_rows_is_a_sentence(empty: Callable[[], Figure]) -> None:
    figure = empty()
    assert figure.empty.endswith(".")
    assert figure.data == []


def test_a_pair_without_traces_says_so(document: Document, by_id: dict[str, Cell]) -> None:
    bare = document.comparisons[0].model_copy(update={"operators": []})
    figure = operators.draw_operators(bare, operators.name_sides(by_id["b1-a0"], by_id["b1-a1"]))
    assert figure.empty == "These two cells have not been traced side by side yet."


def test_a_cell_without_launches_says_so(by_id: dict[str, Cell]) -> None:
    assert samples.draw_samples(by_id["b1-a11"]).empty == "No launch has been timed yet."
