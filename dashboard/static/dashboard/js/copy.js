// Copy buttons: `data-copy` holds the text, or `data-copy-from` names the element whose text is copied.
const write = async (text) => {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  // plain HTTP on another machine has no clipboard interface
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  const worked = document.execCommand("copy");
  area.remove();
  if (!worked) throw new Error("the browser refused");
};

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  const { copy, copyFrom } = button.dataset;
  const label = button.dataset.label ??= button.textContent;
  try {
    await write(copy ?? document.getElementById(copyFrom)?.textContent.trim() ?? "");
    button.textContent = "copied";
  } catch {
    button.textContent = "select and copy by hand";
  }
  setTimeout(() => { button.textContent = label; }, 1500);
});
