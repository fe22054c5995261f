// Triage by keyboard. In a list of alerts `s` and `i` open the page of the current one at the form for snoozing or calling
// it invalid. On an alert's page `a`, `s` and `i` open its forms, and `u` goes back to the list. Moving from row to row is
// rows.js; `g` and its letter belong to keys.js, which marks them as handled.
const isTyping = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]") !== null;

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

const ORDERS = {
  a: () => unfold("a"),
  s: () => unfold("s") || openAt("snooze"),
  i: () => unfold("i") || openAt("invalid"),
  u: back,
};

// on the window, so that keys.js on the document has had its turn
window.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (ORDERS[event.key]?.()) event.preventDefault();
});

// An address that names a folded form opens it. After loading, because the browser takes the focus away when it scrolls
// to what an address names.
const goOn = () => {
  const named = document.getElementById(location.hash.slice(1));
  // what was sent from a folded form comes back to the same address: it is done then
  const isDone = document.querySelector(".note.good") !== null;
  if (named?.matches("details") && !isDone) unfold(named.querySelector("[data-shortcut]")?.dataset.shortcut ?? "");
};
if (document.readyState === "complete") setTimeout(goOn);
else window.addEventListener("load", () => setTimeout(goOn));
