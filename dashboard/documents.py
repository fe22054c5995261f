"""The farm's own documents: their folder, their names, and their content as HTML and as sections.

In a checkout the documents are in `docs`; the wheel installs them under `share/doc/onnxfarm` of the environment. They
are written in CommonMark with tables; HTML in them is shown as text. Their attachments are the PNG, YAML, Python and
TOML files in the same folder. A document that became part of another one is known by its old name (`moved_to`, by the
part of the name before the first `/`).
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from posixpath import normpath

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from farm.fleet.farm_wheel import ROOT, find_checkout

INSTALLED = Path(sys.prefix) / "share" / "doc" / "onnxfarm"
FIRST = "README"
WORDS = "words"
# documents that became part of another one; old links, also those of older agents, are redirected
MOVED = {
    "proofs": "results",
    "rediscovery": "results",
    "states": "reference/states",
    "bench-cells": "reference/document",
    "bench-objects": "reference/document",
    "security-open": "security",
    "threats-people": "threats",
    "threats-machines": "threats",
    "across-hardware": "choosing",
    "channels": "watch",
    "decisions": "decisions/measuring",
    "find": "choosing",
    "genai": "generate",
    "graph": "comparing",
    "measuring": "samples",
    "plug-ins": "nodes",
    "retention": "operations",
    "throughput": "scenarios",
}
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_TEXT = "text/plain; charset=utf-8"
ATTACHMENTS = {".png": "image/png", ".yaml": _TEXT, ".py": _TEXT, ".toml": _TEXT}


@dataclass(frozen=True)
class Section:
    """The part of a document below one heading, without its subsections. `level`: the level of the heading, 1 for the
    document's title; `text`: the plain text.

    `listed`: the target of each link that begins a paragraph or list item, with the text after the link.
    """

    name: str
    title: str
    anchor: str
    text: str
    level: int = 1
    listed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Term:
    """The explanation of a word in words.md, and the anchor of its row on that page."""

    explanation: str
    anchor: str


@dataclass(frozen=True)
class Document:
    """A document: its name (the path without the ending), its title, its HTML and its sections."""

    name: str
    title: str
    body: SafeString
    sections: tuple[Section, ...]


def root(code: Path = ROOT) -> Path:
    """Return the folder of the documents: `docs` of the checkout that contains `code`, else the folder into which the
    wheel installs them, which may not exist."""
    checkout = find_checkout(code)
    return INSTALLED if checkout is None else checkout / "docs"


@lru_cache(maxsize=1)
def names(code: Path = ROOT) -> tuple[str, ...]:
    """List the name of every document (its path without the ending), sorted; empty where no documents are installed.
    The folder is read once, because documents change only with the farm."""
    folder = root(code)
    return tuple(sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md")))


@lru_cache
def document(name: str) -> Document | None:
    """Return the document of this name, which is read once; None where there is none. Links lead to the farm's pages,
    links to pages that the farm does not have become text, and comments are dropped."""
    if name not in names():
        return None
    # commands that write parts of a document find their place by comments, which readers should not see
    tokens = _make_parser().parse(_COMMENT.sub("", (root() / f"{name}.md").read_text(encoding="utf-8")))
    sections = tuple(_split_sections(name, tokens))
    _prepare_tokens(tokens, name)
    body = _make_parser().renderer.render(tokens, _make_parser().options, {})
    return Document(name, sections[0].title, mark_safe(body), sections)


def find_attachment(name: str) -> Path | None:
    return root() / name if name in _list_attachments() else None


@lru_cache(maxsize=1)
def _list_attachments() -> frozenset[str]:
    folder = root()
    return frozenset(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in ATTACHMENTS)


@lru_cache(maxsize=1)
def terms(code: Path = ROOT) -> dict[str, Term]:
    """Map each word that words.md explains to its explanation as plain text and the anchor of its row. Words in the
    same row have the same explanation. Empty where no documents are installed."""
    if WORDS not in names(code):
        return {}
    tokens = _make_parser().parse((root(code) / f"{WORDS}.md").read_text(encoding="utf-8"))
    # only the first table explains words; the next lists words that are no longer used
    tokens = tokens[: next(index for index, token in enumerate(tokens) if token.type == "table_close")]
    cells = [_read_text(tokens[index + 1]) for index, token in enumerate(tokens) if token.type == "td_open"]
    rows = zip(cells[::2], cells[1::2], strict=True)
    return {
        word: Term(explanation, _anchor_of_words(words)) for words, explanation in rows for word in words.split(", ")
    }


def address(name: str, anchor: str = "") -> str:
    page = reverse("dashboard:docs") if name == FIRST else reverse("dashboard:document", args=(name,))
    return page + (f"#{anchor}" if anchor else "")


def moved_to(name: str) -> str | None:
    return MOVED.get(name.partition("/")[0])


def slug(title: str) -> str:
    """Return the anchor of a heading as GitHub makes it, but without the number that GitHub adds to repeated ones."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def _anchor_of_words(words: str) -> str:
    return f"word-{slug(words.partition(',')[0])}"


@lru_cache(maxsize=1)
def _make_parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _split_sections(name: str, tokens: Sequence[Token]) -> Iterator[Section]:
    """List a section for every heading. Text before the first heading becomes a section with the document's name."""
    heads = [at for at, token in enumerate(tokens) if token.type == "heading_open"]
    if not heads or heads[0]:
        yield _make_section(name, name, 1, tokens[: heads[0] if heads else None])
    for at, end in zip(heads, [*heads[1:], len(tokens)], strict=True):
        # a heading is three tokens: opening, words, closing
        yield _make_section(name, _read_text(tokens[at + 1]), int(tokens[at].tag[1]), tokens[at + 3 : end])


def _make_section(name: str, title: str, level: int, tokens: Sequence[Token]) -> Section:
    lines = [
        _read_text(token) if token.type == "inline" else token.content
        for token in tokens
        if token.type in ("inline", "fence")
    ]
    listed = [_split(token.children) for token in tokens if token.children and token.children[0].type == "link_open"]
    return Section(name, title, slug(title), " ".join(lines), level, tuple(listed))


def _split(tokens: Sequence[Token]) -> tuple[str, str]:
    """Split a line of a list into the target of its first link and the text after that link."""
    end = next(at for at, token in enumerate(tokens) if token.type == "link_close")
    rest = "".join(" " if token.type == "softbreak" else token.content for token in tokens[end + 1 :])
    return str(tokens[0].attrGet("href")), rest.lstrip(": ")


def _read_text(token: Token) -> str:
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children or ())


def _prepare_tokens(tokens: Sequence[Token], name: str) -> None:
    """Give headings anchors, redirect links to the farm's pages, and replace inline styles by classes, because the
    pages' content security policy forbids inline styles."""
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slug(_read_text(tokens[index + 1])))
        if name == WORDS and token.type == "tr_open" and tokens[index + 1].type == "td_open":
            token.attrSet("id", _anchor_of_words(_read_text(tokens[index + 2])))
        if "style" in token.attrs:
            align = str(token.attrs.pop("style"))
            token.attrs |= {"class": "n"} if align.endswith("right") else {}
        _redirect_links(token.children or (), name)


def _redirect_links(tokens: Sequence[Token], name: str) -> None:
    """Redirect the links and pictures of a paragraph to the farm's pages. A link to a page that the farm does not have
    becomes text."""
    is_link = True
    for token in tokens:
        if token.type == "link_open":
            target = _find_target(str(token.attrGet("href")), name)
            is_link, token.attrs = target is not None, {"href": target} if target else {}
        elif token.type == "image":
            token.attrSet("src", _find_target(str(token.attrGet("src")), name) or "")
        if token.type in ("link_open", "link_close") and not is_link:
            token.tag = "span"


def _find_target(href: str, name: str) -> str | None:
    """Find the address to which a link of a document leads; None where the farm has no such page."""
    if "://" in href or href.startswith(("#", "mailto:")):
        return href
    path, _, anchor = href.partition("#")
    linked = normpath(PurePosixPath(name).parent / path)
    if (page := linked.removesuffix(".md")) in names():
        return address(page, anchor)
    return reverse("dashboard:document", args=(linked,)) if find_attachment(linked) else None
