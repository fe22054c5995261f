"""What a figure is: a finding as its title, a summary for those who cannot see it, the drawing, and its numbers."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from dashboard.figures import keys
from dashboard.figures.theme import SLOTS, Json
from farm.rules.presenting.tables import Table

# from a cell's id to its page
Address = Callable[[str], str]


@dataclass(frozen=True)
class Figure:
    """`data` and `layout` are Plotly's; colours in them are tokens. A figure without data says why in `empty`.

    `note`: how to read it, in a line below it.
    `zooms`: it is wider than the page, so that parts of it may be shown, by pointer, key and button.
    """

    name: str
    title: str
    summary: str
    data: list[Json]
    layout: Json
    table: Table
    empty: str = ""
    zooms: bool = False
    note: str = ""

    @property
    def key(self) -> list[keys.Entry]:
        """Which line or bar is what; empty for a figure that says so itself."""
        return keys.entries(self.data, self.layout)

    @property
    def greys(self) -> list[keys.Entry]:
        """Those of the key that have no colour of their own, where there are more series than colours."""
        return [one for one in self.key if one.is_grey] if len(self.key) > SLOTS else []

    @property
    def json(self) -> str:
        """The drawing for the page's script, safe inside a script element."""
        # the page draws the key itself
        layout = {**self.layout, "showlegend": False}
        text = json.dumps({"data": self.data, "layout": layout}, allow_nan=False, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def nothing(name: str, sentence: str, table: Table) -> Figure:
    """A figure that cannot be drawn yet, with the sentence that stands in its place."""
    return Figure(name=name, title=sentence, summary=sentence, data=[], layout={}, table=table, empty=sentence)
