/**
 * Checks the answer of a launch. The answer is not trusted, because the release of ONNX Runtime Web runs in the same
 * worker as the code that makes it. An answer without the types and sizes that the farm accepts is `garbled`.
 */

import { arrayOf } from "./npz.js";
import { Problem } from "./problem.js";
import { eventsOf, summariseProfile } from "./profile.js";

/** @typedef {"check" | "trace" | "sample"} Kind */

const MAX_TEXT = 2000;
const MAX_NAME = 1000;
const MAX_OUTPUTS = 1000;
const MAX_DIMENSIONS = 64;
const MAX_PROFILE = 256 * 1024 ** 2;
// the maximum of characters in the names and types of a report's operators
const MAX_OPERATORS = 600_000;
const PHASES = ["import", "session", "first", "warmup", "window"];
/** Reasons that a runner may give; only the page gives the others. @type {import("./contract.js").ReasonCode[]} */
const CODES = ["model_not_loaded", "inference_failed", "out_of_memory", "not_supported", "crashed"];
const READERS = { check: checkOf, trace: traceOf, sample: sampleOf };

/** Returns the findings of a pass with its `phases`. Throws Problem with the runner's own reason, or `garbled`. */
export function readAnswer(/** @type {Kind} */ kind, /** @type {unknown} */ said) {
  const answer = record(said, "the answer");
  if (answer.reason !== undefined) throw problemOf(record(answer.reason, "the reason"));
  return { ...READERS[kind](answer), phases: phasesOf(answer.phases) };
}

/** Returns the part of an untrusted text that may be shown and sent. @param {unknown} said */
export const cleaned = (said) => String(said).slice(0, MAX_TEXT).toWellFormed().replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

/** @param {Record<string, unknown>} reason */
function problemOf({ code, text }) {
  const known = CODES.find((each) => each === code);
  if (!known) throw garbled(`the code of its reason is ${shown(code)}`);
  return new Problem(known, cleaned(text) || "The browser's runner gave no reason.");
}

/** @param {Record<string, unknown>} answer */
function checkOf({ version, outputs, isRepeatable, isIsolated, resolutionMs }) {
  const named = Object.entries(record(outputs, "outputs"));
  if (named.length > MAX_OUTPUTS) throw garbled(`it has ${named.length} outputs`);
  if (named.some(([name]) => name.length > MAX_NAME || cleaned(name) !== name)) throw garbled("the name of an output is no name");
  return {
    version: cleaned(version).slice(0, 100),
    outputs: Object.fromEntries(named.map(([name, value]) => [name, tensorOf(value, name)])),
    isRepeatable: flag(isRepeatable, "isRepeatable"),
    isIsolated: flag(isIsolated, "isIsolated"),
    resolutionMs: number(resolutionMs, "resolutionMs"),
  };
}

/** @param {Record<string, unknown>} answer */
function traceOf({ profile }) {
  if (typeof profile !== "string" || profile.length > MAX_PROFILE) throw garbled(`its profile is ${shown(profile)}`);
  let events;
  try {
    events = eventsOf(profile);
  } catch {
    throw garbled("its profile is no list of events");
  }
  const found = summariseProfile(events);
  if (!found.runs) throw garbled("its profile holds no complete run");
  const length = found.operators.reduce((sum, { node, op_type: type }) => sum + node.length + type.length, 0);
  if (length > MAX_OPERATORS) throw garbled(`its operators have names of ${length} characters`);
  return { events: JSON.stringify(events), found };
}

/** @param {Record<string, unknown>} answer */
function sampleOf({ sample }) {
  const told = record(sample, "sample");
  const times = ["p50_ms", "mean_ms", "min_ms", "max_ms", "throughput"].map((name) => [name, positive(told[name], name)]);
  const n = count(told.n, "n");
  return {
    sample: {
      ...Object.fromEntries(times),
      n,
      std_ms: number(told.std_ms, "std_ms"),
      timings: timingsOf(told.timings, n),
      warmup_runs: count(told.warmup_runs, "warmup_runs"),
      warmup_ms: number(told.warmup_ms, "warmup_ms"),
      is_stable: flag(told.is_stable, "is_stable"),
    },
  };
}

/** Checks timings that windows.js packed: at most `n` numbers of eight bytes. @param {unknown} said @param {number} n */
function timingsOf(said, n) {
  const longest = 4 * Math.ceil((8 * Math.min(n, 10_000) + 100) / 3) + 3;
  if (typeof said !== "string" || said.length > longest || !/^u[48]:[A-Za-z0-9+/]+={0,2}$/.test(said)) {
    throw garbled(`its timings are ${shown(said)}`);
  }
  return said;
}

/** @param {unknown} said @returns {Record<string, number>} */
function phasesOf(said) {
  const told = record(said, "phases");
  return Object.fromEntries(PHASES.filter((name) => name in told).map((name) => [name, number(told[name], name)]));
}

/** @param {unknown} said @param {string} name @returns {import("./npz.js").Tensor} */
function tensorOf(said, name) {
  const { dtype, shape, data } = record(said, "an output");
  const array = /** @type {any} */ (data);
  const Kind = arrayOf(String(dtype));
  if (!Kind) {
    throw new Problem("not_supported", `The output ${cleaned(name)} has the type ${shown(dtype)}, which browsers do not compare.`);
  }
  const dims = Array.isArray(shape) && shape.length <= MAX_DIMENSIONS ? shape.map((size) => count(size, "a shape")) : null;
  const isHalf = dtype === "float16" && array instanceof Uint16Array;
  if (!dims || !(array instanceof Kind || isHalf)) throw garbled(`the output ${cleaned(name)} is no array of ${dtype}`);
  const elements = dims.reduce((product, size) => product * size, 1);
  if (elements !== array.length) throw garbled(`the output ${cleaned(name)} has ${array.length} elements and the shape ${dims}`);
  return { dtype: String(dtype), shape: dims, data: array };
}

/** @param {unknown} said @param {string} what @returns {Record<string, unknown>} */
function record(said, what) {
  if (typeof said === "object" && said && Object.getPrototypeOf(said) === Object.prototype) {
    return /** @type {Record<string, unknown>} */ (said);
  }
  throw garbled(`${what} is ${shown(said)}`);
}

/** @param {unknown} said @param {string} what */
function flag(said, what) {
  if (typeof said !== "boolean") throw garbled(`${what} is ${shown(said)}`);
  return said;
}

/** @param {unknown} said @param {string} what */
function number(said, what) {
  if (typeof said !== "number" || !Number.isFinite(said) || said < 0) throw garbled(`${what} is ${shown(said)}`);
  return said;
}

/** @param {unknown} said @param {string} what */
function positive(said, what) {
  if (number(said, what) === 0) throw garbled(`${what} is 0`);
  return /** @type {number} */ (said);
}

/** @param {unknown} said @param {string} what */
function count(said, what) {
  const value = number(said, what);
  if (!Number.isSafeInteger(value)) throw garbled(`${what} is ${shown(said)}`);
  return value;
}

const garbled = (/** @type {string} */ what) =>
  new Problem("garbled", `The release's answer is not one that a runner gives: ${what}.`);
const shown = (/** @type {unknown} */ said) =>
  ["string", "number", "boolean"].includes(typeof said) ? cleaned(said).slice(0, 80) : typeof said;
