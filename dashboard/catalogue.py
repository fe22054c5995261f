"""The documents by kind, as their index lists them: titles, one line of each, and what comes before and after."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from posixpath import normpath

from dashboard import documents
from dashboard.documents import Document, Section


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
    """The document's kind and neighbours; nothing for one that the index does not list."""
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
