"""Rows of tables and small marks as HTML, written in Python because templates are too slow for hundreds of cells."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from dashboard.figures.figure import Series
from farm.rules.presenting.tables import Button, Entry, Head, Sparkline, Table
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign

if TYPE_CHECKING:
    from farm.fleet.models import Node

_END = r"[+−-]?\d[\d.,]*"
_INTERVAL = re.compile(rf"({_END}(?:–| to ){_END}\s(?:%|ms|µs|s|MB|MiB))")


def sign(drawn: Sign) -> SafeString:
    tone, mark, word = escape(drawn.tone), escape(drawn.mark), escape(drawn.word)
    return mark_safe(f'<span class="sign {tone}"><b aria-hidden="true">{mark}</b> {word}</span>')


def unbroken(text: str) -> SafeString:
    """Escape a plain sentence as HTML and keep its intervals (`25–35 %`, `−8 to 4 %`) and units on one line."""
    pieces = _INTERVAL.split(numbers.unbroken(text))
    # the intervals are at odd places of the split
    whole = (
        f'<span class="nowrap">{escape(part)}</span>' if at % 2 else escape(part) for at, part in enumerate(pieces)
    )
    return mark_safe("".join(whole))


def rows(table: Table) -> SafeString:
    """Write the rows of a table as HTML, without its head. In a table with row keys each row has an id and, where rows
    can be selected, a checkbox."""
    names = table.keys or [""] * len(table.rows)
    ids = [f' id="{table.id}-{escape(key)}"' if key else "" for key in names]
    cells = ["".join(_write_cells(table, key, row)) for key, row in zip(names, table.rows, strict=True)]
    return mark_safe("\n".join(f"<tr{name}>{inner}</tr>" for name, inner in zip(ids, cells, strict=True)))


def moment(at: datetime) -> SafeString:
    """Write a time in UTC. The page's script adds how long ago it was, and the time in the reader's time zone."""
    utc = at.astimezone(UTC)
    return mark_safe(f'<time datetime="{utc:%Y-%m-%dT%H:%M:%SZ}" class="nowrap">{utc:%Y-%m-%d %H:%M} UTC</time>')


def hardware_tags(node: "Node") -> SafeString | str:
    """Write the hardware tags by which blocks are assigned to the node. Instruction sets that the node reported, unless
    they are also tags of its owner, are counted, with their names on hover. The text is `none verified yet` where the
    node has no tags."""
    tags = node.all_tags
    sets = [tag for tag in tags if tag in node.facts_json.get("instruction_sets", ()) and tag not in node.owner_tags]
    named = ", ".join(tag for tag in tags if tag not in sets)
    if not sets:
        return named or "none verified yet"
    counted = numbers.counted(len(sets), "instruction set")
    return format_html('{} <span class="soft nowrap" title="{}">and {}</span>', named, ", ".join(sets), counted)


def elapsed(since: datetime, now: datetime) -> SafeString:
    """Write the time since `since`, 0 where that is in the future. The page's script keeps counting."""
    utc, length = since.astimezone(UTC), numbers.duration(max(0.0, (now - since).total_seconds()))
    return mark_safe(f'<time datetime="{utc:%Y-%m-%dT%H:%M:%SZ}" data-elapsed class="nowrap">{length}</time>')


def spark(drawn: Sparkline) -> SafeString:
    """Draw a sparkline as SVG. Screen readers skip it, because the table has its last value in words."""
    level = f'<line x1="0" x2="120" y1="{drawn.level}" y2="{drawn.level}"/>'
    line = f'<polyline points="{drawn.points}"/>'
    return mark_safe(f'<svg class="spark" viewBox="0 0 120 24" aria-hidden="true">{level}{line}</svg>')


def series_mark(drawn: Series) -> SafeString:
    """Draw the mark of a series, as the chart draws it."""
    half = drawn.colour.split("/")
    colour = f"var(--{half[0]})"
    faded = f' opacity="{int(half[1]) / 100:g}"' if len(half) > 1 else ""
    line = ""
    if drawn.dashes is not None:
        line = f'<path d="M1 7h22" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{drawn.dashes or "none"}"/>'
    paint = f'fill="{colour}"' if drawn.is_filled else f'fill="none" stroke="{colour}" stroke-width="1.5"'
    mark = f'<path transform="translate(12 7)" d="{drawn.shape}" {paint}/>'
    return mark_safe(f'<svg class="mark" viewBox="0 0 24 14"{faded} aria-hidden="true">{line}{mark}</svg>')


def _write_cells(table: Table, key: str, row: Sequence[Entry]) -> Iterator[str]:
    for place, (head, entry) in enumerate(zip(table.heads, row, strict=True)):
        about = f"{_write_class(head, entry)}{_write_value(entry)}"
        words = f"{_draw_before(entry)}{_write_words(entry, table)}"
        if place == 0:
            field = f'name="{escape(table.box)}" value="{escape(key)}" form="{table.id}-chosen"'
            box = f'<input type="checkbox" class="box" {field} aria-label="Choose {escape(entry.text)}"> '
            yield f'<th scope="row"{about}>{box if table.box else ""}{words}</th>'
        else:
            # in a narrow window each figure is shown below the name of its column
            yield f'<td data-label="{escape(head.text)}"{about}>{words}</td>'


def _write_class(head: Head, entry: Entry) -> str:
    if head.is_number:
        return ' class="n"'
    if entry.is_name:
        return ' class="name text"' if head.is_text else ' class="name"'
    return ' class="text"' if head.is_text else ""


def _write_value(entry: Entry) -> str:
    """Write the attribute by which the page's script sorts rows: six digits, large numbers without decimals."""
    value = entry.value
    if isinstance(value, float):
        value = f"{value:.0f}" if abs(value) >= 1e6 else f"{value:.6g}"
    return "" if value is None else f' data-value="{escape(str(value))}"'


def _draw_before(entry: Entry) -> str:
    if entry.spark is not None:
        return f"{spark(entry.spark)} "
    if entry.share is None:
        return ""
    bar = f'<rect width="{entry.bar}" height="8"/>'
    return f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{bar}</svg> '


def _write_words(entry: Entry, table: Table) -> str:
    soft = f' <span class="soft">{escape(entry.soft)}</span>' if entry.soft else ""
    signs = "<br>".join(map(sign, [entry.sign] if entry.sign else entry.signs))
    if not signs:
        return _write_text(entry, table) + soft
    return f"{_write_text(entry, table)} {signs}{soft}" if entry.text else signs + soft


def _write_text(entry: Entry, table: Table) -> str:
    if entry.at is not None:
        return moment(entry.at)
    if entry.button is not None:
        return _write_button(entry.button, table)
    text, title = escape(entry.text), f' title="{escape(entry.title)}"' if entry.title else ""
    if entry.href:
        return f'<a href="{escape(entry.href)}"{title}>{text}</a>'
    if entry.text == numbers.NOT_MEASURED:
        return f'<span class="soft">{text}</span>'
    return f"<span{title}>{text}</span>" if title else text


def _write_button(button: Button, table: Table) -> str:
    about = f'form="{table.id}-orders" formaction="{escape(button.address)}" aria-label="{escape(button.description)}"'
    key = f' data-order="{escape(button.key)}"' if button.key else ""
    return f'<button class="copy" {about}{key}>{escape(button.label)}</button>'
