"""Who races, and which setting serves several kinds of hardware."""

import pytest

from farm.contract.document_find import Found, FoundSetting, LeftSetting
from farm.rules.searches.contenders import explain_no_race
from farm.rules.searches.found import describe_used_again, find_shared_setting
from farm.rules.searches.race import Contender

ONE, TWO = Contender("a", {}, "1 thread"), Contender("b", {}, "2 threads")
REFUSED = LeftSetting(label="cuda", settings={}, why="refused", text="No node has a GPU.")


@pytest.mark.parametrize(
    ("contenders", "refused", "said"),
    [
        ([ONE, TWO], [REFUSED], ""),
        ([], [REFUSED], "No setting of the space can run here: No node has a GPU."),
        ([ONE], [], "1 thread, so that there is nothing to find: give more values"),
        ([ONE], [REFUSED], "nothing to find (1 cannot run: No node has a GPU.): give"),
    ],
)
def test_a_space_without_two_settings_is_refused_in_a_sentence(
    contenders: list[Contender], refused: list[LeftSetting], said: str
) -> None:
    assert said in explain_no_race(contenders, refused)
    assert bool(explain_no_race(contenders, refused)) == bool(said)


def found(hardware: str, ratios: dict[int, float], *, beside: dict[int, float] | None = None, **how: object) -> Found:
    def settings(known: dict[int, float]) -> list[FoundSetting]:
        return [
            FoundSetting(
                label=f"{threads} threads",
                settings={"threads": threads, "hardware": hardware},
                ratio=None if ratio == 1.0 else ratio,
            )
            for threads, ratio in known.items()
        ]

    known = {"model": "m", "goal": "latency", "state": "decided", "sentence": "s", "size": 3, "is_final": True}
    return Found.model_validate(known | how | {"answer": settings(ratios), "beside": settings(beside or {})})


def test_what_serves_all_hardware_takes_least_where_it_takes_most() -> None:
    both = [found("a", {1: 1.0}, beside={2: 1.04, 3: 1.03}), found("b", {2: 1.0, 3: 1.02}, beside={1: 1.3})]
    shared = find_shared_setting(both)
    assert shared is not None
    assert shared.label == "3 threads"
    assert find_shared_setting([found("a", {1: 1.0}, beside={2: 1.06}), found("b", {2: 1.0})]) is None
    assert find_shared_setting([found("a", {1: 1.0}), found("b", {2: 1.0})]) is None
    assert find_shared_setting([found("a", {1: 1.0}), found("b", {}, state="nothing")]) is None
    assert find_shared_setting([found("a", {1: 1.0}), found("b", {1: 1.0}, is_final=False)]) is None


def test_rounds_of_an_earlier_race_are_said_with_their_time() -> None:
    assert describe_used_again(1, "noon") == "1 setting was measured at noon: its short rounds are used."
    assert describe_used_again(8, "noon") == "8 settings were measured at noon: their short rounds are used."
