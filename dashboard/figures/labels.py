"""Labels of points in a chart, placed so that none overlaps another label or a point. A label stands above its point,
else below, right or left of it, and is left out where none of these is free."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dashboard.figures.frame import LINE, Frame, text_width
from dashboard.figures.theme import Json

# pixels between a point and its label
AWAY = 6
# a label must be free in drawings of all these times the width, since points move apart in a wider window
WIDER = (1.0, 1.4, 1.9, 2.4)
# Plotly's words for the position of a label, with its direction from the point as (right, down)
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
    """Place the labels of each series that has any, by the series' index in `data`, in a drawing that is at least this
    many pixels wide. There is a label for each point, whose text is empty where there is no room. Later series are
    placed first."""
    widths = [width * times for times in WIDER]
    spots = {place: _locate(trace, frame) for place, trace in enumerate(data) if "text" in trace.get("mode", "")}
    taken = {w: [_make_box(x * w, y, size, size) for some in spots.values() for x, y, size, _ in some] for w in widths}
    # later series are drawn above earlier ones, so their labels are placed first
    return {place: [_find_free_place(*spot, taken) for spot in spots[place]] for place in reversed(spots)}


def _locate(trace: Json, frame: Frame) -> list[tuple[float, float, float, str]]:
    """List the position of each point, from 0 to 1 across and in pixels down, its size, and its name."""
    sizes = trace["marker"]["size"]
    each = sizes if isinstance(sizes, list) else [sizes] * len(trace["x"])
    places = zip(map(frame.x.within, trace["x"]), map(frame.y.within, trace["y"]), each, trace["text"], strict=True)
    return [(x, (1 - y) * frame.drawn, size, text) for x, y, size, text in places]


def _find_free_place(x: float, y: float, size: float, text: str, taken: Mapping[float, list[_Box]]) -> Label:
    across, away = text_width(text), size / 2 + AWAY
    for way, (right, down) in WAYS.items():
        aside, below = right * (away + across / 2), down * (away + LINE / 2)
        boxes = {width: _make_box(x * width + aside, y + below, across, LINE) for width in taken}
        if all(
            box.left >= -AWAY and box.right <= width + AWAY and not any(map(box.is_over, taken[width]))
            for width, box in boxes.items()
        ):
            for width, box in boxes.items():
                taken[width].append(box)
            return Label(text, way, away)
    return Label("", "top center", away)


def _make_box(x: float, y: float, across: float, high: float) -> _Box:
    return _Box(x - across / 2, x + across / 2, y - high / 2, y + high / 2)
