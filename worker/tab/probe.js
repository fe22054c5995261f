/** Proves what this browser can do by a tiny model, which is judged by its outputs and its trace. */

import {
  DISTRIBUTION, PROBED_WITH, PROVIDER, TAG, WEBGPU, WEBGPU_SOFTWARE_TAG, WEBGPU_TAG, WEBNN, WEBNN_TAG,
} from "./contract.js";
import { NO_WEBNN, adapter, webnn } from "./device.js";
import { Problem } from "./problem.js";

// relu(x · w), x and w of 8 × 8, w[i][j] = (3 i + 5 j) mod 7 − 3; operator set 13, IR version 7
const MODEL =
  "CAc68AIKGgoBeAoBdxIBeRoHcHJvZHVjdCIGTWF0TXVsChIKAXkSAXoaBGJlbmQiBFJlbHUSBXByb2JlKowCCAgICBABQgF3SoACAABAwAAAAEAA" +
  "AAAAAAAAwAAAQEAAAIA/AACAvwAAQMAAAAAAAAAAwAAAQEAAAIA/AACAvwAAQMAAAABAAAAAAAAAQEAAAIA/AACAvwAAQMAAAABAAAAAAAAAAMAA" +
  "AEBAAACAvwAAQMAAAABAAAAAAAAAAMAAAEBAAACAPwAAgL8AAABAAAAAAAAAAMAAAEBAAACAPwAAgL8AAEDAAAAAQAAAAMAAAEBAAACAPwAAgL8A" +
  "AEDAAAAAQAAAAAAAAADAAACAPwAAgL8AAEDAAAAAQAAAAAAAAADAAABAQAAAgD8AAEDAAAAAQAAAAAAAAADAAABAQAAAgD8AAIC/AABAwFoTCgF4" +
  "Eg4KDAgBEggKAggICgIICGITCgF6Eg4KDAgBEggKAggICgIICEIECgAQDQ==";
const RUNTIME = `${DISTRIBUTION}==${PROBED_WITH}`;
const SIDE = 8;
const TIMEOUT_S = 120;
const SESSION = { threads: 1, optimization: "all", spinning: true, memory_pattern: true, arena: true, config: {} };

/**
 * @typedef {{tags: Record<string, string>, providers: string[],
 *   selfTest: {passed: boolean, sentence: string, runtime: string, max_abs: number | null, launches: number}}} Abilities
 */

/** Finds the tags and providers that a trace shows, and the self-test. @param {import("./files.js").Files} files */
export async function probe(files) {
  const found = await tried(files, PROVIDER);
  const selfTest = { passed: found.shown > 0, sentence: found.sentence, runtime: RUNTIME, max_abs: found.gap, launches: 1 };
  /** @type {Abilities} */
  const abilities = { tags: {}, providers: [], selfTest };
  if (!found.shown) return abilities;
  claim(abilities, TAG, PROVIDER, found.shown);
  const gpu = await adapter();
  if (gpu) await proven(abilities, files, WEBGPU, gpu.isSoftware ? WEBGPU_SOFTWARE_TAG : WEBGPU_TAG, gpu.name);
  const why = await webnn();
  if (!why) await proven(abilities, files, WEBNN, WEBNN_TAG, "WebNN");
  else if (why !== NO_WEBNN) leaveOut(abilities, "WebNN", why);
  return abilities;
}

/**
 * Claims a provider that a trace of the probe shows. Where none does, the self-test says why.
 * @param {Abilities} abilities @param {import("./files.js").Files} files @param {string} provider @param {string} tag
 * @param {string} where
 */
async function proven(abilities, files, provider, tag, where) {
  const found = await tried(files, provider).catch(unavailable);
  if (found.shown) claim(abilities, tag, provider, found.shown, where);
  else leaveOut(abilities, where, found.sentence);
}

/** @param {Abilities} abilities @param {string} what @param {string} why */
function leaveOut(abilities, what, why) {
  const { selfTest } = abilities;
  selfTest.sentence = `${selfTest.sentence} ${what} is not claimed: ${why}`.slice(0, 1000);
}

/** Counts the probe's nodes that its trace shows on a provider; for none, the sentence says why. */
async function tried(/** @type {import("./files.js").Files} */ files, /** @type {string} */ provider) {
  const sandbox = await files.runtime(PROBED_WITH, provider);
  const x = Float32Array.from({ length: SIDE * SIDE }, (_, at) => (at % 5) - 2);
  const order = {
    provider, model: new Blob([Uint8Array.from(atob(MODEL), (sign) => sign.charCodeAt(0))]),
    external: [], inputs: { x: { dtype: "float32", shape: [SIDE, SIDE], data: x } }, session: SESSION,
  };
  const how = { timeoutS: TIMEOUT_S, signal: new AbortController().signal };
  const run = await sandbox.launch({ ...order, kind: "check" }, how);
  if (run.reason) return nothing(`The probe did not run: ${run.reason.text}`);
  const found = run.outputs.z?.data ?? [];
  const gap = Math.max(...expected(x).map((right, at) => Math.abs(right - (found[at] ?? NaN))));
  if (!(gap <= 1e-4)) return nothing("The probe's outputs are wrong.", Number.isFinite(gap) ? gap : null);
  const traced = await sandbox.launch({ ...order, kind: "trace", traceRuns: 3, traceS: 1 }, how);
  const shown = traced.found?.providers.find((/** @type {{name: string}} */ { name }) => name === provider);
  if (!shown) return nothing(`The probe's trace does not show ${provider} executing.`);
  return { shown: Number(shown.nodes), sentence: "The probe's outputs are right.", gap };
}

/** @param {Abilities} abilities @param {string} tag @param {string} provider @param {number} nodes @param {string} where */
function claim(abilities, tag, provider, nodes, where = "") {
  const day = new Date().toISOString().slice(0, 10);
  const evidence = `${day}: a trace on ${RUNTIME} shows ${nodes} of the probe's nodes on ${provider}`;
  abilities.tags[tag] = where ? `${evidence}, ${where}` : evidence;
  abilities.providers.push(provider);
}

/** @param {string} sentence @param {number | null} gap */
const nothing = (sentence, gap = null) => ({ shown: 0, sentence: sentence.slice(0, 1000), gap });

/** Says why a provider cannot be claimed whose files are not available. @param {unknown} problem */
function unavailable(problem) {
  if (problem instanceof Problem) return nothing(problem.message);
  throw problem;
}

/** Computes the right answer in float64. @param {Float32Array} x */
function expected(x) {
  return Array.from({ length: SIDE * SIDE }, (_, at) => {
    const [row, column] = [Math.floor(at / SIDE), at % SIDE];
    let sum = 0;
    for (let k = 0; k < SIDE; k++) sum += x[row * SIDE + k] * (((3 * k + 5 * column) % 7) - 3);
    return Math.max(0, sum);
  });
}
