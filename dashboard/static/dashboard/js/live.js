// Parts of a page that fill in by themselves (htmx polling). An unchanged answer is not put in again, so that focus,
// selection and hover stay; a server that does not answer shows a banner, which goes when it answers again.
// by their id: each answer puts in an element of its own
const seen = new Map();
// each answer masks the token of its forms anew, which is no change
const unmasked = (text) => text.replace(/(name="csrfmiddlewaretoken" value=")[^"]*/g, "$1");

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr, requestConfig } = event.detail;
  if (requestConfig?.verb !== "get" || !target.hasAttribute("data-live")) return;
  const text = unmasked(xhr.responseText);
  if (seen.get(target.id) === text) event.detail.shouldSwap = false;
  seen.set(target.id, text);
});

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  const status = detail.xhr?.status ?? 0;
  document.getElementById("away").hidden = status !== 0 && status < 502;
});
