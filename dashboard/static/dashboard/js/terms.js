// Words of the field explain themselves: a click, a tap or Enter shows the explanation beside the word, Esc hides it.
// Without this script, and with Ctrl or a middle click, the link leads to the word in the docs.
const element = (name, properties) => Object.assign(document.createElement(name), properties);
const box = element("span", { className: "explained", popover: "auto", role: "note" });
const text = element("span");
const more = element("a", { textContent: "More in the docs" });
box.append(text, " ", more);
let word = null;

document.addEventListener("click", (event) => {
  const chosen = event.target.closest("a.term");
  if (!chosen || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const again = chosen === word;
  if (box.isConnected) box.hidePopover();
  word?.removeAttribute("aria-expanded");
  if (again) return;
  word = chosen;
  text.textContent = `${word.textContent.trim()}: ${word.title}`;
  more.href = word.href;
  // behind the word, so that Tab and a screen reader go on into it; the word is what farm.css places it by
  word.after(box);
  box.showPopover({ source: word });
  word.setAttribute("aria-expanded", "true");
});

box.addEventListener("toggle", ({ newState }) => {
  if (newState !== "closed") return;
  word?.removeAttribute("aria-expanded");
  word = null;
  box.remove();
});
