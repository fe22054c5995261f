// Moments as a reader has them: how long ago in words, the moment itself in their zone on hover. Without this script, and
// on paper, they are in UTC as the farm wrote them.
(() => {
  const UNITS = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const whole = new Intl.DateTimeFormat("en-CA", { dateStyle: "short", timeStyle: "long", hourCycle: "h23" });
  const zone = whole.resolvedOptions().timeZone;

  const inWords = (seconds) => {
    const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? [];
    return unit ? ago.format(Math.trunc(seconds / length), unit) : "just now";
  };

  // What goes on counts on: `1 min 20 s`, as the farm writes lengths of time. A clock that is behind counts from nothing.
  const PARTS = [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]];
  const length = (seconds) => {
    const all = Math.max(0, Math.floor(seconds));
    const [name, large, smaller, part] = PARTS.find(([, large]) => all >= large) ?? [];
    if (!name) return `${all} s`;
    const rest = Math.floor((all % large) / part);
    return `${Math.floor(all / large)} ${name}${rest ? ` ${rest} ${smaller}` : ""}`;
  };

  const write = (element) => {
    const at = new Date(element.dateTime);
    const goesOn = "elapsed" in element.dataset;
    if (!goesOn) element.dataset.utc ??= element.textContent;
    element.title = goesOn ? whole.format(at) : `${whole.format(at)} (${element.dataset.utc})`;
    const words = goesOn ? length((Date.now() - at) / 1000) : inWords((at - Date.now()) / 1000);
    if (element.textContent !== words) element.textContent = words;
  };

  const writeAll = () => document.querySelectorAll("time").forEach(write);
  // as the page comes, so that nothing moves once it was painted
  const coming = new MutationObserver(writeAll);
  coming.observe(document, { childList: true, subtree: true });
  setInterval(writeAll, 30_000);
  setInterval(() => document.querySelectorAll("time[data-elapsed]").forEach(write), 1000);
  document.addEventListener("htmx:load", writeAll);
  window.addEventListener("beforeprint", () =>
    document.querySelectorAll("time[data-utc]").forEach((element) => { element.textContent = element.dataset.utc; }));
  window.addEventListener("afterprint", writeAll);
  document.addEventListener("DOMContentLoaded", () => {
    coming.disconnect();
    writeAll();
    for (const element of document.querySelectorAll("[data-zone]")) element.textContent = `Hover over a time to see it in your time zone, ${zone}.`;
  });
})();
