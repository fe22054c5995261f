"""The sections of a run's page below its head. Each says which state of it is shown, so that a page which fills in is
sent only those that it has an older state of, in one answer with the head: no two of them tell of different moments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from django.http import HttpRequest
from django.template.loader import render_to_string

TABLES = ("compared", "cells")
# always on the page; the tables of a large run are not, until somebody scrolls to them
ALWAYS = ("charts", "log")
# in the templates of sections, where the digest goes
MARK = 'data-at=""'


@dataclass(frozen=True, slots=True)
class Section:
    """A section as it stands on the page: its element has its name as id, and `at` as `data-at`."""

    name: str
    text: str
    at: str

    @classmethod
    def of(cls, request: HttpRequest, name: str, shown: Mapping[str, object]) -> Self:
        """The section `name`, drawn by its template from what is shown."""
        text = render_to_string(f"dashboard/parts/run_{name}.html", dict(shown), request)
        at = sha256(text.encode()).hexdigest()[:12]
        return cls(name, text.replace(MARK, f'data-at="{at}"', 1), at)

    @property
    def out_of_band(self) -> str:
        """The same as htmx puts it in place of the one that is there."""
        return self.text.replace("data-at=", 'hx-swap-oob="true" data-at=', 1)


def held(request: HttpRequest) -> dict[str, str]:
    """What the page says it has, the state of each section by its name: `have=charts.0a1b2c3d4e5f,log.…`."""
    pairs = (one.partition(".") for one in request.GET.get("have", "").split(","))
    return {name: at for name, _, at in pairs if name in (*ALWAYS, *TABLES)}


def newer(sections: Iterable[Section], have: Mapping[str, str]) -> list[Section]:
    """Those that the page has in another state."""
    return [section for section in sections if have.get(section.name) != section.at]
