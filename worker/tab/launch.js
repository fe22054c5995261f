/** Launching runners: each pass is a worker of its own, ended from outside when it is late or the block is over. */

/** @typedef {import("./contract.js").Reason} Reason */

/** What is said where the block ended before. @type {Reason} */
export const CANCELLED = { code: "cancelled", text: "The block was cancelled before this was measured; start it again." };

/**
 * What a runner answers: its findings, or `reason`. Never throws for what a runner does.
 * @param {object} order @param {{timeoutS: number, signal: AbortSignal}} how
 * @returns {Promise<{reason?: Reason, wallMs: number, [found: string]: any}>}
 */
export function launch(order, { timeoutS, signal }) {
  const began = performance.now();
  return new Promise((done) => {
    if (signal.aborted) return done({ reason: CANCELLED, wallMs: 0 });
    const worker = new Worker(new URL("runner.js", import.meta.url), { type: "module" });
    const end = (/** @type {object} */ answer) => {
      clearTimeout(late);
      signal.removeEventListener("abort", cancelled);
      worker.terminate();
      done({ ...answer, wallMs: performance.now() - began });
    };
    const cancelled = () => end({ reason: CANCELLED });
    const late = setTimeout(() => end({ reason: timedOut(timeoutS) }), timeoutS * 1000);
    signal.addEventListener("abort", cancelled);
    worker.onmessage = ({ data }) => end(data);
    worker.onmessageerror = () => end({ reason: crashed("its answer could not be read") });
    worker.onerror = (event) => end({ reason: crashed(event.message || "the browser ended it") });
    worker.postMessage(order);
  });
}

/** @param {number} timeoutS */
function timedOut(timeoutS) {
  const text = `The runner took longer than ${timeoutS.toFixed(0)} s and was ended. Give the cell more time, or a smaller batch or shapes.`;
  return { code: "timeout", text };
}

/** @param {string} why */
function crashed(why) {
  return { code: "crashed", text: `The browser's runner stopped: ${why}. Another release may do better.`.slice(0, 2000) };
}
