"""The documents by kind, as their index lists them, and the passages of them that have words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from posixpath import normpath

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from dashboard import documents
from dashboard.documents import Document, Section

MOST_WORDS = 8
MOST_SECTIONS = 50
# sections of one document that are named
NAMED = 3
# characters of a passage, and the share of them that stand before its first word
WIDTH = 240
BEFORE = 80


@dataclass(frozen=True)
class Entry:
    """A document in the index: where it is shown, its own title, and what it is for in one line."""

    name: str
    title: str
    summary: str
    address: str


@dataclass(frozen=True)
class Kind:
    """Documents of one kind (tutorial, how-to …) and what they are good for."""

    name: str
    purpose: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Place:
    """Where a document stands: its kind, and its neighbours in the index."""

    kind: str = ""
    before: Entry | None = None
    after: Entry | None = None


@lru_cache(maxsize=1)
def kinds() -> tuple[Kind, ...]:
    """The index, `docs/README.md`: each heading a kind, each line of its list a document. None without documents."""
    index = documents.document(documents.FIRST)
    if index is None:
        return ()
    listed = [(section.title.partition(": "), tuple(_entries(section))) for section in index.sections]
    return tuple(Kind(name, purpose, entries) for (name, _, purpose), entries in listed if entries)


def place_of(name: str) -> Place:
    """The document's kind and neighbours; nothing where the index does not list it."""
    flat = [(kind.name, entry) for kind in kinds() for entry in kind.entries]
    at = next((at for at, (_, entry) in enumerate(flat) if entry.name == name), None)
    if at is None:
        return Place()
    before = flat[at - 1][1] if at else None
    return Place(flat[at][0], before, flat[at + 1][1] if at + 1 < len(flat) else None)


def contents(document: Document) -> list[Section]:
    """The headings below the title, to two levels."""
    return [section for section in document.sections if section.level in (2, 3)]


def _entries(section: Section) -> Iterator[Entry]:
    """The lines `[title](path): summary` of a list; of a document that is not installed there is none."""
    for href, summary in section.listed:
        name = normpath(href).removesuffix(".md")
        if name in documents.names():
            yield Entry(name, documents.title_of(name), summary, documents.address(name))


@dataclass(frozen=True)
class Hit:
    """A section with the words: its heading (none below the document's own title) and its passage, the words marked."""

    title: SafeString
    address: str
    passage: SafeString


@dataclass(frozen=True)
class Found:
    """A document with the words, by its best sections; `more`: further ones."""

    title: SafeString
    kind: str
    address: str
    hits: Sequence[Hit]
    more: int


def search(text: str) -> list[Found]:
    """The documents whose sections hold every word, the best first; none for words so short that all hold them."""
    words = text.lower().split()[:MOST_WORDS]
    if any(len(word) < 3 for word in words):
        return []
    by_name: dict[str, list[Section]] = {}
    for section in _sections(words):
        by_name.setdefault(section.name, []).append(section)
    return [_found(name, sections, words) for name, sections in by_name.items()]


def marked(text: str, words: Sequence[str]) -> SafeString:
    """The text with each of the words marked."""
    if not words:
        return escape(text)
    # longer words first, so that a part of one does not end it
    either = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    pieces = re.split(f"({either})", text, flags=re.IGNORECASE)
    # what was split by stands at odd places
    return mark_safe(
        "".join(f"<mark>{escape(part)}</mark>" if at % 2 else escape(part) for at, part in enumerate(pieces))
    )


def passage(text: str, words: Sequence[str]) -> str:
    """The part of a text that holds most of the words, from word to word."""
    lower = text.lower()
    places = [match.start() for word in words for match in re.finditer(re.escape(word), lower)]
    starts = [max(0, place - BEFORE) for place in places] or [0]
    start = max(starts, key=lambda at: (sum(word in lower[at : at + WIDTH] for word in words), -at))
    end = start + WIDTH
    if start:
        start = lower.find(" ", start) + 1
    if end < len(text):
        end = lower.rfind(" ", start, end)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def _sections(words: Sequence[str]) -> list[Section]:
    """Those that hold every word, those that have them in their heading first."""
    every = [section for name in documents.names() for section in _of(name)]
    scored = [(_score(section, words), section) for section in every]
    ordered = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return [section for _, section in ordered[:MOST_SECTIONS]] if words else []


def _of(name: str) -> Sequence[Section]:
    shown = documents.document(name)
    return shown.sections if shown else ()


def _score(section: Section, words: Sequence[str]) -> int:
    title, text = section.title.lower(), section.text.lower()
    if not all(word in title or word in text for word in words):
        return 0
    return 1 + sum(20 * (word in title) + min(text.count(word), 5) for word in words)


def _found(name: str, sections: Sequence[Section], words: Sequence[str]) -> Found:
    hits = [_hit(section, words) for section in sections[:NAMED]]
    title, kind = marked(documents.title_of(name), words), place_of(name).kind
    return Found(title, kind, documents.address(name), hits, max(0, len(sections) - NAMED))


def _hit(section: Section, words: Sequence[str]) -> Hit:
    title = section.title if section.level > 1 else ""
    address = documents.address(section.name, section.anchor)
    return Hit(marked(title, words), address, marked(passage(section.text, words), words))
