"""What pages read from a document: pure, in words."""

import pytest

from dashboard import axes
from dashboard.reading import cell as reading
from dashboard.reading import cells, comparisons, facts, judging, leads, openings
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell, Input
from farm.contract.document_comparisons import MetricChange
from farm.contract.verdicts import MetricVerdict
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.stability import NO_ROUNDS, UNSTABLE
from farm.rules.presenting.tables import Entry, Table, move_shared_note
from farm.rules.wording.vocabulary import sign_of
from farm.runs.states import UNSETTLED_BLOCKS, activity_of
from tests.documents import make_comparison
from tests.unit.dashboard.conftest import address

# axes


def test_only_axes_that_vary_name_a_cell(document: Document, by_id: dict[str, Cell]) -> None:
    shared = axes.varying_axes(document.cells)
    assert axes.name_of(by_id["b1-a6"], shared) == "CPU · batch 8 · int8-dynamic · 1.29.0"
    assert axes.name_of(by_id["b1-a0"], []) == "1.29.0"


def test_hardware_that_follows_from_the_provider_is_no_axis_of_its_own(by_id: dict[str, Cell]) -> None:
    one = by_id["b1-a0"]
    gpu = one.model_copy(update={"provider": "CUDAExecutionProvider", "hardware": "cuda"})
    assert [axis.name for axis in axes.varying_axes([one, gpu])] == ["provider"]
    arm = one.model_copy(update={"hardware": "arm", "node": "pi"})
    assert [axis.name for axis in axes.varying_axes([one, arm])] == ["hardware"]


def test_versions_sort_by_number() -> None:
    names = ["onnxruntime==1.31.1", "onnxruntime-gpu==1.20.0", "onnxruntime==1.9.0", "onnxruntime==1.31.0rc1"]
    ordered = [str(runtime) for runtime in sorted(map(Runtime.of, names), key=axes.runtime_sort_key)]
    assert (ordered[0], ordered[-1]) == ("onnxruntime==1.9.0", "onnxruntime-gpu==1.20.0")


def test_a_session_set_is_named_and_says_what_it_changes(by_id: dict[str, Cell]) -> None:
    own = {
        "name": "parallel",
        "execution_mode": "parallel",
        "inter_op_threads": 2,
        "spinning": False,
        "config": {"a": "1"},
    }
    parallel = by_id["b1-a0"].model_copy(update={"session": own})
    assert (
        facts.describe_session(parallel)
        == "parallel: config a=1, execution mode parallel, inter op threads 2, spinning off"
    )
    assert facts.describe_session(by_id["b1-a0"]) == "default"
    assert axes.BY_NAME["session"].label(parallel) == "session parallel"


# the run


def test_the_first_sentence_stands_alone_and_keeps_numbers_with_their_units() -> None:
    first, rest = openings.split_first_sentence("It is 24 % slower. Gelu explains 96 % of it.")
    assert first == "It is 24\N{NO-BREAK SPACE}% slower."
    assert rest == "Gelu explains 96\N{NO-BREAK SPACE}% of it."
    assert openings.split_first_sentence("One sentence.") == ("One sentence.", "")


def test_an_open_run_says_how_far_it_is_and_what_it_knows_already(document: Document) -> None:
    early = document.model_copy(update={"comparisons": []})
    told = openings.make_run_opening(early, model="encoder", activity="measuring")
    wrong = "Wrong outputs of ONNX Runtime 1.24.1 (onnxruntime-openvino): 1 of 9 cells fails parity."
    assert (told.headline, told.because) == ("Measuring encoder", wrong)
    found = openings.make_run_opening(document, model="encoder", activity="queued")
    assert found.headline.startswith("encoder: wrong outputs of ")


@pytest.mark.parametrize(
    ("blocks", "word", "headline", "cells"),
    [
        (["leased", "queued", "waiting"], "measuring", "Measuring encoder", ["measuring", "queued", "preparing"]),
        (["done", "leased"], "measuring", "Measuring encoder", ["measuring"]),
        (["queued", "waiting"], "queued", "Queued: waiting for a node", ["queued", "preparing"]),
        (["done", "queued"], "queued", "Queued: waiting for a node", ["queued"]),
        (["waiting"], "preparing", "Preparing encoder", ["preparing"]),
        (["done", "reported"], "settling", "Settling the results of encoder", ["settling"]),
        (["reported", "queued"], "queued", "Queued: waiting for a node", ["settling", "queued"]),
        (["done", "failed", "cancelled"], "running", "Finishing encoder", []),
    ],
)
def test_an_open_run_has_one_state_in_its_sign_its_headline_and_its_cells(
    document: Document, blocks: list[str], word: str, headline: str, cells: list[str]
) -> None:
    assert activity_of(blocks) == word
    early = document.model_copy(update={"comparisons": []})
    assert openings.make_run_opening(early, model="encoder", activity=activity_of(blocks)).headline == headline
    assert [activity_of([state]) for state in blocks if state in UNSETTLED_BLOCKS] == cells
    # each of these words has its sign, and measuring is said of what a node measures alone
    assert [sign_of(one).word for one in (word, *cells)] == [word, *cells]
    assert ("easuring" in headline) == ("leased" in blocks)


def test_differences_between_asked_and_ran_are_warned_of_first(document: Document) -> None:
    (asked,) = openings.list_warnings(document.cells)
    assert (
        asked
        == "Not as asked: 1 cell ran on other providers than requested (OpenVINO · batch 1 · fp32 · openvino 1.24.1)."
    )
    assert openings.list_warnings(document.cells[:4]) == []


def test_facts_of_a_run_cover_what_was_measured_where(document: Document) -> None:
    shown = {fact.name: fact.text for fact in facts.list_run_facts(document)}
    assert shown["ONNX Runtime"] == "1.29.0, 1.31.1, openvino 1.24.1"
    assert shown["Provider asked → ran"] == "CPU; OpenVINO → OpenVINO, CPU; OpenVINO → refused"
    assert shown["Batch"] == "1, 8"
    assert shown["Timed by"] == "io-binding"
    assert shown["Node"] == "bench-1"
    assert facts.list_run_facts(document.model_copy(update={"cells": []})) == []


def test_a_run_of_two_versions_names_the_digest_of_each(document: Document) -> None:
    first, second, *_ = document.cells
    cells = [
        cell.model_copy(update={"model": name, "model_sha256": name[-1] * 64})
        for cell, name in ((first, "encoder v1"), (second, "encoder v2"))
    ]
    (told, *_) = facts.list_run_facts(document.model_copy(update={"cells": cells}))
    assert (told.text, told.copy) == ("encoder v1 111111111111, encoder v2 222222222222", "")


def test_a_node_that_measures_is_named_before_its_first_cell_has_ended(document: Document) -> None:
    waiting = facts.list_run_facts(
        document.model_copy(update={"cells": [cell.model_copy(update={"node": None}) for cell in document.cells]})
    )

    def node(told: list[facts.Fact], *measuring: str) -> str:
        return {fact.name: fact.text for fact in facts.add_nodes(told, measuring)}["Node"]

    assert node(waiting) == node(waiting, "") == "none"
    assert node(waiting, "gpu-1", "bench-1", "gpu-1") == "bench-1, gpu-1"
    assert node(facts.list_run_facts(document), "arm-1", "bench-1") == "arm-1, bench-1"


def test_comparisons_are_grouped_by_axis_with_runtimes_first_and_twins_last(
    document: Document, by_id: dict[str, Cell]
) -> None:
    assert comparisons.list_axes(document.comparisons) == ["runtime", "batch", "twin"]
    assert {one.axis for one in comparisons.select_axis(document.comparisons, "colour", by_id)} == {"runtime"}
    assert comparisons.select_axis([], "runtime", {}) == []


def test_a_twin_is_named_as_one_and_left_out_of_charts(document: Document, by_id: dict[str, Cell]) -> None:
    twin = comparisons.select_axis(document.comparisons, "twin", by_id)
    assert comparisons.make_table(twin, by_id, address).rows[0][1].text == "A/A: the same cell twice"
    assert comparisons.drop_twins(twin, by_id) == twin
    assert len(comparisons.drop_twins(document.comparisons, by_id)) == 5


def note_of(table: Table) -> int:
    """Where notes stand: among the first columns, so that they are seen without scrolling."""
    place = [head.text for head in table.heads].index("Note")
    assert place <= 5
    return place


def test_what_all_notes_say_stands_once_above_them_and_no_column_where_none_says_anything(
    document: Document, by_id: dict[str, Cell]
) -> None:
    late = "Time ran out (twice the plan): ask for more rounds. About 8 rounds in all would decide."
    base = document.comparisons[0].model_copy(update={"verdict": "undecided"})
    pairs = [base.model_copy(update={"reason": f"{rounds} rounds decide nothing. {late}"}) for rounds in (2, 5)]
    table, shared = move_shared_note(comparisons.make_table(pairs, by_id, address))
    assert shared == late
    assert [row[note_of(table)].text for row in table.rows] == ["2 rounds decide nothing.", "5 rounds decide nothing."]
    silent = comparisons.make_table([document.comparisons[0]], by_id, address)
    assert "Note" not in [head.text for head in silent.heads]


def test_an_undecided_comparison_says_how_many_rounds_would_decide(document: Document, by_id: dict[str, Cell]) -> None:
    open_ = document.comparisons[0].model_copy(update={"verdict": "undecided", "rounds_needed": 16})
    never = open_.model_copy(update={"rounds_needed": None, "interleaved": False})
    said = never.model_copy(update={"reason": "Chance.", "interleaved": True})
    table = comparisons.make_table([open_, never, said], by_id, address)
    notes = [row[note_of(table)].text for row in table.rows]
    assert notes == [
        "About 16 rounds in all would decide.",
        f"different hardware: not interleaved. N{NO_ROUNDS[1:]}.",
        f"Chance. N{NO_ROUNDS[1:]}.",
    ]


def test_every_cell_of_a_run_has_a_row_with_what_to_know_before_believing_it(document: Document) -> None:
    doubtful = [one.model_copy(update={"verdict": "undecided"}) for one in document.comparisons]
    tables = [
        cells.make_table(document.cells, address, comparisons=known) for known in (document.comparisons, doubtful)
    ]
    notes, at_risk = ({row[0].href: row[note_of(table)].text for row in table.rows} for table in tables)
    assert len(notes) == len(document.cells)
    assert notes["/runs/1/cells/b1-a8/"] == "A/A twin of b1-a0."
    assert notes["/runs/1/cells/b1-a6/"] == "Launches fall into two groups."
    assert at_risk["/runs/1/cells/b1-a6/"] == f"Launches fall into two groups. {UNSTABLE}"
    assert notes["/runs/1/cells/b1-a9/"].endswith("lie beyond the tolerance. Executed in bf16.")
    assert notes["/runs/1/cells/b1-a11/"].startswith("The runner ended by signal 11")


# a cell


def test_a_provider_that_took_part_unasked_is_said_with_its_time(by_id: dict[str, Cell]) -> None:
    placement = reading.describe_placement(by_id["b1-a9"])
    assert placement.sentence == "OpenVINO was requested; CPU also ran and has 38 % of the time."
    assert reading.describe_time_elsewhere(by_id["b1-a9"]) == "38 % of the time is spent outside OpenVINO: CPU."
    assert reading.describe_time_elsewhere(by_id["b1-a0"]) == ""


def test_a_provider_that_did_not_start_is_said_too(by_id: dict[str, Cell]) -> None:
    fell_back = by_id["b1-a0"].model_copy(update={"requested_providers": ["CUDAExecutionProvider"]})
    assert reading.describe_placement(fell_back).sentence == (
        "CUDA was requested but did not start: the numbers below are from CPU."
    )
    assert not reading.describe_placement(by_id["b1-a0"]).sentence
    chosen = reading.describe_placement(fell_back.model_copy(update={"policy": "prefer-npu", "providers": []}))
    assert (chosen.requested, chosen.active, chosen.sentence) == ("policy prefer-npu", "CPU", "")
    assert reading.describe_placement(by_id["b1-a11"]).active == "not measured"


def test_metrics_that_so_few_timings_cannot_tell_say_from_when_on(by_id: dict[str, Cell]) -> None:
    rows = {row[0].text: row for row in reading.metric_table(by_id["b1-a0"]).rows}
    assert rows["p99"][1].text == "not measured"
    assert rows["p99"][3].text == "shown from 662 timings on"
    assert rows["p50"][3].text.endswith("95 % interval over 8 launches")
    one = by_id["b1-a0"].model_copy(update={"p50_ci_ms": None, "samples_ms": [1.9]})
    assert reading.metric_table(one).rows[0][3].text == "1 launch"


def test_of_a_cell_that_was_never_timed_only_what_is_known_is_shown(by_id: dict[str, Cell]) -> None:
    untimed = by_id["b1-a11"]
    assert untimed.p50_ms is None
    texts = [row[1].text for row in reading.metric_table(untimed).rows]
    assert "not measured" not in texts
    known = untimed.model_copy(update={"session_ms": 8.25})
    assert [row[0].text for row in reading.metric_table(known).rows].count("session creation") == 1


def test_what_a_cell_was_fed_is_a_row_an_input(by_id: dict[str, Cell]) -> None:
    fed = [
        Input(
            name="x", dtype="float32", shape=[1, 3, 320, 320], made_by="random, standard normal, seed 0", fill="normal"
        ),
        Input(name="sr", dtype="int64", shape=[], made_by="16000 everywhere", fill="16000"),
    ]
    table = reading.input_table(by_id["b1-a0"].model_copy(update={"inputs": fed}))
    assert [entry.text for entry in table.rows[0]] == [
        "x", "float32", "1 × 3 × 320 × 320", "random, standard normal, seed 0"
    ]  # fmt: skip
    assert [entry.text for entry in table.rows[1]] == ["sr", "int64", "scalar", "16000 everywhere"]


def test_outputs_show_as_many_nines_as_there_are(by_id: dict[str, Cell]) -> None:
    row = reading.parity_table(by_id["b1-a9"]).rows[0]
    assert row[4].text == "0.999471"
    assert row[-1].text == "811"
    exact = by_id["b1-a0"].model_copy(deep=True)
    exact.parity.outputs[0].cosine = 1.0
    assert reading.parity_table(exact).rows[0][4].text == "1"
    exact.parity.outputs[0].cosine = None
    assert reading.parity_table(exact).rows[0][4].text == "not measured"


def test_siblings_are_the_other_cells_of_the_block(document: Document, by_id: dict[str, Cell]) -> None:
    table = reading.sibling_table(document, by_id["b1-a0"], address)
    assert len(table.rows) == len(document.cells) - 1
    assert any(row[0].soft == "A/A twin" for row in table.rows)
    assert len(reading.provider_table(by_id["b1-a9"]).rows) == 2


def test_facts_of_a_cell_tell_the_executed_precision(by_id: dict[str, Cell]) -> None:
    mixed = by_id["b1-a9"].model_copy(update={"concurrency": 2, "provider_options": {"device_type": "CPU"}})
    shown = {fact.name: fact.text for fact in facts.list_cell_facts(mixed)}
    assert shown["Precision"] == "fp32 asked, bf16 executed"
    assert shown["Shapes"] == "sequence=64"
    assert shown["Concurrency"] == "2"
    assert shown["Provider options"] == "device_type=CPU"


def test_facts_of_a_cell_tell_the_device_behind_a_plug_in_and_what_an_engine_takes_to_build(by_id: dict[str, Cell]):
    plain = by_id["b1-a0"]
    assert not {"Device", "Engine"} & {fact.name for fact in facts.list_cell_facts(plain)}
    built = plain.model_copy(
        update={
            "provider_facts": {"device": "CPU of AMD", "adapter": "software"},
            "session_ms": 520.0,
            "cached_session_ms": 310.0,
            "engine_bytes": 250_000,
        }
    )
    shown = {fact.name: fact.text for fact in facts.list_cell_facts(built)}
    assert shown["Device"] == "adapter software, device CPU of AMD"
    assert shown["Engine"] == "built in 520 ms, from the cache in 310 ms, 250 kB"


# side by side


def test_cells_of_one_block_are_judged_as_pairs_and_others_without_a_verdict(
    document: Document, by_id: dict[str, Cell]
) -> None:
    base, other = (judging.ChosenCell(f"1:{name}", 1, by_id[name], address(name)) for name in ("b1-a0", "b1-a1"))
    paired = judging.judge_pair(base, other, document.comparisons)
    assert (paired.sign.word, paired.change) == ("slower", "24 % slower")
    assert paired.evidence.endswith("8 rounds side by side in one block")
    busy = [one.model_copy(update={"verdict_from": "processor"}) for one in document.comparisons]
    judged = judging.judge_pair(base, other, busy)
    assert judged.evidence.endswith("in one block, processor time")
    assert (paired.by_processor, judged.by_processor) == (False, True)
    later = judging.judge_pair(base, judging.ChosenCell("2:b1-a1", 2, other.cell, ""), document.comparisons)
    assert later.sign.word == "not side by side"
    assert later.change.startswith("2")
    pi = other.cell.model_copy(update={"node": "pi"})
    assert judging.judge_pair(base, judging.ChosenCell("2:x", 2, pi, ""), []).sign.word == "different hardware"
    bigger = judging.judge_pair(base, judging.ChosenCell("1:b1-a2", 1, by_id["b1-a2"], ""), [])
    assert bigger.change.endswith(" % fewer items/s")
    longer = by_id["b1-a2"].model_copy(update={"shapes": {"sequence": 63}})
    without = by_id["b1-a2"].model_copy(update={"batch": None})
    for one in (longer, without):
        unlike = judging.judge_pair(base, judging.ChosenCell("1:x", 1, one, ""), [])
        assert unlike.evidence == "The workloads differ: other shapes, or one without a batch."
    crashed = judging.judge_pair(base, judging.ChosenCell("1:b1-a11", 1, by_id["b1-a11"], ""), [])
    assert crashed.evidence == "One of the two has too few launches."


def test_cells_of_one_block_that_differ_along_two_axes_are_never_called_apart(by_id: dict[str, Cell]) -> None:
    """Such cells were "not measured side by side: the machine may have changed", though one block measured both."""
    base = judging.ChosenCell("1:b1-a0", 1, by_id["b1-a0"], "")
    changed = {"runtime": by_id["b1-a1"].runtime, "precision": "int8-dynamic", "id": "b1-x"}
    for more, why in (({}, "both changed: precision and runtime"), ({"threads": 9}, "all changed: ")):
        other = base.cell.model_copy(update={**changed, **more})
        found = judging.judge_pair(base, judging.ChosenCell("1:b1-x", 1, other, ""), [])
        assert found.sign.word == "several changes"
        assert f"; {why}" in found.evidence
        assert judging.judge_pair(base, judging.ChosenCell("2:b1-x", 2, other, ""), []).sign.word == "not side by side"
    twin = base.cell.model_copy(update={"id": "b1-y"})
    assert judging.judge_pair(base, judging.ChosenCell("1:b1-y", 1, twin, ""), []).sign.word == "not compared"


def test_a_comparison_that_shares_nothing_worth_saying_is_named_by_its_node(by_id: dict[str, Cell]) -> None:
    pair = make_comparison(baseline="b1-a0", candidate="b1-a1")
    two = {name: by_id[name] for name in ("b1-a0", "b1-a1")}
    shared = axes.varying_axes(two.values())
    assert comparisons.name_step(pair, two, shared)[0] == by_id["b1-a0"].node
    unnamed = {name: cell.model_copy(update={"node": None}) for name, cell in two.items()}
    assert comparisons.name_step(pair, unnamed, shared)[0] == "this machine"


def test_other_metrics_stand_in_one_column_losses_first(document: Document, by_id: dict[str, Cell]) -> None:
    one = document.comparisons[0]

    def change(name: str, verdict: MetricVerdict, ratio: float, unit: str = "ms") -> MetricChange:
        return MetricChange(
            name=name, unit=unit, baseline=1.0, candidate=ratio, ratio=ratio, ci_low=ratio, ci_high=ratio,
            verdict=verdict, margin=0.1, rounds=8,
        )  # fmt: skip

    def column(*changes: MetricChange) -> Entry:
        told = one.model_copy(update={"metrics": list(changes)})
        (row,) = comparisons.make_table([told], by_id, address).rows
        return row[-1]

    slower, faster = change("session_ms", "slower", 1.2), change("first_ms", "faster", 0.5)
    memory = change("peak_memory_bytes", "bigger", 2.0, "bytes")
    for metrics in ([], [memory]):
        told = one.model_copy(update={"metrics": metrics})
        heads = comparisons.make_table([told], by_id, address).heads
        assert "Other metrics" not in [head.text for head in heads]
    found = column(faster, slower, memory)
    assert (found.value, found.soft) == ("slower", "session creation 20.0 % slower; 1 more")
    assert column(change("session_ms", "equal", 1.0)).value == "equal"
    open_ = column(change("session_ms", "equal", 1.0), change("first_ms", "undecided", 1.3))
    assert (open_.value, open_.soft) == ("undecided", "first inference")


def test_a_row_of_a_run_says_which_settings_failed_behind_what_it_compared() -> None:
    gone = "1 of 3 cells did not finish (fp16)"
    led = KeyResult(step="1.29.0 → 1.31.1", where="CPU, batch 1", node="bench-1", ratio=1.2, unfinished=gone)
    assert leads.make_subject_entry(led).soft == f"CPU, batch 1, on bench-1. {gone}"
    wrong = KeyResult(step="batch 8", where="1 of 3 cells", reason="Outputs differ.", unfinished=gone)
    assert leads.make_subject_entry(wrong).soft == f"1 of 3 cells. Outputs differ. {gone}"
    assert leads.make_subject_entry(wrong.model_copy(update={"unfinished": ""})).soft == "1 of 3 cells. Outputs differ."
