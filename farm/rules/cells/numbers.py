"""Numbers and verdicts as people read them: digits end where the interval starts, and a sign never stands alone."""

from math import floor, log10

SIGNS = {
    "slower": "▲",
    "faster": "▼",
    "equal": "=",
    "undecided": "?",
    "not comparable": "≠",
    "failed": "✕",
    "refused": "⊘",
    # of memory, and of rates
    "bigger": "▲",
    "smaller": "▼",
    "higher": "▲",
    "lower": "▼",
    # of items per second
    "more": "▲",
    "fewer": "▼",
}
# verdicts that say the direction themselves
DIRECTED = ("slower", "faster", "more", "fewer", "higher", "lower")
MINUS = "\N{MINUS SIGN}"
# how a cell ended, for those that did not finish by themselves
_SIGN_OF_STATUS = {"timeout": "failed", "crashed": "failed", "cancelled": "failed"}
MOST_DECIMALS = 6
MIB = 1 << 20
# beyond so large a ratio a percentage is harder to read than a factor
FACTOR_FROM = 2.0


def signed(word: str) -> str:
    """A verdict or status with its sign in front; `done` has none."""
    sign = SIGNS.get(_SIGN_OF_STATUS.get(word, word))
    return word if sign is None else f"{sign} {word}"


def decimals_for(uncertainty: float) -> int:
    """How many decimals a number has whose first uncertain digit is that of `uncertainty`."""
    if uncertainty <= 0.0:
        return MOST_DECIMALS
    return min(MOST_DECIMALS, max(0, -floor(log10(uncertainty))))


def milliseconds(value: float, interval: tuple[float, float] | None = None) -> str:
    """`0.228 ms ± 0.002`; three significant digits where there is no interval."""
    if interval is None:
        return f"{three_digits(value)} ms"
    half = (interval[1] - interval[0]) / 2.0
    if half <= 0.0:
        return f"{three_digits(value)} ms"
    decimals = decimals_for(half)
    return f"{value:.{decimals}f} ms ± {half:.{decimals}f}"


def three_digits(value: float) -> str:
    """Three significant digits without an exponent."""
    if value == 0.0:
        return "0"
    decimals = max(0, 2 - floor(log10(abs(value))))
    return f"{value:.{min(decimals, 12)}f}"


def change(ratio: float, low: float, high: float) -> tuple[str, str]:
    """A ratio of times as (change, interval): `24 %` and `21–26 %`, or `×3.4` and `×3.2–3.6`; without direction."""
    if is_factor(ratio):
        factors = (ratio, low, high) if ratio > 1.0 else (1.0 / ratio, 1.0 / high, 1.0 / low)
        decimals = max(1, decimals_for((factors[2] - factors[1]) / 2.0))
        shown = [f"{factor:.{min(2, decimals)}f}" for factor in factors]
        return f"×{shown[0]}", f"×{shown[1]}–{shown[2]}"
    sign = 1.0 if ratio >= 1.0 else -1.0
    ends = sorted(100.0 * sign * (end - 1.0) for end in (low, high))
    decimals = min(2, decimals_for((ends[1] - ends[0]) / 2.0))
    middle = 100.0 * sign * (ratio - 1.0)
    return f"{middle:.{decimals}f} %", f"{_range(*ends, decimals=decimals)} %"


def change_beside(word: str, ratio: float, low: float, high: float) -> tuple[str, str]:
    """Change and interval as they stand beside a verdict: `24 %` beside one that says the direction, else `+24 %`."""
    return change(ratio, low, high) if word in DIRECTED else signed_change(ratio, low, high)


def signed_change(ratio: float, low: float, high: float) -> tuple[str, str]:
    """A ratio as (change, interval) with its direction: `+2 %` and `−4 to +8 %`; a factor below 1 is `÷3.4`."""
    if is_factor(ratio):
        size, interval = change(ratio, low, high)
        return (size, interval) if ratio > 1.0 else (size.replace("×", "÷"), interval.replace("×", "÷"))
    decimals = min(2, decimals_for(50.0 * abs(high - low)))
    middle, *ends = (signed_percent(end - 1.0, decimals) for end in (ratio, low, high))
    return middle, f"{ends[0].removesuffix(' %')} to {ends[1]}"


def signed_percent(fraction: float, decimals: int) -> str:
    """0.24 is `+24 %`, -0.04 is `−4 %`; what rounds to nothing has no sign."""
    size = f"{abs(100.0 * fraction):.{decimals}f}"
    sign = "" if float(size) == 0.0 else MINUS if fraction < 0.0 else "+"
    return f"{sign}{size} %"


def is_factor(ratio: float) -> bool:
    """Whether a ratio is so large, or so small, that it is written as a factor."""
    return ratio >= FACTOR_FROM or ratio <= 1.0 / FACTOR_FROM


def _range(low: float, high: float, *, decimals: int) -> str:
    dash = " to " if low < 0.0 else "–"
    return f"{low:.{decimals}f}{dash}{high:.{decimals}f}".replace("-0 ", "0 ")


def percent(share: float) -> str:
    """A share as whole per cents."""
    return f"{100.0 * share:.0f} %"


def mebibytes(size: float) -> str:
    """Bytes of memory as whole MiB, as operating systems count them; files are in decimal MB."""
    return f"{size / MIB:,.0f} MiB"


def microseconds(value: float) -> str:
    """Three significant digits, thousands apart."""
    return f"{value:,.0f}" if value >= 1000.0 else three_digits(value)


def counted(number: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
