// Figures marked `data-zoom` show parts of themselves: by dragging, by the buttons beside them, and by keys while they
// have the focus: ← → along, + − closer and wider, 0 the whole.
const STEP = 0.25;
const MOST = 200;

const wholeOf = (chart) => {
  chart.dataset.whole ??= JSON.stringify(chart.layout.xaxis.range);
  return JSON.parse(chart.dataset.whole);
};

const moves = {
  earlier: ([low, high]) => [low - STEP * (high - low), high - STEP * (high - low)],
  later: ([low, high]) => [low + STEP * (high - low), high + STEP * (high - low)],
  closer: ([low, high]) => [low + STEP * (high - low), high - STEP * (high - low)],
  wider: ([low, high]) => [low - 0.5 * (high - low), high + 0.5 * (high - low)],
};

const within = ([low, high], [first, last]) => {
  const span = Math.min(Math.max(high - low, (last - first) / MOST), last - first);
  const start = Math.min(Math.max(low, first), last - span);
  return [start, start + span];
};

const move = (chart, what) => {
  if (!chart.layout) return;
  const whole = wholeOf(chart);
  const range = what === "whole" ? whole : within(moves[what](chart.layout.xaxis.range), whole);
  window.Plotly.relayout(chart, { "xaxis.range": range });
};

const KEYS = { ArrowLeft: "earlier", ArrowRight: "later", "+": "closer", "=": "closer", "-": "wider", 0: "whole" };

document.addEventListener("keydown", (event) => {
  const chart = event.target.closest?.("[data-zoom]");
  const what = KEYS[event.key];
  if (!chart || !what || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  move(chart, what);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-zoom-by]");
  const chart = button && document.getElementById(button.dataset.of);
  if (chart) move(chart, button.dataset.zoomBy);
});
