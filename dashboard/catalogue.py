"""The documents by kind, as their index lists them, the contents of a document (its sections of levels 2 and 3), and
the search in their sections."""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from posixpath import normpath

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from dashboard import documents
from dashboard.documents import Document, Section

MAX_WORDS = 12
MAX_SECTIONS = 50
# words of at least so many letters also match longer words that begin with them
MIN_BEGINNING = 4
# a word that is not one of the frequent words in this list
WORD = re.compile(
    r"\b(?!(?:a|an|and|are|as|at|be|by|can|do|does|for|from|has|have|how|i|if|in|into|instead|is|it|its|me|my|of|on|onnxfarm"
    r"|or|our|own|should|so|some|that|the|their|them|there|this|to|use|was|we|what|when|where|which|who|why|with|you|your)"
    r"\b)\w+"
)
# People who search want to do something, so sections of these kinds rank lower. So do the hundreds of sections that
# each describe a message of the API or of a document.
SHARES = {"Reference": 0.35, "Explanation": 0.6, "Judging the project": 0.6}
SHAPES, SHARE_OF_SHAPES = ("reference/api", "reference/document"), 0.1
BEGIN, END = "\x02", "\x03"
TITLE, HEADING = (f"highlight(section, {column}, '{BEGIN}', '{END}')" for column in (3, 5))
# the weight of a word by where it stands: title 6, summary in the index 4, heading 8, text 1
FIND = f"""
    SELECT rowid, name, anchor, {TITLE}, {HEADING}, snippet(section, 6, '{BEGIN}', '{END}', '…', 40)
    FROM section WHERE section MATCH ?
    ORDER BY bm25(section, 0, 0, 0, 6, 4, 8, 1) * share * (1 + covered({TITLE}) + covered({HEADING}))
    LIMIT {MAX_SECTIONS}
"""


@dataclass(frozen=True)
class Entry:
    """A document in the index. `name`: its path without the ending; `summary`: its purpose in one line;
    `is_summary_in_title`: the title has all words of the summary, frequent ones such as “the” aside."""

    name: str
    title: str
    summary: str
    address: str

    @property
    def is_summary_in_title(self) -> bool:
        return set(WORD.findall(self.summary.lower())) <= set(WORD.findall(self.title.lower()))


@dataclass(frozen=True)
class Kind:
    """The documents of a kind, such as tutorial or how-to, with the purpose of the kind."""

    name: str
    purpose: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Place:
    """The kind of a document and its neighbours in the index, None at the ends."""

    kind: str = ""
    before: Entry | None = None
    after: Entry | None = None


@lru_cache(maxsize=1)
def kinds() -> tuple[Kind, ...]:
    """Return the kinds in the order of the index, `docs/README.md`, which is read once. A heading of the index is a
    kind, and each line of the list below it a document. Kinds without an installed document are left out; empty without
    documents."""
    index = documents.document(documents.FIRST)
    if index is None:
        return ()
    listed = [(section.title.partition(": "), tuple(_list_entries(section))) for section in index.sections]
    return tuple(Kind(name, purpose, entries) for (name, _, purpose), entries in listed if entries)


def place_of(name: str) -> Place:
    """Find the document's kind and neighbours; all fields are empty where the index does not list the document."""
    flat = [(kind.name, entry) for kind in kinds() for entry in kind.entries]
    at = next((at for at, (_, entry) in enumerate(flat) if entry.name == name), None)
    if at is None:
        return Place()
    before = flat[at - 1][1] if at else None
    return Place(flat[at][0], before, flat[at + 1][1] if at + 1 < len(flat) else None)


def contents(document: Document) -> list[Section]:
    return [section for section in document.sections if section.level in (2, 3)]


def _list_entries(section: Section) -> Iterator[Entry]:
    """List the documents of the lines `[title](path): summary`; those that are not installed are left out."""
    for href, summary in section.listed:
        name = normpath(href).removesuffix(".md")
        if (listed := documents.document(name)) is not None:
            yield Entry(name, listed.title, summary, documents.address(name))


@dataclass(frozen=True)
class Hit:
    """A section that contains the searched words, which are marked in its heading (`title`) and `passage`. `title` is
    empty for the section directly below the document's title."""

    title: SafeString
    address: str
    passage: SafeString


@dataclass
class Found:
    """A document that contains the searched words, with the sections that contain them, the best first."""

    title: SafeString
    kind: str
    address: str
    hits: list[Hit] = field(default_factory=list)


def search(text: str) -> list[Found]:
    """Find the documents with the words, the best first: by their sections with all words, then by those with some, at
    most MAX_SECTIONS of each. Frequent words such as “the” are dropped, and only the first MAX_WORDS words count. Words
    match by their stem, in British spelling too, and long words also as the beginning of longer ones. Only documents
    that the index lists are searched. Empty where no word is left."""
    words = WORD.findall(text.lower())[:MAX_WORDS]
    queries = [joined.join(map(_write_query, words)) for joined in (" AND ", " OR ")] if words else []
    # a section that both queries find keeps its place in the first
    rows = {number: row for query in queries for number, *row in _build_index().execute(FIND, (query,))}
    found: dict[str, Found] = {}
    for name, anchor, *texts in rows.values():
        title, heading, passage = map(_mark_words, texts)
        document = found.setdefault(name, Found(title, place_of(name).kind, documents.address(name)))
        document.hits.append(Hit(heading if anchor else _mark_words(""), documents.address(name, anchor), passage))
    return list(found.values())


def _write_query(word: str) -> str:
    """Write a word as a query of SQLite, also in British spelling. A long word also matches as a prefix."""
    beginning = "*" * (len(word) >= MIN_BEGINNING)
    return f'("{word}"{beginning} OR "{word.replace("iz", "is")}"{beginning})'


def _measure_cover(marked: str) -> float:
    asked = [marked[word.start() - 1] == BEGIN for word in WORD.finditer(marked.lower())]
    return sum(asked) / max(len(asked), 1)


@lru_cache(maxsize=1)
def _build_index() -> sqlite3.Connection:
    """Build an index of all sections by the stems of their words, in memory. Several threads may read it at once."""
    index = sqlite3.connect(":memory:", check_same_thread=False)
    index.create_function("covered", 1, _measure_cover, deterministic=True)
    index.execute(
        "CREATE VIRTUAL TABLE section USING fts5("
        "name UNINDEXED, anchor UNINDEXED, share UNINDEXED, title, summary, heading, text, tokenize = 'porter')"
    )
    index.executemany("INSERT INTO section VALUES (?, ?, ?, ?, ?, ?, ?)", _list_sections())
    return index


def _list_sections() -> Iterator[tuple[str | float, ...]]:
    """List the sections of every document but the index itself, as rows of the index."""
    for kind_name, entry in ((kind.name, entry) for kind in kinds() for entry in kind.entries):
        shown = documents.document(entry.name)
        for section in shown.sections if shown else ():
            is_shape = entry.name in SHAPES and section.level > 1
            share = SHARE_OF_SHAPES if is_shape else SHARES.get(kind_name, 1.0)
            anchor = section.anchor if section.level > 1 else ""
            yield entry.name, anchor, share, entry.title, entry.summary, section.title, section.text


def _mark_words(text: str) -> SafeString:
    return mark_safe(escape(text).replace(BEGIN, "<mark>").replace(END, "</mark>"))
