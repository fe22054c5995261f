// Light or dark: the system's choice until the reader makes one, which is kept on this machine.
// Loaded before the first paint, so that a page never flashes in the other theme.
(() => {
  const KEY = "onnxfarm.theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const announce = () => document.dispatchEvent(new Event("themechange"));
  const apply = (choice) => {
    if (choice === "light" || choice === "dark") root.dataset.theme = choice;
    else delete root.dataset.theme;
    announce();
  };
  try { apply(localStorage.getItem(KEY)); } catch { /* private window: a choice lasts for its page only */ }
  system.addEventListener("change", announce);
  window.addEventListener("storage", ({ key, newValue }) => { if (key === KEY) apply(newValue); });
  document.addEventListener("click", ({ target }) => {
    if (!target.closest?.("[data-theme-toggle]")) return;
    const isDark = (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    apply(isDark ? "light" : "dark");
    try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* private window */ }
  });
})();
