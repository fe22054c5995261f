"""What templates need beyond Django's own: numbers and signs as pages write them, addresses that keep their filters."""

from datetime import UTC, datetime

from django import template
from django.template.defaultfilters import stringfilter
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from dashboard import documents, markup, numbers, words
from dashboard.figures.figure import Figure
from farm.rules.cells.commands import submit_command

register = template.Library()

register.filter("bytes", numbers.size)
register.filter("duration", numbers.duration)
register.filter("plain", numbers.plain)
register.filter("share", numbers.share)
register.filter("drawn", markup.sign)
register.filter("rows", markup.rows)
register.filter("submit_command", submit_command)


@register.filter
def sign(word: str | None) -> SafeString:
    """A verdict or state as its sign and word."""
    return markup.sign(words.sign_of(str(word or "not measured")))


@register.filter
def when(at: datetime | None) -> str | SafeString:
    """A moment with its zone, as a time element; what has not happened yet is a dash in words."""
    if at is None:
        return "not yet"
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" class="nowrap">{}</time>', utc.isoformat(), utc.strftime("%Y-%m-%d %H:%M UTC")
    )


@register.simple_tag
def term(name: str, shown: str = "") -> SafeString:
    """A word of the field with its explanation: on hover, and where it leads to. docs/words.md explains it."""
    explanation = documents.terms()[name]
    return format_html(
        '<a class="term" href="{}" title="{}">{}</a>', documents.address("words"), explanation, shown or name
    )


@register.filter
@stringfilter
def provider(name: str) -> str:
    """An execution provider's short name."""
    return words.provider(name)


@register.filter
@stringfilter
def runtime(requirement: str) -> str:
    """A runtime's short name."""
    return words.runtime(requirement)


@register.filter
def counted(number: int, noun: str) -> str:
    """`{{ 3|counted:"cell" }}` is `3 cells`."""
    return numbers.count(number, noun)


@register.simple_tag(takes_context=True)
def nav_link(context: template.Context, name: str, label: str, key: str) -> SafeString:
    """A link of the top navigation; marks the section the page belongs to."""
    address = reverse(name)
    request = context.get("request")
    current = mark_safe(' aria-current="page"') if request and request.path.startswith(address) else ""
    return format_html('<a href="{}" data-key="{}"{}>{}</a>', address, key, current, label)


@register.simple_tag(takes_context=True)
def address(context: template.Context, **changes: object) -> str:
    """The page's own address with some parameters changed; an empty value takes one away."""
    query = context["request"].GET.copy()
    for name, value in changes.items():
        if value in ("", None):
            query.pop(name, None)
        else:
            query[name] = str(value)
    encoded = query.urlencode()
    return f"?{encoded}" if encoded else context["request"].path


@register.simple_tag
def figure_json(figure: Figure) -> SafeString:
    """The drawing inside its script element; already escaped for that place."""
    return mark_safe(figure.json)
