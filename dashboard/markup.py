"""Rows of tables as HTML: of their hundreds of cells a template would take most of a page's time."""

from collections.abc import Iterator, Sequence
from html import escape

from django.utils.safestring import SafeString, mark_safe

from dashboard import numbers
from dashboard.tables import Entry, Head, Table
from dashboard.words import Sign


def sign(drawn: Sign) -> SafeString:
    """A sign and its word."""
    tone, mark, word = escape(drawn.tone), escape(drawn.mark), escape(drawn.word)
    return mark_safe(f'<span class="sign {tone}"><b aria-hidden="true">{mark}</b> {word}</span>')


def rows(table: Table) -> SafeString:
    """What stands in a table's body: a row a line, its first entry as the row's head."""
    return mark_safe("\n".join(f"<tr>{''.join(_cells(table.heads, row))}</tr>" for row in table.rows))


def _cells(heads: Sequence[Head], row: Sequence[Entry]) -> Iterator[str]:
    tag, scope = "th", ' scope="row"'
    for head, entry in zip(heads, row, strict=True):
        yield f"<{tag}{scope}{_class(head, entry)}{_value(entry)}>{_bar(entry)}{_words(entry)}</{tag}>"
        tag, scope = "td", ""


def _class(head: Head, entry: Entry) -> str:
    if head.is_number:
        return ' class="n"'
    if entry.is_name:
        return ' class="name text"' if head.is_text else ' class="name"'
    return ' class="text"' if head.is_text else ""


def _value(entry: Entry) -> str:
    return "" if entry.value is None else f' data-value="{escape(str(entry.value))}"'


def _bar(entry: Entry) -> str:
    if entry.share is None:
        return ""
    bar = f'<rect width="{entry.bar}" height="8"/>'
    return f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{bar}</svg> '


def _words(entry: Entry) -> str:
    soft = f' <span class="soft">{escape(entry.soft)}</span>' if entry.soft else ""
    if entry.sign is not None:
        return sign(entry.sign) + soft
    text = escape(entry.text)
    if entry.href:
        return f'<a href="{escape(entry.href)}">{text}</a>{soft}'
    return (f'<span class="soft">{text}</span>' if entry.text == numbers.NOT_MEASURED else text) + soft
