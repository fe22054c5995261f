"""When queued blocks begin and end, machine by machine."""

import pytest

from farm.rules.planning.schedule import Machine, Queued, Span, forecast_spans

ONE = ["host"]


def ends(queued: list[Queued], *machines: Machine) -> dict[int, float]:
    return {block: span.ends_s for block, span in forecast_spans(queued, machines).items()}


def test_blocks_of_one_machine_follow_each_other_in_the_order_in_which_they_came() -> None:
    queued = [Queued(7, False, 30.0, ONE), Queued(3, False, 60.0, ONE)]
    assert forecast_spans(queued, [Machine("host")]) == {7: Span(0.0, 30.0, "host"), 3: Span(30.0, 90.0, "host")}


def test_what_people_asked_for_goes_before_what_the_farm_wants_unless_the_machine_s_team_says_otherwise() -> None:
    queued = [Queued(1, True, 60.0, ONE), Queued(2, True, 60.0, ONE), Queued(3, False, 30.0, ONE)]
    assert ends(queued, Machine("host")) == {3: 30.0, 1: 90.0, 2: 150.0}
    assert ends(queued, Machine("host", people_first=False)) == {1: 60.0, 2: 120.0, 3: 150.0}


def test_a_machine_begins_when_it_is_free_and_measures_at_its_pace() -> None:
    queued = [Queued(1, False, 60.0, ONE)]
    assert forecast_spans(queued, [Machine("host", free_in_s=100.0, pace=1.5)]) == {1: Span(100.0, 190.0, "host")}
    assert ends(queued, Machine("host", free_in_s=-5.0)) == {1: 60.0}
    # of a run whose rounds are being measured its own pace is known
    assert ends([Queued(1, False, 60.0, ONE, pace=3.0)], Machine("host", pace=1.5)) == {1: 180.0}


def test_a_block_is_measured_where_it_may_be_by_whoever_is_free_first() -> None:
    both, queued = ["a", "b"], []
    queued = [Queued(1, False, 60.0, both), Queued(2, False, 60.0, ["a"]), Queued(3, False, 60.0, both)]
    found = forecast_spans(queued, [Machine("a"), Machine("b", free_in_s=10.0)])
    assert {block: (span.device, span.begins_s) for block, span in found.items()} == {
        1: ("a", 0.0),
        3: ("b", 10.0),
        2: ("a", 60.0),
    }


@pytest.mark.parametrize("machines", [[], [Machine("other")]])
def test_what_no_machine_takes_is_not_foreseen(machines: list[Machine]) -> None:
    assert forecast_spans([Queued(1, False, 60.0, ONE)], machines) == {}
