"""What every page must be: no empty words, no stray values, titled, and of few queries."""

import html
import re
from collections import Counter

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.responses import Response

TAGS = re.compile(r"<(script|style)[^>]*>.*?</\1>|<[^>]+>", re.DOTALL)
# what only keeps a part of a sentence on one line
UNBROKEN = re.compile(r'<span class="nowrap">([^<]*)</span>')
STRAY = re.compile(r"\b(None(?! of \d)|NaN|nan|inf|undefined|Traceback)\b")


def words_of(response: Response) -> str:
    """The page's visible words, on one line; fails when a stray value is among them."""
    text = html.unescape(TAGS.sub(" ", UNBROKEN.sub(r"\1", response.content.decode())))
    stray = STRAY.search(text)
    assert stray is None, text[max(0, stray.start() - 120) : stray.end() + 60]
    assert "<title>" not in text
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def repeated_ids(text: str) -> set[str]:
    """Ids that several elements of the page have: scripts and links would find the first of them."""
    return {name for name, times in Counter(re.findall(r' id="([^"]+)"', text)).items() if times > 1}


def assert_is_page(response: Response, status: int = 200) -> str:
    """A whole page with this status; gives its words."""
    assert response.status_code == status, response.content[:2000]
    text = response.content.decode()
    assert "{{" not in text
    assert "{%" not in text
    assert len(re.findall(r"<h1[ >]", text)) == 1
    assert not repeated_ids(text)
    # what stands inside of quotes is a value, whatever it looks like; the room of a chart is said in properties alone
    bare = re.sub(r'="[^"]*"', '=""', re.sub(r' style="(--[a-z-]+:\d+px;?)+"', "", text))
    assert not re.search(r"<[^>]+ style=", bare)
    assert not re.search(r"<[^>]+ on\w+=", bare)
    return words_of(response)


def table_rows(response: Response, name: str) -> list[list[str]]:
    """What stands in the cells of a table, a list a row."""
    text = response.content.decode()
    table = re.search(rf'<table id="{name}".*?</table>', text, re.DOTALL)
    assert table is not None, f"no table {name}"
    body = table.group().partition("<tbody>")[2]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [[_bare(cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL)] for row in rows]


def _bare(cell: str) -> str:
    return " ".join(html.unescape(TAGS.sub(" ", cell)).split())


def count_queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)
