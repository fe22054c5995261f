"""Races that could end with a wrong winner, a false "nothing" or never: each is built so that the truth is known."""

from collections.abc import Callable
from typing import Any

import pytest

from farm.contract.cells import CellSpec
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning.planner import plan
from farm.rules.planning.plans import NodeOffer
from farm.rules.searches import race_document
from farm.rules.searches.contenders import OTHER_NODES, split_contenders
from farm.rules.searches.race import MISSING, Contender, Outcome, Race
from farm.rules.searches.search import Measured, SearchProblem
from farm.rules.wording.numbers import MIB
from tests.documents import make_cell, make_document
from tests.unit.commands.made_up import MadeUpBench
from tests.unit.rules.making import make_model
from tests.unit.rules.test_race import CRASH, labels, machine, raced, reasons, space


def by_threads(**times: float) -> Callable[[CellSpec], float]:
    return lambda spec: times[f"t{spec.session.threads}"]


def sized(size: Callable[[CellSpec], float]) -> dict[str, Any]:
    def memory(spec: CellSpec) -> dict[str, Any]:
        return {"peak_memory_bytes": int(size(spec))}

    return {"checks": memory, "samples": memory}


def test_settings_that_were_set_aside_race_once_those_before_them_break_a_budget() -> None:
    bench = MadeUpBench(
        p50_ms=lambda spec: 10.0 if spec.session.threads <= 10 else 1.0,
        **sized(lambda spec: 5e7 + 1e7 * spec.session.threads),
    )
    found = raced(bench, space(threads=[*range(1, 17)]), "memory", max_p50_ms=5.0)
    assert labels(found)[0] == "11 threads"


def test_memory_ranks_settings_that_do_not_differ_in_steps_of_16_mib_and_paired_rounds_within_a_step() -> None:
    sizes = {1: 100 * MIB, 2: 59 * MIB, 4: 58 * MIB}
    times = {1: 0.999, 2: 1.0, 4: 1.002}
    found = raced(machine(times, **sized(lambda spec: sizes[spec.session.threads])), space(threads=[*times]))
    assert (found.state, labels(found)) == ("close", ["2 threads", "4 threads", "1 thread"])
    assert "2 threads stands first, ranked by memory in steps of 16 MiB, then by paired rounds: " in found.sentence


def test_a_document_names_the_release_the_node_and_the_batch_that_its_settings_share() -> None:
    bench = machine({1: 1.0, 2: 2.0})
    assert raced(bench, space(threads=[1, 2])).measured_with == "ONNX Runtime 1.31.1, bench-1, batch 1"
    found = raced(bench, space(threads=[1, 2], batch=[1, 8]), "throughput")
    assert found.measured_with == "ONNX Runtime 1.31.1, bench-1"


def test_a_setting_at_the_edge_of_a_budget_drops_none_that_is_slower() -> None:
    def p50_ms(spec: CellSpec) -> float:
        return {1: 10.0, 8: 15.0, 32: 30.0}[spec.workload.batch or 1]

    found = raced(MadeUpBench(p50_ms=p50_ms), space(batch=[1, 8, 32], threads=1), "throughput", max_p50_ms=29.7)
    assert (labels(found), reasons(found)["batch 32"]) == (["batch 8"], "budget p50")


def test_nothing_is_said_only_where_every_setting_is_excluded() -> None:
    now = [0.0]
    bench = machine(dict.fromkeys(range(1, 34), 10.0))
    measure = bench.measure

    def slow(plan: Any) -> Any:
        now[0] += 200.0
        bench.rounds = 2
        return measure(plan)

    bench.measure = slow  # type: ignore[method-assign]
    sizes = sized(lambda spec: 9e7)
    bench.checks = sizes["checks"]
    found = raced(bench, space(threads=[*range(1, 34)]), max_memory_bytes=5e7, minutes=6.0, clock=lambda: now[0])
    assert found.state == "undecided"
    assert "Not decided: no setting that was measured to its end keeps its budgets." in found.sentence
    assert "17 settings had no time" in found.sentence


def test_a_final_block_that_excludes_all_of_its_settings_leaves_open_what_it_had_no_place_for() -> None:
    bench = machine({4: 1.0, 1: 1.0, 2: 1.0, 3: 1.0, 5: 1.0})
    bench.p50_ms = lambda spec: 1.0 if len(bench.measured) < 2 else 2.0
    found = raced(bench, space(threads=[4, 1, 2, 3, 5]), max_p50_ms=1.5)
    assert len(found.close) == 1
    assert (found.state, {*reasons(found).values()}) == ("undecided", {"budget p50"})


def test_a_slower_default_that_breaks_a_budget_in_the_final_block_is_not_beside_the_answer() -> None:
    bench = machine({4: 1.3, 1: 1.0})
    bench.p50_ms = lambda spec: 1.0 if spec.session.threads == 1 else 1.3 if len(bench.measured) < 2 else 1.5
    found = raced(bench, space(threads=[4, 1]), max_p50_ms=1.4)
    assert (labels(found), reasons(found)["4 threads"]) == (["1 thread"], "budget p50")
    assert not found.beside


def test_settings_that_break_different_budgets_are_named_with_each() -> None:
    bench = MadeUpBench(p50_ms=by_threads(t1=2.0, t2=0.5), **sized(lambda spec: 5e7 * spec.session.threads))
    found = raced(bench, space(threads=[1, 2]), max_p50_ms=1.0, max_memory_bytes=70e6)
    assert found.state == "nothing"
    assert "1 thread has p50 2.00 ms, 1 ms asked for; 2 threads has 95 MiB" in found.sentence


def test_no_setting_that_nobody_judged_is_called_accurate() -> None:
    over = space(threads=[4, 1], precision=["int8-dynamic"])
    found = raced(machine({4: 1.0, 1: 1.4}), over, max_p50_ms=0.1)
    assert "the fastest, 4 threads, takes" in found.sentence


def test_where_the_first_setting_crashes_the_fastest_run_the_final_block() -> None:
    times = by_threads(t9=1.0, t1=1.02, t2=1.015, t3=1.01, t4=1.0, t5=1.0)
    crash = {"checks": lambda spec: {"reason": CRASH} if spec.session.threads == 9 else {}}
    found = raced(MadeUpBench(p50_ms=times, noise=0.0001, **crash), space(threads=[9, 1, 2, 3, 4, 5]))
    assert {*labels(found)} == {"3 threads", "4 threads", "5 threads"}
    assert sorted(found.close) == ["1 thread", "2 threads"]


def test_a_setting_that_its_block_does_not_mention_ends_no_race_in_a_loop() -> None:
    race = Race(Matrix(), [Contender("a", {}, "a"), Contender("b", {}, "b")])
    race.record(Measured(Matrix(), make_document(), lambda name: {}))
    assert {left.text for left in race.dropped.values()} == {MISSING}
    assert race.next() is None
    assert race.answer().state == "nothing"
    with pytest.raises(SearchProblem, match="over"):
        race.record(Measured(Matrix(), make_document(), lambda name: {}))


def test_settings_that_a_quiet_machine_never_had_side_by_side_are_not_called_disturbed() -> None:
    race = Race(Matrix(), [Contender("a", {}, "a"), Contender("b", {}, "b")])
    cells = [make_cell(name, p50_ms=1.0, p50_ci_ms=(0.9, 1.1), samples_ms=[1.0, 1.0]) for name in "ab"]
    while race.next() is not None:
        race.record(Measured(Matrix(), make_document(*cells), lambda name: {}))
    found = race_document.make_document(race, race_document.Facts("m", "m.onnx", "m.onnx"))
    assert (found.state, found.is_final) == ("undecided", True)
    assert "not all of the others fitted into one block with it" in found.sentence


def test_no_upgrade_is_advised_while_settings_of_the_release_in_use_may_come_as_near() -> None:
    old, new, near = (Contender(name, {"runtime": runtime}, name) for name, runtime in zip("abc", "121", strict=True))
    outcome = Outcome("close", [new], close=[near])
    assert "Whether to leave 1 is not decided" in race_document._advise(Race(Matrix(), [old, new, near]), outcome)


def test_settings_of_other_nodes_than_the_first_do_not_race_with_it() -> None:
    over = space(hardware=["cpu", "x86"], threads=[2, 1])
    fleet = [NodeOffer(id=name, tags=frozenset({"cpu", name})) for name in ("arm", "x86")]
    contenders, refused = split_contenders(plan(over, make_model(), fleet), over)
    assert [contender.settings["hardware"] for contender in contenders] == ["cpu", "cpu"]
    assert [left.text for left in refused] == [OTHER_NODES] * 2


def test_a_first_setting_that_cannot_race_itself_does_not_choose_the_nodes_of_the_others() -> None:
    over = space(hardware=["cpu", "x86"], threads=[2, 1])
    fleet = [NodeOffer(id=name, tags=frozenset({"cpu", name})) for name in ("arm", "x86")]
    planned = plan(over, make_model(), fleet)
    [block] = [block for block in planned.blocks if block.nodes == ("x86",)]
    [other] = [block for block in planned.blocks if block.nodes != ("x86",)]
    lone = other.model_copy(update={"arms": tuple(arm for arm in other.arms if arm.spec.session.threads > 1)})
    contenders, refused = split_contenders(
        planned.model_copy(update={"blocks": (lone, block)}), over, goal="processor-time"
    )
    assert [contender.settings["hardware"] for contender in contenders] == ["x86"]
    assert OTHER_NODES not in {left.text for left in refused}
