"""The table of kinds of change."""

from farm.rules.changes.watch_rounds import Rule
from farm.rules.findings.kinds import CHECKS, KEYS, KINDS, NOISY_CHECKS, rank, rank_to_investigate, title_of


def test_every_kind_that_a_rule_may_name_has_an_entry_in_its_order() -> None:
    assert tuple(KINDS) == KEYS
    assert Rule().kinds == KEYS


def test_what_is_wrong_is_told_before_what_is_slow_and_what_has_a_work_around_is_looked_into_first() -> None:
    told = ["memory", "slower", "parity", "failed"]
    assert sorted(told, key=rank) == ["parity", "failed", "slower", "memory"]
    assert sorted(told, key=rank_to_investigate) == ["slower", "parity", "failed", "memory"]


def test_a_fresh_block_need_not_show_again_what_follows_from_graph_and_outputs() -> None:
    assert {key for key, kind in KINDS.items() if not kind.is_noisy} == {"parity", "placement"}
    assert {"slower", "lower", "failed"} == NOISY_CHECKS < set(CHECKS)


def test_a_rule_says_what_it_lets_pass_of_each_kind() -> None:
    rule = Rule(latency=0.1, kinds=("slower", "ttft", "growth"))
    assert [rule.allowed(kind) for kind in rule.kinds] == [0.1, 0.1, 0.0]
    assert ["10 %" in line for line in rule.words()] == [True, True, False]


def test_an_unknown_kind_is_shown_as_it_is() -> None:
    assert title_of("half_done").word == "half done"
