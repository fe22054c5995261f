// Uploads. Files dropped anywhere on the drop area are put into its file field. Large ones go in pieces (tus 1.0), so that a
// cut line costs one piece; chosen again, they go on where they stopped.
const LARGE_BYTES = 32 * 1024 * 1024;
const PIECE_BYTES = 8 * 1024 * 1024;
const TRIES = 6;
const ROOT = "/api/v1/uploads";
const TUS = { "Tus-Resumable": "1.0.0" };

for (const area of document.querySelectorAll("[data-drop]")) {
  const field = area.querySelector("input[type=file]");
  const show = () => {
    const names = [...field.files].map(({ name, size }) => `${name} (${(size / 1e6).toFixed(2)} MB)`);
    area.querySelector("[data-files]").textContent = names.join(", ");
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

// how far an upload is
const megabytes = (bytes) => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
const showProgress = (form, loaded, total) => {
  const [bar, line] = [form.querySelector("[data-upload]"), form.querySelector("[data-upload-words]")];
  Object.assign(bar, { hidden: false, max: total, value: loaded });
  line.textContent = loaded < total ? `${megabytes(loaded)} of ${megabytes(total)} MB` : "stored; checking …";
};

document.addEventListener("htmx:xhr:progress", ({ target, detail }) => {
  if (target.id === "upload" && detail.lengthComputable) showProgress(target, detail.loaded, detail.total);
});

const pause = (tries) => new Promise((done) => setTimeout(done, Math.min(8000, 300 * 2 ** tries)));
const encoded = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const markOf = (file, team) => `onnxfarm upload ${team} ${file.name} ${file.size} ${file.lastModified}`;

class Refused extends Error {}

async function words(answer) {
  const body = await answer.json().catch(() => ({}));
  return [body.detail || `The farm answered ${answer.status}.`, body.hint].filter(Boolean).join(" ");
}

async function offsetOf(address) {
  const answer = await fetch(address, { method: "HEAD", headers: TUS });
  if (answer.status === 404 || answer.status === 410) return null;
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return Number(answer.headers.get("Upload-Offset"));
}

async function begun(file, team, token) {
  const known = localStorage.getItem(markOf(file, team));
  const offset = known ? await offsetOf(known) : null;
  if (offset !== null) return [known, offset];
  const said = `filename ${encoded(file.name)}${team ? `,team ${encoded(team)}` : ""}`;
  const headers = { ...TUS, "X-CSRFToken": token, "Upload-Length": String(file.size), "Upload-Metadata": said };
  const answer = await fetch(`${ROOT}/files`, { method: "POST", headers });
  if (!answer.ok) throw new Refused(await words(answer));
  const address = new URL(answer.headers.get("Location"), location.href).pathname;
  localStorage.setItem(markOf(file, team), address);
  return [address, 0];
}

async function checksum(piece) {
  // browsers hash on secure pages only; elsewhere the farm checks what it has at the end
  if (!crypto.subtle) return {};
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", piece));
  return { "Upload-Checksum": `sha256 ${btoa(String.fromCharCode(...digest))}` };
}

async function sent(file, team, token, show) {
  let [address, offset] = await begun(file, team, token);
  for (let tries = 0; offset < file.size; ) {
    show(offset);
    const before = offset;
    try {
      const piece = await file.slice(offset, offset + PIECE_BYTES).arrayBuffer();
      const headers = {
        ...TUS, ...(await checksum(piece)), "X-CSRFToken": token,
        "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream",
      };
      const answer = await fetch(address, { method: "PATCH", headers, body: piece });
      if ([400, 403, 404, 410, 412, 413, 415, 507].includes(answer.status)) throw new Refused(await words(answer));
      offset = answer.ok ? Number(answer.headers.get("Upload-Offset")) : await offsetOf(address);
    } catch (problem) {
      if (problem instanceof Refused) throw problem;
      await pause(tries);
      offset = (await offsetOf(address).catch(() => before)) ?? before;
    }
    tries = offset > before ? 0 : tries + 1;
    if (tries > TRIES) throw new Refused("The farm cannot be reached: choose the files again later, to go on from here.");
  }
  return address;
}

async function complete(form, parts, token) {
  const { model, note, recipe } = form.elements;
  const said = { files: parts, model: model.value, note: note.value, recipe: recipe.value };
  const headers = { "X-CSRFToken": token, "Content-Type": "application/json" };
  const answer = await fetch(`${ROOT}/complete`, { method: "POST", headers, body: JSON.stringify(said) });
  if (!answer.ok) throw new Refused(await words(answer));
  return answer.json();
}

async function upload(form, files, total) {
  const button = form.querySelector("button.primary"), token = form.elements.csrfmiddlewaretoken.value;
  const team = form.elements.team ? form.elements.team.value : "";
  let done = 0;
  const show = (offset) => showProgress(form, done + offset, total);
  button.disabled = true;
  try {
    const parts = [];
    for (const { field, file } of files) {
      const address = await sent(file, team, token, show);
      parts.push({ upload: address.split("/").pop(), ...(field === "files" ? {} : { role: field }) });
      done += file.size;
    }
    show(0);
    const version = await complete(form, parts, token);
    for (const { file } of files) localStorage.removeItem(markOf(file, team));
    location.assign(`/models/${version.model_id}/?version=${version.number}`);
  } catch (problem) {
    form.querySelector("[data-upload-words]").textContent = problem.message;
    form.querySelector("[data-upload]").hidden = true;
  } finally {
    button.disabled = false;
  }
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const form = event.target;
  if (form.id !== "upload") return;
  const fields = [...form.querySelectorAll("input[type=file]")];
  const files = fields.flatMap((field) => [...field.files].map((file) => ({ field: field.name, file })));
  const total = files.reduce((sum, { file }) => sum + file.size, 0);
  if (total <= LARGE_BYTES) return;
  event.preventDefault();
  upload(form, files, total);
});
