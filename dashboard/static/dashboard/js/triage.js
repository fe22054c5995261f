// Triage by keyboard. In a list: `j` and `k` move between alerts, `Enter` opens one, `a` acknowledges it, `s` and `i`
// open its page at the form for snoozing or calling it invalid. On an alert's page the same letters open its forms,
// and `u` goes back to the list. `g` and its letter belong to keys.js, which marks them as handled.
const isTyping = (target) => target.closest?.("input, textarea, select, dialog, [contenteditable]") !== null;
const lines = () => [...document.querySelectorAll("[data-triage]")];
const linkOf = (line) => line?.querySelector(".line-link");
const current = () => lines().find((line) => line.contains(document.activeElement));

const step = (by) => {
  const all = lines();
  const place = all.indexOf(current());
  const next = all[Math.max(0, Math.min(all.length - 1, place + by))];
  linkOf(next)?.focus();
  next?.scrollIntoView({ block: "nearest" });
};

const openAt = (place) => {
  const link = linkOf(current());
  if (link) location.href = `${link.href}#${place}`;
};

const unfold = (letter) => {
  const target = document.querySelector(`[data-shortcut="${letter}"]`);
  if (!target) return false;
  const fold = target.closest("details");
  if (fold) fold.open = true;
  (fold?.querySelector("input:not([type=hidden]), textarea") ?? target).focus();
  return true;
};

const ORDERS = {
  j: () => step(1),
  k: () => step(-1),
  a: () => unfold("a") || current()?.querySelector("[data-acknowledge]")?.requestSubmit(),
  s: () => unfold("s") || openAt("snooze"),
  i: () => unfold("i") || openAt("invalid"),
  u: () => document.querySelector("[data-back]")?.click(),
};

// on the window, so that keys.js on the document has had its turn
window.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (!(event.key in ORDERS)) return;
  event.preventDefault();
  ORDERS[event.key]();
});

// An address that names a folded form opens it; one that names an alert of the list goes on from there. After loading,
// because the browser takes the focus away when it scrolls to what an address names.
const goOn = () => {
  const named = document.getElementById(location.hash.slice(1));
  // what was sent from a folded form comes back to the same address: it is done then
  const isDone = document.querySelector(".note.good") !== null;
  if (named?.matches("details")) isDone || unfold(named.querySelector("[data-shortcut]")?.dataset.shortcut ?? "");
  else linkOf(named?.closest("[data-triage]"))?.focus();
};
if (document.readyState === "complete") setTimeout(goOn);
else window.addEventListener("load", () => setTimeout(goOn));
