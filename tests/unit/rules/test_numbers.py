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
        (2.13, (1.4, 3.0), "2.1 ms ± 0.8"),
        (2.13, (0.9, 3.3), "2.1 ms ± 1.2"),
        # less its half width it would be below nothing
        (1.5, (0.9, 7.9), "1.5 ms (0.9–7.9)"),
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
        (1.24, 1.21, 1.26, "24 % slower"),
        (1.2366, 1.2297, 1.2505, "24 % slower"),
        (1.0123, 1.010, 1.014, "1.2 % slower"),
        (1.00012, 1.0001, 1.00014, "0.01 % slower"),
        (0.81, 0.79, 0.83, "19 % faster"),
        (0.9999, 0.96, 1.04, "0 %"),
        (1.5, None, None, "50.0 % slower"),
        (3.4, 3.2, 3.6, "3.4× slower"),
        (0.308, 0.306, 0.310, "3.25× faster"),
        (2.5, None, None, "2.50× slower"),
        (None, None, None, "not measured"),
    ],
)
def test_a_change_is_written_one_way(ratio: float | None, low: float | None, high: float | None, shown: str) -> None:
    assert numbers.change(ratio, low, high) == shown


def test_a_change_of_another_quantity_has_its_own_words() -> None:
    assert numbers.change(1.24, 1.21, 1.26, words=("more", "fewer")) == "24 % more"
    assert numbers.change(0.5, words=("bigger", "smaller")) == "2.00× smaller"


def test_the_size_of_a_change_leaves_its_direction_to_the_word_beside_it() -> None:
    assert numbers.change_size(0.81, 0.79, 0.83) == "19 %"
    assert numbers.change_size(1.24, 1.21, 1.26) == "24 %"


@pytest.mark.parametrize(
    ("figures", "beside", "alone"),
    [
        ((0.99, 0.96, 1.08), "4 % faster to 8 % slower", "4 % faster to 8 % slower"),
        ((1.24, 1.21, 1.26), "21–26 %", "21–26 % slower"),
        ((0.81, 0.79, 0.83), "17–21 %", "17–21 % faster"),
        ((1.2, 0.9999, 1.45), "0–45 %", "0–45 % slower"),
        ((0.995, 0.987, 1.0), "0.0–1.3 %", "0.0–1.3 % faster"),
        ((3.4, 3.2, 3.6), "3.2–3.6×", "3.2–3.6× slower"),
        ((0.25, 0.24, 0.26), "3.8–4.2×", "3.8–4.2× faster"),
        ((1.9, 1.8, 2.4), "80–140 %", "80–140 % slower"),
        ((1.0, 1 / 2.85, 2.83), "2.9× faster to 2.8× slower", "2.9× faster to 2.8× slower"),
        ((1.0, 1.0, 1.0), "0.0–0.0 %", "0.0–0.0 %"),
        # of two rounds it was 30.2× faster to 32.0× slower
        ((1.01, 1 / 30.2, 32.0), "too wide to say", "too wide to say"),
        ((12.0, 3.0, 48.0), "3.0–48.0×", "3.0–48.0× slower"),
    ],
)
def test_an_interval_says_its_direction_where_no_word_does(
    figures: tuple[float, float, float], beside: str, alone: str
) -> None:
    ratio, low, high = figures
    assert numbers.change_interval(low, high, ratio=ratio) == beside
    assert numbers.change_interval(low, high, ratio=ratio, is_directed=False) == alone
    assert numbers.change_interval(None, 1.0, ratio=1.0) == "not measured"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.91, "0.910"), (0.9999783, "0.99998"), (0.99951, "0.9995"), (1.0, "1.00"), (-0.5, "−0.500")]
)
def test_a_cosine_is_one_only_where_it_is(value: float, shown: str) -> None:
    assert numbers.format_cosine(value) == shown


def test_two_values_have_the_digits_that_their_division_needs() -> None:
    assert numbers.format_divisible_pair(0.52, 0.88, low=1.6, high=1.8) == ("0.520", "0.880")
    assert numbers.format_divisible_pair(100.04, 100.44, low=1.0039, high=1.0041) == ("100.0", "100.4")
    assert numbers.format_divisible_pair(0.52, 0.88, low=1.5, high=1.6) is None
    # medians that are apart a little otherwise than their pairs agree in two digits
    assert numbers.format_divisible_pair(3.1615, 4.9834, low=1.5579, high=1.5739) is None
    shown = numbers.format_divisible_pair(3.1615, 4.9834, low=1.5579, high=1.5739, digits=numbers.SHOWN_PAIR_DIGITS)
    assert shown == ("3.2", "5.0")
    assert numbers.format_divisible_pair(0.0, 1.0, low=0.0, high=9.0) is None


@pytest.mark.parametrize(
    ("value", "interval", "time", "shown"),
    [
        (535.0, (1.4, 3.0), 2.13, "540"),
        (4438.0, (0.22, 0.23), 0.225, f"4{NB}440"),
        (12.34, (80.0, 82.0), 81.0, "12.3"),
        (12.34, None, None, "12.3"),
    ],
)
def test_a_rate_has_no_more_digits_than_its_time(
    value: float, interval: tuple[float, float] | None, time: float | None, shown: str
) -> None:
    assert numbers.rate(value, interval, time=time) == shown


@pytest.mark.parametrize(("fraction", "shown"), [(0.24, "+24 %"), (-0.04, "−4 %"), (0.001, "0 %")])
def test_a_tick_of_an_axis_has_its_sign(fraction: float, shown: str) -> None:
    assert numbers.signed_percent(fraction, 0) == shown


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
        (999_499, "999 kB"),
        (1_000_000, "1.00 MB"),
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
