"""Labels of points in a chart, placed so that none overlaps another: above its point, else below or beside it, and left
out where nothing is free."""

from collections.abc import Sequence
from typing import NamedTuple

from dashboard.figures.frame import LINE, Frame, text_width
from dashboard.figures.theme import Json

# from a point to its name
AWAY = 6
# Plotly's words for where a name stands, and which way that is
WAYS = {"top center": (0, -1), "bottom center": (0, 1), "middle right": (1, 0), "middle left": (-1, 0)}


class Label(NamedTuple):
    """The label of a point. `text`: empty where there is no room; `way`: its position in Plotly's words; `away`: the
    distance from the point in pixels."""

    text: str
    way: str
    away: float


class _Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def is_over(self, other: "_Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def place_labels(data: Sequence[Json], frame: Frame, width: float) -> dict[int, list[Label]]:
    """Place the labels of each series that has any, by its index in `data`, in a drawing of this width in pixels. Each
    point has a label, which is empty where there is no room."""
    spots = {place: _locate(trace, frame, width) for place, trace in enumerate(data) if "text" in trace.get("mode", "")}
    taken = [_make_box(x, y, size, size) for some in spots.values() for x, y, size, _ in some]
    # those drawn last lie above the others and are named first
    return {place: [_find_free_place(*spot, taken, width) for spot in spots[place]] for place in reversed(spots)}


def _locate(trace: Json, frame: Frame, width: float) -> list[tuple[float, float, float, str]]:
    """List where points are, in pixels, how large they are, and their names."""
    sizes = trace["marker"]["size"]
    each = sizes if isinstance(sizes, list) else [sizes] * len(trace["x"])
    places = zip(map(frame.x.within, trace["x"]), map(frame.y.within, trace["y"]), each, trace["text"], strict=True)
    return [(x * width, (1 - y) * frame.drawn, size, text) for x, y, size, text in places]


def _find_free_place(x: float, y: float, size: float, text: str, taken: list[_Box], width: float) -> Label:
    across, away = text_width(text), size / 2 + AWAY
    for way, (right, down) in WAYS.items():
        box = _make_box(x + right * (away + across / 2), y + down * (away + LINE / 2), across, LINE)
        if box.left >= -AWAY and box.right <= width + AWAY and not any(map(box.is_over, taken)):
            taken.append(box)
            return Label(text, way, away)
    return Label("", "top center", away)


def _make_box(x: float, y: float, across: float, high: float) -> _Box:
    return _Box(x - across / 2, x + across / 2, y - high / 2, y + high / 2)
