"""Numbers as everybody reads them: with units, with no more digits than the interval allows, one form everywhere."""

from collections.abc import Callable, Sequence
from functools import wraps
from math import ceil, floor, isfinite, log10
from typing import Concatenate, ParamSpec

from farm.rules.wording.vocabulary import DIRECTED

NOT_MEASURED = "not measured"
THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
SIGNIFICANT = 3
MAX_DECIMALS = 6
MIB = 1 << 20
# beyond so large a ratio a percentage is harder to read than a factor
FACTOR_FROM = 2.0

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


def decimals_within(half_width: float, *, most: int = MAX_DECIMALS) -> int:
    """How many decimals a number has whose interval is so wide: until the first digit of that."""
    return most if half_width <= 0 else min(most, max(0, -floor(log10(half_width))))


def decimals_of(value: float, *, half_width: float | None = None, most: int = MAX_DECIMALS) -> int:
    """The same with an interval; without, those of three significant digits."""
    if half_width is not None and half_width > 0:
        return decimals_within(half_width, most=most)
    return 0 if value == 0 else min(most, max(0, SIGNIFICANT - 1 - floor(log10(abs(value)))))


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals, a real minus sign and thin spaces between thousands."""
    text = f"{abs(value):,.{decimals}f}".replace(",", THIN)
    return f"{MINUS}{text}" if value < 0 and _has_digits(text) else text


def _has_digits(text: str) -> bool:
    """Whether anything but zeros is left of a number."""
    return any(digit in "123456789" for digit in text)


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
    if value is None or half is None or not is_number(half) or half <= 0:
        return ""
    return f"± {fixed(half, decimals_of(value, half_width=half))}"


@_measured
def latency(value: float, interval: Interval | None = None) -> str:
    """A latency in words: `0.228 ms ± 0.002`."""
    return f"{milliseconds(value, interval)} ms {plus_minus(value, interval)}".rstrip()


def change_beside(word: str, ratio: float, low: float, high: float) -> tuple[str, str]:
    """Change and interval as they stand beside a verdict: `24 %`, `21–26 %` beside one that says the direction."""
    return _change(ratio, low, high) if word in DIRECTED else signed_change(ratio, low, high)


def _change(ratio: float, low: float, high: float) -> tuple[str, str]:
    """Without direction: `24 %` and `21–26 %`, or `×3.4` and `×3.2–3.6`."""
    if is_factor(ratio):
        factors = (ratio, low, high) if ratio > 1.0 else (1.0 / ratio, 1.0 / high, 1.0 / low)
        decimals = max(1, decimals_within((factors[2] - factors[1]) / 2, most=2))
        shown = [f"{factor:.{decimals}f}" for factor in factors]
        return f"×{shown[0]}", f"×{shown[1]}–{shown[2]}"
    sign = 1.0 if ratio >= 1.0 else -1.0
    low, high = sorted(sign * (end - 1.0) for end in (low, high))
    decimals = decimals_within(50.0 * (high - low), most=2)
    middle, *ends = (fixed(100.0 * end, decimals) for end in (abs(ratio - 1.0), low, high))
    return f"{middle} %", f"{(' to ' if low < 0.0 else '–').join(ends)} %"


def signed_change(ratio: float, low: float, high: float) -> tuple[str, str]:
    """A ratio as (change, interval) with its direction: `+2 %` and `−4 to +8 %`; a factor below 1 is `÷3.4`."""
    if is_factor(ratio):
        size, interval = _change(ratio, low, high)
        return (size, interval) if ratio > 1.0 else (size.replace("×", "÷"), interval.replace("×", "÷"))
    return _signed(low, ratio, high)


def _signed(low: float, middle: float, high: float) -> tuple[str, str]:
    decimals = decimals_within(50.0 * abs(high - low), most=2)
    size, *ends = (signed_percent(end - 1.0, decimals) for end in (middle, low, high))
    return size, f"{ends[0].removesuffix(' %')} to {ends[1]}"


@_measured
def change(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """A ratio as a signed change, a large one as sentences do: 1.24 is `+24 %`, 3.4 is `×3.4`, 1/3.4 is `÷3.4`."""
    if low is not None and high is not None:
        return signed_change(ratio, low, high)[0]
    return signed_change(ratio, ratio, ratio)[0] if is_factor(ratio) else signed_percent(ratio - 1.0, 1)


def change_size(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """How large a change is, for a word that says its direction: 1.24 is `24 %`."""
    return change(ratio, low, high).lstrip(f"+{MINUS}").replace("÷", "×")


def change_interval(low: float | None, high: float | None, *, ratio: float | None = None) -> str:
    """The interval of a ratio, written as the ratio is: `+21 to +26 %`, `×3.2–3.6`."""
    if low is None or high is None:
        return NOT_MEASURED
    return signed_change(ratio, low, high)[1] if ratio else _signed(low, 1.0, high)[1]


def signed_percent(fraction: float, decimals: int) -> str:
    """0.24 is `+24 %`, -0.04 is `−4 %`; what rounds to nothing has no sign."""
    text = fixed(100 * fraction, decimals)
    return f"{'+' if fraction > 0 and _has_digits(text) else ''}{text} %"


def is_factor(ratio: float) -> bool:
    """Whether a ratio is so large, or so small, that it is written as a factor."""
    return ratio >= FACTOR_FROM or 0 < ratio <= 1.0 / FACTOR_FROM


@_measured
def share(fraction: float) -> str:
    """A part of a whole: `96 %`; under a tenth of a percent `< 0.1 %`; may be negative or above 100 %."""
    percentage = 100 * fraction
    if 0 < abs(percentage) < 0.1:
        return "< 0.1 %"
    return f"{fixed(percentage, 0 if abs(percentage) >= 10 or percentage == 0 else 1)} %"


def accuracy(share: float) -> str:
    """`98.1 %`, and 100 % only where nothing is missing."""
    text = f"{100 * share:.1f}"
    return f"{text} %" if share in (0.0, 1.0) or text not in ("0.0", "100.0") else f"{100 * share:.3f} %"


def explained(part: float) -> str:
    """The part of a change that something explains; above 1 others took less time than before, and it is all of it."""
    return share(part) if part <= 1 else "all"


def percent(fraction: float) -> str:
    """A fraction that somebody chose, such as a margin or a level: `2 %`, `97.5 %`."""
    return f"{100 * fraction:.3g} %"


@_measured
def plain(value: float, *, unit: str = "") -> str:
    """A number with three significant digits and its unit."""
    return f"{fixed(value, decimals_of(value, most=12))}{' ' + unit if unit else ''}"


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
    """Bytes of memory as whole MiB, as operating systems count them; files are in decimal MB."""
    return f"{fixed(value / MIB, 0)} MiB"


@_measured
def small_memory(value: float) -> str:
    """Bytes of memory of any size: `256 B`, `64 KiB`, `4.2 MiB`."""
    if value < 1024:
        return f"{value:.0f} B"
    unit, size = ("KiB", value / 1024) if value < MIB else ("MiB", value / MIB)
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
        return fixed(value, decimals_of(value)) if value else "0"
    return f"{value:.1e}".replace("-", MINUS)


def counted(number: int, singular: str, plural: str = "") -> str:
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
