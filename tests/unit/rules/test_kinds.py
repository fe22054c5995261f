"""The table of kinds of change, and what the entry of a package has to be."""

import re
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from farm.rules.cells.metrics import ALERTING
from farm.rules.changes.watch_rounds import CONFIRMED, Rule
from farm.rules.findings import checks, kinds
from farm.rules.findings.cell_pairs import Pair
from farm.rules.findings.kind import Change, Kind
from farm.rules.findings.kinds import CHECKS, KEYS, KINDS, NOISY_CHECKS, OWN, kind_of, rank
from farm.rules.wording.vocabulary import Sign
from tests.documents import make_cell
from tests.inventory import ROOT


def test_every_kind_that_a_rule_may_name_has_an_entry_in_its_order() -> None:
    assert tuple(KINDS) == KEYS
    assert Rule().kinds == KEYS


def test_what_is_wrong_is_told_before_what_is_slow() -> None:
    told = ["memory", "slower", "parity", "failed"]
    assert sorted(told, key=rank) == ["parity", "failed", "slower", "memory"]


def test_a_fresh_block_need_not_show_again_what_follows_from_graph_and_outputs() -> None:
    assert {key for key, kind in KINDS.items() if not kind.is_noisy} == {"parity", "accuracy", "placement"}
    assert {"slower", "lower", "failed"} == NOISY_CHECKS < set(CHECKS)


def test_rules_and_docs_say_of_the_same_kinds_that_a_fresh_block_confirms_them() -> None:
    noisy = [kind.key for kind in OWN if kind.is_noisy]
    assert [kind for kind, line in zip(KEYS, Rule().describe_kinds(), strict=True) if line.endswith(CONFIRMED)] == noisy
    text = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
    told = re.search(r"Noisy kinds of change \((.*?)\) need a fresh block", text, re.DOTALL)
    assert told is not None
    assert sorted(re.findall(r"`(\w+)`", told[1])) == sorted(noisy)


def test_a_rule_says_what_it_lets_pass_of_each_kind() -> None:
    rule = Rule(latency=0.1, kinds=("slower", "ttft", "growth"))
    assert [rule.allowed(kind) for kind in rule.kinds] == [0.1, 0.1, 0.0]
    assert ["10 %" in line for line in rule.describe_kinds()] == [True, True, False]


def test_an_unknown_kind_is_shown_as_it_is() -> None:
    assert kind_of("half_done").title.word == "half done"
    assert rank("half_done") == len(KINDS)


def test_a_stored_rule_loses_the_kinds_of_packages_that_are_gone_and_no_other_field() -> None:
    assert Rule.from_stored({"kinds": ["waits", "parity"], "latency": 0.1}) == Rule(kinds=("parity",), latency=0.1)
    assert Rule.from_stored({}) == Rule()


def test_a_rule_of_every_kind_is_kept_without_their_names_so_that_later_kinds_alert_too() -> None:
    assert "kinds" not in Rule(latency=0.1).as_stored
    assert Rule.from_stored(Rule(latency=0.1).as_stored) == Rule(latency=0.1)
    some = Rule(kinds=("slower", "parity"))
    assert Rule.from_stored(some.as_stored) == some


WAITS = Kind(
    "waits", Sign("▲", "waits longer", "slower"), "a longer wait", compare=lambda pair, allowed: [Change("well")]
)


def read(monkeypatch: pytest.MonkeyPatch, **given: object) -> tuple[list[str], str]:
    """The keys that are taken of these entries, and why others are not."""
    module = ModuleType("acme_changes")
    vars(module).update(given)
    monkeypatch.setitem(sys.modules, "acme_changes", module)
    found = kinds.GROUP.load([EntryPoint(name, f"acme_changes:{name}", kinds.GROUP.name) for name in given])
    return [kind.key for kind in found.entries], " ".join(found.refused.values())


def test_an_entry_of_a_package_is_one_by_what_it_compares_or_by_a_metric_that_alerts_as_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read(monkeypatch, one=WAITS, two=replace(WAITS, key="other")) == (["waits", "other"], "")
    monkeypatch.setitem(ALERTING, "acme_wait_ms", replace(ALERTING["session_ms"], alerts_as="waits"))
    assert read(monkeypatch, one=replace(WAITS, compare=None, before="session", limit="memory")) == (["waits"], "")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"key": "Waits!"}, "key"),
        ({"key": 7}, "key"),
        ({"key": "w" * 33}, "key"),
        ({"key": "parity"}, "'parity' is taken"),
        ({"key": "undecided"}, "'undecided' is taken"),
        ({"compare": None}, "compare"),
        ({"compare": "slower"}, "compare"),
        ({"title": "waits"}, "title"),
        ({"title": Sign("▲", "waits", "pink")}, "title"),
        ({"title": Sign("", "waits", "bad")}, "title"),
        ({"alerts_on": ""}, "alerts_on"),
        ({"alerts_on": "x" * 201}, "alerts_on"),
        ({"alerts_on": "more than {least}"}, "alerts_on"),
        ({"before": "waits"}, "before"),
        ({"limit": "waits"}, "limit"),
    ],
)
def test_a_malformed_entry_is_left_out_and_says_which_field(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], field: str
) -> None:
    taken, refused = read(monkeypatch, one=replace(WAITS, **changes))
    assert taken == []
    assert refused.startswith(f"The kind of change 'one' is left out: {field}")


def test_of_two_entries_of_one_key_the_first_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, one=WAITS, two=WAITS)[0] == ["waits"]


def test_those_of_packages_stand_where_they_are_told() -> None:
    told = [kind.key for kind in kinds.sort_kinds([WAITS, replace(WAITS, key="other", before="failed")])]
    assert [*told[:4], told[-1]] == ["parity", "accuracy", "other", "failed", "waits"]


def test_a_metric_that_alerts_as_no_kind_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    judging = ALERTING["session_ms"]
    kinds.warn_of_unknown_kinds({"session_ms": judging, "acme_wait_ms": replace(judging, alerts_as="waits")}, KEYS)
    assert [record.args for record in caplog.records] == [("acme_wait_ms", "waits")]


@pytest.mark.parametrize("compare", [lambda pair, allowed: 1 / 0, lambda pair, allowed: ["worse"], lambda pair: []])
def test_a_comparison_that_breaks_leaves_its_kind_undecided(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, compare: Any
) -> None:
    module = ModuleType("acme_changes")
    vars(module).update(one=replace(WAITS, compare=compare), two=replace(WAITS, key="other"))
    monkeypatch.setitem(sys.modules, "acme_changes", module)
    points = [EntryPoint(name, f"acme_changes:{name}", kinds.GROUP.name) for name in ("one", "two")]
    broken, fine = kinds.GROUP.load(points).entries
    pair = Pair(make_cell("c1"), make_cell("c2"))
    assert [change.verdict for change in checks.find_changes(broken, pair, allowed=0.0)] == ["undecided"]
    assert [change.verdict for change in checks.find_changes(fine, pair, allowed=0.0)] == ["well"]
    assert "'waits' broke" in caplog.text
