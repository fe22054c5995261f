// Draws the figures of a page. A figure's JSON names colours as tokens ("@series-1", "@ink/40" for 40 % of it) of the
// stylesheet; they are looked up when drawing, and again when the theme changes, so that light and dark follow at once.
const probe = document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
const FONTS = { "@words": "--words", "@figures": "--figures" };

const colour = (token) => {
  const [name, percent] = token.slice(1).split("/");
  probe.style.color = `var(--${name})`;
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
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
const figureOf = (chart) => JSON.parse(document.getElementById(chart.dataset.figure).textContent);

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

const draw = async (chart) => {
  const figure = resolved(figureOf(chart));
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

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-picture]");
  const chart = button && document.getElementById(button.dataset.of);
  if (!chart) return;
  const { width, height } = chart.getBoundingClientRect();
  window.Plotly.downloadImage(chart, {
    format: button.dataset.picture, width, height, filename: chart.dataset.name, scale: 2,
  });
});
