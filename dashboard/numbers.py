"""Numbers as they are written on pages: with units, and with no more digits than the interval allows."""

from collections.abc import Callable, Sequence
from functools import wraps
from math import ceil, floor, isfinite, log10
from typing import Concatenate, ParamSpec

from farm.rules.cells import numbers as in_words

NOT_MEASURED = "not measured"
THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
SIGNIFICANT = 3

Interval = tuple[float, float]
P = ParamSpec("P")


def is_number(value: object) -> bool:
    """Whether it is a finite number: anything else is shown as words."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _measured(write: Callable[Concatenate[float, P], str]) -> Callable[Concatenate[float | None, P], str]:
    """Says so where there is no number to be written."""

    @wraps(write)
    def written(value: float | None, /, *args: P.args, **kwargs: P.kwargs) -> str:
        return NOT_MEASURED if value is None or not is_number(value) else write(value, *args, **kwargs)

    return written


def decimals_of(value: float, *, half_width: float | None = None, most: int = 6) -> int:
    """How many decimals a value is worth.

    With the half width of its interval: until the first digit of that. Without: three significant digits.
    """
    if half_width is not None and half_width > 0:
        return min(most, max(0, -floor(log10(half_width))))
    if value == 0:
        return 0
    return min(most, max(0, SIGNIFICANT - 1 - floor(log10(abs(value)))))


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals, a real minus sign and thin spaces between thousands."""
    text = f"{abs(value):,.{decimals}f}".replace(",", THIN)
    is_zero = not any(digit in "123456789" for digit in text)
    return f"{MINUS}{text}" if value < 0 and not is_zero else text


def half_width(interval: Interval | None) -> float | None:
    """Half of an interval's width; None for no interval."""
    return (interval[1] - interval[0]) / 2 if interval is not None else None


@_measured
def milliseconds(value: float, interval: Interval | None = None) -> str:
    """A latency without its unit, which stands in the table's head: `0.228`."""
    return fixed(value, decimals_of(value, half_width=half_width(interval)))


def plus_minus(value: float | None, interval: Interval | None) -> str:
    """The half width of an interval: `± 0.002`; empty where there is none."""
    half = half_width(interval)
    if value is None or half is None or not is_number(half):
        return ""
    return f"± {fixed(half, decimals_of(value, half_width=half))}"


@_measured
def latency(value: float, interval: Interval | None = None) -> str:
    """A latency in words: `0.228 ms ± 0.002`."""
    spread = plus_minus(value, interval)
    return f"{milliseconds(value, interval)} ms{' ' + spread if spread else ''}"


def _percent_decimals(low: float | None, high: float | None) -> int:
    if low is None or high is None:
        return 1
    half = 50 * abs(high - low)
    return 0 if half >= 1 else 1 if half >= 0.1 else 2


@_measured
def change(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """A ratio as a signed change, a large one as sentences do: 1.24 is `+24 %`, 3.4 is `×3.4`, 1/3.4 is `÷3.4`."""
    if ratio > 0 and low is not None and high is not None:
        return in_words.signed_change(ratio, low, high)[0]
    if ratio > 0 and in_words.is_factor(ratio):
        return in_words.signed_change(ratio, ratio, ratio)[0]
    return signed_percent(ratio - 1, _percent_decimals(low, high))


def change_size(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """How large a change is, for a word that says its direction: 1.24 is `24 %`."""
    return change(ratio, low, high).lstrip(f"+{MINUS}").replace("÷", "×")


def signed_percent(fraction: float, decimals: int) -> str:
    """0.24 is `+24 %`; what rounds to nothing has no sign."""
    text = fixed(100 * fraction, decimals)
    is_zero = not any(digit in "123456789" for digit in text)
    return f"{'' if is_zero or text.startswith(MINUS) else '+'}{text} %"


def change_interval(low: float | None, high: float | None, *, ratio: float | None = None) -> str:
    """The interval of a ratio, written as the ratio is: `+21 to +26 %`, `×3.2–3.6`."""
    if low is None or high is None:
        return NOT_MEASURED
    if ratio is not None and ratio > 0:
        return in_words.signed_change(ratio, low, high)[1]
    decimals = _percent_decimals(low, high)
    first = signed_percent(low - 1, decimals).removesuffix(" %")
    return f"{first} to {signed_percent(high - 1, decimals)}"


@_measured
def share(fraction: float) -> str:
    """A part of a whole: `96 %`; under a tenth of a percent `< 0.1 %`; may be negative or above 100 %."""
    percent = 100 * fraction
    if 0 < abs(percent) < 0.1:
        return "< 0.1 %"
    return f"{fixed(percent, 0 if abs(percent) >= 10 or percent == 0 else 1)} %"


@_measured
def plain(value: float, *, unit: str = "") -> str:
    """A number with three significant digits and its unit."""
    return f"{fixed(value, decimals_of(value))}{' ' + unit if unit else ''}"


@_measured
def signed(value: float) -> str:
    """A difference with its sign and three significant digits: `+34.2`."""
    return f"{'+' if value > 0 else ''}{fixed(value, decimals_of(value))}"


@_measured
def size(value: float) -> str:
    """Bytes in decimal units: `313 kB`, `1.24 MB`."""
    if value < 1000:
        return f"{value:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            break
    return f"{fixed(value, decimals_of(value))} {unit}"


@_measured
def memory(value: float) -> str:
    return in_words.mebibytes(value)


@_measured
def small_memory(value: float) -> str:
    """Bytes of memory of any size: `256 B`, `64 KiB`, `4.2 MiB`."""
    if value < 1024:
        return f"{value:.0f} B"
    unit, size = ("KiB", value / 1024) if value < 1024**2 else ("MiB", value / 1024**2)
    return f"{fixed(size, 1) if size < 10 else fixed(size, 0)} {unit}"


@_measured
def duration(seconds: float) -> str:
    """A length of time in the two largest units: `1 min 20 s`."""
    if seconds < 10:
        return f"{fixed(seconds, 1)} s"
    whole = ceil(seconds)
    for name, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            rest = whole % length // part
            return f"{whole // length} {name}{f' {rest} {smaller}' if rest else ''}"
    return f"{whole} s"


@_measured
def scientific(value: float) -> str:
    """A difference or a p: `2.4e-07` with two digits; plain when it is not small."""
    if value == 0 or 0.001 <= abs(value) < 10000:
        return fixed(value, min(6, decimals_of(value))) if value else "0"
    return f"{value:.1e}".replace("-", MINUS)


def count(number: int, singular: str, plural: str = "") -> str:
    """`1 cell`, `8 cells`."""
    return f"{fixed(number, 0)} {singular if number == 1 else plural or singular + 's'}"


def unbroken(text: str) -> str:
    """The text with numbers and their units kept on one line."""
    for unit in (" %", " ms", " µs", " MB", " MiB"):
        text = text.replace(unit, f"\N{NO-BREAK SPACE}{unit[1:]}")
    return text


def listed(words: Sequence[str], *, most: int = 3) -> str:
    """`a, b and c`; `a, b and 4 more`."""
    shown = list(words) if len(words) <= most else [*words[: most - 1], f"{len(words) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""
