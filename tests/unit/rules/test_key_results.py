"""What a run leads with, as figures: those of the comparison that its headline is about."""

import pytest

from farm.contract.document import Document
from farm.contract.document_comparisons import MetricChange
from farm.rules.comparing.quantities import Change
from farm.rules.presenting import sentences
from farm.rules.presenting.answers import make_answer
from farm.rules.presenting.key_results import KeyResult, find_key_result
from farm.rules.reporting.documents import add_sentence
from tests.unit.rules.test_sentences import NEW, cell, compared


def document(cells, comparisons=()):
    return Document(machine={}, budget="quick", seed=0, cells=list(cells), comparisons=list(comparisons))


def test_a_run_leads_with_the_comparison_that_its_headline_is_about():
    lead = find_key_result(document([cell(), NEW], [compared()]))
    assert lead == KeyResult(
        verdict="slower", quantity="latency", ratio=1.24, low=1.21, high=1.26, level=0.95, rounds=8,
        axis="runtime", step="1.29.0 → 1.31.1", where="CPU, fp32, batch 1, 1 thread", node="bench-1",
    )  # fmt: skip


def test_batches_lead_by_their_items_as_the_headline_says_it():
    lead = find_key_result(
        document([cell(), cell("c2", batch=8)], [compared(axis="batch", ratio=7.0, ci_low=6.9, ci_high=7.1)])
    )
    assert (lead.verdict, lead.quantity, lead.step) == ("more", "items", "batch 1 → batch 8")
    assert lead.ratio == pytest.approx(8 / 7)
    assert lead.low == pytest.approx(8 / 7.1)


@pytest.mark.parametrize(("detectable", "verdict"), [(None, "undecided"), (0.03, "more")])
def test_items_are_undecided_as_long_as_no_round_decides_anything(detectable: float | None, verdict: str) -> None:
    """ "▲ 5 % more items/s, 7 rounds" stood beside "7 rounds decide nothing"."""
    pair = compared(
        axis="batch", verdict="undecided", smallest_detectable=detectable, ratio=7.6, ci_low=7.5, ci_high=7.7
    )
    lead = find_key_result(document([cell(), cell("c2", batch=8)], [pair]))
    assert (lead.verdict, lead.quantity) == (verdict, "items")


def test_cells_that_differ_in_no_known_axis_are_called_by_their_names():
    lead = find_key_result(
        document([cell(node=None), cell("c2", node=None)], [compared(axis="weather", reason="Rain.")])
    )
    assert (lead.step, lead.node, lead.reason) == ("c1 → c2", "", "Rain.")


def test_a_run_of_one_cell_leads_with_its_latency():
    lead = find_key_result(document([cell(), cell("c2", p50_ms=None, status="failed")]))
    assert (lead.verdict, lead.step, lead.p50_ms, lead.p50_ci_ms) == (
        *("", "1.29.0, 1 of 2 cells", 0.228, (0.226, 0.230)),
    )
    assert find_key_result(document([cell()])).step == "1.29.0"
    assert find_key_result(document([cell(node=None)])).node == ""


def test_a_run_that_compares_nothing_leads_with_its_fastest_cell():
    cells = [cell(), cell("c2", p50_ms=0.2, p50_ci_ms=(0.19, 0.21), provider="OpenVINOExecutionProvider")]
    lead = find_key_result(document(cells))
    assert (lead.step, lead.p50_ms) == ("1.29.0, the fastest of 2 measured cells", 0.2)
    assert lead.where.startswith("OpenVINO, fp32")


def test_wrong_outputs_lead_by_their_settings_with_no_figure_beside_them():
    wrong = {"verdict": "fail", "text": "Outputs differ."}
    lead = find_key_result(document([cell(), cell("c2", p50_ms=0.2, batch=8, parity=wrong)]))
    assert lead == KeyResult(verdict="wrong outputs", step="batch 8", where="1 of 2 cells", reason="Outputs differ.")
    assert find_key_result(document([cell(parity=wrong)])).step == "1.29.0"


def test_a_run_that_measured_nothing_has_the_fate_of_its_cells_for_a_verdict():
    late = {"p50_ms": None, "status": "timeout", "reason": {"code": "timeout", "text": "It took 600 s."}}
    lead = find_key_result(document([cell(**late), cell("c2", **late), cell("c3", p50_ms=None, status="refused")]))
    assert (lead.verdict, lead.step, lead.reason) == ("timeout", "none of 3 cells measured", "It took 600 s.")
    assert find_key_result(document([cell(p50_ms=None, status="failed")])).reason == ""
    assert find_key_result(document([])) == KeyResult()


@pytest.mark.parametrize(
    ("quantity", "change"),
    [
        ("rate", Change("rate", "higher", 1.2, 1.1, 1.3)),
        ("processor", Change("latency", "higher", 1.2, 1.1, 1.3)),
        ("", Change("latency", "higher", 1.2, 1.1, 1.3)),
    ],
)
def test_a_lead_is_a_change_of_its_quantity_or_of_latency(quantity, change):
    assert KeyResult(verdict="higher", quantity=quantity, ratio=1.2, low=1.1, high=1.3).change == change


def test_a_lead_without_figures_has_no_text():
    assert KeyResult(verdict="undecided").change.text == ""


def metric(name, verdict, ratio):
    return MetricChange(
        name=name, unit="ms", baseline=4.0, candidate=4.0 * ratio, ratio=ratio, ci_low=ratio - 0.02,
        ci_high=ratio + 0.02, verdict=verdict, margin=0.02, rounds=8,
    )  # fmt: skip


def generated(*metrics, old="generate:prompt=4:new=3", **changes):
    new = cell("c2", runtime="onnxruntime==1.31.1", scenario="generate:prompt=4:new=3")
    known = {"verdict": "equal", "ratio": 1.0, "ci_low": 0.99, "ci_high": 1.01, "metrics": [*metrics]}
    return document([cell(scenario=old), new], [compared(**{**known, **changes})])


@pytest.mark.parametrize(
    ("metrics", "changes", "leads"),
    [
        # the run's sentence began "Prefill is 30 % slower", and every list of runs said "= equal"
        ([("ttft_ms", "slower", 1.3)], {}, ("slower", "prefill", "30 % slower prefill")),
        ([("ttft_ms", "faster", 0.5)], {}, ("faster", "prefill", "2.00× faster prefill")),
        ([("tokens_per_s", "lower", 0.8)], {}, ("lower", "tokens", "20 % lower tokens/s")),
        ([("ttft_ms", "undecided", 1.3), ("tokens_per_s", "equal", 1.0)], {}, ("equal", "latency", "")),
        # a loss of one phase stands before the gain of another, and the larger before the smaller
        (
            [("ttft_ms", "slower", 1.3)],
            {"verdict": "faster", "ratio": 0.5, "ci_low": 0.49, "ci_high": 0.51},
            ("slower", "prefill", "30 % slower prefill"),
        ),
        (
            [("ttft_ms", "slower", 1.1)],
            {"verdict": "slower", "ratio": 1.24, "ci_low": 1.21, "ci_high": 1.26},
            ("slower", "latency", "24 % slower"),
        ),
        # by processor time the clock's figures lead nowhere
        (
            [("ttft_ms", "slower", 1.3), ("ttft_cpu_ms", "equal", 1.0), ("tokens_per_s", "lower", 0.8)],
            {"verdict_from": "processor"},
            ("equal", "latency", ""),
        ),
        # a longer prompt takes longer, and more sequences too
        ([("ttft_ms", "slower", 3.0)], {"old": "generate:prompt=1:new=3"}, ("equal", "latency", "")),
        ([("ttft_ms", "slower", 3.0)], {"old": "single"}, ("equal", "latency", "")),
    ],
)
def test_a_generation_leads_with_its_gravest_phase(metrics, changes, leads):
    found = generated(*(metric(*told) for told in metrics), **changes)
    lead = find_key_result(found)
    assert (lead.verdict, lead.quantity, lead.change.text if leads[2] else "") == leads


def test_the_sentence_of_a_generation_is_of_what_leads():
    said = sentences.verdict_line(generated(metric("ttft_ms", "slower", 1.3)))
    assert said.startswith("Prefill is 30 % slower, decoding is equal. ONNX Runtime 1.31.1 prefills ")
    said = sentences.verdict_line(generated(metric("tokens_per_s", "lower", 0.8)))
    assert "at 20 % lower tokens/s than 1.29.0" in said


def memory(ratio=1.3, name="peak_memory_bytes"):
    sides = {"baseline": 107 * 2**20, "candidate": ratio * 107 * 2**20, "unit": "bytes", "verdict": "bigger"}
    return metric(name, "bigger", ratio).model_copy(update=sides)


UNDECIDED = {"verdict": "undecided", "ratio": 1.05, "ci_low": 0.99, "ci_high": 1.11}
GAIN = compared(candidate="c3", axis="precision", verdict="faster", ratio=0.5, ci_low=0.4, ci_high=0.6)
WRONG = {"verdict": "fail", "text": "Outputs differ."}


@pytest.mark.parametrize("own", [UNDECIDED, {"verdict": "equal", "ratio": 1.0, "ci_low": 0.99, "ci_high": 1.01}])
@pytest.mark.parametrize("others", [(), (GAIN,)])
def test_memory_that_grew_leads_before_gains_and_what_is_open(own, others) -> None:
    """ "Whether 1.31.1 is slower is undecided" led, and the list had no run whose verdict is bigger."""
    found = document([cell(), NEW, cell("c3", precision="fp16")], [compared(**own, metrics=[memory()]), *others])
    lead = find_key_result(found)
    assert (lead.verdict, lead.change.text, lead.axis, lead.level) == ("bigger", "30 % bigger", "runtime", None)
    said = sentences.verdict_line(found)
    assert said.startswith("ONNX Runtime 1.31.1 is bigger: peak memory of a launch 139 MiB instead of 107 MiB. ")
    assert said.count("bigger") == 1
    answer = make_answer(add_sentence(found))
    assert answer.headline == "encoder: ONNX Runtime 1.31.1 takes 30 % more memory than 1.29.0"
    assert answer.because.startswith("peak memory of a launch 139 MiB instead of 107 MiB · ")
    assert "bigger" not in answer.rest
    assert ("Whether ONNX Runtime 1.31.1" in said) == (own is UNDECIDED)


def test_memory_leads_behind_losses_of_time_and_not_where_more_of_it_is_no_news() -> None:
    open_one = compared(**UNDECIDED, metrics=[memory()])
    slower = compared(candidate="c3", axis="precision")
    assert (
        find_key_result(document([cell(), NEW, cell("c3", precision="fp16")], [open_one, slower])).verdict == "slower"
    )
    wrong = find_key_result(document([cell(parity=WRONG), NEW], [open_one]))
    assert wrong.verdict == "wrong outputs"
    by_threads = open_one.model_copy(update={"axis": "concurrency"})
    assert find_key_result(document([cell(), NEW], [by_threads])).verdict == "undecided"
    smaller = memory(0.5).model_copy(update={"verdict": "smaller"})
    assert find_key_result(document([cell(), NEW], [compared(**UNDECIDED, metrics=[smaller])])).verdict == "undecided"


def test_address_space_leads_nothing_and_a_faster_setting_is_told_before_it() -> None:
    """ "2 threads is bigger" led, of equal memory, and that they were decidedly faster stood nowhere."""
    space = memory(1.94, "peak_address_space_bytes")
    undecided, faster = (
        compared(**UNDECIDED, axis="threads", metrics=[space]),
        GAIN.model_copy(update={"axis": "threads", "metrics": [memory(1.93, "peak_address_space_bytes")]}),
    )
    found = document([cell(), cell("c2", threads=2), cell("c3", threads=2)], [undecided, faster])
    assert find_key_result(found).verdict == "faster"
    assert "2 threads runs encoder" in (said := sentences.verdict_line(found))
    assert "faster but bigger: peak address space" in said
    assert find_key_result(document([cell(), NEW], [compared(**UNDECIDED, metrics=[space])])).verdict == "undecided"


def test_a_model_that_grew_keeps_its_first_letter_and_all_sizes_are_told() -> None:
    sizes = [memory(), memory(1.2, "peak_address_space_bytes")]
    found = document(
        [cell(model="base"), cell("c2", model="new")], [compared(**UNDECIDED, axis="model", metrics=sizes)]
    )
    assert sentences.verdict_line(found).startswith(
        "new is bigger: peak memory of a launch 139 MiB instead of 107 MiB and"
    )
    assert make_answer(add_sentence(found)).rest.startswith("new is bigger: ")


def test_a_run_says_in_its_row_which_settings_failed() -> None:
    """A run whose fp16 crashed with the new release told of its wrong outputs alone in every list."""
    crashed = cell("c3", p50_ms=None, precision="fp16", status="crashed")
    gone = "1 of 3 cells did not finish (fp16)"
    assert find_key_result(document([cell(), NEW, crashed], [compared()])).unfinished == gone
    assert find_key_result(document([cell(), cell("c2", batch=8, parity=WRONG), crashed])).unfinished == gone
    assert find_key_result(document([cell(), cell("c2", batch=8), crashed])).unfinished == gone
    assert find_key_result(document([cell(), NEW], [compared()])).unfinished == ""
    assert find_key_result(document([crashed])).unfinished == ""
