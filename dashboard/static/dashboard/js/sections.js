// The page of a run that fills in. It asks for what its address shows, and says of which sections it has which state
// already; what a reader typed, chose, opened, scrolled to or holds the focus of stays when a section is put in again.
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

const remember = (section) => ({
  section,
  typed: places(section, "[data-filter]").map(({ value }) => value),
  chosen: places(section, "input.box:checked").map(({ value }) => value),
  opened: places(section, "details").map(({ open }) => open),
  scrolled: places(section, ".scroll").map(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop]),
  focus: places(section, FOCUS).indexOf(document.activeElement),
});

const restore = (section, { typed, chosen, opened, scrolled, focus }) => {
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
  if (focus >= 0) places(section, FOCUS)[focus]?.focus({ preventScroll: true });
};

const before = new Map();
const keep = ({ detail: { target } }) => before.set(target.id, remember(target));
document.addEventListener("htmx:oobBeforeSwap", keep);
document.addEventListener("htmx:beforeSwap", (event) => { if (event.detail.target.id === "live") keep(event); });
document.addEventListener("htmx:afterSettle", () => {
  for (const [id, known] of before) {
    const section = document.getElementById(id);
    // an answer that changed nothing was not put in
    if (section && section !== known.section) restore(section, known);
  }
  before.clear();
});
