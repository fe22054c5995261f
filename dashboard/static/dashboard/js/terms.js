// Words of the field explain themselves: a click, a tap or Enter shows the explanation beside the word, Esc hides it.
// Without this script, and with Ctrl or a middle click, the link leads to the word in the docs.
const box = Object.assign(document.createElement("span"), { className: "explained", popover: "auto" });
const text = document.createElement("span");
const more = Object.assign(document.createElement("a"), { textContent: "More in the docs" });
box.setAttribute("role", "note");
box.append(text, " ", more);
let word = null;
let placedAt = 0;

const place = () => {
  const { left, bottom, top } = word.getBoundingClientRect();
  placedAt = top;
  const below = bottom + 4 + box.offsetHeight <= innerHeight ? bottom + 4 : top - 4 - box.offsetHeight;
  box.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(8, below)}px`;
};

const hide = () => box.isConnected && box.hidePopover();

document.addEventListener("click", (event) => {
  const chosen = event.target.closest("a.term");
  if (!chosen || event.ctrlKey || event.metaKey || event.shiftKey || !box.showPopover) return;
  event.preventDefault();
  const again = chosen === word;
  hide();
  word?.removeAttribute("aria-expanded");
  if (again) return;
  word = chosen;
  text.textContent = `${word.textContent.trim()}: ${word.title}`;
  more.href = word.href;
  // beside the word, so that Tab and a screen reader go on into it
  word.after(box);
  box.showPopover();
  word.setAttribute("aria-expanded", "true");
  place();
});

box.addEventListener("toggle", (event) => {
  if (event.newState !== "closed") return;
  word?.removeAttribute("aria-expanded");
  word = null;
  box.remove();
});
// the scrolling that brought the word into view, when it got the focus, is told after the box is shown
const hideWhenMoved = () => word && Math.abs(word.getBoundingClientRect().top - placedAt) > 1 && hide();
addEventListener("scroll", hideWhenMoved, { passive: true, capture: true });
