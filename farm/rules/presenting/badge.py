"""Draws a badge as SVG: a label and a text on coloured grounds, on which white has a contrast above 4.5."""

from typing import Literal
from xml.sax.saxutils import escape, quoteattr

Tone = Literal["good", "bad", "unsure", "unknown"]

GROUNDS: dict[Tone, str] = {"good": "#1a7f37", "bad": "#b42318", "unsure": "#8a5a00", "unknown": "#57606a"}
LABEL_GROUND = "#3d444d"
# the average width of a character at 11 px, and the margin on each side of a text
CHARACTER_PX = 6.6
MARGIN_PX = 7.0
MAX_LENGTH = 60


def draw_badge(label: str, text: str, tone: Tone) -> str:
    """Return a badge of 20 px height as SVG, with a newline at its end.

    Either text is put on one line, without characters that cannot be printed, and cut at MAX_LENGTH characters.
    """
    label, text = _shorten(label), _shorten(text)
    left, right = _measure_width(label), _measure_width(text)
    title = f"{label}: {text}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="20" role="img" '
        f"aria-label={quoteattr(title)}><title>{escape(title)}</title>"
        f'<rect width="{left:.0f}" height="20" fill="{LABEL_GROUND}"/>'
        f'<rect x="{left:.0f}" width="{right:.0f}" height="20" fill="{GROUNDS[tone]}"/>'
        '<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:.1f}" y="14" textLength="{left - 2 * MARGIN_PX:.0f}">{escape(label)}</text>'
        f'<text x="{left + right / 2:.1f}" y="14" textLength="{right - 2 * MARGIN_PX:.0f}">{escape(text)}</text>'
        "</g></svg>\n"
    )


def _shorten(text: str) -> str:
    text = "".join(character for character in " ".join(text.split()) if character.isprintable())
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"


def _measure_width(text: str) -> float:
    return round(CHARACTER_PX * max(1, len(text)) + 2 * MARGIN_PX)
