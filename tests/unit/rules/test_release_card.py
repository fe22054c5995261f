"""A release's report card: what stands in each place, and which sentence leads."""

from typing import Any

import pytest

from farm.contract.cells import Runtime
from farm.contract.document_cells import Parity
from farm.contract.document_comparisons import MetricChange
from farm.rules.changes.release_card import (
    OF_SEARCH,
    Card,
    ConfirmedChange,
    MeasuredPair,
    Place,
    Row,
    judge_place,
    lies_between,
    list_baselines,
)
from farm.rules.findings.cell_pairs import Pair
from farm.rules.searches.switches import Candidate, describe_remedy
from farm.rules.wording.numbers import NOT_MEASURED
from tests.documents import CPU, NEW, OLD, make_cell, make_comparison

CUDA = "CUDAExecutionProvider"
WRONG = Parity(verdict="fail", text="y is off by 0.5.")


def measured(
    verdict: Any = "equal", ratio: float | None = 1.0, *, run: int = 1, seen: float | None = 0.03, **how: Any
) -> MeasuredPair:
    """One point in a run. `old`, `new`: changes of the two cells; `batch`: another point; `is_compared`: together."""
    both = {"node": "bench-1", "p50_ms": 1.0, "parity": Parity(verdict="pass"), "batch": how.get("batch", 1)}
    old = make_cell("c1", **both | how.get("old", {}))
    new = make_cell("c2", runtime=NEW, **both | how.get("new", {}))
    known = {"smallest_detectable": seen, "metrics": how.get("metrics", [])}
    compared = make_comparison(verdict, ratio, **known) if how.get("is_compared", True) else None
    return MeasuredPair(run, Pair(old, new, compared), how.get("is_of_search", False))


def row(name: str, *points: MeasuredPair, raised: Any = (), model: int = 1, **how: Any) -> Row:
    return Row(model, name, {"bench-1": judge_place(points, raised)}, **how)


def card(*rows: Row, **how: Any) -> Card:
    return Card(Runtime.of(NEW), Runtime.of(OLD), rows, **how)


CRASHED = {"status": "crashed", "p50_ms": None, "reason": {"code": "crashed", "text": "It died."}}


@pytest.mark.parametrize(
    ("point", "word", "kind"),
    [
        (measured("slower", 1.52), "52.0 % slower", "slower"),
        # however small: what a rule lets pass alerts nobody, and is slower all the same
        (measured("slower", 1.03), "3.0 % slower", "slower"),
        (measured("faster", 0.8, new={"parity": WRONG}), "wrong outputs", "parity"),
        (measured(new=CRASHED, is_compared=False), "fails", "failed"),
        (
            measured(
                old={"provider": CUDA, "requested_providers": [CUDA], "active_providers": [CUDA]},
                new={"provider": CUDA, "requested_providers": [CUDA], "active_providers": [CPU]},
            ),
            "placed differently",
            "placement",
        ),
        (measured("faster", 0.8), "20.0 % faster", ""),
        (measured("undecided", 1.04), "undecided", ""),
        (measured("undecided", None, is_compared=False), "undecided", ""),
        (measured(), "equal", ""),
        # a gain of wrong outputs is praised nowhere
        (measured("faster", 0.8, old={"parity": WRONG}, new={"parity": WRONG}), "wrong outputs with both", ""),
        (measured(old=CRASHED, new=CRASHED, is_compared=False), "crashed", ""),
        (measured(old=CRASHED, new={**CRASHED, "reason": None}, is_compared=False), "crashed", ""),
    ],
)
def test_a_place_says_what_its_point_came_to(point: MeasuredPair, word: str, kind: str) -> None:
    found = judge_place([point])
    assert (found.sign.word, found.kind, found.points, found.run, found.cell) == (word, kind, 1, 1, "c2")


def test_the_gravest_of_several_points_stands_for_all() -> None:
    points = [
        measured(batch=1),
        measured("faster", 0.5, batch=2),
        measured("slower", 1.1, batch=4),
        measured("slower", 1.3, batch=8),
    ]
    assert (judge_place(points).sign.word, judge_place(points).points) == ("30.0 % slower", 4)
    assert judge_place([*points, measured(new={"parity": WRONG}, batch=16)]).kind == "parity"
    assert judge_place(points[:2]).sign.word == "2.00× faster"
    assert judge_place([measured("undecided", 1.01, batch=2), measured()]).sign.word == "undecided"


def test_a_change_of_one_point_is_named_by_it_and_hides_no_other() -> None:
    """ "encoder_dyn: fails" stood of one whose fp32 ran, and was 23 % slower."""
    half, words = {"precision": "fp16"}, "ran with wrong outputs on onnxruntime==1.29.0 and crashes"
    fails = measured(old={**half, "parity": WRONG}, new={**half, **CRASHED}, is_compared=False, run=2)
    found = card(row("encoder_dyn", measured("slower", 1.23), fails))
    assert (found.headline, found.because) == (
        "encoder_dyn (fp16) with 1.31.1: fails",
        "Also encoder_dyn (fp32: 23.0 % slower).",
    )
    text = judge_place([measured("slower", 1.23), fails]).text
    assert words in text
    assert text.endswith("Also fp32: 23.0 % slower.")
    alike = card(row("encoder_dyn", measured("slower", 1.23), measured("slower", 1.2, batch=8)))
    assert alike.headline == "encoder_dyn is 23.0 % slower with 1.31.1"


def test_a_fresh_block_that_does_not_show_it_again_takes_it_back() -> None:
    assert judge_place([measured("equal", run=2), measured("slower", 1.24, run=1)]).sign.word == "equal"
    assert judge_place([measured("equal", run=2), measured("slower", 1.24, run=3)]).kind == "slower"


def test_what_a_search_measured_counts_where_nothing_else_did() -> None:
    """A release that a bisection had measured stood as not measured."""
    searched = measured("slower", 1.24, run=3, is_of_search=True)
    place = judge_place([searched])
    assert (place.sign.word, place.run, place.text.endswith(OF_SEARCH)) == ("24.0 % slower", 3, True)
    assert (judge_place([searched, measured("equal", run=2)]).sign.word, judge_place([measured()]).text) == (
        "equal",
        "",
    )


def test_alerts_tell_what_pairs_do_not_show() -> None:
    memory, slower = ConfirmedChange(7, "memory", "More.", 1.4), ConfirmedChange(8, "slower", "Slower.", 1.24)
    assert judge_place([measured()], [slower]).sign.word == "equal"
    assert (judge_place([], [slower]).sign.word, judge_place([], [slower]).alert) == ("24.0 % slower", 8)
    found = judge_place([measured()], [memory])
    assert (found.sign.word, found.alert, found.points) == ("more memory", 7, 1)
    # what a pair shows is told by its alert
    assert judge_place([measured("slower", 1.24)], [memory, slower]).alert == 8
    assert judge_place([measured("slower", 1.24)], [memory]).alert is None


def test_a_slower_prompt_is_no_clean_place() -> None:
    """A generation whose prefill was slower, and its tokens as fast, stood as equal."""
    first = MetricChange(
        name="ttft_ms", unit="ms", baseline=4.0, candidate=5.2, ratio=1.3, verdict="slower", margin=0.02, rounds=8
    )
    place = judge_place([measured(metrics=[first])])
    assert (place.sign.word, place.kind, place.is_clean) == ("slower first token", "ttft", False)


def test_where_a_model_was_not_measured_it_says_so() -> None:
    assert Row(1, "encoder").on_node("pi").sign.word == NOT_MEASURED
    waits = Row(1, "encoder", open={"pi": "queued", "bench-1": "running"})
    words = {node: waits.on_node(node).sign.word for node in ("pi", "bench-1", "another")}
    assert words == {"pi": "queued", "bench-1": "running", "another": NOT_MEASURED}
    waits = Row(1, "encoder", open={"pi": "queued", "bench-1": "queued", "mac": "running"}, candidate_nodes=2)
    shared = [waits.on_node(node).sign.word for node in ("pi", "bench-1", "mac")]
    assert shared == [*["queued for any of 2 nodes"] * 2, "running"]
    assert row("encoder", measured()).on_node("bench-1").sign.word == "equal"


def test_nothing_was_found_where_every_point_was_judged() -> None:
    rows = [
        row("a", measured(seen=0.02), measured("faster", 0.9, seen=0.04, batch=8)),
        row("b", measured("undecided", seen=0.031)),
        row("c", measured(), measured("undecided", seen=None, batch=8)),
        Row(4, "d"),
    ]
    found = card(*rows)
    sentence = "Nothing slower or wrong found on 2 of 3 models (a change of 4.0 % would have been seen)"
    assert (found.headline, found.because, found.measured_nodes) == (sentence, "", ["bench-1"])


def test_what_leads_is_the_gravest_with_what_takes_it_back() -> None:
    slower = row("transformer", measured("slower", 1.52), raised=[ConfirmedChange(3, "slower", "Slower.", 1.52)])
    small = row("bert", measured("slower", 1.1))
    clean = row("resnet", measured())
    assert card(small, slower, clean).headline == "transformer is 52.0 % slower with 1.31.1"
    told = card(small, slower, clean, remedies={3: "disable SkipLayerNormFusion"})
    assert told.headline == "transformer is 52.0 % slower: disable SkipLayerNormFusion"
    assert told.because == (
        "Also bert (10.0 % slower). "
        "Nothing slower or wrong found on 1 of 3 models (a change of 3.0 % would have been seen)."
    )
    wrong = row("gpt", measured(new={"parity": WRONG}))
    assert card(slower, wrong).headline == "gpt with 1.31.1: wrong outputs"
    assert card(slower, wrong).because == "Also transformer (52.0 % slower)."


def test_what_nobody_knows_yet_is_no_good_news() -> None:
    bare = "ONNX Runtime 1.31.1 has not been compared with an older release yet"
    assert card().headline == card(Row(1, "a")).headline == bare
    assert card(row("a", measured("undecided", seen=None))).headline == "ONNX Runtime 1.31.1: no model is decided yet"
    wrong = row("a", measured(old={"parity": WRONG}, new={"parity": WRONG}))
    assert card(wrong).headline == "ONNX Runtime 1.31.1: no model is decided yet"


def test_a_release_is_compared_with_what_most_models_were_measured_with_and_the_newest_of_those() -> None:
    models = {"1.29.0": {1, 2, 3}, "1.30.0": {1, 2, 3}, "1.31.0": {1}, "1.33.0": {1, 2, 3, 4}}
    assert list_baselines(models, "1.32.0") == ["1.30.0", "1.29.0", "1.31.0"]
    assert list_baselines({"1.33.0": {1}}, "1.32.0") == []


@pytest.mark.parametrize(
    ("good", "bad", "first_bad", "holds"),
    [
        ("1.30.0", "1.32.0", "", True),
        ("1.29.0", "1.32.0", "", False),
        ("1.30.0", "1.33.0", "", False),
        ("1.29.0", "1.33.0", "1.31.0", True),
        ("1.29.0", "1.32.0", "1.30.0", False),
        ("1.29.0", "1.33.0", "1.33.0", False),
    ],
)
def test_an_alert_counts_where_its_shift_surely_came_between(good: str, bad: str, first_bad: str, holds: bool) -> None:
    assert lies_between(good=good, bad=bad, first_bad=first_bad, old="1.30.0", new="1.32.0") is holds


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (Candidate("level", "", level="basic"), "use the optimization level basic"),
        (Candidate("threads", "", threads=2), "run on 2 threads"),
        (Candidate("setting", "", names=("arena",)), "switch arena off"),
        (Candidate("option", "", names=("device_type",)), "leave out the provider option device_type"),
        (Candidate("optimizers", "", names=("SkipLayerNormFusion",)), "disable SkipLayerNormFusion"),
        (Candidate("optimizers", "", names=("A", "B", "C")), "disable A and 2 more optimizers"),
    ],
)
def test_a_work_around_is_said_as_what_to_do(candidate: Candidate, words: str) -> None:
    assert describe_remedy(candidate) == words


def test_a_place_without_figures_weighs_by_its_kind_alone() -> None:
    bare = judge_place([measured(new=CRASHED, is_compared=False)])
    assert isinstance(bare, Place)
    assert bare.severity_key[1] == 0.0
