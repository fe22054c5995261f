"""`onnxfarm verdict`."""

import json
import random
import time
from pathlib import Path

import pytest

from farm.rules.comparing import verdicts
from onnxfarm.documents import MAX_FILE_BYTES
from tests.unit import yard
from tests.unit.commands.conftest import Call, Write, refused

SLOWER = [[1.0, 1.1], [1.0, 1.11], [1.0, 1.12], [1.0, 1.1], [1.0, 1.1], [1.0, 1.13], [1.0, 1.1], [1.0, 1.1]]
EQUAL = [[1.0, 1.0 + 0.001 * (-1) ** place] for place in range(8)]


def test_pairs_get_their_verdict_in_a_sentence(call: Call, write: Write) -> None:
    result = call("verdict", write("pairs.json", {"pairs": SLOWER}))
    assert result.exit_code == 0
    assert result.stdout.startswith("slower: new / old = 1.105 (95 % interval 1.098 to 1.117, 8 rounds")


def test_json_has_exactly_the_figures_of_the_rules(call: Call, write: Write) -> None:
    result = call("verdict", write("pairs.json", {"pairs": SLOWER}), "--json")
    answer = json.loads(result.stdout)
    judged = verdicts.judge_pairs(SLOWER)
    assert answer["schema"] == "onnxfarm.verdict/1"
    for name in ("verdict", "ratio", "ci_low", "ci_high", "ci_level", "rounds_used", "p", "margin"):
        assert answer[name] == getattr(judged, name)
    assert answer["smallest_detectable"] == judged.smallest_detectable
    assert answer["rounds_needed"] == judged.rounds_needed
    assert result.stderr.startswith("slower: ")


@pytest.mark.parametrize(
    ("pairs", "options", "verdict"),
    [
        (SLOWER, [], "slower"),
        (EQUAL, [], "equal"),
        (SLOWER, ["--margin", "0.2"], "equal"),
        (SLOWER[:7], [], "undecided"),
    ],
)
def test_every_verdict_is_a_success(
    call: Call, write: Write, pairs: list[list[float]], options: list[str], verdict: str
) -> None:
    result = call("verdict", write("pairs.json", {"pairs": pairs}), "--json", *options)
    assert (result.exit_code, json.loads(result.stdout)["verdict"]) == (0, verdict)


def test_many_comparisons_are_answered_in_their_order(call: Call, write: Write) -> None:
    entries = [{"pairs": EQUAL}, {"pairs": SLOWER}, {"old": [1.0, 1.1], "new": [1.0, 1.2]}, {"pairs": SLOWER[:3]}]
    path = write("many.json", {"comparisons": entries})
    result = call("verdict", path, "--json")
    answers = json.loads(result.stdout)["comparisons"]
    assert [answer["verdict"] for answer in answers] == ["equal", "slower", "undecided", "undecided"]
    assert [answer["holds_across"] for answer in answers] == [None, True, None, None]
    assert result.stderr == "4 comparisons: 1 equal, 1 slower, 2 undecided.\n"
    told = call("verdict", path).stdout.splitlines()
    assert len(told) == 5
    assert told[1].startswith("1. slower: ")


def test_no_comparisons_are_no_mistake(call: Call, write: Write) -> None:
    result = call("verdict", write("none.json", {"comparisons": []}), "--json")
    assert (result.exit_code, json.loads(result.stdout)["comparisons"]) == (0, [])


def test_unpaired_samples_name_their_test(call: Call, write: Write) -> None:
    samples = {"old": [1.0, 1.01, 1.02, 1.0, 1.01, 1.03], "new": [1.2, 1.21, 1.22, 1.2, 1.21, 1.23]}
    result = call("verdict", write("unpaired.json", samples), "--json")
    answer = json.loads(result.stdout)
    assert (answer["verdict"], answer["test"]) == ("slower", "exact Mann-Whitney")


def test_samples_in_any_unit_give_finite_numbers(call: Call, write: Write) -> None:
    result = call("verdict", write("far.json", {"pairs": [[1e-99, 1e99]] * 8}), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout, parse_constant=pytest.fail)["verdict"] == "slower"


def test_three_thousand_comparisons_take_seconds(call: Call, write: Write) -> None:
    draw = random.Random(1)
    entries = [{"pairs": [[draw.gauss(1, 0.02), draw.gauss(1, 0.02)] for _ in range(24)]} for _ in range(3_000)]
    path = write("many.json", {"comparisons": entries})
    start = time.process_time()
    assert len(json.loads(call("verdict", path, "--json").stdout)["comparisons"]) == 3_000
    assert time.process_time() - start < 3_000 * 12 * yard.yard_s()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is not a JSON document"),
        ("{", "is not a JSON document"),
        ("[" * 100_000, "is not a JSON document"),
        (b"\xff\xfe\x00", "not a text file"),
        ([1, 2], "holds a list where a JSON object is needed"),
        ("null", "holds null"),
        ("3", "holds a number"),
        ('"x"', "holds a string"),
        ({}, "it has neither, but nothing"),
        ({"benchmarks": [], "context": {}}, "it has neither, but benchmarks, context"),
        ({"pairs": SLOWER, "old": [1], "new": [2]}, "it has both"),
        ({"schema": "onnxfarm.verdict/2", "pairs": SLOWER}, "reads onnxfarm.verdict/1"),
        ({"schema": 7, "pairs": SLOWER}, "has the schema 7"),
        ({"schema": "onnxfarm.bench/1", "cells": []}, "`onnxfarm compare` takes two"),
        ({"pairs": []}, "has 0 pair(s)"),
        ({"pairs": [[1.0, 1.1]]}, "has 1 pair(s)"),
        ({"pairs": 5}, '"pairs" is not a list'),
        ({"pairs": [[1.0, 1.1], [1.0]]}, "pairs[1] is not two samples"),
        ({"pairs": [[1.0, 1.1], [1.0, 1.1, 1.2]]}, "pairs[1] is not two samples"),
        ({"pairs": [[1.0, 1.1], 5]}, "pairs[1] is not two samples"),
        ('{"pairs": [[1, 1], [1, NaN]]}', "pairs[1][1] is NaN"),
        ('{"pairs": [[1, 1], [Infinity, 1]]}', "pairs[1][0] is Infinity"),
        ('{"pairs": [[1, 1], [1e999, 1]]}', "pairs[1][0] is Infinity"),
        (f'{{"pairs": [[1, 1], [1, 1{"0" * 400}]]}}', "every sample must be a finite number above 0"),
        (f'{{"pairs": [[1, 1], [1, 1{"0" * 5000}]]}}', "is not a JSON document"),
        ({"pairs": [[1.0, 1.1], [0, 1.0]]}, "pairs[1][0] is 0"),
        ({"pairs": [[1.0, 1.1], [-1.0, 1.0]]}, "pairs[1][0] is -1.0"),
        ({"pairs": [[1.0, 1.1], [1.0, None]]}, "pairs[1][1] is missing (null)"),
        ({"pairs": [[1.0, 1.1], [1.0, "1.2"]]}, 'pairs[1][1] is "1.2"'),
        ({"pairs": [[1.0, 1.1], [1.0, True]]}, "pairs[1][1] is true"),
        ({"pairs": [[1.0, 1.1], [1.0, ["x" * 100]]]}, "…"),
        ({"old": [1.0, 2.0]}, "new is missing (null) where a list of samples is needed"),
        ({"old": [1.0, 2.0], "new": [1.0, 2.0, 3.0]}, "has 2 old and 3 new samples"),
        ({"old": [1.0], "new": [1.0]}, "has 1 launch(es)"),
        ({"old": [1.0, 0.0], "new": [1.0, 1.0]}, "old[1] is 0.0"),
        ({"comparisons": {}}, '"comparisons" is not a list'),
        ({"comparisons": [5]}, "comparisons[0] is not an object"),
        ({"comparisons": [{"pairs": SLOWER}, {"pairs": [[1, 2]]}]}, "comparisons[1] has 1 pair(s)"),
    ],
)
def test_what_holds_no_samples_is_refused_in_one_sentence(call: Call, write: Write, content: object, told: str) -> None:
    assert told in refused(call("verdict", write("bad.json", content), "--json"))


def test_a_file_that_is_not_there_is_refused(call: Call, tmp_path: object) -> None:
    assert "cannot be read" in refused(call("verdict", f"{tmp_path}/none.json"))
    assert "cannot be read" in refused(call("verdict", tmp_path))


def test_a_file_of_raw_timings_is_too_large(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert "is larger than" in refused(call("verdict", path))


@pytest.mark.parametrize("margin", ["-0.1", "1", "nan", "inf"])
def test_a_margin_that_is_none_is_refused(call: Call, write: Write, margin: str) -> None:
    assert "The margin is" in refused(call("verdict", write("pairs.json", {"pairs": SLOWER}), "--margin", margin))
