// The drop area: files dropped anywhere on it are put into its file field.
for (const area of document.querySelectorAll("[data-drop]")) {
  const field = area.querySelector("input[type=file]");
  const list = area.querySelector("[data-files]");
  const show = () => {
    list.textContent = [...field.files].map((f) => `${f.name} (${(f.size / 1e6).toFixed(2)} MB)`).join(", ");
  };
  area.addEventListener("dragover", (event) => { event.preventDefault(); area.classList.add("over"); });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    field.files = event.dataTransfer.files;
    show();
  });
  field.addEventListener("change", show);
}
