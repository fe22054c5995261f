// The page of a run that fills in. It asks for what its address shows, and says of which sections it has which state
// already; what a reader typed, chose, opened, scrolled to or holds the focus of stays when a section is put in again,
// and when the whole page is, once the run has ended.
const held = () => [...document.querySelectorAll("section[data-at]")].map(({ id, dataset }) => `${id}.${dataset.at}`);

document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (detail.elt.id !== "live") return;
  // other charts are chosen without loading the page: only the address knows of them
  const query = new URLSearchParams(location.search);
  query.set("part", "live");
  query.set("have", held().join(","));
  detail.path = `${location.pathname}?${query}`;
});

const FOCUS = "a[href], button, input, select, summary, [tabindex]";
const places = (section, what) => [...section.querySelectorAll(what)];
const markOf = (element) => ["id", "href", "name", "data-filter", "aria-label"].map((name) => element.getAttribute(name))
  .find(Boolean) ?? element.textContent.trim();

// what has the focus now: the same thing, or the row at its place; a button that means something else never gets it
const focusOf = (section) => {
  const all = places(section, FOCUS), at = all.indexOf(document.activeElement);
  return at < 0 ? null : { at, mark: markOf(all[at]), isRow: all[at].closest("tbody") !== null };
};
const focus = (section, { at, mark, isRow }) => {
  const all = places(section, FOCUS), same = all.filter((each) => markOf(each) === mark);
  (same.includes(all[at]) ? all[at] : same[0] ?? (isRow ? all[at] : null))?.focus({ preventScroll: true });
};

const remember = (section) => ({
  section,
  typed: places(section, "[data-filter]").map(({ value }) => value),
  chosen: places(section, "input.box:checked").map(({ value }) => value),
  opened: places(section, "details").map(({ open }) => open),
  scrolled: places(section, ".scroll").map(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop]),
  focused: focusOf(section),
});

const restore = (section, { typed, chosen, opened, scrolled, focused }) => {
  places(section, "details").forEach((each, at) => { each.open = opened[at] ?? each.open; });
  places(section, "input.box").forEach((box) => { box.checked = chosen.includes(box.value); });
  places(section, "[data-filter]").forEach((field, at) => {
    if (!typed[at]) return;
    field.value = typed[at];
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  places(section, ".scroll").forEach((each, at) => {
    [each.scrollLeft, each.scrollTop] = scrolled[at] ?? [0, 0];
  });
  if (focused) focus(section, focused);
};

const before = new Map();
const keep = ({ detail: { target } }) => before.set(target.id, remember(target));
document.addEventListener("htmx:oobBeforeSwap", keep);
document.addEventListener("htmx:beforeSwap", (event) => { if (event.detail.target.id === "live") keep(event); });
const putBack = () => {
  for (const [id, known] of before) {
    const section = document.getElementById(id);
    // an answer that changed nothing was not put in
    if (section && section !== known.section) restore(section, known);
  }
};
document.addEventListener("htmx:afterSettle", () => {
  putBack();
  before.clear();
});

// The run has ended: the finished page takes the place of this one without loading, so that no key is lost and the focus
// stays where it was. Where this script does not work, the server's order to load the page again does.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (event.detail.elt.id !== "live" || event.detail.xhr.getResponseHeader("HX-Refresh") !== "true") return;
  event.preventDefault();
  for (const section of document.querySelectorAll("#live, main section[id]")) before.set(section.id, remember(section));
  window.htmx.ajax("GET", location.href, { target: "#main", select: "#main", swap: "outerHTML show:none" });
});
