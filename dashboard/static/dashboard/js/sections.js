// The page of a run that fills in. It asks for what its address shows, and says of which sections it has which state
// already. What a reader has of a section stays when it is put in again: kept.js.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (detail.elt.id !== "live") return;
  // other charts are chosen without loading the page: only the address knows of them
  const query = new URLSearchParams(location.search);
  query.set("part", "live");
  const held = [...document.querySelectorAll("section[data-at]")].map(({ id, dataset }) => `${id}.${dataset.at}`);
  query.set("have", held.join(","));
  detail.path = `${location.pathname}?${query}`;
});

// the cell that is measured now, which the head names, is marked in the map
const markCurrent = () => {
  const now = new Set([...document.querySelectorAll("#now a.name")].map((link) => link.getAttribute("href")));
  for (const link of document.querySelectorAll("#map td a")) {
    link.ariaCurrent = now.has(link.getAttribute("href")) ? "true" : null;
  }
};
markCurrent();
document.addEventListener("htmx:afterSettle", markCurrent);
