/**
 * The page's side of the frame with a release of ONNX Runtime Web; frame.js is the inside. A release is not trusted: it
 * has no origin, storage or connections, and each launch gives one answer.
 */

import { cleaned, readAnswer } from "./answers.js";
import { Problem } from "./problem.js";

/** @typedef {import("./contract.js").Reason} Reason */
/** @typedef {{module: Blob, glue: Blob, binary: Blob, isSecure: boolean}} Release */

const OPENING_MS = 120_000;
/** The modules of the frame's workers, each after its imports. */
const RUNNER = ["contract.js", "problem.js", "identity.js", "device.js", "parity.js", "windows.js", "runner.js"];
/** The reason of launches that the end of the block cut short. @type {Reason} */
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

  /** Opens the frame with the compiled release. Throws Problem where the browser cannot run it. */
  open() {
    this.frame ??= this.#opened();
    return this.frame;
  }

  /** Closes the frame, and what runs in it. The next launch opens a new one. */
  close() {
    this.frame?.then((frame) => frame.remove(), () => undefined);
    this.frame = null;
  }

  /**
   * Runs an order in a fresh worker, and returns its findings, or a `reason`. Never throws for what the worker does.
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
 * Sends a message, and waits for its one answer. Throws the reason of `signal`, or that the answer is late.
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
