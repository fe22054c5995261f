// Parts of a page that fill in by themselves (htmx polling). An unchanged answer is not put in again, so that focus,
// selection and hover stay; a server that does not answer shows a banner, which goes when it answers again.
// by their id: each answer puts in an element of its own
const seen = new Map();
const nameOf = (target) => target.id || target;
// each answer masks the token of its forms anew, which is no change
const unmasked = (text) => text.replace(/(name="csrfmiddlewaretoken" value=")[^"]*/g, "$1");
const banner = () => document.getElementById("away");

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr, requestConfig } = event.detail;
  if (requestConfig?.verb !== "get" || !target.hasAttribute("data-live")) return;
  const text = unmasked(xhr.responseText);
  if (seen.get(nameOf(target)) === text) event.detail.shouldSwap = false;
  seen.set(nameOf(target), text);
});

document.addEventListener("htmx:afterRequest", (event) => {
  const status = event.detail.xhr?.status ?? 0;
  const isAway = status === 0 || status >= 502;
  if (banner()) banner().hidden = !isAway;
});

// how far an upload is
document.addEventListener("htmx:xhr:progress", (event) => {
  const bar = event.target.querySelector?.("progress[data-upload]");
  if (!bar || !event.detail.lengthComputable) return;
  const { loaded, total } = event.detail;
  bar.hidden = false;
  bar.max = total;
  bar.value = loaded;
  const words = event.target.querySelector("[data-upload-words]");
  const mb = (bytes) => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
  if (words) words.textContent = loaded < total ? `${mb(loaded)} of ${mb(total)} MB` : "stored; checking …";
});
