// The search over everything: `Ctrl K` (`⌘ K`) opens it on any page, what fits appears while it is typed, the arrows move
// among the results, `Enter` opens one.
const dialog = document.getElementById("find");
const field = dialog?.querySelector("input");
const places = () => [field, ...dialog.querySelectorAll(".found a")];

window.addEventListener("keydown", (event) => {
  if (!dialog || event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (!dialog.open) dialog.showModal();
  field.select();
});

dialog?.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  const all = places();
  const place = all.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
  all[(place + all.length) % all.length].focus();
});
