"""Writes texts of unknown origin into Markdown that people post: in one line, and without effect as markup."""

import re

from farm.contract.texts import replace_controls

# characters that begin markup, a link, a picture, a formula, an entity, HTML or a cell of a table
_MARKS = re.compile(r"[\\`*_\[\]<>|~$&]")
# what GitHub and GitLab turn into links without markup: people (and notify them), issues, merge requests, addresses
_LINKED = re.compile(r"[@#!](?=[A-Za-z0-9])|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_WORD_JOINER = "\u2060"


def escape_text(text: str) -> str:
    return _LINKED.sub(rf"\g<0>{_WORD_JOINER}", _MARKS.sub(r"\\\g<0>", " ".join(replace_controls(text).split())))


def format_code_span(text: str) -> str:
    """Return the text as a code span, in which nothing is read as markup; also inside a table.

    A backtick becomes an apostrophe and a bar a slash. Empty for a text of nothing but spaces.
    """
    plain = " ".join(replace_controls(text).split()).replace("`", "'").replace("|", "/")
    return f"`{plain}`" if plain else ""
