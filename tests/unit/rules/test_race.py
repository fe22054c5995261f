"""The race of settings: on the search protocol, by made-up machines whose best setting is known."""

from collections.abc import Mapping
from typing import Any

import pytest

from farm.contract.cells import CellSpec
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_find import Found
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import expand
from farm.rules.planning.plans import Plan
from farm.rules.searches.contenders import OF_PROCESSOR
from farm.rules.searches.limits import Limits
from farm.rules.searches.race import Contender, Race
from farm.rules.searches.search import carry_out
from onnxfarm.here import find
from onnxfarm.here.workbench import Machine
from onnxfarm.problems import Stopped
from tests.unit.commands.made_up import MadeUpBench

CRASH = Reason(code=ReasonCode.CRASHED, text="The runner died of SIGSEGV.")
# what labelled data say of a precision
RIGHT = {"metric": "top1", "n": 1000, "value": 0.97, "ci_low": 0.955, "ci_high": 0.98}
AS_GOOD = RIGHT | {"difference": -0.001, "difference_low": -0.004, "difference_high": 0.002}
WORSE = RIGHT | {"value": 0.9, "ci_low": 0.88, "ci_high": 0.92, "difference": -0.07, "difference_low": -0.09} | {
    "difference_high": -0.05
}  # fmt: skip


def space(**axes: Any) -> Matrix:
    return matrices.parse({"batch": 1, "runtime": "1.31.1", "precision": "fp32", **axes})


def machine(times: Mapping[int, float], **how: Any) -> MadeUpBench:
    """Its latency by threads; INT8 takes less than half."""

    def p50_ms(spec: CellSpec) -> float:
        return times[spec.session.threads] * (0.4 if spec.recipe.precision != "fp32" else 1.0)

    return MadeUpBench(p50_ms=p50_ms, **how)


def raced(bench: MadeUpBench, over: Matrix, goal: Any = "latency", **how: Any) -> Found:
    bench.clock = how.pop("clock", bench.clock)
    limits = Limits(**{name: how.pop(name) for name in [*how] if name in Limits.__dataclass_fields__})
    return find.run_race(bench, over, find.RaceRequest("model.onnx", goal, limits, **how))


def labels(found: Found) -> list[str]:
    return [each.label for each in found.answer]


def reasons(found: Found) -> dict[str, str]:
    return {left.label: f"{left.why} {left.budget}".strip() for left in found.left}


def judged(**by_precision: Mapping[str, Any]) -> Any:
    """The accuracy of each cell, by its precision."""

    def cells(cell: Cell) -> dict[str, object]:
        return Cell.model_validate(
            cell.model_dump() | {"accuracy": by_precision[cell.precision.partition("-")[0]]}
        ).__dict__

    return cells


@pytest.mark.parametrize(
    ("times", "blocks", "answer"),
    [
        # one block of short rounds, and the final one with the default beside it
        ({4: 2.0, 1: 2.0, 2: 1.0, 8: 3.0}, [4, 2], ["2 threads"]),
        ({4: 2.0, 1: 1.0, 2: 1.0, 8: 3.0}, [4, 3], ["1 thread", "2 threads"]),
        ({4: 1.0, 1: 1.0, 2: 1.0, 8: 1.0}, [4, 4], ["1 thread", "2 threads", "4 threads", "8 threads"]),
        ({4: 1.0, 1: 1.4}, [2, 1], ["4 threads"]),
    ],
)
def test_settings_leave_on_their_interval_and_the_rest_run_a_final_block(
    times: dict[int, float], blocks: list[int], answer: list[str]
) -> None:
    bench = machine(times)
    found = raced(bench, space(threads=[*times]))
    assert sorted(labels(found)) == answer
    assert [len(block) for block in bench.measured] == blocks
    assert found.state == ("decided" if len(answer) == 1 else "close")
    assert found.is_final
    assert found.answer[0].ratio is None
    assert all(each.p50_ci_ms is not None for each in found.answer), "figures are of the final block"


def test_more_settings_than_a_block_has_are_linked_by_the_first_and_the_leader() -> None:
    times = {threads: 1.0 + 0.1 * threads for threads in range(1, 34)}
    bench = machine(dict(reversed(times.items())))
    asked: list[list[str]] = []
    measure = bench.measure

    def noted(plan: Plan) -> Document:
        asked.append([arm.labels["threads"] for block in plan.blocks for arm in block.arms])
        return measure(plan)

    bench.measure = noted  # type: ignore[method-assign]
    found = raced(bench, space(threads=[*reversed(times)]))
    assert labels(found) == ["1 thread"]
    assert all(len(block) <= 16 for block in asked)
    assert all("33" in block for block in asked), "what is in use today stands in each"
    assert "18" in asked[1], "and so does the leader of the block before"
    assert found.size == 33


def test_a_race_that_is_built_anew_from_its_outcomes_goes_on_where_it_was() -> None:
    bench, over = machine({4: 2.0, 1: 1.0, 2: 1.0, 8: 3.0}), space(threads=[4, 1, 2, 8])
    points = expand(over).points
    arms = {arm.positions["threads"]: arm.spec.digest for block in bench.plan(over).blocks for arm in block.arms}
    contenders = [Contender(arms[point.positions["threads"]], point.values) for point in points]
    track, search, outcomes = Machine(bench, lambda block: block), Race(over, contenders), []
    while (experiment := search.next()) is not None:
        assert search.next() == experiment, "the same until an outcome is recorded"
        again = Race(over, contenders)
        for outcome in outcomes:
            again.record(outcome)
        assert again.next() == experiment
        outcomes.append(track.measure(experiment, again))
        search.record(outcomes[-1])
    assert len(outcomes) == 2
    assert carry_out(search, track).answer == search.answer().answer


def test_budgets_leave_at_their_first_proof_and_are_named() -> None:
    over = space(threads=[4, 1, 2])
    times = {4: 1.0, 1: 1.9, 2: 1.5}
    found = raced(machine(times), over, max_p50_ms=1.6)
    assert (labels(found), reasons(found)["1 thread"]) == (["4 threads"], "budget p50")
    found = raced(machine(times), over, max_p50_ms=0.8)
    assert found.state == "nothing"
    assert found.sentence == "Nothing within 0.8 ms: the fastest accurate one, 4 threads, takes 0.999 ms."
    assert found.python == found.gate == ""
    found = raced(machine(times), over, max_p99_ms=0.8)
    assert "at p99: the fastest accurate one, 4 threads, takes 0.999 ms" in found.sentence
    sizes = {4: 90_000_000, 1: 50_000_000, 2: 60_000_000}
    checks = {"checks": lambda spec: {"peak_memory_bytes": sizes[spec.session.threads]}}
    found = raced(machine(times, **checks), over, max_memory_bytes=70e6)
    assert (labels(found), reasons(found)["4 threads"]) == (["2 threads"], "budget memory")
    assert found.budget_costs["memory"].startswith("The budget of memory excluded 4 threads, 33.")
    found = raced(machine(times, **checks), over, max_memory_bytes=10e6)
    assert "Nothing keeps the budget of memory: 1 thread comes nearest, with 48 MiB" in found.sentence


def test_a_budget_inside_an_interval_is_undecided_and_never_kept() -> None:
    found = raced(machine({4: 1.0, 1: 1.9}), space(threads=[4, 1]), max_p50_ms=1.0)
    assert found.state == "undecided"
    assert "whether it keeps its budget is not known" in found.sentence
    # all timings have no p99 in a made-up launch of four
    found = raced(machine({4: 1.0, 1: 1.9}), space(threads=[4, 1]), max_p99_ms=1.2)
    assert reasons(found)["4 threads"] == "undecided p99"


def test_lower_precisions_without_a_judge_stand_apart_with_their_distance() -> None:
    over = space(threads=[4, 1], precision=["fp32", "int8-dynamic"])
    found = raced(machine({4: 1.0, 1: 1.4}), over)
    assert labels(found) == ["fp32, 4 threads"]
    assert [each.label for each in found.apart] == ["int8-dynamic, 4 threads"]
    assert "cosine" in found.apart[0].note
    assert "give --evaluation with labels" in found.sentence
    found = raced(machine({4: 1.0, 1: 1.4}), over, has_tolerance=True)
    assert labels(found) == ["int8-dynamic, 4 threads"]
    assert "× faster than the default, fp32, 4 threads:" in found.sentence


def test_labels_judge_lower_precisions() -> None:
    over = space(threads=[4, 1], precision=["fp32", "int8-dynamic"])
    found = raced(machine({4: 1.0, 1: 1.4}, cells=judged(fp32=RIGHT, int8=AS_GOOD)), over, has_labels=True)
    assert labels(found) == ["int8-dynamic, 4 threads"]
    assert found.answer[0].accuracy == "top-1 97.0 % (95.5–98.0 %)"
    found = raced(machine({4: 1.0, 1: 1.4}, cells=judged(fp32=RIGHT, int8=WORSE)), over, has_labels=True)
    assert (labels(found), reasons(found)["int8-dynamic, 4 threads"]) == (["fp32, 4 threads"], "budget accuracy")
    both = judged(fp32=RIGHT, int8=WORSE)
    found = raced(machine({4: 1.0, 1: 1.4}, cells=both), over, has_labels=True, min_accuracy=0.99)
    assert "Nothing keeps the budget of accuracy: fp32" in found.sentence
    found = raced(machine({4: 1.0, 1: 1.4}, cells=both), over, has_labels=True, min_accuracy=0.97)
    assert found.state == "nothing"
    assert "No setting is known to be accurate enough" in found.sentence or "budget of accuracy" in found.sentence


def test_the_accuracy_of_a_first_block_stays_where_a_later_one_lacks_what_it_was_held_against() -> None:
    seen: set[str] = set()

    def once(cell: Cell) -> dict[str, object]:
        if cell.digest in seen or cell.precision == "fp32":
            return {}
        seen.add(cell.digest)
        return judged(int8=AS_GOOD)(cell)

    over = space(threads=[4, 1], precision=["fp32", "int8-dynamic"])
    found = raced(machine({4: 1.0, 1: 1.4}, cells=once), over, has_labels=True)
    assert labels(found) == ["int8-dynamic, 4 threads"]


def test_what_crashes_leaves_with_its_reason() -> None:
    over = space(threads=[4, 1, 2])
    checks = {"checks": lambda spec: {"reason": CRASH} if spec.session.threads == 4 else {}}
    found = raced(machine({4: 1.0, 1: 1.4, 2: 1.2}, **checks), over)
    assert (labels(found), reasons(found)["4 threads"]) == (["2 threads"], "failed")
    assert found.sentence.startswith("2 threads is the fastest")
    found = raced(machine({4: 1.0, 1: 1.4, 2: 1.2}, checks=lambda spec: {"reason": CRASH}), over)
    assert (found.state, found.sentence) == ("nothing", "No setting could be measured: The runner died of SIGSEGV.")


@pytest.mark.parametrize(
    ("newest_ms", "said"),
    [
        (0.7, "Upgrade to onnxruntime==1.31.1: by all rounds it is 30.0 % faster than the best of "),
        (1.0, "Stay with onnxruntime==1.29.0, "),
        (1.4, "Stay with onnxruntime==1.29.0, "),
    ],
)
def test_a_race_over_two_releases_advises_to_stay_or_to_upgrade(newest_ms: float, said: str) -> None:
    def p50_ms(spec: CellSpec) -> float:
        return spec.session.threads * (newest_ms if spec.runtime.version == "1.31.1" else 1.0)

    over = space(runtime=["1.29.0", "1.31.1"], threads=[2, 1])
    found = raced(MadeUpBench(p50_ms=p50_ms), over)
    assert said in found.sentence
    assert "Upgrade" not in raced(MadeUpBench(p50_ms=p50_ms), space(threads=[2, 1])).sentence
    bench = MadeUpBench(
        p50_ms=p50_ms, checks=lambda spec: {"reason": CRASH} if spec.runtime.version == "1.29.0" else {}
    )
    assert (
        "Upgrade to onnxruntime==1.31.1: nothing that was measured on onnxruntime==1.29.0"
        in raced(bench, over).sentence
    )


def busy(spec: CellSpec) -> dict[str, object]:
    spent = {"cpu_p50_ms": {1: 1.0, 2: 1.5}[spec.session.inter_op_threads]} if spec.session.threads == 1 else {}
    return {"is_disturbed": True, "cpu_share": 0.5, **spent}


def test_on_a_busy_machine_settings_of_several_threads_wait_and_no_budget_is_passed() -> None:
    over = space(threads=[2, 1])
    found = raced(machine({2: 1.0, 1: 1.4}, samples=busy), over)
    assert found.state == "undecided"
    assert "settings of several threads wait for quiet rounds" in found.sentence
    found = raced(machine({2: 1.0, 1: 1.4}, samples=busy), over, max_p50_ms=5.0)
    assert {left.why for left in found.left} == {"undecided"}


def test_a_busy_machine_hides_no_fast_setting_from_the_final_block() -> None:
    sets = ["default", {"name": "spun", "spinning": True}, {"name": "no arena", "arena": False}]
    over = space(threads=[2, 1], session=sets)
    found = raced(machine({2: 3.0, 1: 1.0}, samples=busy), over)
    assert found.state == "undecided"
    assert labels(found)[0].startswith("1 thread")


def test_one_launch_on_a_busy_machine_sets_nobody_aside() -> None:
    bench = machine({threads: 1.0 + threads for threads in range(1, 12)}, samples=busy)
    raced(bench, space(threads=[*range(1, 12)]))
    assert [len(block) for block in bench.measured][:2] == [11, 11]


def test_on_a_busy_machine_settings_of_one_thread_are_told_apart_by_processor_time() -> None:
    sets = [{"name": "two", "inter-op-threads": 2}, "default"]
    found = raced(machine({1: 1.0}, samples=busy), space(threads=1, session=sets))
    assert labels(found) == ["session default"]
    assert "Processor time decided" in found.sentence


def test_goals_beside_latency() -> None:
    sets = [{"name": "two", "inter-op-threads": 2}, "default"]
    found = raced(machine({1: 1.0}, samples=busy), space(threads=[1, 2], session=sets), "processor-time")
    assert all(left.text == OF_PROCESSOR for left in found.left if left.why == "refused")
    assert "of CPU time" in found.sentence

    def by_batch(spec: CellSpec) -> float:
        return {1: 1.0, 8: 3.2, 32: 20.0}[spec.workload.batch or 1]

    found = raced(MadeUpBench(p50_ms=by_batch), space(batch=[1, 8, 32], threads=1), "throughput")
    assert labels(found) == ["batch 8"]
    assert "× more items/s than the default, batch 1:" in found.sentence
    sizes = {4: 190_000_000, 1: 50_000_000, 2: 60_000_000}
    checks = {
        "checks": lambda spec: {"peak_memory_bytes": sizes[spec.session.threads]},
        "samples": lambda spec: {"peak_memory_bytes": sizes[spec.session.threads]},
    }
    found = raced(machine({4: 1.0, 1: 1.4, 2: 1.2}, **checks), space(threads=[4, 1, 2]), "memory")
    assert sorted(labels(found)) == ["1 thread", "2 threads"]
    assert "smaller than the default, 4 threads" in found.sentence


def test_time_ends_a_race_with_the_best_so_far() -> None:
    now = [0.0]
    bench = machine({threads: 1.0 + 0.1 * threads for threads in range(1, 34)})
    measure = bench.measure

    def slow(plan: Any) -> Any:
        now[0] += 200.0
        return measure(plan)

    bench.measure = slow  # type: ignore[method-assign]
    over = space(threads=[*range(1, 34)])
    found = raced(bench, over, minutes=6.0, clock=lambda: now[0])
    assert found.state == "undecided"
    assert "17 settings had no time: give more minutes." in found.sentence
    found = raced(bench, over, minutes=3.0, clock=lambda: now[0])
    assert (found.state, found.is_final) == ("undecided", False)
    assert ", by short rounds: give more minutes." in found.sentence

    def stop_late(plan: Any) -> Any:
        now[0] += 200.0
        raise Stopped("The time is over.")

    bench.measure = stop_late  # type: ignore[method-assign]
    found = raced(bench, over, minutes=3.0, clock=lambda: now[0])
    assert found.sentence == "Not decided: nothing was measured to its end; give more minutes."


def test_a_final_block_has_as_many_settings_as_the_time_has_room_for() -> None:
    bench = machine(dict.fromkeys(range(1, 17), 1.0))
    found = raced(bench, space(threads=[*range(1, 17)]), minutes=4.0, clock=lambda: 0.0)
    assert found.state == "close"
    assert found.close
    assert len(found.answer) + len(found.close) == 16
    assert f"{len(found.close)} more settings may come as near: short rounds do not tell." in found.sentence


def test_a_final_block_leaves_out_what_time_has_no_room_for() -> None:
    over = space(threads=[4, 1, 2])
    found = raced(machine({4: 1.0, 1: 1.0, 2: 1.0}), over, minutes=1.0, clock=lambda: 0.0)
    assert len(found.answer) + len(found.close) == 3
    assert len(found.close) == 1


def test_a_final_block_that_time_cut_short_tells_apart_what_its_rounds_show() -> None:
    bench = machine({4: 1.0, 1: 1.4, 2: 1.4}, rounds=4)
    found = raced(bench, space(threads=[4, 1, 2], optimization=["all", "disable"]))
    assert {label.partition(",")[0] for label in labels(found)} == {"4 threads"}


def test_of_equals_in_memory_the_one_that_took_least_stands_first() -> None:
    found = raced(machine({4: 1.0, 1: 1.01}, noise=0.0), space(threads=[4, 1]))
    assert labels(found) == ["4 threads", "1 thread"]


def test_what_the_final_block_tells_apart_leaves_too() -> None:
    over, times = space(threads=[*range(1, 17)]), dict.fromkeys(range(1, 17), 1.0)
    near = labels(raced(machine(times), over, minutes=4.0, clock=lambda: 0.0))
    last = next(name for name in near if name != "1 thread")
    bench = machine(times)
    bench.p50_ms = lambda spec: 0.8 if len(bench.measured) == 3 and last.startswith(f"{spec.session.threads} ") else 1.0
    found = raced(bench, over, minutes=4.0, clock=lambda: 0.0)
    assert (found.state, labels(found)) == ("close", [last])
    assert {left.why for left in found.left} == {"slower"}
    assert "faster than the default, 1 thread:" in found.sentence


@pytest.mark.parametrize(("blocks", "said"), [(0, "nothing was measured to its end"), (1, "Best so far, not decided")])
def test_ctrl_c_keeps_what_is_known(blocks: int, said: str) -> None:
    bench = machine({4: 1.0, 1: 1.4, 2: 1.3})
    measure = bench.measure

    def stopped(plan: Any) -> Any:
        if len(bench.measured) >= blocks:
            raise Stopped("Stopped before the end.")
        return measure(plan)

    bench.measure = stopped  # type: ignore[method-assign]
    found = raced(bench, space(threads=[4, 1, 2]))
    assert found.is_stopped
    assert found.sentence.startswith("Stopped before the end.")
    assert said in found.sentence


@pytest.mark.parametrize(("blocks", "rounds", "launches"), [(0, 1, 3), (0, 2, 6), (1, 1, 6), (1, 5, 16)])
def test_ctrl_c_keeps_the_block_that_it_stopped_unless_the_one_before_says_more(
    blocks: int, rounds: int, launches: int
) -> None:
    bench = machine({4: 1.0, 1: 1.01, 2: 1.4})
    measure = bench.measure

    def stopped(plan: Any) -> Any:
        if len(bench.measured) < blocks:
            return measure(plan)
        bench.rounds = rounds
        raise Stopped("Stopped before the end.", measure(plan))

    bench.measure = stopped  # type: ignore[method-assign]
    found = raced(bench, space(threads=[4, 1, 2]))
    assert found.sentence.startswith("Stopped before the end. Best so far, not decided: 4 threads")
    assert found.launches == launches
    assert not found.is_final
