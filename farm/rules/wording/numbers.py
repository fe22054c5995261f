"""Formats numbers for people: with units, and with no more digits than their interval justifies.

Where None is `not measured`, so is whatever is not a finite number.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from math import ceil, floor, isfinite, log10
from typing import Concatenate, ParamSpec

NOT_MEASURED = "not measured"
THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
# significant digits of a number without an interval
SIGNIFICANT = 3
# the fewest significant digits where an interval decides how many there are
MIN_SIGNIFICANT = 2
MAX_DECIMALS = 6
# the numbers of significant digits that format_divisible_pair tries; few are the last resort, where a pair is shown
PAIR_DIGITS = range(3, 7)
SHOWN_PAIR_DIGITS = (*PAIR_DIGITS, MIN_SIGNIFICANT)
# the rounding error to allow in a difference of two written numbers
ROUNDING = 1e-9
MIB = 1 << 20
# From this ratio on, changes are written as factors, which are then easier to read than percentages.
FACTOR_FROM = 2.0
# A share of a change of up to this much counts as all of it, since traces are no more exact.
MAX_WHOLE = 1.05

Interval = tuple[float, float]
# the words for more and for less of a quantity
Words = tuple[str, str]
TIMES: Words = ("slower", "faster")
P = ParamSpec("P")


def is_number(value: object) -> bool:
    """Whether a value is a finite number; False for booleans, infinity and NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _measured(write: Callable[Concatenate[float, P], str]) -> Callable[Concatenate[float | None, P], str]:
    """Decorate a formatter to return NOT_MEASURED for None, and for anything that is not a finite number."""

    @wraps(write)
    def written(value: float | None, /, *args: P.args, **kwargs: P.kwargs) -> str:
        return NOT_MEASURED if value is None or not is_number(value) else write(value, *args, **kwargs)

    return written


def decimals_within(half_width: float, *, most: int = MAX_DECIMALS) -> int:
    """Return how many decimals show the first digit of an interval's half width, at most `most`.

    Return `most` for a half width of 0 or less.
    """
    return most if half_width <= 0 else min(most, max(0, -floor(log10(half_width))))


def decimals_of(value: float, *, half_width: float | None = None, most: int = MAX_DECIMALS) -> int:
    """Return how many decimals to format a value with.

    They show the first digit of the half width of its interval, and at least two significant digits; without an
    interval, three significant digits.
    """
    if half_width is not None and half_width > 0:
        return max(decimals_within(half_width, most=most), _decimals(value, MIN_SIGNIFICANT, most))
    return _decimals(value, SIGNIFICANT, most)


def _decimals(value: float, digits: int, most: int) -> int:
    return 0 if value == 0 else min(most, max(0, digits - 1 - floor(log10(abs(value)))))


def fixed(value: float, decimals: int) -> str:
    """Format a number with so many decimals, a minus sign (−) and thin spaces between thousands.

    A number that rounds to zero has no sign.
    """
    text = f"{abs(value):,.{decimals}f}".replace(",", THIN)
    return f"{MINUS}{text}" if value < 0 and _has_digits(text) else text


def _has_digits(text: str) -> bool:
    return any(digit in "123456789" for digit in text)


def half_width(interval: Interval | None) -> float | None:
    return (interval[1] - interval[0]) / 2 if interval is not None else None


@_measured
def milliseconds(value: float, interval: Interval | None = None) -> str:
    """Format a latency without its unit, for a table whose header has it: `0.228`. None is `not measured`."""
    return fixed(value, decimals_of(value, half_width=half_width(interval)))


def plus_minus(value: float | None, interval: Interval | None) -> str:
    """Format the half width of an interval: `± 0.002`.

    Where value minus half width would be 0 or less, it gives the ends instead: `(0.9–7.9)`. Empty where there is no
    interval.
    """
    half = half_width(interval)
    if value is None or half is None or not is_number(half) or half <= 0:
        return ""
    decimals = decimals_of(value, half_width=half)
    if interval is not None and 0 < value <= half:
        return f"({fixed(interval[0], decimals)}–{fixed(interval[1], decimals)})"
    return f"± {fixed(half, decimals)}"


@_measured
def latency(value: float, interval: Interval | None = None) -> str:
    """Format a latency with its unit and interval: `0.228 ms ± 0.002`. None is `not measured`."""
    return f"{milliseconds(value, interval)} ms {plus_minus(value, interval)}".rstrip()


@_measured
def change(ratio: float, low: float | None = None, high: float | None = None, *, words: Words = TIMES) -> str:
    """Format a ratio as a change: 1.19 is `19 % slower`, and 0.308 is `3.25× faster`.

    A change that rounds to zero is `0 %`, without a word. The interval from `low` to `high` decides how many digits
    there are. None is `not measured`.
    """
    size = change_size(ratio, low, high)
    return f"{size} {words[0] if ratio > 1 else words[1]}" if _has_digits(size) else size


def change_size(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """Format the size of a change without its direction: `19 %`, `3.25×`.

    The interval, where it is given, decides how many digits there are.
    """
    return _format_size(ratio, low, high, as_factor=is_written_as_factor(ratio))


def _format_size(ratio: float, low: float | None, high: float | None, *, as_factor: bool) -> str:
    if as_factor:
        half = None
        if low is not None and high is not None and low != high:
            is_both_ways = (low - 1) * (high - 1) < 0
            ends = _factor(low), _factor(high)
            half = (sum(ends) - 2 if is_both_ways else abs(ends[1] - ends[0])) / 2
        return f"{fixed(_factor(ratio), 2 if half is None else max(1, decimals_within(half, most=2)))}×"
    half = None if low is None or high is None or low == high else 50 * abs(high - low)
    return f"{fixed(100 * abs(ratio - 1), 1 if half is None else decimals_within(half, most=2))} %"


def _factor(ratio: float) -> float:
    return ratio if ratio >= 1 or ratio <= 0 else 1 / ratio


# TOO_WIDE replaces an interval that includes gains and losses, and whose ends are more than a factor of MAX_INTERVAL
# apart.
MAX_INTERVAL, TOO_WIDE = 10.0, "too wide to say"


def change_interval(
    low: float | None, high: float | None, *, ratio: float | None, words: Words = TIMES, is_directed: bool = True
) -> str:
    """Format the interval of a change: `21–26 %`, or `4 % faster to 8 % slower` where both directions are possible.

    `is_directed` means that the text around it states the direction; otherwise it is added: `21–26 % slower`. Return
    `too wide to say` where the ends are too far apart, and `not measured` where an end or the ratio is not known.
    """
    if low is None or high is None or not ratio:
        return NOT_MEASURED
    near, far = (low, high) if ratio > 1 else (high, low)
    sizes = [_format_size(end, low, high, as_factor=is_written_as_factor(ratio)) for end in (near, far)]
    is_one_way = (near - 1) * (far - 1) >= 0 or not all(map(_has_digits, sizes))
    if not is_one_way:
        if low <= 0 or high / low > MAX_INTERVAL:
            return TOO_WIDE
        return f"{change(low, low, high, words=words)} to {change(high, low, high, words=words)}"
    ends = f"{sizes[0].rstrip(' %×')}–{sizes[1]}"
    if is_directed or not _has_digits(ends):
        return ends
    return f"{ends} {words[0] if max(far, near) - 1 > 1 - min(far, near) else words[1]}"


def signed_percent(fraction: float, decimals: int) -> str:
    text = fixed(100 * fraction, decimals)
    return f"{'+' if fraction > 0 and _has_digits(text) else ''}{text} %"


def is_written_as_factor(ratio: float) -> bool:
    return ratio >= FACTOR_FROM or 0 < ratio <= 1.0 / FACTOR_FROM


@_measured
def share(fraction: float) -> str:
    """Format a part of a whole: `96 %`; under a tenth of a percent `< 0.1 %`. It may be negative or above 100 %.

    None is `not measured`.
    """
    percentage = 100 * fraction
    if 0 < abs(percentage) < 0.1:
        return "< 0.1 %"
    return f"{fixed(percentage, 0 if abs(percentage) >= 10 or percentage == 0 else 1)} %"


def accuracy(share: float) -> str:
    """Format a share as `98.1 %`; only an exact 0 or 1 is written as 0 or 100 %."""
    text = f"{100 * share:.1f}"
    return f"{text} %" if share in (0.0, 1.0) or text not in ("0.0", "100.0") else f"{100 * share:.3f} %"


def format_cosine(value: float) -> str:
    """Format a cosine: `0.910`, or `0.99998` with all its nines; only an exact 1 is written as 1."""
    text = plain(value)
    return text if value == 1 or float(text.replace(MINUS, "-")) != 1 else fixed(value, _decimals(1 - value, 1, 12))


def explains(moved: float, part: float, *, unit: str = "µs", whose: str = "the") -> str:
    """Format what part of a change something explains: `explains 96 % of the 74 µs`.

    `moved` is how much that thing changed, and `part` its share of the whole change, as a fraction other than 0. Where
    the share is above MAX_WHOLE, the text is `changed by +98 µs, the whole by +74 µs`.
    """
    whole = moved / part
    if part > MAX_WHOLE:
        owner = "the whole" if whose == "the" else whose.removesuffix("'s")
        return f"changed by {signed(moved)} {unit}, {owner} by {signed(whole)} {unit}"
    return f"explains {share(part) if part <= 1.0 else 'all'} of {whose} {plain(abs(whole))} {unit}"


def percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


@_measured
def plain(value: float, *, unit: str = "") -> str:
    """Format a number with three significant digits and its unit. None is `not measured`."""
    return f"{fixed(value, decimals_of(value, most=12))}{' ' + unit if unit else ''}"


@_measured
def rate(value: float, interval: Interval | None = None, *, time: float | None = None) -> str:
    """Format a rate that was computed from `time`, with no more digits than the interval of that time justifies.

    Without an interval or a time it has three significant digits. None is `not measured`.
    """
    half = half_width(interval)
    if not half or not time or value <= 0 or half <= 0:
        return plain(value)
    # the decimal place of the last digit that is justified
    last = min(floor(log10(value * half / time)), floor(log10(value)) + 1 - MIN_SIGNIFICANT)
    return fixed(round(value, -last), max(0, -last))


def format_divisible_pair(
    old: float,
    new: float,
    *,
    low: float | None = None,
    high: float | None = None,
    apart: Interval | None = None,
    digits: Iterable[int] = PAIR_DIGITS,
) -> tuple[str, str] | None:
    """Format two values with enough digits that the written values agree with the change between them.

    Their quotient new / old then lies between `low` and `high`, and their difference new − old within `apart`. A limit
    of None is not checked. `digits`: the numbers of significant digits to try, in this order. Return None where none
    of them is enough.
    """
    for significant in digits:
        texts = [fixed(value, _decimals(value, significant, 12)) for value in (old, new)]
        first, second = (float(text.replace(THIN, "").replace(MINUS, "-")) for text in texts)
        is_ratio = low is None or high is None or (first > 0 and low <= second / first <= high)
        if is_ratio and (apart is None or apart[0] - ROUNDING <= second - first <= apart[1] + ROUNDING):
            return texts[0], texts[1]
    return None


@_measured
def signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{fixed(value, decimals_of(value))}"


@_measured
def size(value: float) -> str:
    """Format bytes in decimal units: `313 kB`, `1.24 MB`. None is `not measured`."""
    if value < 1000:
        return f"{value:.0f} B"
    value, unit = value / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{fixed(value, decimals_of(value))} {unit}"


@_measured
def memory(value: float) -> str:
    """Format bytes of memory as whole MiB, as operating systems do; None is `not measured`. For files see `size`."""
    return f"{fixed(value / MIB, 0)} MiB"


@_measured
def small_memory(value: float) -> str:
    """Format bytes of memory of any size: `256 B`, `64 KiB`, `4.2 MiB`. None is `not measured`."""
    if value < 1024:
        return f"{value:.0f} B"
    unit, size = ("KiB", value / 1024) if value < MIB else ("MiB", value / MIB)
    return f"{fixed(size, 1) if size < 10 else fixed(size, 0)} {unit}"


@_measured
def duration(seconds: float) -> str:
    """Format seconds in the two largest units: `1 min 20 s`; under 10 s with one decimal, else rounded up. None is `not
    measured`."""
    if seconds < 10:
        return f"{fixed(seconds, 1)} s"
    whole = ceil(seconds)
    for name, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            remainder = whole % length // part
            return f"{whole // length} {name}{f' {remainder} {smaller}' if remainder else ''}"
    return f"{whole} s"


@_measured
def scientific(value: float) -> str:
    """Format a number with two digits, `2.4e−07`, where it is small or very large, and with three digits otherwise.

    None is `not measured`.
    """
    if value == 0 or 0.001 <= abs(value) < 10000:
        return fixed(value, decimals_of(value)) if value else "0"
    return f"{value:.1e}".replace("-", MINUS)


def counted(number: int, singular: str, plural: str = "") -> str:
    return f"{fixed(number, 0)} {singular if number == 1 else plural or singular + 's'}"


def unbroken(text: str) -> str:
    """Return the text with each number and its unit (%, ms, µs, MB or MiB) kept on one line by a no-break space."""
    for unit in (" %", " ms", " µs", " MB", " MiB"):
        text = text.replace(unit, f"\N{NO-BREAK SPACE}{unit[1:]}")
    return text


def listed(words: Sequence[str], *, most: int = 3) -> str:
    """Join words as `a, b and c`, or `a, b and 4 more` where there are more than `most`; empty without words."""
    shown = list(words) if len(words) <= most else [*words[: most - 1], f"{len(words) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""
