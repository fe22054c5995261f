import math
import re

import pytest

from dashboard import markup
from farm.rules.wording import numbers

NB = "\N{NARROW NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "interval", "shown"),
    [
        (0.22793, (0.2259, 0.2299), "0.228 ms ± 0.002"),
        (15.412, (15.1, 15.7), "15.4 ms ± 0.3"),
        (1234.5, (1200.0, 1260.0), f"1{NB}234 ms ± 30"),
        (0.0123, None, "0.0123 ms"),
        (1.5, (1.5, 1.5), "1.50 ms"),
        (None, None, "not measured"),
        (math.nan, None, "not measured"),
        (math.inf, None, "not measured"),
    ],
)
def test_a_latency_has_no_more_digits_than_its_interval(
    value: float | None, interval: tuple[float, float] | None, shown: str
) -> None:
    assert numbers.latency(value, interval) == shown


@pytest.mark.parametrize(
    ("ratio", "low", "high", "shown"),
    [
        (1.24, 1.21, 1.26, "+24 %"),
        (1.2366, 1.2297, 1.2505, "+24 %"),
        (1.0123, 1.010, 1.014, "+1.2 %"),
        (1.00012, 1.0001, 1.00014, "+0.01 %"),
        (0.81, 0.79, 0.83, "−19 %"),
        (0.9999, 0.96, 1.04, "0 %"),
        (1.5, None, None, "+50.0 %"),
        (3.4, 3.2, 3.6, "×3.4"),
        (0.4, 0.38, 0.42, "÷2.5"),
        (2.5, None, None, "×2.50"),
        (None, None, None, "not measured"),
    ],
)
def test_a_ratio_is_a_signed_change(ratio: float | None, low: float | None, high: float | None, shown: str) -> None:
    assert numbers.change(ratio, low, high) == shown


def test_the_size_of_a_change_leaves_its_direction_to_the_word_beside_it() -> None:
    assert numbers.change_size(0.81, 0.79, 0.83) == "19 %"
    assert numbers.change_size(1.24, 1.21, 1.26) == "24 %"


@pytest.mark.parametrize("ratio", [0.2, 0.4, 0.5, 0.81, 1.24, 1.99, 2.0, 3.4, 25.0])
def test_a_ratio_is_written_on_pages_as_the_sentence_above_writes_it(ratio: float) -> None:
    size, interval = numbers.change_beside("slower", ratio, ratio * 0.97, ratio * 1.03)
    assert numbers.change_size(ratio, ratio * 0.97, ratio * 1.03).startswith("×") == size.startswith("×")
    if size.startswith("×"):
        assert numbers.change_size(ratio, ratio * 0.97, ratio * 1.03) == size
        assert numbers.change_interval(ratio * 0.97, ratio * 1.03, ratio=ratio).replace("÷", "×") == interval


def test_an_interval_of_changes_names_both_ends() -> None:
    assert numbers.change_interval(0.98, 1.03) == "−2 to +3 %"
    assert numbers.change_interval(None, 1.0) == "not measured"


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [
        (0.96, "96 %"),
        (0.0004, "< 0.1 %"),
        (0.052, "5.2 %"),
        (1.2, "120 %"),
        (-0.3, "−30 %"),
        (0.0, "0 %"),
        (None, "not measured"),
    ],
)
def test_a_share_may_be_tiny_negative_or_above_the_whole(fraction: float | None, shown: str) -> None:
    assert numbers.share(fraction) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (313_405, "313 kB"),
        (1_240_000, "1.24 MB"),
        (2.4e10, "24.0 GB"),
        (3.2e15, f"3{NB}200 TB"),
        (None, "not measured"),
    ],
)
def test_bytes_are_shown_in_the_largest_unit_that_fits(value: float | None, shown: str) -> None:
    assert numbers.size(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (4.25, "4.2 s"),
        (80, "1 min 20 s"),
        (60, "1 min"),
        (3700, "1 h 1 min"),
        (90000, "1 d 1 h"),
        (59, "59 s"),
        (None, "not measured"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(seconds: float | None, shown: str) -> None:
    assert numbers.duration(seconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(4.2e-7, "4.2e−07"), (0.0, "0"), (0.031, "0.0310"), (12345.0, "1.2e+04"), (None, "not measured")],
)
def test_small_differences_are_written_with_an_exponent(value: float | None, shown: str) -> None:
    assert numbers.scientific(value) == shown


def test_counts_agree_with_their_noun() -> None:
    assert numbers.counted(1, "cell") == "1 cell"
    assert numbers.counted(1200, "cell") == f"1{NB}200 cells"
    assert numbers.counted(2, "launch", "launches") == "2 launches"


def test_long_lists_say_how_many_more_there_are() -> None:
    assert numbers.listed([]) == ""
    assert numbers.listed(["a"]) == "a"
    assert numbers.listed(["a", "b", "c"]) == "a, b and c"
    assert numbers.listed(list("abcdef")) == "a, b and 4 more"


def test_plain_and_signed_numbers_have_three_significant_digits() -> None:
    assert numbers.plain(1621.4) == f"1{NB}621"
    assert numbers.plain(0.0, unit="ms") == "0 ms"
    assert numbers.plain(None) == "not measured"
    assert numbers.signed(34.21) == "+34.2"
    assert numbers.signed(-0.5) == "−0.500"
    assert numbers.signed(None) == "not measured"


def test_numbers_stay_on_one_line_with_their_units() -> None:
    assert numbers.unbroken("24 % slower, 0.2 ms") == "24\N{NO-BREAK SPACE}% slower, 0.2\N{NO-BREAK SPACE}ms"


def test_a_flag_is_not_a_number() -> None:
    assert not numbers.is_number(True)
    assert numbers.plus_minus(None, (1.0, 2.0)) == ""


def test_an_interval_in_a_sentence_stays_on_one_line_and_nothing_else_changes() -> None:
    told = markup.unbroken("a <b> 24 % slower (95 % interval 21–26 %, 8 rounds), or −4 to +8 %, from 1.29.0–1.31.1.")
    spans = re.findall(r'<span class="nowrap">(.*?)</span>', told)
    assert [one.replace("\N{NO-BREAK SPACE}", " ") for one in spans] == ["21–26 %", "−4 to +8 %"]
    plain = re.sub(r"</?span[^>]*>", "", told).replace("\N{NO-BREAK SPACE}", " ")
    assert plain == "a &lt;b&gt; 24 % slower (95 % interval 21–26 %, 8 rounds), or −4 to +8 %, from 1.29.0–1.31.1."


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 B"),
        (256, "256 B"),
        (1024, "1.0 KiB"),
        (65536, "64 KiB"),
        (4_404_019, "4.2 MiB"),
        (3e9, f"2{NB}861 MiB"),
        (None, "not measured"),
    ],
)
def test_the_memory_of_an_operator_is_written_in_its_own_unit(value: float | None, shown: str) -> None:
    assert numbers.small_memory(value) == shown
