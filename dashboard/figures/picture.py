"""The SVG of a figure that the server draws, from the data and layout that Plotly draws later.

The SVG fills the width of its window without a script. Positions are in percent or, for lines and dots, in units of a
square that is stretched; words, strokes and marks keep their size in pixels. Colours are properties of the stylesheet,
so that the drawing follows light and dark mode. In a narrow window, names stand above their rows (`.plot` in farm.css).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from math import ceil
from typing import Any

from dashboard.figures import labels
from dashboard.figures.frame import MAX_NAME, NARROW, TICKS, TITLE, WIDE, Frame, Scale, text_width
from dashboard.figures.theme import DASH_LENGTHS, INK, SHAPES, SOFT, Json

# the side of the square that is stretched to the size of the drawing
SIDE = 10_000
MAX_TICK = 18

Spots = Sequence[tuple[float | None, float | None]]


def draw_svg(name: str, data: Sequence[Json], frame: Frame) -> str:
    """Draw the inside of the figure's SVG, without the element itself. `name`: the prefix of the marks' ids, which must
    be unique on the page. Traces other than bars and scatter are ignored."""
    shapes = frame.layout.get("shapes", ())
    grounds, rules = ([shape for shape in shapes if shape["type"] == kind] for kind in ("rect", "line"))
    parts = [
        _draw_stretched([_draw_grid(frame), *(_draw_shape(shape, frame) for shape in grounds)]),
        *_write_ticks(frame),
        *_draw_bars([trace for trace in data if trace["type"] == "bar"], frame),
        *(_draw_points(trace, frame, f"{name}-{n}") for n, trace in enumerate(data) if trace["type"] == "scatter"),
        _draw_stretched(_draw_shape(shape, frame) for shape in rules),
        *(_write_names(data, frame, width, kind) for width, kind in ((WIDE, "wide"), (NARROW, "narrow"))),
        *(_write_note(note, frame) for note in frame.layout.get("annotations", ())),
    ]
    return "".join(parts)


def _draw_stretched(parts: Iterable[str], *, down: float = 0.0) -> str:
    inside = "".join(parts)
    return f'<svg y="{down:g}" viewBox="0 0 {SIDE} {SIDE}" preserveAspectRatio="none">{inside}</svg>' if inside else ""


def _draw_grid(frame: Frame) -> str:
    """Draw a line at each tick. Rows of bars need no lines across."""
    across, along = (scale.ticks if scale.axis.get("showgrid", True) else [] for scale in (frame.x, frame.y))
    along = [] if frame.groups else along
    lines = [*(f"M{_x(x)} 0V{SIDE}" for x, _ in across), *(f"M0 {_y(y)}H{SIDE}" for y, _ in along)]
    return f'<path class="grid" d="{"".join(lines)}"/>'


def _write_ticks(frame: Frame) -> Iterator[str]:
    """Write the ticks and titles of the axes. A narrow window hides ticks that have no room."""
    ticks = frame.x.ticks
    room = sum(text_width(text[:MAX_TICK]) + 12 for _, text in ticks)
    each, narrow = ceil(room / WIDE) or 1, ceil(room / NARROW) or 1
    below = [
        _write_text(text[:MAX_TICK], _percent(place), "100%", 'class="thin"' if number % narrow else "")
        for number, (place, text) in enumerate(ticks)
        if number % each == 0
    ]
    yield f'<g text-anchor="middle" transform="translate(0 {TICKS - 6})">{"".join(below)}</g>'
    beside = "".join(_write_row_name(_percent(1 - place), text) for place, text in frame.y.ticks)
    yield f'<g class="{"rows" if frame.rows else "values"}">{beside}</g>'
    yield _write_text(frame.x.title, "50%", "100%", f'dy="{TICKS + TITLE - 8}" text-anchor="middle"')
    turned = f'transform="translate({14 - frame.left}) rotate(-90)" text-anchor="middle"'
    yield f'<svg y="50%">{_write_text(frame.y.title, "0", "0", turned)}</svg>'


def _write_row_name(down: str, text: str) -> str:
    """Write the name of a row, in several lines where it has line breaks."""
    first, *more = (
        escape(line if len(line) <= MAX_NAME else f"{line[: MAX_NAME - 1]}…") for line in text.split("<br>")
    )
    below = "".join(f'<tspan x="0" dy="1.25em">{line}</tspan>' for line in more)
    return f'<text y="{down}" dy="{-0.6 * len(more):g}em">{first}{below}</text>'


def _write_text(text: str, x: str, y: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" {more}>{escape(text)}</text>' if text else ""


def _draw_bars(bars: Sequence[Json], frame: Frame) -> Iterator[str]:
    """Draw horizontal bars, side by side or stacked, with their texts and whiskers."""
    ends: dict[object, float] = {}
    each = frame.thickness / max(1, frame.groups)
    high = each * (1 - frame.layout.get("bargroupgap", 0.0))
    for number, trace in enumerate(bars):
        middle = (number - (frame.groups - 1) / 2) * each if frame.groups > 1 else 0.0
        alike: dict[str, list[str]] = {}
        texts = []
        for place, (row, value) in enumerate(zip(trace["y"], trace["x"], strict=True)):
            is_stacked = frame.layout.get("barmode") == "stack"
            start = ends.get(row, 0.0) if is_stacked else _pick(trace.get("base", 0.0), place)
            ends[row] = start + value
            low, end, down = frame.x.within(start), frame.x.within(start + value), _percent(1 - frame.y.within(row))
            where = f'x="{_percent(low)}" y="{down}" width="{_percent(end - low)}" height="{high:.3g}"'
            alike.setdefault(_format_fill(trace["marker"], place), []).append(f"<rect {where}/>")
            texts.append(_write_on_bar(trace, place, (low, end), down))
        rects = "".join(f"<g {paint}>{''.join(some)}</g>" for paint, some in alike.items())
        yield f'<g transform="translate(0 {middle - high / 2:.3g})">{rects}</g>'
        yield f'<g transform="translate(0 {middle + 4:.3g})">{"".join(texts)}</g>'
        yield _draw_stretched(_draw_whiskers(trace, frame), down=middle)


def _write_on_bar(trace: Json, place: int, across: tuple[float, float], down: str) -> str:
    """Write the text of a bar, after its end or in its middle."""
    is_outside = trace.get("textposition") == "outside"
    if not is_outside and trace.get("textposition") != "inside":
        return ""
    x, how = (across[1], 'dx="4"') if is_outside else (sum(across) / 2, 'text-anchor="middle"')
    return _write_text(trace["text"][place], _percent(x), down, f"{how} {_format_font(trace['textfont'])}")


def _draw_points(trace: Json, frame: Frame, name: str) -> str:
    """Draw a series: its line with gaps, its intervals and its marks."""
    spots = [(frame.x.at(x), frame.y.at(y)) for x, y in zip(trace["x"], trace["y"], strict=True)]
    inside = [_draw_line(trace["line"], spots)] if "lines" in trace["mode"] else []
    inside += _draw_whiskers(trace, frame)
    is_round = trace.get("marker", {}).get("symbol", "circle") == "circle"
    inside += [_draw_dots(trace["marker"], spots)] if "markers" in trace["mode"] and is_round else []
    marks = "" if is_round else _draw_marks(trace["marker"], spots, name)
    return f'<g opacity="{trace.get("opacity", 1):g}">{_draw_stretched(inside)}{marks}</g>'


def _draw_line(line: Json, spots: Spots) -> str:
    drawn, pen = [], "M{} {}"
    for x, y in spots:
        if x is not None and y is not None:
            drawn.append(pen.format(_x(x), _y(y)))
        is_gap = x is None or y is None
        pen = "M{} {}" if is_gap else "H{}V{}" if line.get("shape") == "hv" else "L{} {}"
    return f'<path d="{"".join(drawn)}" {_format_stroke(line)}/>'


def _draw_whiskers(trace: Json, frame: Frame) -> Iterator[str]:
    """Draw the interval of each point or bar, along the axis that has one."""
    for along, other, form in (("x", "y", "M{0} {2}H{1}"), ("y", "x", "M{2} {0}V{1}")):
        error = trace.get(f"error_{along}")
        if not error:
            continue
        scale, across = (frame.x, frame.y) if along == "x" else (frame.y, frame.x)
        end_of, place_of = (_x, _y) if along == "x" else (_y, _x)
        ends = [
            form.format(
                end_of(scale.within(value - down)), end_of(scale.within(value + up)), place_of(across.within(at))
            )
            for value, at, up, down in zip(trace[along], trace[other], error["array"], error["arrayminus"], strict=True)
            if value is not None and (up or down)
        ]
        yield f'<path d="{"".join(ends)}" {_format_stroke({**error, "width": error["thickness"]})}/>'


def _draw_dots(marker: Json, spots: Spots) -> str:
    """Draw round marks as strokes of length 0, with a single path for all marks of the same colour and size."""
    alike: dict[str, list[str]] = {}
    line = marker.get("line") or {"width": 0}
    for place, (x, y) in enumerate(spots):
        if x is None or y is None:
            continue
        colour, size = _pick(marker["color"], place), _pick(marker["size"], place)
        edge = [(line["color"], size + line["width"])] if line["width"] else []
        for paint, across in [*edge, (colour, size - line["width"])]:
            alike.setdefault(_format_stroke({"color": paint, "width": across}), []).append(f"M{_x(x)} {_y(y)}h0")
    dots = "".join(f'<path class="dot" d="{"".join(paths)}" {stroke}/>' for stroke, paths in alike.items())
    return f'<g opacity="{marker.get("opacity", 1):g}">{dots}</g>'


def _draw_marks(marker: Json, spots: Spots, name: str) -> str:
    """Draw marks of another shape. The shape is written once, and each mark refers to it."""
    symbol, line = marker["symbol"], marker.get("line", {})
    shape = SHAPES.get(symbol) or SHAPES[symbol.removesuffix("-open")]
    paint = f'fill="{_format_colour(marker["color"])}"'
    if symbol.endswith("-open"):
        paint = f'fill="none" {_format_stroke({"width": 1.5, **line, "color": marker["color"]})}'
    elif line:
        paint += f" {_format_stroke(line)}"
    uses = [
        f'<use href="#{escape(name)}" x="{_percent(x)}" y="{_percent(1 - y)}"/>'
        for x, y in spots
        if x is not None and y is not None
    ]
    mark = f'<defs><path id="{escape(name)}" d="{shape}" transform="scale({marker["size"] / 8:.3g})"/></defs>'
    return f"{mark}<g {paint}>{''.join(uses)}</g>"


def _draw_shape(shape: Json, frame: Frame) -> str:
    """Draw a band or a straight line. Its ends are values of the axes, or parts of the drawing for `paper`."""

    def end(scale: Scale, name: str, place: Callable[[float], int]) -> int:
        return place(shape[name] if shape.get(f"{name[0]}ref") == "paper" else scale.within(shape[name]))

    x0, x1, y0, y1 = (end(frame.x, "x0", _x), end(frame.x, "x1", _x), end(frame.y, "y0", _y), end(frame.y, "y1", _y))
    if shape["type"] == "line":
        return f'<path d="M{x0} {y0}L{x1} {y1}" {_format_stroke(shape["line"])}/>'
    return f'<path d="M{x0} {y0}H{x1}V{y1}H{x0}z" fill="{_format_colour(shape["fillcolor"])}"/>'


def _write_names(data: Sequence[Json], frame: Frame, width: float, kind: str) -> str:
    """Write the names of points that have room in a window of this width."""
    texts = []
    for place, some in labels.place_labels(data, frame, width).items():
        trace = data[place]
        for x, y, label in zip(trace["x"], trace["y"], some, strict=True):
            right, down = labels.WAYS[label.way]
            moved = f'dx="{right * label.away:g}" dy="{4 + down * (label.away + 4):g}"'
            more = f'{moved} text-anchor="{("end", "middle", "start")[right + 1]}" {_format_font(trace["textfont"])}'
            texts.append(_write_text(label.text, _percent(frame.x.within(x)), _percent(1 - frame.y.within(y)), more))
    return f'<g class="{kind}">{"".join(texts)}</g>' if texts else ""


def _write_note(note: Json, frame: Frame) -> str:
    # x is a part of the width, 1 at the right edge, and y a value of the axis
    more = f'dx="4" dy="4" {_format_font(note["font"])}'
    return _write_text(note["text"], _percent(note["x"]), _percent(1 - frame.y.within(note["y"])), more)


def _format_font(font: Json) -> str:
    return f'font-size="{font.get("size", 12)}" fill="{_format_colour(font.get("color", SOFT))}"'


def _format_fill(marker: Json, place: int) -> str:
    """Return the attributes that fill a bar and draw its edge."""
    line = marker.get("line")
    edge = f" {_format_stroke({name: _pick(value, place) for name, value in line.items()})}" if line else ""
    return f'fill="{_format_colour(_pick(marker["color"], place))}"{edge}'


def _format_stroke(line: Json) -> str:
    dashes = DASH_LENGTHS.get(line.get("dash", ""))
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'stroke="{_format_colour(line["color"])}" stroke-width="{line["width"]:g}"{dashed}'


def _pick(each: Any, place: int) -> Any:
    return each[place] if isinstance(each, list) else each


def _format_colour(token: str) -> str:
    """Write a colour token as a property of the stylesheet; `@ink/40` is 40 % opaque."""
    name, _, percent = escape(token or INK).removeprefix("@").partition("/")
    return f"color-mix(in srgb,var(--{name}) {percent}%,transparent)" if percent else f"var(--{name})"


def _x(place: float) -> int:
    return round(SIDE * place)


def _y(place: float) -> int:
    return round(SIDE * (1 - place))


def _percent(place: float) -> str:
    return f"{100 * place:.4g}%"
