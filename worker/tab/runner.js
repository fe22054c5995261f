/**
 * Runs one launch: a dedicated worker with its own WebAssembly instance, which runs one pass of one cell and ends.
 * frame.js gives it one order. It answers once, with its findings or a reason, which answers.js checks.
 */

import { ENGINES } from "./contract.js";
import { clockResolutionMs } from "./device.js";
import { areBitEqual } from "./parity.js";
import { Problem } from "./problem.js";
import { budgetOf, groupOf, measure, summarise, warmUp } from "./windows.js";

/**
 * @typedef {import("./npz.js").Tensor} Tensor
 * @typedef {{kind: "check" | "trace" | "sample", provider: string, module: string, glue: string, compiled: WebAssembly.Module, model: Blob,
 *   external: {path: string, data: Blob}[], inputs: Record<string, Tensor>,
 *   session: import("./contract.js").SessionSettings, budget: string, traceRuns: number, traceS: number}} Order
 */

const ONE_THREAD = "This browser gives one thread to what it does not isolate (docs/nodes.md): measure with threads: 1.";
/** @type {string[]} */
const printed = [];
/** @type {Record<string, number>} */
const phases = {};

const PASSES = { check, trace, sample };

/** @param {Order} order */
export async function run(order) {
  // ONNX Runtime Web prints its profile to the console
  console.log = (...words) => printed.push(words.join(" "));
  try {
    return { ...(await PASSES[order.kind](order)), phases };
  } catch (problem) {
    return { reason: reasonOf(problem) };
  }
}

/** Checks whether the cell loads, and how it starts, what it returns, and whether it returns the same again. @param {Order} order */
async function check(order) {
  const { session, call, runtime } = await opened(order);
  const first = await timed("first", call);
  const again = await call();
  const outputs = tensorsOf(first);
  const repeated = tensorsOf(again);
  await session.release();
  return {
    version: runtime,
    outputs,
    isRepeatable: Object.keys(outputs).every((name) => areBitEqual(outputs[name], repeated[name])),
    isIsolated: crossOriginIsolated,
    resolutionMs: clockResolutionMs(),
  };
}

/** Runs a few inferences under the profiler, never timed. @param {Order} order */
async function trace(order) {
  const { session, call } = await opened(order, { enableProfiling: true });
  const began = performance.now();
  for (let run = 0; run <= order.traceRuns; run++) {
    await call();
    if (run >= 2 && performance.now() - began > order.traceS * 1000) break;
  }
  printed.length = 0;
  session.endProfiling();
  return { profile: printed.join("\n") };
}

/** Warms up, times windows, and summarises them as the contract's Sample. @param {Order} order */
async function sample(order) {
  const { call } = await opened(order);
  const how = budgetOf(order.budget);
  const once = async () => void (await call());
  await timed("first", once);
  const warm = await timed("warmup", () => warmUp(once, how));
  const resolutionMs = clockResolutionMs();
  const group = groupOf(warm.runMs, resolutionMs);
  const taken = await timed("window", () => measure(once, how, group));
  return {
    sample: {
      ...(await summarise(taken.nanoseconds)),
      warmup_runs: warm.runs,
      warmup_ms: warm.wallMs,
      is_stable: warm.agreed && taken.isStable,
      throughput: (taken.nanoseconds.length * group) / (taken.wallMs / 1000),
    },
  };
}

/** Creates the session and runs it once, both timed. @param {Order} order @param {object} more */
async function opened(order, more = {}) {
  if (order.session.threads > 1 && !crossOriginIsolated) throw new Problem("not_supported", ONE_THREAD);
  const ort = await timed("import", () => import(order.module));
  ort.env.logLevel = "error";
  ort.env.wasm.numThreads = order.session.threads;
  ort.env.wasm.wasmPaths = { mjs: order.glue };
  instantiateFrom(order.compiled);
  ort.env.wasm.wasmBinary = new ArrayBuffer(8);
  const model = new Uint8Array(await order.model.arrayBuffer());
  const externalData = await Promise.all(
    order.external.map(async ({ path, data }) => ({ path, data: new Uint8Array(await data.arrayBuffer()) })),
  );
  const options = { ...optionsOf(order), ...(externalData.length ? { externalData } : {}), ...more };
  const session = await named("model_not_loaded", () =>
    timed("session", () => ort.InferenceSession.create(model, options)),
  );
  const feeds = feedsOf(ort, session.inputNames, order.inputs);
  const call = () => named("inference_failed", () => session.run(feeds));
  return { session, call, runtime: ort.env.versions?.web ?? "" };
}

/**
 * Lets ONNX Runtime Web use the binary that the page compiled, because compiling takes longer than a small cell. The
 * instance and its memory are still this worker's own.
 * @param {WebAssembly.Module} compiled
 */
function instantiateFrom(compiled) {
  const { instantiate } = WebAssembly;
  const made = async (/** @type {any} */ _, /** @type {WebAssembly.Imports} */ imports) => ({
    module: compiled,
    instance: await instantiate.call(WebAssembly, compiled, imports),
  });
  WebAssembly.instantiate = /** @type {any} */ (made);
}

/** @param {Order} order */
function optionsOf({ provider, session: asked }) {
  const config = { ...asked.config };
  if (!asked.spinning) config["session.intra_op.allow_spinning"] = "0";
  return {
    executionProviders: [ENGINES[provider].short],
    graphOptimizationLevel: asked.optimization === "disable" ? "disabled" : asked.optimization,
    enableMemPattern: asked.memory_pattern,
    enableCpuMemArena: asked.arena,
    executionMode: "sequential",
    extra: nested(config),
  };
}

/** Converts `{"a.b": "1"}` to `{a: {b: "1"}}`, as ONNX Runtime Web takes it. @param {Record<string, string>} entries */
function nested(entries) {
  // a part may be any name, also one that every object has
  const made = Object.create(null);
  for (const [name, value] of Object.entries(entries)) {
    const parts = name.split(".");
    const last = /** @type {string} */ (parts.pop());
    parts.reduce((place, part) => (place[part] ??= Object.create(null)), made)[last] = value;
  }
  return made;
}

/** @param {any} ort @param {string[]} names @param {Record<string, Tensor>} given */
function feedsOf(ort, names, given) {
  const missing = names.filter((name) => !Object.hasOwn(given, name));
  if (missing.length) {
    throw new Problem("inference_failed", `The inputs hold no array named ${missing.join(", ")}.`);
  }
  const tensor = (/** @type {Tensor} */ { dtype, shape, data }) => new ort.Tensor(dtype, data, shape);
  return Object.fromEntries(names.map((name) => [name, tensor(given[name])]));
}

/** @param {Record<string, any>} outputs @returns {Record<string, Tensor>} */
const tensorsOf = (outputs) => Object.fromEntries(
  Object.entries(outputs).map(([name, { type, dims, data }]) => [name, { dtype: type, shape: [...dims], data: data.slice() }]),
);

/** @template T @param {string} phase @param {() => Promise<T>} act @returns {Promise<T>} */
async function timed(phase, act) {
  const before = performance.now();
  const found = await act();
  phases[phase] = performance.now() - before;
  return found;
}

/** Gives an error in `act` this reason code. @template T @param {import("./contract.js").ReasonCode} code @param {() => Promise<T>} act */
async function named(code, act) {
  try {
    return await act();
  } catch (problem) {
    const text = textOf(problem);
    const isMemory = /out of memory|cannot enlarge memory|allocation failed|bad_alloc|RangeError/i.test(text);
    const what = code === "model_not_loaded" ? "ONNX Runtime Web does not load the model" : "The inference failed";
    throw new Problem(isMemory ? "out_of_memory" : code, `${what}: ${text}`);
  }
}

/** @param {unknown} problem */
function reasonOf(problem) {
  if (problem instanceof Problem) return problem.reason;
  return { code: "crashed", text: `The browser's runner stopped: ${textOf(problem)}`.slice(0, 2000) };
}

/** @param {unknown} problem */
function textOf(problem) {
  const words = problem instanceof Error ? `${problem.name}: ${problem.message}` : String(problem);
  return words.replace(/\s+/g, " ").slice(0, 500);
}
