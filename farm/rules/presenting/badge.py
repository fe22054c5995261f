"""A badge: a label and a word on a coloured ground, as SVG. White on each ground has a contrast above 4.5."""

from typing import Literal
from xml.sax.saxutils import escape, quoteattr

Tone = Literal["good", "bad", "unsure", "unknown"]

GROUNDS: dict[Tone, str] = {"good": "#1a7f37", "bad": "#b42318", "unsure": "#8a5a00", "unknown": "#57606a"}
LABEL_GROUND = "#3d444d"
# of an average sign at 11 px, and beside a text
SIGN_PX = 6.6
MARGIN_PX = 7.0
MAX_LENGTH = 60


def badge_svg(label: str, text: str, tone: Tone) -> str:
    """Return a badge of 20 px height as SVG; its text is its title too."""
    label, text = _cut(label), _cut(text)
    left, right = _width(label), _width(text)
    said = f"{label}: {text}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="20" role="img" '
        f"aria-label={quoteattr(said)}><title>{escape(said)}</title>"
        f'<rect width="{left:.0f}" height="20" fill="{LABEL_GROUND}"/>'
        f'<rect x="{left:.0f}" width="{right:.0f}" height="20" fill="{GROUNDS[tone]}"/>'
        '<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:.1f}" y="14" textLength="{left - 2 * MARGIN_PX:.0f}">{escape(label)}</text>'
        f'<text x="{left + right / 2:.1f}" y="14" textLength="{right - 2 * MARGIN_PX:.0f}">{escape(text)}</text>'
        "</g></svg>\n"
    )


def _cut(text: str) -> str:
    text = "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"


def _width(text: str) -> float:
    return round(SIGN_PX * max(1, len(text)) + 2 * MARGIN_PX)
