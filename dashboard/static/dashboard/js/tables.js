// Tables marked `data-sortable` sort by a click on a head; the choice is kept in the address.
// Cells may carry `data-value`, the number behind what is shown; cells without a value go last either way.
const valueOf = (row, column) => {
  const cell = row.cells[column];
  const raw = cell?.dataset.value ?? cell?.textContent.trim() ?? "";
  const number = Number(raw);
  return raw === "" ? null : Number.isNaN(number) ? raw : number;
};

const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });

const sort = (table, column, direction) => {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row, column) }));
  rows.sort((a, b) => (a.value === null) - (b.value === null) || compare(a.value, b.value) * direction);
  body.append(...rows.map(({ row }) => row));
  for (const head of table.tHead.rows[0].cells) {
    head.ariaSort = head.cellIndex !== column ? null : direction === 1 ? "ascending" : "descending";
  }
};

const remember = (table, column, direction) => {
  const address = new URL(location.href);
  address.searchParams.set(`sort-${table.id}`, `${direction === 1 ? "" : "-"}${column}`);
  history.replaceState(history.state, "", address);
};

const prepare = (table) => {
  table.dataset.ready = "yes";
  for (const head of table.tHead.rows[0].cells) {
    if (!head.textContent.trim()) continue;
    const button = Object.assign(document.createElement("button"), { type: "button" });
    // a link within a button could not be reached by keyboard: it stays beside a button of its own
    if (head.querySelector("a[href]")) {
      button.ariaLabel = `Sort by ${head.textContent.trim()}`;
      button.textContent = " ⇅";
    } else button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.classList.contains("n") ? -1 : 1;
      const direction = head.ariaSort === null ? first : head.ariaSort === "ascending" ? -1 : 1;
      sort(table, head.cellIndex, direction);
      remember(table, head.cellIndex, direction);
    });
  }
  const kept = new URL(location.href).searchParams.get(`sort-${table.id}`);
  if (/^-?\d+$/.test(kept ?? "")) sort(table, Math.abs(Number(kept)), kept.startsWith("-") ? -1 : 1);
};

// In a narrow window each row is a card whose figures stand under the names of their columns: `data-label`, which
// tables written by hand get here.
const label = (table) => {
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
  for (const cell of table.querySelectorAll("tbody td")) cell.dataset.label ??= heads[cell.cellIndex] ?? "";
};

const prepareAll = () => {
  document.querySelectorAll("table[data-sortable]:not([data-ready])").forEach(prepare);
  document.querySelectorAll("table:not(.heat):has(> thead)").forEach(label);
};
prepareAll();
document.addEventListener("htmx:load", prepareAll);

// Copied cells paste into a spreadsheet as numbers: without units, thin spaces and the sign of typography.
const FIGURE = /^[+-]?\d[\d.]*(e[+-]?\d+)?( ?%)?/;
const plain = (text) => text.trim().replaceAll("\u202f", "").replaceAll("\u2212", "-");
const figure = (cell) => {
  const text = plain(cell.innerText), [found] = text.match(FIGURE) ?? [];
  if (!cell.classList.contains("n") || found === text) return text;
  const { value } = cell.dataset;
  return value && !Number.isNaN(Number(value)) ? value : found ?? text;
};

document.addEventListener("copy", (event) => {
  const selection = getSelection(), table = selection.anchorNode?.parentElement?.closest("table");
  if (!table || selection.isCollapsed) return;
  const chosen = [...table.rows].filter((row) => !row.hidden && selection.containsNode(row, true))
    .map((row) => [...row.cells].filter((cell) => selection.containsNode(cell, true)));
  const rows = chosen.flat().length > 1 ? chosen.map((cells) => cells.map(figure)) : [[plain(selection.toString())]];
  event.clipboardData.setData("text/plain", rows.map((row) => row.join("\t")).join("\n"));
  event.preventDefault();
});

// A field marked `data-filter` hides the rows of the table it names that do not hold all of its words.
document.addEventListener("input", (event) => {
  const table = document.getElementById(event.target.dataset?.filter ?? "");
  if (!table) return;
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});
