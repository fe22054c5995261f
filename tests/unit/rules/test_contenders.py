"""Who races, which setting serves several kinds of hardware, and the table of the settings."""

import pytest

from farm.contract.document_find import Found, FoundSetting, LeftSetting
from farm.rules.presenting.race_settings import make_dropped_table, make_settings_table
from farm.rules.searches.contenders import explain_no_race
from farm.rules.searches.race import Contender
from farm.rules.searches.race_document import describe_reuse, find_shared_setting

ONE, TWO = Contender("a", {}, "1 thread"), Contender("b", {}, "2 threads")
REFUSED = LeftSetting(label="cuda", settings={}, why="refused", text="No node has a GPU.")


@pytest.mark.parametrize(
    ("contenders", "refused", "said"),
    [
        ([ONE, TWO], [REFUSED], ""),
        ([], [REFUSED], "No setting of the space can run here: No node has a GPU."),
        ([ONE], [], "1 thread, so that there is nothing to find: give more values"),
        ([ONE], [REFUSED], "nothing to find (1 cannot run: No node has a GPU.): give"),
        ([ONE, Contender("c", {"scenario": "fresh"}, "fresh")], [], "leave `scenario` out of it"),
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
    assert describe_reuse(1, "noon") == "1 setting was measured at noon: its short rounds are used."
    assert describe_reuse(8, "noon") == "8 settings were measured at noon: their short rounds are used."


@pytest.mark.parametrize(
    ("goal", "more"), [("latency", []), ("throughput", ["items/s by the clock"]), ("processor-time", ["CPU time, ms"])]
)
def test_the_table_has_each_setting_once_with_its_role_and_the_figure_of_the_goal(goal: str, more: list[str]) -> None:
    first, slower, default = (
        FoundSetting(label=name, settings={"threads": name}, p50_ms=2.0, p50_ci_ms=(1.9, 2.1), **figures)
        for name, figures in (
            ("1", {"throughput": 500.0, "cpu_p50_ms": 1.9}),
            ("2", {"ratio": 1.5, "ratio_low": 1.4, "ratio_high": 1.6}),
            ("4", {}),
        )
    )
    document = found("a", {}, goal=goal).model_copy(update={"answer": [first], "beside": [slower], "default": default})
    table = make_settings_table(document)
    assert [head.text for head in table.heads] == ["Setting", "Is", "p50, ms", "±, ms", *more, "against the first"]
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        ("1", "answer"),
        ("2", "in its final block"),
        ("4", "default"),
    ]
    assert [row[-1].text for row in table.rows] == ["", "40–60 % slower", ""]
    busy = make_settings_table(document.model_copy(update={"is_by_processor": True, "state": "undecided"}))
    assert [head.text for head in busy.heads].count("CPU time, ms") == (goal != "throughput")
    assert busy.rows[0][1].text == "best so far"
    again = make_settings_table(document.model_copy(update={"default": first, "apart": [default]}))
    assert [row[1].text for row in again.rows] == ["answer", "in its final block", "apart"]
    failed = FoundSetting(label="4", settings={})
    assert make_settings_table(found("a", {}, state="nothing", default=failed)).rows == []


def test_what_left_is_listed_with_the_budget_that_excluded_it() -> None:
    slow = REFUSED.model_copy(update={"label": "1 thread", "why": "budget", "budget": "p50", "text": "It takes 9 ms."})
    table = make_dropped_table(found("a", {}, state="nothing", left=[REFUSED, slow]))
    assert [[entry.text for entry in row] for row in table.rows] == [
        ["cuda", "refused", "No node has a GPU."],
        ["1 thread", "budget of p50", "It takes 9 ms."],
    ]
