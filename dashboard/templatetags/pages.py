"""Filters and tags of the templates: numbers and signs in words, links, and addresses that keep their parameters.
`sign` writes “not measured” for an empty word, and only administrators get all links of the settings."""

from collections.abc import Mapping
from datetime import datetime

from django import template
from django.template.defaultfilters import stringfilter
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from dashboard import documents, markup, places
from farm.alerts.selectors.pages import count_open_alerts
from farm.rules.cells.commands import submit_command
from farm.rules.presenting.tables import Head, Table
from farm.rules.quality.accuracy_metrics import METRICS
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import sign_of

register = template.Library()
# a headline with more characters is written smaller
LONG_HEADLINE = 150
# columns of times and row numbers, whose first click sorts the newest first
NEWEST_FIRST = ("id", "at")
# a page's script requests a part of the page by these parameters, which links must not keep
OF_PARTS = ("part", "have")

register.filter("bytes", numbers.size)
register.filter("counted", numbers.counted)
register.filter("provider", stringfilter(titles.provider))
register.filter("share", numbers.share)
register.filter("drawn", markup.sign)
register.filter("unbroken", markup.unbroken)
register.filter("rows", markup.rows)
register.filter("hardware_tags", markup.hardware_tags)
register.filter("line", markup.spark)
register.filter("series_mark", markup.series_mark)
register.filter("submit_command", submit_command)
register.filter("place", places.place_of)


@register.filter
def sign(word: str | None) -> SafeString:
    return markup.sign(sign_of(str(word or "not measured")))


@register.filter
def when(at: datetime | None) -> str | SafeString:
    """Write a time in UTC as a time element; `not yet` for None."""
    return "not yet" if at is None else markup.moment(at)


@register.filter
def elapsed(since: datetime) -> SafeString:
    return markup.elapsed(since, timezone.now())


@register.simple_tag
def term(name: str, label: str = "") -> str | SafeString:
    """Write a term as a link to its row in docs/words.md, with its explanation, which terms.js shows. `label`: the text
    of the link, else the term itself. A term that the documents do not explain becomes plain text."""
    known = documents.terms().get(name)
    if known is None:
        return label or name
    address = documents.address(documents.WORDS, known.anchor)
    return format_html('<a class="term" href="{}" title="{}">{}</a>', address, known.explanation, label or name)


@register.simple_tag
def doc_link(name: str, label: str, anchor: str = "") -> str | SafeString:
    """Write a link to a document; empty where the document is not installed."""
    if name not in documents.names():
        return ""
    return format_html('<a href="{}">{}</a>', documents.address(name, anchor), label)


@register.simple_tag
def recipe_options() -> SafeString:
    """Write accuracy recipes as option elements: each metric alone, then a few examples with a further step."""
    named = [(entry.name, f"{entry.name}: {entry.title}") for entry in METRICS.values()]
    steps = [(recipe, recipe) for recipe in ("softmax+mse", "argmax", "threshold=0.5")]
    return format_html_join("", '<option value="{}">{}</option>', [*named, *steps])


@register.simple_tag
def terms(*names: str) -> str | SafeString:
    """Write a line with these terms, each linked to its explanation; empty where no documents are installed."""
    if not documents.terms():
        return ""
    links = format_html_join(", ", "{}", ((term(name),) for name in names))
    return format_html('<p class="soft small">Terms: {}</p>', links)


@register.filter
@stringfilter
def verdict_class(headline: str) -> str:
    """Return the CSS classes of a page's headline; a long headline has a second class, which makes it smaller."""
    return "verdict long" if len(headline) > LONG_HEADLINE else "verdict"


# maps the first part of an address to its entry in the top bar, where the two have different names
ENTRIES = {"": "home", "watches": "alerts", "trends": "alerts", "releases": "fleet", "variants": "models"}


@register.simple_tag(takes_context=True)
def nav_link(context: template.Context, name: str) -> SafeString:
    """Write a link of the top navigation, with its first letter as keyboard shortcut. The link is marked on the pages
    of its section. The link to alerts shows the number of open alerts, unless that is 0."""
    address = reverse(f"dashboard:{name}")
    request = context["request"]
    part = request.path.split("/")[1]
    current = mark_safe(' aria-current="page"') if ENTRIES.get(part, part) == name else ""
    count = count_open_alerts(request.user) if name == "alerts" else 0
    badge = format_html(' <span class="count">{}<span class="unseen"> open</span></span>', count) if count else ""
    return format_html('<a href="{}" data-key="{}"{}>{}{}</a>', address, name[0], current, name.title(), badge)


# the sections of the settings, by page name; FARM_SECTIONS are for administrators and come first
FARM_SECTIONS = {"settings": "Setting up", "openid": "Sign-in", "indexes": "Package indexes", "backup": "Backup"}
SECTIONS = {"tokens": "Tokens", "teams": "Teams", "channels": "Channels", "shares": "Share links", "audit": "Audit log"}


TABS = {
    "alerts": {"alerts": "Alerts", "watches": "Watches", "trends": "Trends"},
    "fleet": {"fleet": "Nodes", "runtimes": "Runtimes"},
}


@register.simple_tag(takes_context=True)
def settings_links(context: template.Context) -> SafeString:
    request = context["request"]
    return _links(request.path, {**(FARM_SECTIONS if request.user.is_superuser else {}), **SECTIONS})


@register.simple_tag(takes_context=True)
def page_tabs(context: template.Context, name: str) -> SafeString:
    """Write the links between the pages of one entry of the top navigation. `name`: a key of TABS."""
    return format_html(
        '<nav class="tabs" aria-label="Pages of {}">{}</nav>', name, _links(context["request"].path, TABS[name])
    )


def _links(path: str, shown: Mapping[str, str]) -> SafeString:
    """Write links to pages, by their names in urls.py. The link to the page at `path`, or above it, is marked."""
    titles_at = {reverse(f"dashboard:{name}"): title for name, title in shown.items()}
    here = max((place for place in titles_at if path.startswith(place)), key=len, default="")
    links = (
        (place, mark_safe(' aria-current="page"' if place == here else ""), titles_at[place]) for place in titles_at
    )
    return format_html_join("", '<a href="{}"{}>{}</a>', links)


@register.simple_tag(takes_context=True)
def address(context: template.Context, **changes: object) -> str:
    """Return the page's own address with these parameters of the query changed and the others kept, except those by
    which scripts request a part of the page (OF_PARTS). An empty value or None removes a parameter; where none is left,
    the address is the path alone, else the query alone."""
    query = context["request"].GET.copy()
    for name in OF_PARTS:
        query.pop(name, None)
    for name, value in changes.items():
        if value in ("", None):
            query.pop(name, None)
        else:
            query[name] = str(value)
    encoded = query.urlencode()
    return f"?{encoded}" if encoded else context["request"].path


@register.simple_tag(takes_context=True)
def order_by(context: template.Context, head: Head) -> str:
    """Return the address that sorts the list by a column and shows its first page. Numbers and times are sorted
    descending first. Where the list is sorted by that column already, the address reverses the order."""
    now = context["request"].GET.get("sort", "")
    first = "-" if head.is_number or head.order in NEWEST_FIRST else ""
    other = {head.order: f"-{head.order}", f"-{head.order}": head.order}
    return address(context, sort=other.get(now, f"{first}{head.order}"), page="")


@register.simple_tag(takes_context=True)
def order_of(context: template.Context, head: Head) -> SafeString:
    """Write the aria-sort attribute of the column that the list is sorted by; empty for other columns."""
    now = context["request"].GET.get("sort", "") if head.order else ""
    if now.removeprefix("-") != head.order or not now:
        return mark_safe("")
    return mark_safe(f' aria-sort="{"descending" if now.startswith("-") else "ascending"}"')


@register.simple_tag(takes_context=True)
def sort_choices(context: template.Context, table: Table) -> SafeString:
    """Write the orders of a list as option elements, each sortable column ascending and descending. Narrow windows need
    them because they show no column heads."""
    now = context["request"].GET.get("sort", "")
    ways = [("", "default order")]
    for head in table.heads:
        ways += [(head.order, f"{head.text} ↑"), (f"-{head.order}", f"{head.text} ↓")] if head.order else []
    option = '<option value="{}"{}>{}</option>'
    return format_html_join("", option, ((way, " selected" if way == now else "", text) for way, text in ways))
