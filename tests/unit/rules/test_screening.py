"""The screening of a large space by one launch of each setting, on made-up machines."""

from farm.contract.document import Document
from farm.rules.planning.plans import Plan
from tests.unit.rules.test_race import CRASH, labels, machine, raced, reasons, space


def test_one_launch_of_each_picks_what_goes_on_of_a_large_space() -> None:
    near, far = range(1, 13), range(13, 25)
    bench = machine({**dict.fromkeys(near, 1.0), **dict.fromkeys(far, 3.0)})
    rounds: list[tuple[int, int]] = []
    measure = bench.measure

    def noted(plan: Plan) -> Document:
        rounds.extend((len(block.arms), block.max_rounds) for block in plan.blocks)
        return measure(plan)

    bench.measure = noted  # type: ignore[method-assign]
    found = raced(bench, space(threads=[*near, *far]))
    assert rounds[:2] == [(16, 1), (10, 1)], "one launch each, and the leader beside today's"
    assert rounds[2] == (9, 2)
    assert rounds[3][0] == 4
    assert found.launches == sum(arms * count for arms, count in rounds[:3]) + 4 * 8
    assert len(found.answer) + len(found.close) == 12, "what was set aside and may be as fast is named"
    assert reasons(found) == {f"{threads} threads": "slower" for threads in far}
    assert all(left.text.endswith("in one launch") for left in found.left)


def test_a_busy_machine_sets_nothing_aside() -> None:
    sets = [{"name": f"inter {count}", "inter-op-threads": count} for count in range(2, 13)]
    bench = machine({1: 1.0}, samples=lambda spec: {"is_disturbed": True, "cpu_share": 0.5, "cpu_p50_ms": 1.0})
    raced(bench, space(threads=1, session=["default", *sets]))
    assert [len(block) for block in bench.measured[:2]] == [12, 12]


def test_a_large_space_whose_first_setting_crashes_is_screened_by_the_others() -> None:
    times = {threads: 1.0 + 0.1 * threads for threads in range(1, 25)}
    checks = {"checks": lambda spec: {"reason": CRASH} if spec.session.threads == 24 else {}}
    found = raced(machine(dict(reversed(times.items())), **checks), space(threads=[*reversed(times)]))
    assert labels(found) == ["1 thread"]
