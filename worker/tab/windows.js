/**
 * Timing loops: warm-up, windows and when to stop, as in docs/samples.md and worker/runner/windows.py. Times are
 * milliseconds of `performance.now()`; the durations of inferences are kept in whole nanoseconds.
 */

import { base64 } from "./identity.js";

/**
 * @typedef {{warmup_s: number, warmup_cap_s: number, window_s: number, window_runs: number, window_runs_slow: number,
 *   windows_agreeing: number, at_least_s: number, at_most_s: number}} Budget
 */

const AGREEMENT = 1.05;
const WARMUP_BLOCK_MS = 50;
const WARMUP_RUNS = 3;
const SLOW_MS = 100;
// a timed call must last at least this many steps of the clock; several shorter inferences are timed together
const TICKS = 100;
const MAX_TIMINGS = 10_000;

const SHORT = { warmup_s: 0.15, warmup_cap_s: 1, windows_agreeing: 1, at_least_s: 0, at_most_s: 5 };
const LONG = { warmup_s: 0.2, warmup_cap_s: 5, windows_agreeing: 3, at_least_s: 2, at_most_s: 30 };
/** @type {Record<string, Budget>} */
const BUDGETS = {
  glance: { ...SHORT, window_s: 0.2, window_runs: 3, window_runs_slow: 1 },
  quick: { ...SHORT, warmup_cap_s: 2, window_s: 0.3, window_runs: 3, window_runs_slow: 3, at_most_s: 30 },
  standard: { ...LONG, window_s: 0.5, window_runs: 20, window_runs_slow: 5 },
  precise: { ...LONG, window_s: 1, window_runs: 40, window_runs_slow: 10, at_least_s: 4, at_most_s: 60 },
};

export const budgetOf = (/** @type {string} */ name) => BUDGETS[name] ?? BUDGETS.quick;

/**
 * Runs for at least the time and three runs, until the last two blocks of 50 ms agree within 5 %, or the cap is reached.
 * @param {() => Promise<void>} call @param {Budget} how
 */
export async function warmUp(call, how) {
  const began = performance.now();
  const done = { runs: 0, wallMs: 0, agreed: false, runMs: 0 };
  /** @type {number[]} */
  const medians = [];
  while (!done.agreed) {
    const block = await runBlock(call);
    medians.push(median(block));
    done.runs += block.length;
    done.wallMs = performance.now() - began;
    if (done.wallMs >= how.warmup_cap_s * 1000) break;
    const isLongEnough = done.wallMs >= how.warmup_s * 1000 && done.runs >= WARMUP_RUNS;
    done.agreed = isLongEnough && medians.length >= 2 && doAgree(medians.slice(-2));
  }
  done.runMs = medians[medians.length - 1];
  return done;
}

/** Computes how many inferences are timed together. @param {number} runMs @param {number} resolutionMs */
export const groupOf = (runMs, resolutionMs) =>
  Math.max(1, Math.ceil((TICKS * resolutionMs) / Math.max(runMs, resolutionMs / 10)));

/**
 * Times windows until the last ones agree on p50 and throughput, or `at_most_s` has passed.
 * @param {() => Promise<void>} call @param {Budget} how @param {number} group
 */
export async function measure(call, how, group) {
  const began = performance.now();
  /** @type {number[][]} */
  const windows = [];
  let [wallMs, isStable] = [0, false];
  do {
    windows.push(await timeWindow(call, how, group));
    wallMs = performance.now() - began;
    isStable = isSettled(windows, how);
    const isEnough = windows.length >= how.windows_agreeing && wallMs >= how.at_least_s * 1000;
    if (isEnough && (isStable || how.windows_agreeing === 1)) break;
  } while (wallMs < how.at_most_s * 1000);
  return { nanoseconds: windows.flat(), wallMs, isStable };
}

/** Summarises by p50, mean, standard deviation and extremes (ms), with packed timings and all outliers. @param {number[]} ns */
export async function summarise(ns) {
  const n = ns.length;
  const mean = ns.reduce((sum, time) => sum + time, 0) / n;
  const squares = ns.reduce((sum, time) => sum + (time - mean) ** 2, 0);
  return {
    p50_ms: median(ns) / 1e6,
    mean_ms: mean / 1e6,
    std_ms: n > 1 ? Math.sqrt(squares / (n - 1)) / 1e6 : 0,
    min_ms: ns.reduce((shortest, time) => Math.min(shortest, time)) / 1e6,
    max_ms: ns.reduce((longest, time) => Math.max(longest, time)) / 1e6,
    n,
    timings: await packTimings(ns),
  };
}

/** Packs at most MAX_TIMINGS, evenly spaced: `u4:` or `u8:`, then base64 of zlib of little-endian nanoseconds. */
export async function packTimings(/** @type {number[]} */ ns) {
  const step = Math.ceil(ns.length / MAX_TIMINGS);
  const kept = ns.filter((_, at) => at % step === 0);
  const isWide = kept.some((one) => one >= 2 ** 32);
  const bytes = isWide ? BigUint64Array.from(kept, BigInt) : Uint32Array.from(kept);
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return `${isWide ? "u8" : "u4"}:${base64(new Uint8Array(await new Response(packed).arrayBuffer()))}`;
}

/** @param {number[]} values */
export function median(values) {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const doAgree = (/** @type {number[]} */ values) => Math.max(...values) <= Math.min(...values) * AGREEMENT;

/** @param {() => Promise<void>} call @returns {Promise<number[]>} milliseconds of each run */
async function runBlock(call) {
  const block = [];
  const began = performance.now();
  let after = began;
  do {
    const before = performance.now();
    await call();
    after = performance.now();
    block.push(after - before);
  } while (after - began < WARMUP_BLOCK_MS);
  return block;
}

/** @param {() => Promise<void>} call @param {Budget} how @param {number} group */
async function timeWindow(call, how, group) {
  const ns = [];
  const began = performance.now();
  let [wanted, after] = [how.window_runs, began];
  while (ns.length * group < wanted || after - began < how.window_s * 1000) {
    const before = performance.now();
    for (let left = group; left > 0; left--) await call();
    after = performance.now();
    ns.push(Math.max(1, Math.round(((after - before) * 1e6) / group)));
    if (ns.length === 1 && (after - before) / group > SLOW_MS) wanted = how.window_runs_slow;
  }
  return ns;
}

/** @param {number[][]} windows @param {Budget} how */
function isSettled(windows, how) {
  const last = windows[windows.length - 1];
  if (how.windows_agreeing === 1) {
    const middle = last.length >> 1;
    return middle === 0 || doAgree([median(last.slice(0, middle)), median(last.slice(middle))]);
  }
  if (windows.length < how.windows_agreeing) return false;
  const recent = windows.slice(-how.windows_agreeing);
  const means = recent.map((one) => one.reduce((sum, ns) => sum + ns, 0) / one.length);
  return doAgree(recent.map(median)) && doAgree(means);
}
