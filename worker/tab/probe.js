/** What this browser can do, with its evidence: a tiny model, judged by its outputs and by its own trace. */

import { DISTRIBUTION, PROBED_WITH, PROVIDER, TAG } from "./contract.js";
import { launch } from "./launch.js";

// relu(x · w), x and w of 8 × 8, w[i][j] = (3 i + 5 j) mod 7 − 3; operator set 13, IR version 7
const MODEL =
  "CAc68AIKGgoBeAoBdxIBeRoHcHJvZHVjdCIGTWF0TXVsChIKAXkSAXoaBGJlbmQiBFJlbHUSBXByb2JlKowCCAgICBABQgF3SoACAABAwAAAAEAA" +
  "AAAAAAAAwAAAQEAAAIA/AACAvwAAQMAAAAAAAAAAwAAAQEAAAIA/AACAvwAAQMAAAABAAAAAAAAAQEAAAIA/AACAvwAAQMAAAABAAAAAAAAAAMAA" +
  "AEBAAACAvwAAQMAAAABAAAAAAAAAAMAAAEBAAACAPwAAgL8AAABAAAAAAAAAAMAAAEBAAACAPwAAgL8AAEDAAAAAQAAAAMAAAEBAAACAPwAAgL8A" +
  "AEDAAAAAQAAAAAAAAADAAACAPwAAgL8AAEDAAAAAQAAAAAAAAADAAABAQAAAgD8AAEDAAAAAQAAAAAAAAADAAABAQAAAgD8AAIC/AABAwFoTCgF4" +
  "Eg4KDAgBEggKAggICgIICGITCgF6Eg4KDAgBEggKAggICgIICEIECgAQDQ==";
const SIDE = 8;
const TIMEOUT_S = 120;
const SESSION = {
  threads: 1, optimization: "all", spinning: true, memory_pattern: true, arena: true, config: {},
};

/**
 * @typedef {{tags: Record<string, string>, providers: string[],
 *   selfTest: {passed: boolean, sentence: string, runtime: string, max_abs: number | null, launches: number}}} Abilities
 */

/** Tags, providers and self-test; none are claimed that no trace shows. @param {import("./files.js").Files} files */
export async function probe(files) {
  const runtime = `${DISTRIBUTION}==${PROBED_WITH}`;
  const { module, glue, compiled } = await files.runtime(PROBED_WITH);
  const x = Float32Array.from({ length: SIDE * SIDE }, (_, at) => (at % 5) - 2);
  const order = {
    module, glue, compiled, model: new Blob([Uint8Array.from(atob(MODEL), (sign) => sign.charCodeAt(0))]),
    external: [], inputs: { x: { dtype: "float32", shape: [SIDE, SIDE], data: x } }, session: SESSION,
  };
  const how = { timeoutS: TIMEOUT_S, signal: new AbortController().signal };
  const run = await launch({ ...order, kind: "check" }, how);
  if (run.reason) return nothing(`The probe did not run: ${run.reason.text}`, runtime);
  const found = run.outputs.z?.data ?? [];
  const gap = Math.max(...expected(x).map((right, at) => Math.abs(right - (found[at] ?? NaN))));
  if (!(gap <= 1e-4)) return nothing("The probe's outputs are wrong.", runtime, Number.isFinite(gap) ? gap : null);
  const traced = await launch({ ...order, kind: "trace", traceRuns: 3, traceS: 1 }, how);
  const shown = traced.found?.providers.find((/** @type {{name: string}} */ one) => one.name === PROVIDER);
  if (!shown) return nothing(`The probe's trace does not show ${PROVIDER} executing.`, runtime);
  const day = new Date().toISOString().slice(0, 10);
  const evidence = `${day}: a trace on ${runtime} shows ${shown.nodes} of the probe's nodes on ${PROVIDER}`;
  const sentence = "The probe's outputs are right.";
  return {
    tags: { [TAG]: evidence },
    providers: [PROVIDER],
    selfTest: { passed: true, sentence, runtime, max_abs: gap, launches: 1 },
  };
}

/** @param {string} sentence @param {string} runtime @param {number | null} gap @returns {Abilities} */
function nothing(sentence, runtime, gap = null) {
  const selfTest = { passed: false, sentence: sentence.slice(0, 1000), runtime, max_abs: gap, launches: 1 };
  return { tags: {}, providers: [], selfTest };
}

/** The right answer, in float64. @param {Float32Array} x */
function expected(x) {
  return Array.from({ length: SIDE * SIDE }, (_, at) => {
    const [row, column] = [Math.floor(at / SIDE), at % SIDE];
    let sum = 0;
    for (let k = 0; k < SIDE; k++) sum += x[row * SIDE + k] * (((3 * k + 5 * column) % 7) - 3);
    return Math.max(0, sum);
  });
}
