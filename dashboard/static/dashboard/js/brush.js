// Cells chosen by a frame drawn in a chart: compared with one another, or shown alone in the table of cells below.
// The same is done without a pointer by the table's filter and the page that compares.
const MOST_COMPARED = 4;
const CELL = /\/runs\/(\d+)\/cells\/([^/]+)\/$/;

const table = () => document.getElementById("cells-table");
const rowsOf = (addresses) => [...(table()?.tBodies[0].rows ?? [])].map((row) => (
  { row, isChosen: addresses.includes(row.querySelector("a")?.getAttribute("href")) }
));

const button = (words, act) => {
  const made = Object.assign(document.createElement("button"), { type: "button", className: "copy" });
  made.textContent = words;
  made.addEventListener("click", act);
  return made;
};

const compared = (addresses) => {
  const keys = addresses.map((address) => CELL.exec(address)).filter(Boolean);
  const query = new URLSearchParams(keys.map(([, run, cell]) => ["cells", `${run}:${decodeURIComponent(cell)}`]));
  const link = Object.assign(document.createElement("a"), { href: `/compare/?${query}`, className: "button copy" });
  link.textContent = "compare them";
  return link;
};

document.addEventListener("brushed", ({ target: chart, detail: addresses }) => {
  const figure = chart.closest("figure");
  const said = figure.querySelector(".brushed") ?? figure.insertBefore(document.createElement("p"), chart.nextSibling);
  said.className = "brushed row";
  said.setAttribute("role", "status");
  const clear = () => {
    said.remove();
    for (const { row } of rowsOf([])) row.hidden = false;
    window.Plotly.restyle(chart, { selectedpoints: [null] });
    window.Plotly.relayout(chart, { selections: [] });
  };
  if (addresses.length === 0) return clear();
  const words = document.createElement("span");
  words.textContent = addresses.length === 1 ? "1 cell chosen" : `${addresses.length} cells chosen`;
  said.replaceChildren(words);
  if (addresses.length === 1) {
    const link = Object.assign(document.createElement("a"), { href: addresses[0], className: "button copy" });
    link.textContent = "open it";
    said.append(link);
  } else if (addresses.length <= MOST_COMPARED) said.append(compared(addresses));
  if (table()) {
    said.append(button("only these in the table", () => {
      for (const { row, isChosen } of rowsOf(addresses)) row.hidden = !isChosen;
      table().closest("section").scrollIntoView({ block: "start" });
    }));
  }
  said.append(button("clear", clear));
});
