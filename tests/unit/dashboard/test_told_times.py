"""Charts, tables and maps of a run whose verdicts rest on processor time: each shows that, and says so."""

import io
from typing import Any

import pytest
from rich.console import Console

from dashboard.figures import cell_bars, latency, pareto, ratios, samples, throughput
from dashboard.figures.figure import Figure
from dashboard.figures.generation import draw_phases
from dashboard.reading import cell as reading
from dashboard.reading import cells, compared_cells, compared_lines, comparisons, judging
from dashboard.views.cell import make_panels, write_headline
from dashboard.views.compared_runs import _p50_entry, match_cells
from farm.contract.document import Document
from farm.contract.document_cells import Accuracy, Cell, Parity
from farm.contract.document_comparisons import MetricChange
from farm.rules.presenting.prefills import ITEMS_NOTE
from farm.rules.presenting.stability import UNSTABLE
from farm.rules.presenting.times import Times
from onnxfarm.screen import show
from tests.documents import NEW, make_cell, make_comparison, make_document
from tests.unit.dashboard.conftest import address
from tests.unit.dashboard.draw_heat_map import make_heat_map
from tests.unit.rules.test_generations import generated

ACCURACY = Accuracy(metric="top1", value=0.9, recipe="images")


def busy(name: str, cpu_ms: float, **changes: Any) -> Cell:
    """A cell whose clock ran ten times as long as its thread."""
    known = {
        "p50_ms": 10 * cpu_ms, "p50_ci_ms": (5 * cpu_ms, 15 * cpu_ms), "samples_ms": [10 * cpu_ms] * 8,
        "cpu_p50_ms": cpu_ms, "cpu_samples_ms": [cpu_ms * (1 + n / 1000) for n in range(-4, 4)],
        "throughput": 100 / cpu_ms, "disturbed_samples": 8, "session_ms": 20.0, "first_ms": 3.0, "import_ms": 50.0,
        "accuracy": ACCURACY, "model_bytes": 1000, "block": "b1",
    }  # fmt: skip
    return make_cell(name, **{**known, **changes})


@pytest.fixture
def judged() -> Document:
    """1.31.1 takes 1.27 ms of the processor instead of 0.945, by the clock 12.7 and 9.45."""
    pair = make_comparison(
        "slower", 1.344, ci_low=1.32, ci_high=1.37, verdict_from="processor", reason="Other programs disturbed it."
    )
    return make_document(busy("c1", 0.945), busy("c2", 1.27, runtime=NEW), comparisons=[pair])


def figures_of(document: Document) -> list[Figure]:
    known = (document.cells, address, document.comparisons)
    return [
        latency.draw_latency(document.cells, document.comparisons, address),
        throughput.draw_throughput(*known),
        cell_bars.draw_cold_start(*known),
        pareto.draw_cells(*known),
        samples.draw_samples(document.cells[1], Times.of(document.cells, document.comparisons)),
    ]


def test_every_chart_of_times_shows_processor_time_and_its_axis_says_so(judged: Document) -> None:
    for figure in figures_of(judged):
        text = f"{figure.layout}"
        assert "processor time" in text or figure.name == "cold-start", figure.name
        heads = [head.text for head in figure.table.heads]
        assert any("processor time, ms" in head for head in heads), (figure.name, heads)
        shown = [entry.value for row in figure.table.rows for entry in row]
        assert 1.27 in shown or figure.name == "samples", (figure.name, shown)
        assert 12.7 not in shown, figure.name
    points = latency.draw_latency(judged.cells, judged.comparisons, address).data
    assert [series["x"] for series in points] == [[0.945], [1.27]]


def test_a_chart_of_changes_says_of_what_they_are(judged: Document) -> None:
    by_id = {cell.id: cell for cell in judged.cells}
    figure = ratios.draw_ratios(comparisons.name_comparisons(judged.comparisons, by_id, address))
    assert figure.layout["xaxis"]["title"]["text"].startswith("change of processor time 1.29.0 → 1.31.1")
    assert "<br>processor time 0.945 → 1.27 ms" in f"{figure.data[0]['text']}"


def test_the_table_of_cells_and_the_steps_aside_show_it_too(judged: Document) -> None:
    table = cells.make_table(judged.cells, address, comparisons=judged.comparisons)
    place = [head.text for head in table.heads].index("processor time, ms")
    assert [row[place].value for row in table.rows] == [0.945, 1.27]
    assert [row[1].text for row in reading.sibling_table(judged, judged.cells[0], address).rows] == ["1.270"]


def test_of_busy_and_calm_cells_each_says_which_time_it_is() -> None:
    calm = busy("c2", 1.0, p50_ms=1.02, p50_ci_ms=(1.01, 1.03), disturbed_samples=0, runtime=NEW)
    table = cells.make_table([busy("c1", 2.7), calm], address)
    place = [head.text for head in table.heads].index("p50 or processor time, ms")
    assert [row[place].soft for row in table.rows] == ["CPU time", ""]


def test_a_cells_page_leads_with_the_time_of_the_verdict_and_draws_its_launches(judged: Document) -> None:
    cell = judged.cells[1]
    assert write_headline(cell, "done", judged.comparisons).endswith(": 1.270 ms ± 0.003 of CPU time")
    figure = make_panels(cell, judged, address, state="done")["figure"]
    assert isinstance(figure, Figure)
    assert figure.layout["yaxis"]["title"]["text"] == "processor time of the launch, ms"


def test_a_map_by_latency_is_coloured_by_the_time_of_the_verdicts(judged: Document) -> None:
    found = make_heat_map(judged.cells, judged.comparisons, address, metric="p50")
    old, new = found.rows[0].fields
    assert (old.value, new.value) == ("0.945 ms", "1.270 ms")
    assert found.ends == ["0.945 ms", "1.270 ms"]
    assert new.title.startswith("processor time 1.270 ms")
    assert "by the clock" in new.title
    beside = make_heat_map(judged.cells, judged.comparisons, address).rows[0].fields[1]
    assert beside.title.count("processor time") == 1


def test_a_map_of_batches_counts_items_of_processor_time() -> None:
    pair = make_comparison("slower", 4.0, axis="batch", ci_low=3.9, ci_high=4.1, verdict_from="processor")
    both = [busy("c1", 1.0), busy("c2", 4.0, batch=4, throughput=400 / 4.0)]
    values = [place.value for place in make_heat_map(both, [pair], address).rows[0].fields]
    assert values == ["1\N{NARROW NO-BREAK SPACE}000 items/s"] * 2


def test_the_baseline_of_a_row_is_what_its_cells_are_compared_with(judged: Document) -> None:
    refused = make_cell(
        "c0", runtime="onnxruntime==1.22.0", status="refused", reason={"code": "opset_too_new", "text": "No."}
    )
    none, base, new = make_heat_map([refused, *judged.cells], judged.comparisons, address).rows[0].fields
    assert none.sign.mark == "⊘"
    assert base.sign.word == "baseline"
    assert new.sign.word == "34 % slower"
    ((alone,),) = (row.fields for row in make_heat_map(judged.cells[:1], [], address).rows)
    assert alone.sign.word == "not compared"


def test_compared_cells_show_the_time_that_they_are_judged_by_and_the_sign_turns_with_the_base(
    judged: Document,
) -> None:
    old, new = (judging.ChosenCell(f"1:{cell.id}", 1, cell, "") for cell in judged.cells)
    found = judging.judge_pair(old, new, judged.comparisons)
    assert [row.p50 for row in compared_cells.make_rows([old, new], [found])] == [
        "0.945 ms ± 0.002 of CPU time",
        "1.270 ms ± 0.003 of CPU time",
    ]
    assert (found.sign.mark, judging.judge_pair(new, old, judged.comparisons).sign.mark) == ("▲", "▼")


def test_times_of_compared_cells_are_of_one_clock_where_one_verdict_rests_on_processor_time(judged: Document) -> None:
    calm = busy("c3", 1.1, threads=2)
    known = [*judged.comparisons, make_comparison("slower", 1.2, candidate="c3", ci_low=1.1, ci_high=1.3)]
    base, *others = (judging.ChosenCell(f"1:{cell.id}", 1, cell, "") for cell in (*judged.cells, calm))
    verdicts = [judging.judge_pair(base, other, known) for other in others]
    assert [verdict.by_processor for verdict in verdicts] == [True, False]
    for turned in (1, -1):
        shown = compared_cells.make_rows([base, *others[::turned]], verdicts[::turned])
        assert all(row.p50.endswith("of CPU time") for row in shown)
    untimed = calm.model_copy(update={"cpu_p50_ms": None, "cpu_samples_ms": []})
    last = compared_cells.make_rows([base, others[0], judging.ChosenCell("1:c3", 1, untimed, "")], verdicts)[-1]
    assert "CPU time" not in last.p50


def test_whole_runs_of_a_busy_machine_are_compared_by_processor_time() -> None:
    runs = [make_document(busy("c1", ms)) for ms in (1.0, 1.2)]
    (match,) = match_cells(runs)
    (found,) = match.judged
    assert found is not None
    assert found.ratio == pytest.approx(1.2, rel=1e-3)
    assert "processor time" in found.evidence
    shown = _p50_entry(2, match.cells[1], found)
    assert (shown.value, shown.soft) == (1.2, "CPU time")


def test_whole_runs_are_compared_by_the_clock_that_their_verdicts_rest_on() -> None:
    """Runs whose verdicts rested on processor time were compared by a clock that was not longer than it."""
    samples = {"p50_ms": 1.0, "samples_ms": [1.0] * 8}
    runs = [make_document(busy("c1", ms).model_copy(update=samples)) for ms in (1.0, 1.2)]
    by_processor = make_comparison("slower", 1.2, ci_low=1.1, ci_high=1.3, verdict_from="processor")
    (by_clock,), (judged,) = (
        match_cells([run.model_copy(update={"comparisons": pairs}) for run in runs])[0].judged
        for pairs in ([], [by_processor])
    )
    assert by_clock is not None
    assert judged is not None
    assert (by_clock.ratio, judged.ratio) == (pytest.approx(1.0), pytest.approx(1.2, rel=1e-3))


def test_a_failed_parity_says_by_what_and_against_which_limit_wherever_it_stands(judged: Document) -> None:
    text = "Output 'y': cosine to the reference is 0.98991, below 0.99."
    wrong = judged.cells[1].model_copy(update={"parity": Parity(verdict="fail", text=text)})
    both = [judged.cells[0], wrong]
    table = cells.make_table(both, address, comparisons=judged.comparisons)
    place = [head.text for head in table.heads].index("Note")
    assert [text in row[place].text for row in table.rows] == [False, True]
    assert text in make_heat_map(both, judged.comparisons, address).rows[0].fields[1].title
    base, other = (judging.ChosenCell(f"1:{cell.id}", 1, cell, "") for cell in both)
    assert text in judging.judge_pair(base, other, judged.comparisons).evidence


def test_page_and_terminal_say_one_figure_of_items_and_of_session_creation(judged: Document) -> None:
    """426 items/s on the page were 59.9 on the terminal; 5.04 ms of processor time 28.2 by the clock."""
    (pair,) = judged.comparisons
    pair = pair.model_copy(update={"metrics": [session()]})
    table = cells.make_table(judged.cells, address, comparisons=[pair])
    heads = [head.text for head in table.heads]
    on_page = [
        [row[heads.index(head)].text for head in ("items/s, processor time", "session, processor time, ms")]
        for row in table.rows
    ]
    text = io.StringIO()
    show(make_document(*judged.cells, comparisons=[pair]), console=Console(file=text, width=200, color_system=None))
    for items, session_ms in on_page:
        assert f" {items} " in text.getvalue()
        assert f" {session_ms} ms " in text.getvalue()
    assert "20.0" not in text.getvalue()


def test_items_of_a_cell_that_generates_say_that_the_prompt_is_left_out() -> None:
    """14 200 items/s stood beside 4 741 tokens/s, which the prompt and waiting are part of, without a reason."""
    cell = busy("c1", 1.0, scenario="generate:prompt=16:new=8")
    notes = {row[0].text: row[3].text for row in reading.metric_table(cell).rows}
    assert notes["throughput"] == f"{ITEMS_NOTE}; by the clock"
    assert ITEMS_NOTE in notes["throughput of processor time"]
    assert ITEMS_NOTE in throughput.draw_throughput([cell], address).note
    assert ITEMS_NOTE not in throughput.draw_throughput([busy("c2", 1.0)], address).note


def test_tokens_per_second_say_of_which_clock_they_are() -> None:
    """2 468 tokens/s of processor time stood beside 650 by the clock."""
    for times, head in ((Times(frozenset({"c1"})), "tokens/s, processor time"), (Times(frozenset()), "tokens/s")):
        table = draw_phases([generated()], times=times).table
        assert [found.text for found in table.heads if "tokens/s" in found.text] == [head]
    notes = {row[0].text: row[3].text for row in reading.metric_table(generated()).rows}
    assert notes["tokens"].startswith("by the clock")


def test_what_did_not_settle_says_why_and_what_helps_under_the_terminals_cells(judged: Document) -> None:
    restless = [cell.model_copy(update={"is_stable": False}) for cell in judged.cells]
    for cells_, is_said in ((judged.cells, False), (restless, True)):
        text = io.StringIO()
        show(make_document(*cells_), console=Console(file=text, width=200, color_system=None))
        assert (UNSTABLE in text.getvalue()) == is_said


def test_a_verdict_stands_in_the_map_as_soon_as_there_is_one(judged: Document) -> None:
    """ "no verdict yet" stood beside "4.6× slower" in the headline while the block was traced."""
    states = {cell.id: "measuring" for cell in judged.cells}
    old, new = make_heat_map(judged.cells, judged.comparisons, address, states=states).rows[0].fields
    words = [place.sign.word for place in (old, new) if place.sign]
    assert words == ["baseline, 8 rounds so far", "34 % slower, 8 rounds so far"]


def test_a_map_by_session_creation_says_of_which_clock_it_is(judged: Document) -> None:
    (pair,) = judged.comparisons
    found = make_heat_map(judged.cells, [pair.model_copy(update={"metrics": [session()]})], address, metric="session")
    assert found.metric.label == "session creation, processor time"
    assert [place.value for place in found.rows[0].fields] == ["5.04 ms", "6.28 ms"]


def test_compared_cells_show_session_creation_by_the_launches_of_its_verdict(judged: Document) -> None:
    (pair,) = judged.comparisons
    old, new = (judging.ChosenCell(f"1:{cell.id}", 1, cell, "") for cell in judged.cells)
    found = judging.judge_pair(old, new, [pair.model_copy(update={"metrics": [session()]})])
    (line,) = (line for line in compared_lines.make_lines([old, new], [found]) if line.name == "Session creation")
    assert line.texts == ["5.04 ms of CPU time", "6.28 ms of CPU time"]
    assert [line.name for line in compared_lines.make_lines([old], []) if "ession creation" in line.name]


def session() -> MetricChange:
    return MetricChange(
        name="session_ms", unit="ms", baseline=5.04, candidate=6.28, ratio=1.25, ci_low=1.2, ci_high=1.3,
        verdict="slower", margin=0.1, rounds=8, p=0.001, is_processor=True,
    )  # fmt: skip
