"""Rates are searched once a block: the first answer is for all arms, and without one none is measured."""

from collections.abc import Callable

from farm.contract.cells import Workload
from farm.contract.reasons import Reason, ReasonCode
from tests.unit.worker.test_gating import arm
from worker.agent.measurement.runner_process import Answer
from worker.agent.measurement.samples import LoadRates

OLD, NEW = (arm(workload=Workload(scenario="load:bound=20ms"), hardware=hardware) for hardware in ("cpu", "x86"))
LATE = Reason(code=ReasonCode.NOT_SUPPORTED, text="Generator late.")


def answering(*answers: Answer) -> tuple[Callable[[], Answer], list[Answer]]:
    left = list(answers)
    return lambda: left.pop(0), left


def test_a_search_that_has_an_answer_is_not_repeated() -> None:
    rates = LoadRates()
    launch, left = answering(Answer(reply={"rates": [50.0, 100.0]}))
    for _ in range(2):
        rates.search(OLD, launch=launch)
    assert (rates.find(OLD), rates.find_reason(OLD), left) == ([50.0, 100.0], None, [])


def test_another_arm_s_search_serves_the_one_whose_own_failed() -> None:
    rates = LoadRates()
    launch, _ = answering(Answer(reason=LATE), Answer(reply={"rates": [70.0]}))
    rates.search(OLD, launch=launch)
    assert (rates.find(OLD), rates.find_reason(OLD)) == ([], LATE)
    rates.search(OLD, launch=launch)
    assert (rates.find(OLD), rates.find_reason(OLD)) == ([70.0], None)
    assert rates.find(NEW) == [], "other hardware has rates of its own"


def test_a_search_without_rates_is_no_answer() -> None:
    for reply in ({}, {"rates": []}, {"rates": [-1.0]}, {"rates": "many"}):
        rates = LoadRates()
        rates.search(OLD, launch=lambda reply=reply: Answer(reply=reply))
        assert rates.find_reason(OLD).code == ReasonCode.GARBLED


def test_nothing_is_searched_where_the_rate_is_known() -> None:
    def launch() -> Answer:
        raise AssertionError("nothing is launched")

    rates = LoadRates()
    for scenario in ("single", "fresh", "load:rate=50:bound=20ms"):
        one = arm(workload=Workload(scenario=scenario))
        rates.search(one, launch=launch)
        assert (rates.find(one), rates.find_reason(one)) == ([], None)
