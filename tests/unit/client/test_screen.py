"""The last screen: what it says first, that nothing is folded away, and which operators it names."""

import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from farm.contract.api.runs import ProgressOut, RunOut
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, OperatorChange
from farm.contract.reasons import CellStatus, Reason, ReasonCode, WayOut
from farm.rules.presenting.lines import make_comparison_line
from farm.rules.wording.numbers import latency, memory
from onnxfarm.remote.runs import RunProgress, follow_run, make_line_logger
from onnxfarm.screen import show
from tests.answers import answer, plain
from tests.documents import CPU, NEW, make_cell, make_comparison
from tests.recorded import presenting


def cell(name: str, **changes: object) -> Cell:
    measured = {"active_providers": [CPU], "p50_ms": 0.2284, "p50_ci_ms": (0.226, 0.230), "throughput": 4378.0}
    asked = {"runtime": NEW, "session_ms": 31.0, "peak_memory_bytes": 60 << 20}
    return make_cell(name, **(measured | asked | changes))


def compared(baseline: str, candidate: str, **changes: object) -> Comparison:
    known = {"ci_low": 1.21, "ci_high": 1.26, "smallest_detectable": 0.03, "baseline": baseline, "candidate": candidate}
    return make_comparison(**(known | changes))


def screen(document: Document, *, width: int = 80) -> str:
    text = io.StringIO()
    show(document, console=Console(file=text, width=width, color_system=None), address="http://farm/runs/7/")
    return text.getvalue()


def document(**changes: object) -> Document:
    old, new = cell("c1", runtime="onnxruntime==1.29.0"), cell("c2", p50_ms=0.283, p50_ci_ms=(0.281, 0.285))
    facts = {"schema": "onnxfarm.bench/1", "machine": {}, "seed": 0, "sentence": "1.31.1 is 24 % slower."}
    return Document.model_validate(facts | {"cells": [old, new], "comparisons": [compared("c1", "c2")]} | changes)


def test_the_verdict_comes_first_and_the_address_last() -> None:
    lines = screen(document()).strip().splitlines()
    assert lines[0] == "1.31.1 is 24 % slower."
    assert lines[-1] == "http://farm/runs/7/"


@pytest.mark.parametrize(
    ("parity", "said"),
    [
        ({"atol": 1e-5, "outputs": [{"name": "y", "max_abs": 0.0312, "violations": 4}]}, "fail 0.0312"),
        (
            {"atol": 1e-5, "outputs": [{"name": "y", "max_abs": 0.0312, "violations": 4}, {"name": "z", "max_abs": 9}]},
            "fail 0.0312",
        ),
        ({"atol": 1e-5, "outputs": [{"name": "y", "nan_count": 3, "violations": 3}]}, "fail 3 NaN"),
        ({"outputs": [{"name": "y", "cosine": 0.91, "max_abs": 4.0}]}, "fail cosine 0.910"),
        ({}, "fail  "),
    ],
)
def test_a_parity_that_fails_says_by_how_much_in_the_table(parity: dict[str, object], said: str) -> None:
    off = cell("c1", parity={"verdict": "fail", **parity})
    lines = screen(document(cells=[off, cell("c2", threads=2)], comparisons=[]), width=130).splitlines()
    assert any(said in f"{line}  " for line in lines), lines


def test_numbers_end_where_their_interval_starts_and_verdicts_have_signs() -> None:
    text = screen(document())
    assert "0.228 ms ± 0.002" in text
    assert "▲ 24 % slower" in text
    assert "1.29.0 → 1.31.1" in text
    assert "21–26 %" in text


@pytest.mark.parametrize("width", [80, 160])
def test_no_column_is_folded_away(width: int) -> None:
    cells = [
        cell(f"c{n}", runtime=f"onnxruntime==1.{29 + n % 2}.0", batch=1 + 7 * (n % 3 > 0), precision=precision)
        for n, precision in enumerate(["fp32", "int8-dynamic"] * 4)
    ]
    text = screen(document(cells=cells, comparisons=[]), width=width)
    assert "…" not in text
    assert "int8-dynamic" in text
    assert text.count("MiB") == text.count("31.0 ms") == len(cells)


def test_a_narrow_terminal_still_says_what_each_cell_is_and_its_whole_p50() -> None:
    long = {"provider": "OpenVINOExecutionProvider", "active_providers": ["OpenVINOExecutionProvider"]}
    cells = [
        cell("b1-a0", is_stable=False),
        cell("b1-a1", runtime="onnxruntime-openvino==1.24.1", precision="int8-dynamic", batch=8, opset=17, **long),
    ]
    text = screen(document(cells=cells, comparisons=[compared("b1-a1", "b1-a0", verdict="undecided")]))
    assert max(map(len, text.splitlines()[:-1])) <= 80
    words = " ".join(text.split())
    assert "OpenVINO" in words
    assert "int8-dynamic" in words
    assert text.count("0.228 ms ± 0.002") == 2
    assert "done, unstable" in text
    assert "unstable" not in screen(document(cells=cells, comparisons=[compared("b1-a1", "b1-a0")]))


def test_a_slower_release_comes_before_an_improvement_and_batches_are_compared_by_items() -> None:
    cells = [cell("c1"), cell("c2", runtime="onnxruntime==1.29.0"), cell("c3", batch=8), cell("c4", precision="int8")]
    batch = compared("c1", "c3", axis="batch", ratio=8.4, ci_low=8.2, ci_high=8.6)
    precision = compared("c1", "c4", axis="precision", verdict="faster", ratio=0.4, ci_low=0.39, ci_high=0.41)
    pairs = [batch, compared("c2", "c1"), precision]
    lines = screen(document(cells=cells, comparisons=pairs), width=140).splitlines()
    places = [
        next(n for n, line in enumerate(lines) if said in line) for said in ("1.29.0 → 1.31.1", "fp32 → int8", "1 → 8")
    ]
    assert places == sorted(places)
    assert "▼ 5 % fewer items/s" in lines[places[2]]
    assert "5 %" in lines[places[2]]
    assert "2–7 %" in lines[places[2]]


def test_what_all_cells_share_is_said_once() -> None:
    text = screen(document())
    assert text.count("CPU") == 1
    assert text.count("batch 1") == 1


def test_another_provider_than_asked_is_said_in_the_table() -> None:
    fallen = cell("c3", provider="CUDAExecutionProvider")
    assert "asked CUDA, ran CPU" in screen(document(cells=[cell("c1"), fallen], comparisons=[]), width=160)


def test_a_cell_that_did_not_finish_gives_its_reason() -> None:
    why = Reason(code=ReasonCode.CRASHED, text="It crashed with SIGSEGV (signal 11).")
    broken = cell("c9", status=CellStatus.CRASHED, reason=why, p50_ms=None, p50_ci_ms=None, throughput=None)
    text = screen(document(cells=[cell("c1"), broken], comparisons=[]))
    assert "✕ crashed c9: It crashed with SIGSEGV (signal 11)." in text


def test_an_a_a_copy_is_no_cell_that_was_cancelled_unless_it_alone_did_not_end_well() -> None:
    why = Reason(code=ReasonCode.CANCELLED, text="Cancelled by owner.")
    empty = {"status": CellStatus.CANCELLED, "reason": why, "p50_ms": None, "p50_ci_ms": None, "throughput": None}
    twin = cell("c1.twin", twin_of="c1", **empty)
    said = screen(document(cells=[cell("c1", **empty), cell("c2", threads=2, **empty), twin], comparisons=[]))
    assert "– cancelled 2 cells (c1, c2): Cancelled by owner." in said
    assert "c1.twin: Cancelled by owner." in screen(document(cells=[cell("c1"), twin], comparisons=[]))


def test_cells_of_one_reason_share_a_line_with_their_count() -> None:
    why = Reason(code=ReasonCode.PROVIDER_NOT_IN_BUILD, text="CUDA is not in this build. Add onnxruntime-gpu.")
    empty = {"status": CellStatus.REFUSED, "reason": why, "p50_ms": None, "p50_ci_ms": None, "throughput": None}
    cells = [cell("c1"), *(cell(f"c{number}", batch=number, **empty) for number in range(2, 14))]
    lines = screen(document(cells=cells, comparisons=[])).splitlines()
    (told,) = [line for line in lines if why.text in line]
    assert "12 cells (c2, c3, c4, c5, c6, c7, c8, c9 and 4 more)" in told


HARD = {
    "provider": "OpenVINOExecutionProvider",
    "provider_options": {"device_type": "CPU", "num_streams": "1"},
    "precision": "int8-qdq",
    "runtime": Runtime(distribution="onnxruntime-openvino", version="1.24.1"),
}


def _with_long_names(document: Document) -> Document:
    """Cells that differ in many axes, on machines and of models with long names."""
    cells = [
        cell.model_copy(
            update={"model": f"encoder-of-a-rather-long-name-{place}", "node": f"bench-in-the-cellar-{place}"}
            | {"batch": place, "shapes": {"sequence": 100 + place}}
            | (HARD if place % 2 else {})
        )
        for place, cell in enumerate(document.cells)
    ]
    return document.model_copy(update={"cells": cells})


@pytest.mark.parametrize("has_long_names", [False, True])
@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("path", presenting.recorded(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_terminal_cuts_a_figure_or_a_reason(path: Path, width: int, has_long_names: bool) -> None:
    plain = json.loads(presenting.read(path))
    if plain["schema"] != "onnxfarm.bench/1":
        pytest.skip("another kind of document")
    told = Document.model_validate(plain)
    told = _with_long_names(told) if has_long_names else told
    text = screen(told, width=width)
    assert "…" not in text
    for one in told.cells:
        assert one.p50_ms is None or latency(one.p50_ms, one.p50_ci_ms) in text
        assert one.peak_memory_bytes is None or memory(one.peak_memory_bytes) in text
        assert one.reason is None or one.reason.text in text
    for pair in told.comparisons:
        line = make_comparison_line(pair, {one.id: one for one in told.cells})
        assert line.words in text
        assert line.values in text
    tables = [line for line in text.splitlines() if not line.startswith(PROSE)]
    assert max(map(cell_len, tables)) <= width


# lines that a terminal folds by itself
PROSE = ("inputs", "⊘", "✕", "–", "≠", "    ", "  ", "c", "What explains", "Too few traces", "Operators", "http")


def test_a_column_with_one_value_is_a_line_above_the_table() -> None:
    passed = {"parity": {"verdict": "pass"}}
    same = document(cells=[cell("c1", runtime="onnxruntime==1.29.0", **passed), cell("c2", **passed)])
    assert [line for line in screen(same, width=120).splitlines() if "pass" in line] == [
        "encoder, CPU, fp32, batch 1, 1 thread, timed by io-binding, parity pass"
    ]
    wrong = {"parity": {"verdict": "fail", "outputs": []}}
    off = document(cells=[cell("c1", runtime="onnxruntime==1.29.0", **wrong), cell("c2", **wrong)])
    assert sum(line.rstrip().endswith("fail    ✕ wrong outputs") for line in screen(off, width=120).splitlines()) == 2
    lost = {"metric": "top1", "value": 0.006, "difference": -0.97, "difference_low": -0.98, "difference_high": -0.96}
    broken = document(cells=[cell("c1", **passed, accuracy=lost), cell("c2", threads=2, **passed)])
    assert sum("✕ wrong outputs" in line for line in screen(broken, width=160).splitlines()) == 1


def test_the_three_operators_of_the_largest_change_are_named() -> None:
    times = {"Add": (10.0, 11.0), "Gemm": (50.0, 90.0), "Relu": (5.0, 4.0), "Softmax": (8.0, 8.1)}
    operators = [
        OperatorChange(node=f"/{kind}", op_type=kind, baseline_us=old, candidate_us=new, share=(new - old) / 40)
        for kind, (old, new) in times.items()
    ]
    text = screen(document(comparisons=[compared("c1", "c2", operators=operators)]))
    assert "Gemm /Gemm: 50.0 → 90.0 µs, explains 100 % of the 40.0 µs" in text
    # what became faster explains nothing of what is slower
    assert ("Softmax /Softmax" in text, "Relu /Relu" in text) == (True, False)


def test_operators_without_a_share_explain_nothing_and_a_busy_clock_says_nothing_of_what_is_between_them() -> None:
    changed = OperatorChange(node="/mm", op_type="Gemm", baseline_us=50, candidate_us=90)
    cells = [cell("c1", runtime="onnxruntime==1.29.0", unaccounted_us=2673.0), cell("c2", unaccounted_us=5131.0)]
    busy = compared("c1", "c2", operators=[changed], verdict_from="processor")
    said = screen(document(cells=cells, comparisons=[busy]), width=200)
    assert "What explains" not in said
    assert "Too few traces to explain the change 1.29.0 → 1.31.1" in said
    assert "in no operator" not in said
    calm = compared("c1", "c2", operators=[changed.model_copy(update={"share": 1.0})])
    said = screen(document(cells=cells, comparisons=[calm]), width=200)
    assert "What explains the change 1.29.0 → 1.31.1" in said
    assert "in no operator" in said


@pytest.mark.parametrize(
    ("spent_us", "is_explained", "is_outside_told"),
    [(12.0, True, True), (13_234.0, True, False), (None, True, False), (12.0, False, True)],
)
def test_a_list_of_operators_holds_what_adds_up(
    spent_us: float | None, is_explained: bool, is_outside_told: bool
) -> None:
    operator = OperatorChange(
        node="/Gemm", op_type="Gemm", baseline_us=50.0, candidate_us=90.0, share=1.0 if is_explained else None
    )
    cells = [cell(name, runtime=f"onnxruntime==1.{name[1]}.0", unaccounted_us=spent_us) for name in ("c1", "c2")]
    text = screen(document(cells=cells, comparisons=[compared("c1", "c2", operators=[operator], traces=5)]))
    assert ("Gemm /Gemm: 50.0 → 90.0 µs, explains 100 % of the 40.0 µs" in text) == is_explained
    assert ("The traces do not add up" in text) != is_explained
    assert (": 12.0 → 12.0 µs" in text) == is_outside_told


def test_operators_with_a_verdict_of_their_own_are_named_also_where_the_model_is_as_fast_as_before() -> None:
    judged = {"ratio": 1.1, "ci_low": 1.08, "ci_high": 1.12, "verdict": "slower", "rounds": 16}
    norm = OperatorChange(node="/norm", op_type="Norm", baseline_us=60, candidate_us=66, **judged)
    same = OperatorChange(node="/mm", op_type="Gemm", baseline_us=600, candidate_us=600, verdict="equal", rounds=16)
    text = screen(document(comparisons=[compared("c1", "c2", verdict="equal", operators=[same, norm])]))
    assert "Operators that changed, each judged by its own pairs:" in text
    assert "▲ 10 % slower (8–12 %)  Norm /norm: 60.0 → 66.0 µs, 16 rounds, 1.29.0 → 1.31.1" in text
    assert "/mm" not in text


def test_many_operators_with_a_verdict_are_counted() -> None:
    judged = {"ratio": 1.1, "ci_low": 1.08, "ci_high": 1.12, "verdict": "slower", "rounds": 16}
    many = [
        OperatorChange(node=f"/n{number}", op_type="Norm", baseline_us=60, candidate_us=66, **judged)
        for number in range(15)
    ]
    assert "  and 3 more" in screen(document(comparisons=[compared("c1", "c2", operators=many)]))


def test_names_from_a_model_are_printed_as_they_are() -> None:
    hostile = cell("c1", model="[red]x[/red]", runtime="onnxruntime==1.31.1")
    text = screen(document(cells=[hostile], comparisons=[], sentence="[bold]not markup[/bold]"))
    assert "[bold]not markup[/bold]" in text
    assert "[red]x[/red]" in text


def test_a_run_is_followed_in_plain_lines_where_there_is_no_terminal() -> None:
    class Farm:
        states = iter([({"open": 2}, "block 1", "running")] * 2 + [({"done": 1, "cancelled": 1}, "", "finished")])

        def call(self, operation: object, *, run: str) -> RunOut:
            cells, block, state = next(self.states)
            progress = plain(ProgressOut, cells={**cells, "refused": 5}, block=block, minutes_left=3.2)
            return answer(RunOut, id=run, state=state, progress=progress)

    text = io.StringIO()
    follow_run(Farm(), "7", console=Console(file=text, width=80))
    # what was cancelled has ended and is not done; what was refused is counted beside the others
    said = [
        "0 of 2 cells ended, 5 refused, block 1, time left: about 3 min",
        "1 of 2 cells done, 5 refused, 1 cancelled",
    ]
    assert text.getvalue().splitlines() == said


def test_less_than_a_minute_is_said_so() -> None:
    assert RunProgress("1 cell", 0.5, "", 0.2, False).words == "1 cell, time left: about 10 s"


def test_the_sentence_of_a_node_goes_on_after_its_full_stop() -> None:
    standing = RunProgress("no cell", 0.0, "vm: It waits.", 1.2, False)
    assert standing.words == "no cell, vm: It waits, time left: about 70 s"


def test_a_log_has_a_line_a_round_and_not_one_an_arm() -> None:
    def at(block: str, *, is_waiting: bool = False) -> object:
        return RunProgress("", 0.0, block, None, False, is_waiting).line_key

    place = "1 of 1 block being measured, 3 of 8 rounds; "
    assert at(f"{place}vm: round 4: onnxruntime==1.31.1, fp32, arm 0") == at(
        "1 of 1 block being measured, 4 of 8 rounds; vm: round 4: onnxruntime==1.29.0, fp32, arm 1"
    )
    assert at(f"{place}vm: round 4: onnxruntime==1.31.1, arm 0") != at(
        f"{place}vm: round 5: onnxruntime==1.31.1, arm 0"
    )
    assert at(f"{place}vm: installing onnxruntime==1.29.0") != at(f"{place}vm: installing onnxruntime==1.31.1")
    waits = "0 of 1 block done, 0 of 8 rounds; waiting since 05:17 UTC: "
    assert at(f"{waits}a: x (process 1): y", is_waiting=True) != at(f"{waits}a: x (process 2): y", is_waiting=True)


def test_a_run_that_waits_says_so_as_it_begins_and_then_once_a_minute() -> None:
    text, moment = io.StringIO(), [0.0]
    say = make_line_logger(Console(file=text, width=80), clock=lambda: moment[0])
    waits = RunProgress(
        "", 0.0, "waiting since 07:12 UTC: Queued.", 3.0, False, is_waiting=True, begins_in_minutes=12.0
    )
    for second in range(130):
        moment[0] = 100.0 + second
        say(waits)
    assert len(text.getvalue().splitlines()) == 3
    assert waits.words.endswith("Queued, begins in about 12 min, about 3 min of measuring")


def test_a_run_that_waits_has_an_estimate_of_what_comes_after() -> None:
    waits = RunProgress("", 0.0, "0 of 8 rounds; waiting since 07:12 UTC: vm: It waits.", 3.0, False, is_waiting=True)
    assert waits.words.endswith("waiting since 07:12 UTC: vm: It waits, about 3 min once it begins")


def test_cells_that_generate_say_what_their_times_are_of_and_how_prefill_stands() -> None:
    told = {
        "scenario": "generate:prompt=64:new=64",
        "metrics": {"ttft_ms": {"value": 7.25}, "tokens_per_s": {"value": 1033}},
    }
    cells = [cell("c1", runtime="onnxruntime==1.29.0", **told), cell("c2", **told)]
    prefill = {"name": "ttft_ms", "unit": "ms", "baseline": 9.7, "candidate": 7.25, "verdict": "faster", "ratio": 0.75}
    change = {**prefill, "ci_low": 0.7, "ci_high": 0.8, "rounds": 8, "margin": 0.02}
    shown = screen(document(cells=cells, comparisons=[compared("c1", "c2", metrics=[change])]), width=160)
    (head,) = [line for line in shown.splitlines() if "first token" in line]
    assert [one for one in ("per token", "first token", "tokens/s", "memory") if one not in head] == []
    assert "p50" not in shown
    assert "7.25 ms" in shown
    assert "1\N{NARROW NO-BREAK SPACE}033" in shown
    assert "4378" not in shown
    assert "prompt 64, 64 new" in shown
    (compares,) = [line for line in shown.splitlines() if "decoding" in line]
    assert "prefill" in compares
    assert "▼ 25 % faster" in shown
    assert "prefill" not in screen(document())


def test_the_way_out_stands_under_its_reason() -> None:
    way = WayOut(label="Take 1.32.0", axis="runtime", values=("1.32.0",), command="onnxfarm bench m.onnx --ort 1.32.0")
    reason = Reason(code=ReasonCode.OPSET_TOO_NEW, text="Too new.")
    refused = [cell(name, status=CellStatus.REFUSED, reason=reason, way_out=way) for name in ("c1", "c2")]
    shown = screen(document(cells=refused, comparisons=[])).splitlines()
    [place] = [number for number, line in enumerate(shown) if "Too new." in line]
    assert shown[place + 1].strip() == f"{way.label}: {way.command}"


@pytest.mark.parametrize("call", ["bound", "run"])
def test_the_call_is_named_once_and_the_other_stands_beside_with_its_own_verdict(call: str) -> None:
    other = {"bound": "run", "run": "bound"}[call]
    times = ({"name": f"{other}_p50_ms", "unit": "ms", "value": value} for value in (0.0322, 0.0337))
    cells = [cell(name, call=call, metrics=[time]) for name, time in zip(("c1", "c2"), times, strict=True)]
    figures = {"baseline": 0.0322, "candidate": 0.0337, "ratio": 1.05, "ci_low": 1.04, "ci_high": 1.06, "p": 0.001}
    change = {"name": f"{other}_p50_ms", "unit": "ms", "verdict": "slower", "margin": 0.02, "rounds": 8, **figures}
    pair = make_comparison("equal", 1.0, metrics=[change])
    words = {"bound": "io-binding", "run": "session.run"}
    for width in (80, 120):
        shown = " ".join(screen(document(cells=cells, comparisons=[pair]), width=width).split())
        assert shown.count(f"timed by {words[call]}") == 1
        assert shown.count(words[call]) == 1
        assert words[other] in shown
        assert "▲ 5 % slower" in shown
        assert "0.0337 ms" in shown
