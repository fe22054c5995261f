// Lists by keyboard. `j` and `k` move from row to row, `Enter` opens one, `x` chooses it; a button of a row that has a
// `data-order` is pressed by that letter, and what is done with chosen rows by its `data-together`. `g` and its letter
// belong to keys.js, which marks them as handled.
const isTyping = (target) =>
  target.closest?.("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]") !== null;
const linkOf = (row) => row?.querySelector("th a[href], th button.link");
// a row of a table that is folded away cannot have the focus
const rows = () => [...document.querySelectorAll("main tbody tr")].filter((row) => linkOf(row)?.checkVisibility());
export const current = () => document.activeElement?.closest?.("tbody tr") ?? null;

export const goTo = (row) => {
  linkOf(row)?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
};

const step = (by) => {
  const all = rows();
  const place = all.indexOf(current());
  goTo(all[Math.max(0, Math.min(all.length - 1, place + by))]);
};

const choose = () => {
  const box = current()?.querySelector("input.box");
  if (box) box.checked = !box.checked;
  return Boolean(box);
};

const press = (key) => {
  const button = current()?.querySelector(`[data-order="${CSS.escape(key)}"]`)
    ?? (document.querySelector("input.box:checked") && document.querySelector(`[data-together="${CSS.escape(key)}"]`));
  button?.click();
  return Boolean(button);
};

// on the window, so that keys.js on the document has had its turn
window.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const { key } = event;
  if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
  else if (!(key === "x" ? choose() : press(key))) return;
  event.preventDefault();
});

// an address that names a row goes on from there: after loading, because the browser takes the focus away when it
// scrolls to what an address names
const goOn = () => goTo(document.getElementById(location.hash.slice(1))?.closest("tbody tr"));
if (document.readyState === "complete") setTimeout(goOn);
else window.addEventListener("load", () => setTimeout(goOn));

// the tab that the page belongs to is in sight, however narrow the window is
for (const bar of document.querySelectorAll(".top nav, nav.tabs")) {
  const tab = bar.querySelector("[aria-current]");
  if (tab) bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}
