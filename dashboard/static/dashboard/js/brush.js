// Cells chosen by a frame drawn in a chart: compared with one another, or shown alone in the table of cells below.
// The same is done without a pointer by the table's filter and the page that compares.
const MAX_COMPARED = 4;
const CELL = /\/runs\/(\d+)\/cells\/([^/]+)\/$/;

const table = () => document.getElementById("cells-table");
const element = (name, properties) => Object.assign(document.createElement(name), properties);
const button = (textContent, onclick) => element("button", { type: "button", className: "copy", textContent, onclick });
const link = (textContent, href) => element("a", { className: "button copy", textContent, href });

const showOnly = (addresses) => {
  for (const row of table()?.tBodies[0].rows ?? []) {
    row.hidden = addresses !== null && !addresses.includes(row.querySelector("a")?.getAttribute("href"));
  }
};

const comparison = (addresses) => {
  const keys = addresses.map((address) => CELL.exec(address)).filter(Boolean);
  const query = new URLSearchParams(keys.map(([, run, cell]) => ["cells", `${run}:${decodeURIComponent(cell)}`]));
  return link("compare them", `/compare/?${query}`);
};

document.addEventListener("brushed", ({ target: chart, detail: addresses }) => {
  const count = addresses.length;
  const bar = chart.closest("figure").querySelector(".brushed") ?? element("p", { className: "brushed row", role: "status" });
  const clear = () => {
    bar.remove();
    showOnly(null);
    window.Plotly.restyle(chart, { selectedpoints: [null] });
    window.Plotly.relayout(chart, { selections: [] });
  };
  if (count === 0) return clear();
  chart.after(bar);
  bar.replaceChildren(element("span", { textContent: `Selected: ${count === 1 ? "1 cell" : `${count} cells`}` }));
  if (count === 1) bar.append(link("open it", addresses[0]));
  else if (count <= MAX_COMPARED) bar.append(comparison(addresses));
  if (table()) {
    bar.append(button("only these in the table", () => {
      showOnly(addresses);
      table().closest("section").scrollIntoView({ block: "start" });
    }));
  }
  bar.append(button("clear", clear));
});
