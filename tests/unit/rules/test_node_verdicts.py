"""Operators get verdicts: a change too small for the whole model is called at the node that it comes from."""

import numpy as np
import pytest

from farm.contract.reports import Operator
from farm.rules.comparing.comparisons import Comparison
from farm.rules.tracing import node_verdicts
from farm.rules.tracing.attribution import Attribution
from farm.rules.tracing.node_verdicts import judge_nodes
from farm.rules.tracing.round_times import TracedArm, attribute_rounds, list_own_nodes
from farm.rules.wording.vocabulary import is_change
from tests.unit.rules.making import make_operator, make_trace

BASE = {"mm": 600.0, "norm": 60.0, "add": 300.0, "soft": 240.0}


def noisy(times: dict[str, float], *, rounds: int, seed: int, s: float = 0.02) -> list[dict[str, float]]:
    dice = np.random.default_rng(seed)
    return [
        {node: us * float(np.exp(s / 2**0.5 * dice.standard_normal())) for node, us in times.items()}
        for _ in range(rounds)
    ]


def judged(
    new: dict[str, float],
    *,
    rounds: int = 12,
    seed: int = 1,
    neighbours: dict[str, set[str]] | None = None,
    old: dict[str, float] | None = None,
) -> dict[str, Comparison]:
    """Verdicts of nodes by name: `new` against BASE, with the noise of launches."""
    base = BASE if old is None else old
    olds, news = noisy(base, rounds=rounds, seed=seed), noisy({**base, **new}, rounds=rounds, seed=seed + 1000)
    pairs = {node: [(a[node], b[node]) for a, b in zip(olds, news, strict=True)] for node in base}
    near = {node: frozenset(others) for node, others in (neighbours or {}).items()}
    return judge_nodes(pairs, neighbours=near, margin=0.02)


def called(found: dict[str, Comparison]) -> dict[str, str]:
    return {node: one.verdict for node, one in found.items() if is_change(one.verdict)}


def test_a_tenth_more_of_an_operator_that_takes_a_twentieth_is_called_at_it_and_nowhere_else():
    found = judged({"norm": 66.0})
    assert called(found) == {"norm": "slower"}
    one = found["norm"]
    assert one.ci_low < 1.1 < one.ci_high
    assert one.rounds_used == 12


def test_an_operator_that_became_faster_is_called_too():
    assert called(judged({"soft": 200.0})) == {"soft": "faster"}


def test_of_models_against_themselves_hardly_any_names_an_operator():
    named = sum(bool(called(judged({}, rounds=rounds, seed=seed))) for seed in range(40) for rounds in (8, 16))
    assert named <= 1


def test_fewer_rounds_than_a_first_look_judge_no_operator():
    assert judged({"norm": 120.0}, rounds=7) == {}


def test_all_rounds_speak_at_once_and_no_more_than_the_last_look_takes():
    assert judged({}, rounds=15)["norm"].rounds_used == 12
    assert judged({}, rounds=30)["norm"].rounds_used == 24


def test_time_that_moved_from_a_node_to_its_neighbour_is_no_change():
    moved = {"add": 340.0, "soft": 200.0}
    assert called(judged(moved)) == {"add": "slower", "soft": "faster"}
    beside = judged(moved, neighbours={"add": {"soft"}, "soft": {"add", "mm"}})
    assert called(beside) == {}
    assert beside["add"].verdict == "undecided"
    assert beside["add"].reason == ("Time moved between neighbours: soft became faster, and together they did not.")


def test_a_change_that_the_neighbour_makes_up_for_in_part_stands():
    found = judged({"add": 400.0, "soft": 220.0}, neighbours={"add": {"soft"}, "soft": {"add"}})
    assert called(found)["add"] == "slower"
    assert found["soft"].verdict == "undecided"


def test_neighbours_that_changed_the_same_way_take_nothing_back():
    found = judged({"add": 340.0, "soft": 280.0}, neighbours={"add": {"soft"}, "soft": {"add"}})
    assert called(found) == {"add": "slower", "soft": "slower"}


def test_what_is_shorter_than_the_clock_can_tell_is_not_judged():
    assert set(judged({"norm": 4.0}, old={"norm": 3.0, "mm": 500.0})) == {"mm"}


def test_a_change_of_less_than_a_microsecond_is_not_called():
    found = judged({"norm": 8.9}, old={"norm": 8.0}, rounds=24)
    assert found["norm"].verdict == "undecided"
    assert found["norm"].reason == "Alone it would be slower, by less than the profiler's clock can tell."


def test_whole_microseconds_of_a_short_node_do_not_show_that_it_is_equal():
    pairs = {node: [(us, us)] * 12 for node, us in {"short": 20.0, "long": 200.0}.items()}
    found = judge_nodes(pairs, neighbours={}, margin=0.02)
    assert (found["long"].verdict, found["short"].verdict) == ("equal", "undecided")
    assert found["short"].reason == "The profiler's clock, in whole µs, cannot tell it so well."


def test_among_many_operators_a_weak_change_may_be_chance_and_says_so():
    weak = [(100.0, 100.0 * float(np.exp(0.04 + swing))) for swing in (0.04, -0.04) * 8]
    assert judge_nodes({"n7": weak}, neighbours={}, margin=0.02)["n7"].verdict == "undecided"
    found = judge_nodes(
        {"n7": weak, **{f"other {number}": [(100.0, 100.0)] * 16 for number in range(99)}}, neighbours={}, margin=0.02
    )
    assert found["n7"].verdict == "undecided"
    assert found["n7"].reason == (
        "Alone it would be slower; among 100 operators it may be chance (Benjamini-Hochberg at 0.5 %)."
    )


def test_of_a_large_model_the_nodes_with_the_most_time_are_judged():
    many = {f"n{number}": 10.0 + number for number in range(300)}
    found = judge_nodes({node: [(us, us)] * 8 for node, us in many.items()}, neighbours={}, margin=0.02)
    assert len(found) == node_verdicts.MAX_JUDGED
    assert "n299" in found
    assert "n0" not in found


def times_of(operators: list[Operator], rounds: int, *, s: float = 0.01, seed: int = 5) -> TracedArm:
    """An arm whose launches take what its operators say, with noise."""
    first = make_trace(0, operators)
    names = list_own_nodes(first)
    whole = {name: sum(one.time_us for one in operators if one.node == name) for name in names}
    return TracedArm(first, [[taken[name] for name in names] for taken in noisy(whole, rounds=rounds, seed=seed, s=s)])


def attributed(old: list[Operator], new: list[Operator], *, rounds: int = 8, per_pair: int = 1) -> Attribution:
    return attribute_rounds(times_of(old, rounds), times_of(new, rounds, seed=6), margin=0.02, rounds_per_pair=per_pair)


def test_nodes_that_one_release_fuses_get_one_verdict_with_those_that_the_other_runs_apart():
    fused = [make_operator("add_1", 50.0, op_type="SkipThing", covers=["norm_1"]), make_operator("mm", 100.0)]
    apart = [
        make_operator("add_1", 30.0, op_type="Add"),
        make_operator("norm_1", 60.0, op_type="Norm"),
        make_operator("mm", 100.0),
    ]
    found = attributed(fused, apart)
    first, second = found.nodes
    assert (first.node, first.covers, first.op_type) == ("norm_1", ("add_1",), "Norm")
    assert first.figures.verdict == "slower"
    assert first.figures.ci_low < 1.8 < first.figures.ci_high
    assert first.share == pytest.approx(1.0, abs=0.1)
    assert second.figures.verdict in ("equal", "undecided")
    assert found.traces == 8


def test_an_operator_that_one_side_does_not_execute_has_times_and_no_verdict():
    old = [make_operator("mm", 100.0), make_operator("cast", 20.0)]
    found = attributed(old, [make_operator("mm", 100.0)])
    by_node = {one.node: one for one in found.nodes}
    assert by_node["cast"].figures is None
    assert by_node["cast"].candidate_us == 0.0
    assert by_node["mm"].figures is not None


def test_with_two_rounds_a_pair_sixteen_rounds_are_eight_pairs_and_are_told_as_rounds():
    old = [make_operator("mm", 100.0), make_operator("add", 50.0)]
    found = attributed(old, [make_operator("mm", 100.0), make_operator("add", 60.0)], rounds=16, per_pair=2)
    assert found.nodes[0].node == "add"
    assert found.nodes[0].figures is not None
    assert (found.nodes[0].figures.verdict, found.nodes[0].figures.rounds_used) == ("slower", 16)


def test_time_that_moved_along_an_edge_of_the_graph_is_no_change():
    def model(first: float, second: float) -> list[Operator]:
        reads = [one.model_copy(update={"reads": ("make", "unknown", "use")}) for one in [make_operator("use", second)]]
        return [make_operator("make", first), *reads, make_operator("far", 100.0)]

    found = attributed(model(100.0, 100.0), model(80.0, 120.0), rounds=12)
    told = {one.node: one.figures for one in found.nodes}
    assert told["use"] is not None
    assert told["use"].verdict == "undecided"
    assert "Time moved between neighbours: make became faster" in told["use"].reason
