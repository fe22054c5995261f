// The page around Netron's frame. The frame is sandboxed: it has no cookies and may ask no server, so this page fetches
// the graph and hands it over; rows of the table and nodes of the picture lead to each other.
const frame = document.getElementById("netron");
const says = document.getElementById("graph-says");
const tools = document.querySelector("[data-graph-tools]");
const rows = new Map();

const tell = (kind, more = {}, given = []) => frame.contentWindow.postMessage({ kind, ...more }, "*", given);
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
const button = (textContent, onclick, more) =>
  Object.assign(document.createElement("button"), { type: "button", textContent, onclick, ...more });
const say = (words) => {
  says.textContent = words;
  says.hidden = words === "";
};

// 202: a worker of the farm is still making it
const TURN_MS = 1500, TURNS = 120;
const fetched = async (address) => {
  const ask = () => fetch(address, { headers: { "HX-Request": "true" } });
  let answer = await ask();
  for (let turn = 1; answer.status === 202; turn += 1) {
    if (turn === TURNS) throw new Error("it is still being prepared; open this page again later.");
    say("The farm is preparing the graph …");
    await new Promise((resolve) => setTimeout(resolve, TURN_MS));
    answer = await ask();
  }
  if (answer.ok) return answer;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  throw new Error((page.querySelector("main h1 ~ p") ?? page.querySelector("main h1"))?.textContent.trim() || `the farm answered ${answer.status}`);
};

// laying out a larger graph may take minutes, so it waits for a word
const LARGE_BYTES = 1.5e6;
const wanted = (bytes) => new Promise((resolve) => {
  if (bytes <= LARGE_BYTES) return resolve();
  say(`This is a large graph (${(bytes / 1e6).toFixed(1)} MB without its weights); drawing it may take minutes. `);
  says.append(button("Draw it", resolve));
});

const open = async () => {
  say("Drawing the graph …");
  try {
    const [model, operators] = await Promise.all([fetched(frame.dataset.model), fetched(frame.dataset.operators)]);
    const notes = JSON.parse(document.getElementById("graph-notes")?.textContent ?? "{}");
    const bytes = await model.arrayBuffer();
    await wanted(bytes.byteLength);
    say("Drawing the graph …");
    tell("theme", { dark: isDark() });
    // the table's first row is the node with most time, or with the largest change
    const [node] = rows.keys();
    tell("open", { name: frame.dataset.name, model: bytes, operators: await operators.text(), notes, node }, [bytes]);
  } catch (error) {
    say(`The graph cannot be drawn: ${error.message}`);
  }
};

const mark = (node) => {
  for (const [name, row] of rows) row.ariaCurrent = name === node ? "true" : null;
  rows.get(node)?.scrollIntoView({ block: "nearest" });
};

let opening;
const heard = {
  ready: () => { opening ??= open(); },
  drawn: () => {
    say("");
    tools.hidden = false;
    frame.dataset.drawn = "yes";
  },
  picked: ({ node }) => mark(node),
  file: ({ name, blob }) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
    link.click();
    URL.revokeObjectURL(link.href);
  },
  problem: ({ text }) => say(`Netron says: ${text}`),
};

// names in the table become buttons that show the node in the picture
for (const row of document.querySelectorAll("#operators tbody tr")) {
  const name = row.cells[0].textContent.trim();
  const show = () => {
    mark(name);
    tell("show", { node: name });
  };
  row.cells[0].replaceChildren(button(name, show, { className: "link", title: "show it in the graph" }));
  rows.set(name, row);
}

window.addEventListener("message", ({ source, data }) => {
  if (source === frame.contentWindow) heard[data.kind]?.(data);
});
document.addEventListener("themechange", () => tell("theme", { dark: isDark() }));
tools.addEventListener("click", ({ target }) => {
  const what = target.dataset.graph;
  if (!what) return;
  if (target.ariaPressed) target.ariaPressed = String(target.ariaPressed !== "true");
  tell("do", { what });
});
// whichever of the two is ready first
tell("hello");
