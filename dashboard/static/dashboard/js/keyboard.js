// Keyboard: `/` search, `g` then a letter goes to a page, `?` help, never while something is being typed. In lists `j` and
// `k` move from row to row, `Enter` opens one, `x` chooses it; a button of a row that has a `data-order` is pressed by that
// letter, and what is done with chosen rows by its `data-together`. In a list of alerts `s` and `i` open the page of the
// current one at the form for snoozing or calling it invalid; on an alert's page `a`, `s` and `i` open its forms, and `u`
// goes back. `Ctrl K` (`⌘ K`) searches everything from any page.
const TYPED = "input:not([type=checkbox]), textarea, select, dialog, [contenteditable]";
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

const click = (element) => {
  element?.click();
  return Boolean(element);
};

const press = (key) => {
  const letter = CSS.escape(key);
  return click(current()?.querySelector(`[data-order="${letter}"]`)
    ?? (document.querySelector("input.box:checked") && document.querySelector(`[data-together="${letter}"]`)));
};

const openAt = (place) => {
  const link = document.activeElement?.closest?.("#alert tbody tr")?.querySelector("th a");
  if (link) location.href = `${link.href}#${place}`;
  return Boolean(link);
};

const unfold = (letter) => {
  const target = document.querySelector(`[data-shortcut="${letter}"]`);
  const fold = target?.closest("details");
  if (fold) fold.open = true;
  (fold?.querySelector("input:not([type=hidden]), textarea") ?? target)?.focus();
  return Boolean(target);
};

// the letter behind a `g` names a page
let afterG = 0;
const goToPage = (key) => {
  const isSecond = Date.now() - afterG < 1500;
  afterG = key === "g" ? Date.now() : 0;
  if (isSecond) click(document.querySelector(`[data-key="${CSS.escape(key)}"]`));
  return isSecond || key === "g";
};

const focusSearch = () => {
  document.querySelector("[data-search]")?.focus();
  return true;
};

const ANYWHERE = { "/": focusSearch, "?": () => document.getElementById("help")?.showModal() };
const MOVES = { j: () => step(1), k: () => step(-1), x: () => click(current()?.querySelector("input.box")) };
const ORDERS = {
  a: () => unfold("a"),
  s: () => unfold("s") || openAt("snooze"),
  i: () => unfold("i") || openAt("invalid"),
  u: () => click(document.querySelector("[data-back]")),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TYPED)) return;
  const { key } = event;
  const isDone = ANYWHERE[key]?.() || goToPage(key) || MOVES[key]?.() || press(key) || ORDERS[key]?.();
  if (isDone) event.preventDefault();
});

// what fits appears while it is typed, and the arrows move among the results
const dialog = document.getElementById("search-all");
const field = dialog?.querySelector("input");

window.addEventListener("keydown", (event) => {
  if (!dialog || event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (!dialog.open) dialog.showModal();
  field.select();
});

dialog?.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  const places = [field, ...dialog.querySelectorAll(".found a")];
  const place = places.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
  places.at(place % places.length).focus();
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
window.addEventListener("load", () => setTimeout(goOn));

// the tab that the page belongs to is in sight, however narrow the window is
for (const bar of document.querySelectorAll(".top nav, nav.tabs")) {
  const tab = bar.querySelector("[aria-current]");
  if (tab) bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}
