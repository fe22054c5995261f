// Lists by keyboard. `j` and `k` move from row to row, `Enter` opens one, `x` chooses it; a button of a row that has a
// `data-order` is pressed by that letter, and what is done with chosen rows by its `data-together`. `g` and its letter
// belong to keys.js, which marks them as handled. Triage too: in a list of alerts `s` and `i` open the page of the current
// one at the form for snoozing or calling it invalid; on an alert's page `a`, `s` and `i` open its forms, and `u` goes back.
const isTyping = (target) =>
  target.closest?.("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]") !== null;
const linkOf = (row) => row?.querySelector("th a[href], th button.link");
// a row of a table that is folded away cannot have the focus
const rows = () => [...document.querySelectorAll("main tbody tr")].filter((row) => linkOf(row)?.checkVisibility());
const current = () => document.activeElement?.closest?.("tbody tr") ?? null;

const goTo = (row) => {
  linkOf(row)?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
};

const step = (by) => {
  const all = rows();
  const place = all.indexOf(current());
  goTo(all[Math.max(0, Math.min(all.length - 1, place + by))]);
  return true;
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

const openAt = (place) => {
  const link = document.activeElement?.closest?.("#alert tbody tr")?.querySelector("th a");
  if (link) location.href = `${link.href}#${place}`;
  return Boolean(link);
};

const unfold = (letter) => {
  const target = document.querySelector(`[data-shortcut="${letter}"]`);
  if (!target) return false;
  const fold = target.closest("details");
  if (fold) fold.open = true;
  (fold?.querySelector("input:not([type=hidden]), textarea") ?? target).focus();
  return true;
};

const back = () => {
  const link = document.querySelector("[data-back]");
  link?.click();
  return Boolean(link);
};

const MOVES = { j: () => step(1), k: () => step(-1), x: choose };
const ORDERS = {
  a: () => unfold("a"),
  s: () => unfold("s") || openAt("snooze"),
  i: () => unfold("i") || openAt("invalid"),
  u: back,
};

// on the window, so that keys.js on the document has had its turn
window.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const { key } = event;
  if (MOVES[key]?.() || press(key) || ORDERS[key]?.()) event.preventDefault();
});

// An address that names a row goes on from there, and one that names a folded form opens it: after loading, because the
// browser takes the focus away when it scrolls to what an address names.
const goOn = () => {
  const named = document.getElementById(location.hash.slice(1));
  goTo(named?.closest("tbody tr"));
  // what was sent from a folded form comes back to the same address: it is done then
  const isDone = document.querySelector(".note.good") !== null;
  if (named?.matches("details") && !isDone) unfold(named.querySelector("[data-shortcut]")?.dataset.shortcut ?? "");
};
if (document.readyState === "complete") setTimeout(goOn);
else window.addEventListener("load", () => setTimeout(goOn));

// the tab that the page belongs to is in sight, however narrow the window is
for (const bar of document.querySelectorAll(".top nav, nav.tabs")) {
  const tab = bar.querySelector("[aria-current]");
  if (tab) bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}
