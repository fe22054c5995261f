// What is put in again stays as its reader had it: what they typed into a filter, chose, opened, scrolled to or hold the
// focus of. So it is with every part of a page that is asked for again, and with the whole page once what it waited for
// is there.
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
  first: section.firstElementChild,
  typed: new Map(places(section, "[data-filter]").map(({ dataset, value }) => [dataset.filter, value])),
  chosen: places(section, "input.box:checked").map(({ value }) => value),
  opened: places(section, "details").map(({ open }) => open),
  scrolled: places(section, ".scroll, .log").map(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop]),
  focused: focusOf(section),
});

const restore = (section, { typed, chosen, opened, scrolled, focused }) => {
  const folds = places(section, "details"), windows = places(section, ".scroll, .log");
  // only their order tells which is which
  if (folds.length === opened.length) folds.forEach((each, at) => { each.open = opened[at]; });
  places(section, "input.box").forEach((box) => { box.checked = chosen.includes(box.value); });
  for (const field of places(section, "[data-filter]")) {
    const words = typed.get(field.dataset.filter);
    if (!words || field.value === words) continue;
    field.value = words;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (windows.length === scrolled.length) windows.forEach((each, at) => { [each.scrollLeft, each.scrollTop] = scrolled[at]; });
  if (focused && document.activeElement === document.body) focus(section, focused);
};

// by their id: each answer puts in an element of its own, unless it goes into one that stays
const before = new Map();
const keep = (section) => before.set(section.id, remember(section));
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => keep(detail.target));
// the whole page is kept section by section
document.addEventListener("htmx:beforeSwap", ({ detail }) => { if (detail.target.id !== "main") keep(detail.target); });
const putBack = () => {
  for (const [id, known] of before) {
    const section = document.getElementById(id);
    // an answer that changed nothing was not put in
    if (section && (section !== known.section || section.firstElementChild !== known.first)) restore(section, known);
  }
};
// at once, so that no key is lost, and when htmx has set the last attributes
document.addEventListener("htmx:afterSwap", putBack);
document.addEventListener("htmx:afterSettle", () => {
  putBack();
  before.clear();
});

// What a page waited for is there: the new page takes the place of this one without loading, so that no key is lost and
// the focus stays where it was. Where this script does not work, the server's order to load the page again does.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const { elt, xhr } = event.detail;
  if (!elt.hasAttribute("data-live") || xhr.getResponseHeader("HX-Refresh") !== "true") return;
  event.preventDefault();
  document.querySelectorAll("main > [id], main section[id]").forEach(keep);
  window.htmx.ajax("GET", location.href, { target: "#main", select: "#main", swap: "outerHTML show:none" });
});
