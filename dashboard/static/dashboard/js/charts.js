// Draws the figures of a page. A figure's JSON names colours as tokens ("@series-1", "@ink/40" for 40 % of it) of the
// stylesheet; they are looked up when drawing, and again when the theme changes, so that light and dark follow at once.
const probe = document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
const FONTS = { "@words": "--words", "@figures": "--figures" };

const colour = (token) => {
  const [name, percent] = token.slice(1).split("/");
  probe.style.color = `var(--${name})`;
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g);
  return `rgba(${r}, ${g}, ${b}, ${percent ? Number(percent) / 100 : 1})`;
};

const resolved = (value) => {
  if (Array.isArray(value)) return value.map(resolved);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolved(inner)]));
  }
  if (typeof value !== "string" || !value.startsWith("@")) return value;
  if (value in FONTS) return getComputedStyle(document.documentElement).getPropertyValue(FONTS[value]).trim();
  return colour(value);
};

const CONFIG = { displayModeBar: false, responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "" };
const addressOf = (custom) => [custom].flat().find((value) => typeof value === "string" && value.startsWith("/"));

// Points that lead to pages can be chosen by a frame drawn around them, with a pointer fine enough to draw one.
const leads = (figure) => figure.data.some(({ customdata }) => addressOf(customdata?.[0]));
const canBrush = matchMedia("(pointer: fine)").matches;

// Plotly's megabytes come when there is something to draw, and after the page itself was painted.
const library = document.querySelector("script[data-plotly]").dataset.plotly;
let coming;
const plotly = () => coming ??= new Promise((done, failed) => requestAnimationFrame(() => {
  const script = Object.assign(document.createElement("script"), { src: library });
  script.addEventListener("load", done);
  script.addEventListener("error", () => { coming = undefined; failed(); });
  document.head.append(script);
}));

// In a narrow window a row's name stands above its bar or point, so that the drawing has the whole width.
const isNarrow = (chart) => chart.clientWidth < 560;
const fitted = ({ data, layout }, chart) => {
  if (!isNarrow(chart) || layout.yaxis?.type !== "category") return { data, layout };
  const rows = [...new Set(data.flatMap(({ y }) => y))];
  const row = layout.barmode === "group" ? 60 : 44;
  const names = rows.map((text) => ({
    text, y: text, yshift: row / 2 - 6, xref: "paper", x: 0, xanchor: "left", showarrow: false, font: layout.yaxis.tickfont,
  }));
  const yaxis = { ...layout.yaxis, showticklabels: false, showgrid: false };
  const annotations = [...layout.annotations ?? [], ...names];
  return { data, layout: { ...layout, yaxis, annotations, bargap: 0.6, height: rows.length * row + 64 } };
};

// Names of points in a chart, so that none lies over another: each stands above its point, else below or beside it, and
// where no place is free it is left out, which the table and a pointer on the point make up for.
const HIGH = 16, PER_LETTER = 6.6, AWAY = 6;
const WAYS = [["top center", 0, -1], ["bottom center", 0, 1], ["middle right", 1, 0], ["middle left", -1, 0]];

const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

// where a drawing of this width puts a value, nearly: the axis' own title and ticks take the rest
const scale = ({ range }, from, to) => (value) => from + (to - from) * (value - range[0]) / (range[1] - range[0]);

const boxAt = (x, y, text, size, [, right, down]) => {
  const wide = PER_LETTER * text.length, away = size / 2 + AWAY;
  const middle = { x: x + right * (away + wide / 2), y: y + down * (away + HIGH / 2) };
  return { left: middle.x - wide / 2, right: middle.x + wide / 2, top: middle.y - HIGH / 2, bottom: middle.y + HIGH / 2 };
};

const isLinear = (axis) => typeof axis?.range?.[0] === "number" && ["linear", undefined].includes(axis.type);

// `width`: of the drawing. A figure without names, or without plain axes, stays as it is.
const placed = ({ data, layout }, width) => {
  const named = data.filter(({ mode }) => mode?.includes("text"));
  if (named.length === 0 || !isLinear(layout.xaxis) || !isLinear(layout.yaxis)) return { data, layout };
  const inner = { left: 72, right: width - 16, top: 8, bottom: (layout.height ?? 400) - 56 };
  const across = scale(layout.xaxis, inner.left, inner.right), up = scale(layout.yaxis, inner.bottom, inner.top);
  const sizeOf = ({ marker }, at) => (Array.isArray(marker?.size) ? marker.size[at] : marker?.size ?? 10);
  const taken = named.flatMap((trace) => trace.x.map((x, at) => {
    const [left, top, half] = [across(x), up(trace.y[at]), sizeOf(trace, at) / 2];
    return { left: left - half, right: left + half, top: top - half, bottom: top + half };
  }));
  // those drawn last lie above the others and are named first
  const names = new Map(named.toReversed().map((trace) => {
    const each = trace.x.map((x, at) => {
      const text = String(trace.text[at]), own = [across(x), up(trace.y[at]), text, sizeOf(trace, at)];
      for (const way of WAYS) {
        const box = boxAt(...own, way);
        if (box.left < 0 || box.right > width || taken.some((other) => overlap(box, other))) continue;
        taken.push(box);
        return [text, way[0]];
      }
      return ["", WAYS[0][0]];
    });
    return [trace, each];
  }));
  const drawn = data.map((trace) => (names.has(trace)
    ? { ...trace, text: names.get(trace).map(([text]) => text), textposition: names.get(trace).map(([, way]) => way) }
    : trace));
  return { data: drawn, layout };
};

// Series that were chosen in the key above the chart: the others fade.
const keyOf = (chart) => document.querySelector(`.series[data-of="${chart.id}"]`);
const FADED = 0.15;
const emphasised = (chart, figure) => {
  const pressed = keyOf(chart)?.querySelectorAll('[aria-pressed="true"]') ?? [];
  const chosen = new Set([...pressed].map(({ dataset }) => dataset.series));
  if (chosen.size === 0) return figure;
  const accent = colour("@accent"), grey = colour("@series-other");
  const coloured = (part) => (part?.color === grey ? { ...part, color: accent } : part);
  const data = figure.data.map((trace) => (chosen.has(trace.name)
    ? { ...trace, opacity: 1, line: coloured(trace.line), marker: coloured(trace.marker) }
    : { ...trace, opacity: FADED }));
  return { ...figure, data };
};

const draw = async (chart) => {
  const known = JSON.parse(document.getElementById(chart.dataset.figure).textContent);
  const figure = emphasised(chart, placed(fitted(resolved(known), chart), chart.clientWidth));
  chart.dataset.narrow = isNarrow(chart);
  figure.layout.dragmode ??= canBrush && leads(figure) ? "select" : false;
  await window.Plotly.react(chart, figure.data, figure.layout, CONFIG);
  chart.classList.add("ready");
};

const start = async (chart) => {
  if (chart.dataset.started) return;
  chart.dataset.started = "yes";
  try {
    await plotly();
  } catch {
    delete chart.dataset.started;
    chart.textContent = "The chart did not load; its numbers are in the table. Reload the page to try again.";
    return;
  }
  chart.textContent = "";
  await draw(chart);
  chart.on("plotly_click", ({ points }) => {
    const address = addressOf(points[0]?.customdata);
    if (address) location.href = address;
  });
  chart.on("plotly_selected", (chosen) => {
    const detail = [...new Set((chosen?.points ?? []).map(({ customdata }) => addressOf(customdata)).filter(Boolean))];
    chart.dispatchEvent(new CustomEvent("brushed", { bubbles: true, detail }));
  });
};

const startAll = () => document.querySelectorAll(".chart[data-figure]").forEach(start);
startAll();
document.addEventListener("htmx:load", startAll);
document.addEventListener("themechange", () => document.querySelectorAll(".chart.ready").forEach(draw));
window.addEventListener("resize", () => {
  for (const chart of document.querySelectorAll(".chart.ready")) {
    if (chart.dataset.narrow !== String(isNarrow(chart))) draw(chart);
  }
});

// a picture leaves the page: it takes its title, its key and its ground along
const savePicture = (chart, format) => {
  const { width, height } = chart.getBoundingClientRect();
  const title = chart.closest("figure").querySelector("h3").textContent;
  const above = 56 + 20 * Math.ceil((keyOf(chart)?.querySelectorAll("[data-series]").length ?? 0) / 4);
  const layout = {
    ...chart.layout,
    title: { text: title, x: 0.01, xanchor: "left", y: 0.99, yanchor: "top", font: { size: 14 }, automargin: true },
    margin: { ...chart.layout.margin, t: above },
    height: height + above,
    showlegend: keyOf(chart) !== null,
    paper_bgcolor: colour("@paper"),
  };
  window.Plotly.downloadImage({ data: chart.data, layout }, {
    format, width, height: height + above, filename: chart.dataset.name, scale: 2,
  });
};

// A figure marked `data-zoom` shows parts of itself: by dragging, by the buttons beside it, and by keys while it has the
// focus: ← → along, + − closer and wider, 0 the whole. By how much of what is shown the two ends move:
const MOVES = { earlier: [-0.25, -0.25], later: [0.25, 0.25], closer: [0.25, -0.25], wider: [-0.5, 0.5] };
const MAX_ZOOM = 200;
const KEYS = { ArrowLeft: "earlier", ArrowRight: "later", "+": "closer", "=": "closer", "-": "wider", 0: "whole" };

const zoom = (chart, move) => {
  chart.dataset.whole ??= JSON.stringify(chart.layout.xaxis.range);
  const [first, last] = JSON.parse(chart.dataset.whole), [low, high] = chart.layout.xaxis.range, shown = high - low;
  const [left, right] = MOVES[move] ?? [-Infinity, Infinity];
  const span = Math.min(Math.max(shown * (1 + right - left), (last - first) / MAX_ZOOM), last - first);
  const start = Math.min(Math.max(low + left * shown, first), last - span);
  window.Plotly.relayout(chart, { "xaxis.range": [start, start + span] });
};

document.addEventListener("keydown", (event) => {
  const chart = event.target.closest?.("[data-zoom]"), move = KEYS[event.key];
  if (!chart?.layout || !move || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  zoom(chart, move);
});

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("[data-series], [data-picture], [data-zoom-by]");
  const chart = document.getElementById(button?.closest("[data-of]").dataset.of);
  if (!chart?.classList.contains("ready")) return;
  const { picture, zoomBy } = button.dataset;
  if (zoomBy) return zoom(chart, zoomBy);
  if (picture) return savePicture(chart, picture);
  button.ariaPressed = String(button.ariaPressed !== "true");
  draw(chart);
});
