"""`onnxfarm changepoints`."""

import json

import pytest

from tests.unit.commands.conftest import Call, Write, refused

LEVELS = [1.0 + 0.01 * (place % 3) for place in range(20)] + [2.0 + 0.01 * (place % 3) for place in range(20)]
BARE = "\n".join(map(str, LEVELS))
DATED = "\n".join(f"2026-{1 + place // 28:02}-{1 + place % 28:02},{value}" for place, value in enumerate(LEVELS))


def found(text: str) -> list[tuple[str, int]]:
    return [(point["series"], point["index"]) for point in json.loads(text)]


@pytest.mark.parametrize(
    ("content", "points"),
    [
        (BARE, [("0", 20)]),
        (f"latency\n{BARE}\n", [("latency", 20)]),
        (f"\ufefflatency\n{BARE}".replace("\n", "\r\n"), [("latency", 20)]),
        (DATED, [("1", 20)]),
        (f"time,value\n{DATED}", [("value", 20)]),
        ("\n".join(f"{place},{value}" for place, value in enumerate(LEVELS)), [("1", 20)]),
        ("a,b\n" + "\n".join(f"{value},{3.0 + value / 100}" for value in LEVELS), [("a", 20)]),
        ("a,b\n" + "\n".join(f"{value},{value}" for value in LEVELS), [("a", 20), ("b", 20)]),
        ("run_at,a,b\n" + "\n".join(f"{p},{v},5.0" for p, v in enumerate(LEVELS)), [("a", 20)]),
        ("commit,a\n" + "\n".join(f"{p * 7919 % 997:x},{v}" for p, v in enumerate(LEVELS)), [("a", 20)]),
        ("\n".join(f"v1.{place}.0,{value}" for place, value in enumerate(LEVELS)), [("1", 20)]),
        ("1\n2\n3", []),
    ],
)
def test_columns_are_series_and_a_time_is_none(call: Call, write: Write, content: str, points: list[tuple[str, int]]):
    result = call("changepoints", write("series.csv", content), "--json")
    assert (result.exit_code, found(result.stdout)) == (0, points)


def test_a_shift_is_told_with_its_time_and_size(call: Call, write: Write) -> None:
    result = call("changepoints", write("series.csv", f"time,latency\n{DATED}"))
    assert result.stdout.startswith("latency: 1 level shift: +99.1 % at row 20 (2026-01-21), p = ")


def test_no_shift_is_told_too(call: Call, write: Write) -> None:
    result = call("changepoints", write("series.csv", "1\n1\n1\n"))
    assert result.stdout == "0: no level shift of 2 % or more in 3 rows.\n"


def test_several_shifts_are_told_in_one_sentence(call: Call, write: Write) -> None:
    result = call("changepoints", write("series.csv", "\n".join(["0"] * 9 + ["5"] * 9 + ["0"] * 9)))
    assert result.stdout.startswith("0: 2 level shifts: from 0 at row 9, p = ")
    assert "-100 % at row 18" in result.stdout


def test_values_of_either_sign_are_a_series_on_their_own_scale(call: Call, write: Write) -> None:
    result = call("changepoints", write("series.csv", "\n".join(["-4", "-4.1", "-3.9"] * 4 + ["6", "6.1", "5.9"] * 4)))
    assert result.exit_code == 0
    assert result.stdout.startswith("0: 1 level shift: -250 % at row 12, p = ")


@pytest.mark.parametrize("content", ["1", "time,value\n1,2", "-1", "0\n0\n0"])
def test_too_few_or_equal_values_have_no_shift(call: Call, write: Write, content: str) -> None:
    result = call("changepoints", write("series.csv", content), "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_json_has_index_magnitude_and_p(call: Call, write: Write) -> None:
    result = call("changepoints", write("series.csv", BARE), "--json")
    (point,) = json.loads(result.stdout)
    assert point["magnitude"] == pytest.approx(0.99, abs=0.01)
    assert 0.0 <= point["p"] <= 1e-5
    assert result.stderr.startswith("0: 1 level shift")


def test_the_margin_is_the_smallest_shift_reported(call: Call, write: Write) -> None:
    path = write("series.csv", BARE)
    assert json.loads(call("changepoints", path, "--json", "--margin", "0.99999").stdout) == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        (" \n \n", "is empty"),
        ("time,value\n", "has a header and no rows"),
        ("1\n2\nx\n3", "row 2 of column 0 is 'x'"),
        ("v\n1\nnan\n2", "row 1 of column v is 'nan'"),
        ("v\n1\ninf\n2", "row 1 of column v is 'inf'"),
        ("v\n1\n\n2", "line 3 has 0 columns and the first has 1"),
        ("1,2\n1,\n", "row 1 of column 1 is ''"),
        ("time,value\n1,2\n2,3,4\n", "line 3 has 3 columns"),
        ("time,value\n2,1\n1,1\n", "row 1 is earlier than the row before (1)"),
        ("time,value\n2026-02-01,1\n2026-01-01,1\n", "row 1 is earlier than the row before (2026-01-01)"),
        ('"a\n1', "is not a CSV file"),
        ('{"pairs": [[1, 2], [2, 3]]}', "holds JSON"),
        ('{\n  "schema": "onnxfarm.bench/1",\n  "cells": []\n}', "holds JSON"),
        ("[1, 2, 3]", "holds JSON"),
        (b"\x00\xff\x01", "text file"),
    ],
)
def test_what_holds_no_series_is_refused_in_one_sentence(call: Call, write: Write, content: object, told: str) -> None:
    assert told in refused(call("changepoints", write("bad.csv", content), "--json"))


def test_a_margin_that_is_none_is_refused(call: Call, write: Write) -> None:
    assert "The margin is" in refused(call("changepoints", write("series.csv", BARE), "--margin", "nan"))
