"""A sweep as one HTML file: the sentence, a chart with a line for each cell, the table. It loads nothing."""

import json
from html import escape

from plotly.offline import get_plotlyjs

from onnxfarm.here.sweep import Line, Point, Sweep, Turn

# told apart by colour-blind readers, and by their marks
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#57606a")
MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { font-size: 1.3rem; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
#chart { height: 28rem; } .turn { font-weight: 600; } .wide { overflow-x: auto; }
"""
SCRIPT = """
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const figure = JSON.parse(document.getElementById('figure').textContent);
const ink = dark ? '#e6edf3' : '#1f2328', grid = dark ? '#30363d' : '#d0d7de';
Object.assign(figure.layout, {paper_bgcolor: 'transparent', plot_bgcolor: 'transparent', font: {color: ink}});
for (const axis of ['xaxis', 'yaxis']) Object.assign(figure.layout[axis], {gridcolor: grid, linecolor: grid});
Plotly.newPlot('chart', figure.data, figure.layout, {responsive: true, displaylogo: false});
"""


def page_of(sweep: Sweep) -> str:
    """The page of a document `onnxfarm.sweep/1`."""
    title = f"{sweep['model']} over {sweep['distribution']}"
    # no text of a model may end the element that holds it
    figure = json.dumps(figure_of(sweep)).replace("<", "\\u003c")
    sentences = "".join(f"<p>{escape(line['sentence'])}</p>" for line in sweep["lines"])
    said = escape(sweep["sentence"], quote=True)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1>{sentences}"
        f'<div id="chart" role="img" aria-label="{said}"></div>'
        f"{''.join(map(_table, sweep['lines']))}"
        f'<script type="application/json" id="figure">{figure}</script>'
        f"<script>{get_plotlyjs()}</script><script>{SCRIPT}</script></body></html>\n"
    )


def figure_of(sweep: Sweep) -> dict[str, object]:
    """The chart as Plotly takes it: ratio to the reference by release, change points marked."""
    order = list(dict.fromkeys(point["version"] for line in sweep["lines"] for point in line["points"]))
    notes = [note for place, line in enumerate(sweep["lines"]) for note in _notes(line, place)]
    return {
        "data": [_trace(line, place) for place, line in enumerate(sweep["lines"])],
        "layout": {
            "margin": {"l": 70, "r": 20, "t": 30, "b": 80},
            "xaxis": {"type": "category", "categoryorder": "array", "categoryarray": order, "tickangle": -60},
            "yaxis": {"title": {"text": f"p50, ratio to {sweep['reference']}"}, "rangemode": "tozero"},
            "legend": {"orientation": "h", "y": 1.12},
            "annotations": notes,
        },
    }


def _trace(line: Line, place: int) -> dict[str, object]:
    # a release that was not measured has no value, which breaks the line
    points = [(point, point["ratio"]) for point in line["points"]]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "connectgaps": False,
        "name": line["label"],
        "x": [point["version"] for point, _ in points],
        "y": [ratio for _, ratio in points],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [(point["high"] or ratio or 0.0) - (ratio or 0.0) for point, ratio in points],
            "arrayminus": [(ratio or 0.0) - (point["low"] or ratio or 0.0) for point, ratio in points],
        },
        "line": {"color": COLOURS[place % len(COLOURS)]},
        "marker": {"symbol": MARKS[place % len(MARKS)], "size": 8},
        "hovertemplate": "%{x}: ×%{y:.3f}<extra>%{fullData.name}</extra>",
    }


def _notes(line: Line, place: int) -> list[dict[str, object]]:
    ratios = {point["version"]: point["ratio"] for point in line["points"]}
    return [
        {
            "x": turn["after"],
            "y": ratios.get(turn["after"]) or 1.0,
            "text": f"{'▲' if turn['verdict'] == 'slower' else '▼'} ×{turn['ratio']:.2f}",
            "font": {"color": COLOURS[place % len(COLOURS)]},
            "arrowcolor": COLOURS[place % len(COLOURS)],
            "ay": -30,
        }
        for turn in line["turns"]
    ]


def _table(line: Line) -> str:
    turns = {turn["after"]: turn for turn in line["turns"]}
    rows = "".join(_row(point, turns.get(point["version"])) for point in line["points"])
    heads = "".join(f"<th>{head}</th>" for head in ("release", "ratio", "95 % interval", "p50", "change"))
    return f'<h2>{escape(line["label"])}</h2><div class="wide"><table><tr>{heads}</tr>{rows}</table></div>'


def _row(point: Point, turn: Turn | None) -> str:
    if point["ratio"] is None:
        return f'<tr><td>{escape(point["version"])}</td><td colspan="4">{escape(point["reason"])}</td></tr>'
    interval = f"{point['low']:.3f}–{point['high']:.3f}" if point["low"] and point["high"] else ""
    p50 = f"{point['p50_ms']:.4g} ms" if point["p50_ms"] else ""
    said = "" if turn is None else f"×{turn['ratio']:.2f} {turn['verdict']} than {turn['before']}"
    why = f". {turn['explanation']}" if turn is not None and turn["explanation"] else ""
    cells = (escape(point["version"]), f"×{point['ratio']:.3f}", interval, p50)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}<td class='turn'>{escape(said + why)}</td></tr>"
