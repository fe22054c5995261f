/**
 * The frame around one release of ONNX Runtime Web, seen from the page (frame.js is its inside). A release is somebody
 * else's code: it has no origin, no storage and no connection, and each launch hands out one answer, which is read here.
 */

import { cleaned, readAnswer } from "./answers.js";
import { Problem } from "./problem.js";

/** @typedef {import("./contract.js").Reason} Reason */
/** @typedef {{module: Blob, glue: Blob, binary: Blob, isSecure: boolean}} Release */

const OPENING_MS = 120_000;
/** What runs in the frame's workers, each behind what it imports. */
const RUNNER = ["contract.js", "problem.js", "identity.js", "device.js", "parity.js", "windows.js", "runner.js"];
/** What is said where the block ended before. @type {Reason} */
export const CANCELLED = { code: "cancelled", text: "The block was cancelled before this was measured; start it again." };

/** @type {Promise<[string, string][]> | null} */
let modules = null;

export class Sandbox {
  /** @param {Release} release */
  constructor(release) {
    this.release = release;
    /** @type {Promise<HTMLIFrameElement> | null} */
    this.frame = null;
  }

  /** The frame with the release in it, compiled. Throws Problem where the browser does not take it. */
  open() {
    this.frame ??= this.#opened();
    return this.frame;
  }

  /** Ends what runs. The next launch opens a new frame. */
  close() {
    this.frame?.then((frame) => frame.remove(), () => undefined);
    this.frame = null;
  }

  /**
   * What a fresh worker of the release answers: its findings, or `reason`. Never throws for what it does.
   * @param {{kind: import("./answers.js").Kind, [more: string]: unknown}} order
   * @param {{timeoutS: number, signal: AbortSignal}} how
   * @returns {Promise<{reason?: Reason, wallMs: number, [found: string]: any}>}
   */
  async launch(order, { timeoutS, signal }) {
    if (signal.aborted) return { reason: CANCELLED, wallMs: 0 };
    let began = performance.now();
    const answer = async () => {
      const frame = await this.open();
      began = performance.now();
      const said = await ask(frame, { order }, { timeoutMs: timeoutS * 1000, signal });
      if (said.problem === undefined) return readAnswer(order.kind, said.found);
      throw new Problem("crashed", `The browser's runner stopped: ${cleaned(said.problem)}. Another release may do better.`);
    };
    const found = await answer().catch((problem) => {
      if (problem instanceof Problem) return { reason: problem.reason };
      this.close();
      return { reason: signal.aborted ? CANCELLED : timedOut(timeoutS) };
    });
    return { ...found, wallMs: performance.now() - began };
  }

  async #opened() {
    modules ??= Promise.all(RUNNER.map(async (name) => [name, await textOf(name)]));
    const frame = document.createElement("iframe");
    frame.title = "A release of ONNX Runtime Web";
    frame.tabIndex = -1;
    frame.ariaHidden = "true";
    frame.setAttribute("sandbox", "allow-scripts");
    frame.allow = "cross-origin-isolated";
    frame.src = new URL("frame.html", import.meta.url).href;
    try {
      const release = { ...this.release, modules: await modules };
      const loaded = new Promise((done) => frame.addEventListener("load", done, { once: true }));
      document.body.append(frame);
      await loaded;
      const said = await ask(frame, { release }, { timeoutMs: OPENING_MS });
      if (said.problem !== undefined) throw new Problem("runtime_install_failed", `The browser does not compile it: ${cleaned(said.problem)}`);
      return frame;
    } catch (problem) {
      frame.remove();
      this.frame = modules = null;
      if (problem instanceof Problem) throw problem;
      throw new Problem("runtime_install_failed", "The browser opened no frame for the release: load this page again.");
    }
  }
}

/**
 * The one answer to a message, by a port that takes no second one. Throws what `signal` says, or that it is late.
 * @param {HTMLIFrameElement} frame @param {object} message @param {{timeoutMs: number, signal?: AbortSignal}} how
 * @returns {Promise<{problem?: string, found?: unknown}>}
 */
function ask(frame, message, { timeoutMs, signal }) {
  const { port1: own, port2: theirs } = new MessageChannel();
  const over = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]);
  return new Promise((done, failed) => {
    over.addEventListener("abort", () => failed(over.reason), { once: true });
    own.onmessage = ({ data }) => done(data);
    own.onmessageerror = () => done({ problem: "its answer could not be read" });
    frame.contentWindow?.postMessage(message, "*", [theirs]);
  }).finally(() => own.close());
}

/** @param {string} name of a module beside this one @returns {Promise<string>} */
async function textOf(name) {
  const answer = await fetch(new URL(name, import.meta.url), { credentials: "omit" });
  if (!answer.ok) throw new Problem("runtime_install_failed", `The farm answered ${answer.status} for ${name}: load this page again.`);
  return answer.text();
}

/** @param {number} timeoutS @returns {Reason} */
const timedOut = (timeoutS) => ({
  code: "timeout",
  text: `The runner took longer than ${timeoutS.toFixed(0)} s and was ended. Give the cell more time, or a smaller batch or shapes.`,
});
