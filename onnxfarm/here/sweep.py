"""Measures a sweep on this machine, and renders its document as one HTML page with a chart and tables."""

import json
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from farm.rules.matrices.matrix import Matrix
from farm.rules.searches import sweeps
from farm.rules.searches.search import carry_out
from farm.rules.wording.numbers import change
from farm.rules.wording.vocabulary import sign_of
from onnxfarm.here.workbench import Bench, Machine
from onnxfarm.problems import Infrastructure

# a document `onnxfarm.sweep/1`, or a line, a point or a change point in it; a line has change points under `turns`
JsonObject = Mapping[str, Any]

# the same colours as on the farm's pages: dashboard/static/dashboard/farm.css
TOKENS = """
--ground: light-dark(#f5f6f7, #121518);
--paper: light-dark(#ffffff, #191d21);
--line: light-dark(#dcdfe3, #2c3238);
--ink: light-dark(#16191d, #e8eaed);
--ink-soft: light-dark(#525a63, #a8b0b9);
--series-1: light-dark(#0072b2, #4aa8e0);
--series-2: light-dark(#d55e00, #f07d2e);
--series-3: light-dark(#009e73, #1fbf93);
--series-4: light-dark(#b9578d, #d990b8);
--series-5: light-dark(#b57b00, #e69f00);
--series-6: light-dark(#2a8fc9, #8accf2);
--series-7: light-dark(#8a8000, #f0e442);
--series-other: light-dark(#8a929b, #7b858f);
"""
# how many lines have a colour of their own; further ones are grey
MAX_COLOURS = 7
MARKS = ("circle", "square", "diamond", "cross", "triangle-up", "star")
STYLE = """
:root { color-scheme: light dark; TOKENS }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
body { background: var(--paper); color: var(--ink); }
h1 { font-size: 1.3rem; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
#chart { height: 28rem; } .turn { font-weight: 600; } .wide { overflow-x: auto; }
"""
# replaces names of colours by the values of the CSS tokens, again whenever the page turns light or dark
SCRIPT = """
const text = document.getElementById('figure').textContent;
const probe = document.body.appendChild(Object.assign(document.createElement('i'), {hidden: true}));
const colour = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
const resolved = (value) => Array.isArray(value) ? value.map(resolved)
  : value !== null && typeof value === 'object'
  ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolved(inner)]))
  : typeof value === 'string' && value.startsWith('@') ? colour(value.slice(1)) : value;
const draw = () => {
  const figure = resolved(JSON.parse(text));
  Plotly.react('chart', figure.data, figure.layout, {responsive: true, displaylogo: false});
};
draw();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
"""
SCHEMA = "onnxfarm.sweep/1"


def render_page(sweep: JsonObject) -> str:
    """Render a document `onnxfarm.sweep/1` as an HTML page that loads no other file.

    Raises ModuleNotFoundError without plotly.
    """
    # imported here, because plotly is in the server's extra and only the page needs it
    from plotly.offline import get_plotlyjs

    title = f"{sweep['model']} over {sweep['distribution']}"
    # no text in the JSON may end the script element
    figure = json.dumps(make_figure(sweep)).replace("<", "\\u003c")
    style = STYLE.replace("TOKENS", TOKENS)
    sentences = "".join(f"<p>{escape(line['sentence'])}</p>" for line in sweep["lines"])
    headline = escape(sweep["sentence"], quote=True)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head><body>'
        f"<h1>{escape(title)}</h1>{sentences}"
        f'<div id="chart" role="img" aria-label="{headline}"></div>'
        f"{''.join(map(_render_table, sweep['lines']))}"
        f'<script type="application/json" id="figure">{figure}</script>'
        f"<script>{get_plotlyjs()}</script><script>{SCRIPT}</script></body></html>\n"
    )


def make_figure(sweep: JsonObject) -> dict[str, object]:
    """Make a Plotly figure of the ratio to the reference by release. Each line is a trace with its change points.

    Colours are names such as `@ink`, which a script of the page replaces.
    """
    versions = list(dict.fromkeys(point["version"] for line in sweep["lines"] for point in line["points"]))
    annotations = [note for index, line in enumerate(sweep["lines"]) for note in _make_annotations(line, index)]
    xaxis = _make_axis(type="category", categoryorder="array", categoryarray=versions, tickangle=-60)
    yaxis = _make_axis(title={"text": f"p50, ratio to {sweep['reference']}"}, rangemode="tozero")
    return {
        "data": [_make_trace(line, index) for index, line in enumerate(sweep["lines"])],
        "layout": {
            "margin": {"l": 70, "r": 20, "t": 30, "b": 80},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": "@ink"},
            "xaxis": xaxis,
            "yaxis": yaxis,
            "legend": {"orientation": "h", "y": 1.12},
            "annotations": annotations,
        },
    }


def _make_axis(**settings: object) -> dict[str, object]:
    return {"gridcolor": "@line", "linecolor": "@line", "zerolinecolor": "@line", **settings}


def _make_trace(line: JsonObject, index: int) -> dict[str, object]:
    # a release that was not measured has no value, so the line has a gap there
    points = line["points"]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "connectgaps": False,
        "name": line["label"],
        "x": [point["version"] for point in points],
        "y": [point["ratio"] for point in points],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [(point["high"] or point["ratio"] or 0.0) - (point["ratio"] or 0.0) for point in points],
            "arrayminus": [(point["ratio"] or 0.0) - (point["low"] or point["ratio"] or 0.0) for point in points],
        },
        "line": {"color": _choose_colour(index)},
        "marker": {"symbol": MARKS[index % len(MARKS)], "size": 8},
        "hovertemplate": "%{x}: ×%{y:.3f}<extra>%{fullData.name}</extra>",
    }


def _choose_colour(index: int) -> str:
    return f"@series-{index + 1}" if index < MAX_COLOURS else "@series-other"


def _make_annotations(line: JsonObject, index: int) -> list[dict[str, object]]:
    ratios = {point["version"]: point["ratio"] for point in line["points"]}
    return [
        {
            "x": change_point["after"],
            "y": ratios.get(change_point["after"]) or 1.0,
            "text": f"{sign_of(change_point['verdict']).mark} {_format_change(change_point)}",
            "font": {"color": _choose_colour(index)},
            "arrowcolor": _choose_colour(index),
            "ay": -30,
        }
        for change_point in line["turns"]
    ]


def _format_change(change_point: JsonObject) -> str:
    return change(change_point["ratio"], change_point["low"], change_point["high"])


def _render_table(line: JsonObject) -> str:
    change_points = {change_point["after"]: change_point for change_point in line["turns"]}
    rows = "".join(_render_row(point, change_points.get(point["version"])) for point in line["points"])
    headers = "".join(f"<th>{header}</th>" for header in ("release", "ratio", "95 % interval", "p50", "change"))
    return f'<h2>{escape(line["label"])}</h2><div class="wide"><table><tr>{headers}</tr>{rows}</table></div>'


def _render_row(point: JsonObject, change_point: JsonObject | None) -> str:
    if point["ratio"] is None:
        return f'<tr><td>{escape(point["version"])}</td><td colspan="4">{escape(point["reason"])}</td></tr>'
    interval = f"{point['low']:.3f}–{point['high']:.3f}" if point["low"] and point["high"] else ""
    p50 = f"{point['p50_ms']:.4g} ms" if point["p50_ms"] else ""
    change_text = ""
    if change_point is not None:
        change_text = f"{_format_change(change_point)} than {change_point['before']}"
        change_text += f". {change_point['explanation']}" if change_point["explanation"] else ""
    figures = "".join(f"<td>{cell}</td>" for cell in (f"×{point['ratio']:.3f}", interval, p50))
    return f"<tr><td>{escape(point['version'])}</td>{figures}<td class='turn'>{escape(change_text)}</td></tr>"


def measure_sweep(
    bench: Bench, matrix: Matrix, distribution: str, *, versions: Sequence[str], reference: str
) -> dict[str, Any]:
    """Measure each release side by side with the reference, and return the document `onnxfarm.sweep/1`.

    `versions`: the releases in their order; releases that cannot be measured have a reason in place of a ratio. Raises
    Infrastructure if none could be measured, Usage and Stopped.
    """
    began = time.monotonic()
    search = sweeps.Sweep(
        matrix, distribution, versions, reference, is_one_block=lambda part: len(bench.plan(part).blocks) <= 1
    )
    lines = carry_out(search, Machine(bench, sweeps.compare_neighbours))
    if not any(point.p50_ms is not None for line in lines for point in line.points):
        reasons = [point.reason for line in lines for point in line.points if point.reason]
        raise Infrastructure(f"No release could be measured: {(reasons or ['nothing was planned.'])[-1]}")
    return {
        "schema": SCHEMA,
        "model": bench.name,
        "distribution": distribution,
        "reference": reference,
        "sentence": " ".join(line.sentence() for line in lines),
        "minutes": round((time.monotonic() - began) / 60.0, 2),
        "lines": [line.as_plain() for line in lines],
    }
