// Every figure of a page was drawn by the server. Who points at one, taps it or presses one of its buttons gets Plotly in
// its place, of the same size, from the same figure. Its JSON names colours as tokens ("@series-1", "@ink/40" for 40 % of
// it) of the stylesheet, which are looked up when drawing, and again when the theme changes.
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

const library = document.querySelector("script[data-plotly]").dataset.plotly;

// In a narrow window a row's name stands above its bar or point, so that the drawing has the whole width.
const isNarrow = (chart) => chart.clientWidth < 560;
const fitted = ({ data, layout, names, rows, up, gap }, chart) => {
  const narrow = isNarrow(chart), labels = names[Number(narrow)];
  const drawn = data.map((trace, at) => ({ ...trace, ...labels[at] }));
  const own = { ...layout, height: chart.clientHeight };
  if (!narrow || rows.length === 0) return { data: drawn, layout: own };
  const above = rows.map((text, y) => ({
    text, y, yshift: up, xref: "paper", x: 0, xanchor: "left", align: "left", showarrow: false, font: layout.yaxis.tickfont,
  }));
  const yaxis = { ...layout.yaxis, showticklabels: false, showgrid: false };
  const margin = { ...layout.margin, t: 16 };
  return { data: drawn, layout: { ...own, margin, yaxis, annotations: [...layout.annotations ?? [], ...above], bargap: gap } };
};

// Series that were chosen in the key above the chart: the others fade.
const keyOf = (chart) => chart.closest("figure").querySelector(".series");
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
  const figure = emphasised(chart, fitted(resolved(known), chart));
  chart.dataset.narrow = isNarrow(chart);
  figure.layout.dragmode ??= canBrush && leads(figure) ? "select" : false;
  await window.Plotly.react(chart, figure.data, figure.layout, CONFIG);
  chart.classList.add("ready");
};

const begin = async (chart) => {
  try {
    await import(library);
  } catch {
    chart.after(Object.assign(document.createElement("p"), {
      className: "note", role: "status", textContent: "The chart to explore did not load. Reload the page to try again.",
    }));
    return;
  }
  const { title, desc } = Object.fromEntries([...chart.querySelectorAll("title, desc")].map((said) => [said.localName, said.textContent]));
  if (!chart.role) Object.assign(chart, { role: "img", ariaLabel: `${title}. ${desc}` });
  chart.replaceChildren();
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
const begun = new WeakMap();
const start = (chart) => {
  if (!begun.has(chart)) begun.set(chart, begin(chart));
  return begun.get(chart);
};

document.addEventListener("pointerover", ({ target, pointerType }) => {
  const chart = target.closest?.(".chart");
  if (chart && pointerType === "mouse") start(chart);
});
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

document.addEventListener("keydown", async (event) => {
  const chart = event.target.closest?.("[data-zoom]"), move = KEYS[event.key];
  if (!chart || !move || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  await start(chart);
  zoom(chart, move);
});

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-explore], [data-series], [data-picture], [data-zoom-by]");
  const chart = button ? button.closest("figure").querySelector(".chart") : target.closest?.(".chart");
  if (!chart) return;
  await start(chart);
  const { series, picture, zoomBy } = button?.dataset ?? {};
  if (zoomBy) zoom(chart, zoomBy);
  if (picture) savePicture(chart, picture);
  if (!series) return;
  button.ariaPressed = String(button.ariaPressed !== "true");
  draw(chart);
});
