"""Words that explain themselves: each that a page marks stands in docs/words.md, each document linked is there."""

import re

from dashboard import documents
from dashboard.templatetags import pages
from tests.conftest import PROJECT

TEMPLATES = {path: path.read_text() for path in (PROJECT / "dashboard/templates").rglob("*.html")}
TERM = re.compile(r"\{% term \"([^\"]+)\"")
TERMS = re.compile(r"\{% terms ((?:\"[^\"]+\" ?)+)")
DOCUMENT = re.compile(r"\{% doc_link \"([^\"]+)\"")


def test_every_word_that_a_page_marks_is_explained() -> None:
    marked = {name for text in TEMPLATES.values() for name in TERM.findall(text)}
    marked |= {name for text in TEMPLATES.values() for group in TERMS.findall(text) for name in group.split('"')[1::2]}
    assert {"A/A pair", "noise floor", "block", "smallest detectable change", "parity", "round", "set aside"} <= marked
    assert marked - documents.terms().keys() == set()


def test_every_document_that_a_page_leads_to_is_there() -> None:
    linked = {name for text in TEMPLATES.values() for name in DOCUMENT.findall(text)}
    assert len(linked) > 5
    assert linked - set(documents.names()) == set()


def test_a_word_leads_to_its_row_and_is_described_by_its_explanation() -> None:
    link = pages.term("A/A twin", "A/A twins")
    assert 'href="/docs/words#word-aa"' in link
    assert 'title="two arms with the same cell' in link
    assert link.endswith(">A/A twins</a>")
    assert '<tr id="word-aa">' in documents.document("words").body


def test_the_words_that_were_dropped_are_not_explained_as_terms() -> None:
    assert "take it along" not in documents.terms()
