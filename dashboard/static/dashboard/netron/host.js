// The host that Netron's own viewer runs in, in place of the wheel's browser.js: it asks no server for anything, keeps
// nothing, and sends nothing. Everything comes from the page around this sandboxed frame, and goes there, as messages:
//   in:  hello · open {name, model, operators, notes, node} · theme {dark} · do {what} · show {node}
//   out: ready · drawn {nodes} · picked {node} · file {name, blob} · problem {text}
import * as base from "./base.js";
import * as grapher from "./grapher.js";
import * as view from "./view.js";

const root = document.documentElement;

// formats other than ONNX are never asked for; Netron tries some of them by the name's ending
const MODULES = new Set(["./onnx", "./onnx-proto", "./onnx-schema"]);
const STRANGE = { ModelFactory: class { async match() { return null; } } };
// fills of nodes by day and by night; where two cells are compared: what takes longer than in the base, and what is shorter
const DAY = { longer: "#f2b36f", shorter: "#8fc1eb", ...["#ffffff", "#eef1f6", "#dae1ee", "#bfcce4", "#a0b4d8", "#7f9aca"] };
const NIGHT = ["#191d21", "#1e2530", "#26324a", "#2f4265", "#3a5485", "#4768a6"];

const tell = (kind, more = {}) => window.parent.postMessage({ kind, ...more }, "*");

class Host {
  window = window;
  document = document;
  type = "onnxfarm";
  version = root.dataset.release;
  assets = new Map();
  view() { return Promise.resolve(); }
  start() { return Promise.resolve(); }
  // a frame without an origin may start no worker: the layout runs in the frame, which has a process of its own
  environment(name) { return name === "serial" ? true : undefined; }
  async require(id) { return MODULES.has(id) ? import(`${id}.js`) : STRANGE; }
  async asset(file) {
    if (!this.assets.has(file)) throw new Error(`${file} is not served.`);
    return this.assets.get(file);
  }
  async fetch(file) { throw new Error(`${file} is not part of the graph: weights stay on the farm.`); }
  async export(name, blob) { tell("file", { name, blob }); }
  async execute() {}
  async message(text) { if (text) tell("problem", { text }); }
  openURL() {}
  exception(error) { tell("problem", { text: error.message }); }
  event() {}
  get() { return null; }
  set() {}
  delete() {}
  update() {}
}

const host = new Host();
let notes = {};
const labels = new WeakMap();
const nodes = new Map();

// Names as traces give them: a node's own, or its type with its number among the nodes of its graph that are no Constant.
const labelsOf = (graph) => {
  if (!labels.has(graph)) {
    const running = graph.nodes.filter((node) => node.type?.name !== "Constant");
    const found = running.map((node, index) => node.name || `${node.type?.name}_${index}`);
    const times = new Map();
    for (const label of found) times.set(label, (times.get(label) ?? 0) + 1);
    labels.set(graph, new Map(running.map((node, index) => {
      const label = times.get(found[index]) > 1 ? `${found[index]}#${index}` : found[index];
      nodes.set(label, node);
      return [node, label];
    })));
  }
  return labels.get(graph);
};

const build = grapher.Node.prototype.build;
grapher.Node.prototype.build = function (...given) {
  const graph = this.class === "graph-node" ? this.context?.target : null;
  const note = graph?.nodes && this.value && notes[labelsOf(graph).get(this.value) ?? this.value.name];
  if (note) {
    const entry = this.header().add(null, ["farm-time", `farm-${note.step}`]);
    entry.content = note.text;
    entry.tooltip = note.more;
  }
  return build.apply(this, given);
};

// shapes stand in brackets of Chinese type, for which few machines have a font: ‹4×4› is in every one
const plain = (text) => (typeof text === "string" ? text.replaceAll("\u3008", "\u2039").replaceAll("\u3009", "\u203a") : text);
const spell = grapher.Argument.prototype.build;
grapher.Argument.prototype.build = function (...given) {
  this.name = plain(this.name);
  this.content = plain(this.content);
  return spell.apply(this, given);
};

// inside Netron's own sheet, so that exported pictures carry the colours too
const { sheet } = document.querySelector('link[href="grapher.css"]');
const fill = (where, fills, ink) => [
  `${where} .farm-time text { fill: ${ink}; }`,
  ...Object.entries(fills).map(([step, colour]) => `${where} .farm-${step} path { fill: ${colour}; }`),
];
for (const rule of [...fill("", DAY, "#16191d"), ...fill(':root[data-theme="dark"]', NIGHT, "#e8eaed")]) {
  sheet.insertRule(rule, sheet.cssRules.length);
}

// Netron knows the system's theme only; the farm's may be chosen by hand
const themed = [...document.styleSheets]
  .flatMap((sheet) => [...sheet.cssRules])
  .filter((rule) => rule instanceof CSSMediaRule && rule.conditionText.includes("prefers-color-scheme"));
const paint = (isDark) => {
  root.dataset.theme = isDark ? "dark" : "light";
  for (const rule of themed) rule.media.mediaText = isDark ? "all" : "not all";
};

const viewer = new view.View(host);
const showProperties = viewer.showNodeProperties.bind(viewer);
viewer.showNodeProperties = (node, source) => {
  const graph = viewer.activeTarget;
  tell("picked", { node: (graph?.nodes && labelsOf(graph).get(node)) ?? node.name });
  return showProperties(node, source);
};

const show = ({ node: label }) => {
  const node = nodes.get(label);
  if (node && viewer.target) viewer.target.scrollTo(viewer.target.select([node]));
};

const open = async ({ name, model, operators, notes: given, node }) => {
  notes = given;
  host.assets.set("onnx-metadata.json", operators);
  const context = {
    // Netron takes the format from the ending, whatever the file is called
    identifier: name.endsWith(".onnx") ? name : `${name}.onnx`,
    name,
    stream: new base.BinaryStream(new Uint8Array(model)),
    asset: (file) => host.asset(file),
    fetch: (file) => host.fetch(file),
    require: (id) => host.require(id),
    error: (error) => host.exception(error),
  };
  const opened = await viewer.open(context);
  if (!opened) return tell("problem", { text: "Netron finds no graph in it." });
  opened.attachment.metrics.open(Object.entries(notes).map(([target, note]) => (
    { kind: "node", target, name: "measured", value: `${note.text}; ${note.more}`, type: "string" }
  )));
  document.title = name;
  viewer.show(null);
  show({ node });
  tell("drawn", { nodes: viewer.activeTarget?.nodes?.length ?? 0 });
};

const ORDERS = {
  hello: () => tell("ready"),
  theme: ({ dark }) => paint(dark),
  open,
  show,
  do({ what }) {
    if (what === "find") return viewer.find();
    const isPicture = what === "png" || what === "svg";
    return isPicture ? viewer.export(`${document.title.replace(/\.onnx$/, "")}.${what}`) : viewer.toggle(what);
  },
};

window.addEventListener("message", async ({ source, data }) => {
  if (source !== window.parent) return;
  try {
    await ORDERS[data.kind]?.(data);
  } catch (error) {
    tell("problem", { text: error.message });
  }
});
// Netron takes the focus with every drawing, and browsers scroll a page to what has it
document.getElementById("target").focus = () => {};
await viewer.start();
tell("ready");
