// Light or dark: the system's choice until the reader makes one, which is kept on this machine.
// Loaded before the first paint, so that a page never flashes in the other theme.
(() => {
  const KEY = "onnxfarm.theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const apply = () => {
    const choice = chosen();
    if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
    else delete document.documentElement.dataset.theme;
    document.dispatchEvent(new Event("themechange"));
  };
  const isDark = () => (chosen() ?? (system.matches ? "dark" : "light")) === "dark";
  apply();
  system.addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
  window.addEventListener("storage", (event) => { if (event.key === KEY) apply(); });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-toggle]")) return;
    try { localStorage.setItem(KEY, isDark() ? "light" : "dark"); } catch { /* private window: lasts for this page only */ }
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    document.dispatchEvent(new Event("themechange"));
  });
})();
