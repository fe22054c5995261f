// Keyboard: `/` search, `g` then a letter goes to a page, `?` help. Never while something is being typed.
const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]") !== null;
let afterG = 0;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const help = document.getElementById("help");
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector("[data-search]")?.focus();
  } else if (event.key === "?") {
    help?.showModal();
  } else if (event.key === "g") {
    event.preventDefault();
    afterG = Date.now();
  } else if (Date.now() - afterG < 1500) {
    afterG = 0;
    event.preventDefault();
    document.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click();
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-help]")) document.getElementById("help")?.showModal();
});
