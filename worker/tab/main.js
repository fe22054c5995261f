/** Shows the page: what the browser lacks, the form to join, and what the node does. */

import { CONTRACT_VERSION } from "./contract.js";
import { facts, obstacles } from "./device.js";
import { Farm, Refused } from "./farm.js";
import { fingerprintOf, forget, keep, load, makeKeys, publicKey } from "./identity.js";
import { Node } from "./node.js";

/** @template {HTMLElement} T @param {string} id @returns {T} */
const part = (id) => /** @type {T} */ (document.getElementById(id));
const sentence = part("sentence");

const TITLES = {
  pending: "Waiting for approval",
  ready: "Ready",
  measuring: "Measuring",
  paused: "Not measuring",
  refused: "Not part of the farm any more",
  away: "The farm does not answer",
};

/** @type {any} */
let lamp = null;
/** What the node does, and since when. */
let last = { doing: "", since: "" };

async function open() {
  const found = await obstacles();
  if (found.length) return showObstacles(found);
  const identity = await load();
  return identity ? work(identity) : askToJoin();
}

/** @param {string[]} found */
function showObstacles(found) {
  sentence.textContent = "This browser cannot be a node here.";
  const list = part("obstacles");
  list.replaceChildren(...found.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  list.hidden = false;
}

function askToJoin() {
  const form = /** @type {HTMLFormElement} */ (part("join"));
  const code = /** @type {HTMLInputElement} */ (part("code"));
  sentence.textContent = "It measures models for the farm while this page is open and visible. Nothing is installed.";
  code.value = decodeURIComponent(location.hash.slice(1));
  form.hidden = false;
  form.onsubmit = (event) => {
    event.preventDefault();
    join(/** @type {HTMLInputElement} */ (part("name")).value.trim(), code.value.trim()).catch(failed);
  };
}

/** @param {string} name @param {string} code */
async function join(name, code) {
  const keys = await makeKeys();
  const key = await publicKey(keys);
  const enrolment = { code, name, public_key: key, facts: await facts(name), contract_version: CONTRACT_VERSION };
  const farm = new Farm();
  try {
    const { node_id: nodeId } = await farm.enrol(enrolment);
    const identity = { nodeId, name, keys, fingerprint: await fingerprintOf(key) };
    await keep(identity);
    // the code is used, and must not stay in the address
    history.replaceState(null, "", location.pathname);
    part("join").hidden = true;
    work(identity);
  } catch (problem) {
    if (!(problem instanceof Error)) throw problem;
    sentence.textContent = problem.message;
  }
}

/** @param {import("./identity.js").Identity} identity */
function work(identity) {
  const node = new Node(new Farm(), identity);
  part("node-name").textContent = identity.name;
  part("fingerprint").textContent = identity.fingerprint;
  for (const id of ["facts", "orders", "advice"]) part(id).hidden = false;
  node.onChange = show;
  document.addEventListener("visibilitychange", () => node.reconsider());
  addEventListener("pagehide", () => node.leave());
  const pause = part("pause");
  pause.onclick = () => {
    node.isPausedHere = !node.isPausedHere;
    pause.textContent = node.isPausedHere ? "Go on" : "Pause";
    node.reconsider();
  };
  part("leave").onclick = () => leave(node);
  node.run().catch(failed);
}

/** @param {Node} node */
async function leave(node) {
  if (!confirm("This browser forgets its key and joins again only with a new code. Leave?")) return;
  node.isOver = true;
  node.leave();
  await forget();
  location.reload();
}

/** @param {import("./node.js").Standing} standing */
function show({ state, sentence: said, doing, leftS, blocks }) {
  part("title").textContent = TITLES[state];
  document.title = `${TITLES[state]} · onnxfarm`;
  document.body.dataset.state = state;
  sentence.textContent = said;
  if (doing !== last.doing) last = { doing, since: new Date().toLocaleTimeString() };
  part("doing").textContent = doing ? `${doing}, since ${last.since}` : "nothing";
  part("yet").hidden = state !== "measuring";
  part("left").textContent = leftOf(leftS);
  part("blocks").textContent = String(blocks);
  part("orders").hidden = state === "refused";
  stayAwake(state === "measuring" || state === "ready").catch(() => undefined);
  if (state === "refused") forget().then(askToJoin);
}

/** Updates the time left before each launch, and never while one measures. @param {number | null} leftS */
function leftOf(leftS) {
  if (leftS === null) return "known after the first round";
  const minutes = Math.round(leftS / 60);
  const time = leftS < 90 ? `${Math.max(10, Math.ceil(leftS / 10) * 10)} seconds` : `${minutes} minutes`;
  return `at most ${time}; less where the rounds decide sooner`;
}

/** Keeps the screen on while there may be work; the browser ends that when the page is hidden. */
async function stayAwake(/** @type {boolean} */ isWanted) {
  if (isWanted && document.visibilityState === "visible" && (!lamp || lamp.released)) {
    lamp = await navigator.wakeLock?.request("screen");
  }
}

/** @param {unknown} problem */
function failed(problem) {
  document.body.dataset.state = "failed";
  const text = problem instanceof Error ? problem.message : String(problem);
  sentence.textContent = problem instanceof Refused ? text : `This page made a mistake and stopped: ${text}. Load it again.`;
}

open().catch(failed);
