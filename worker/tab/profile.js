/** Summarises ONNX Runtime's profile (Chrome trace) by executed node, as worker/runner/profile.py does. */

import { PROVIDER, PROVIDER_IN_PROFILE } from "./contract.js";

const SUFFIX = "_kernel_time";
const RUN = "model_run";
const MAX_NODES = 2000;
const MAX_NAME = 1000;

/**
 * Times in µs. A row is an executed node: `path` are the nodes that hold it (If, Loop, Scan), whose times leave it out;
 * `calls` are those of all runs.
 * @typedef {{name: string, cat: string, ts: number, dur: number, tid: number, args: Record<string, any>}} Event
 * @typedef {{path: string[], name: string, op_type: string, provider: string, index: number, time_us: number, calls: number}} Row
 * @typedef {{row: Row, spent: number[]}} Total
 * @typedef {{total: Total, run: number, end: number, time: number}} Executed
 */

/**
 * Reads the events that were printed to the console, with the farm's name of the provider. Throws for other text.
 * @param {string} printed
 */
export function eventsOf(printed) {
  const lines = printed.split("\n");
  const start = lines.findIndex((line) => line.trim() === "[");
  const text = lines.slice(Math.max(0, start)).join("\n").trim();
  /** @type {Event[]} */
  const events = JSON.parse(text.endsWith("]") ? text : `${text.replace(/,$/, "")}]`);
  for (const event of events) {
    if (!isEvent(event)) throw new TypeError("not an event");
    if (event.args?.provider === PROVIDER_IN_PROFILE) event.args.provider = PROVIDER;
  }
  return events;
}

/** Makes the contract's TraceReport without arm and round. The first run warms up. @param {Event[]} events */
export function summariseProfile(events) {
  const { runs, runUs, rows } = rowsOf(events, 1);
  const operators = rows.map(({ name, op_type: type, provider, time_us: time, calls }) => ({
    node: name || type, op_type: type, provider, time_us: time, calls: Math.max(1, Math.round(calls / runs)),
  }));
  return { runs, run_us: runs ? runUs : null, providers: sharesOf(rows), operators: operators.slice(0, MAX_NODES) };
}

/** Makes the rows of the runs after the skipped ones, the slowest first. @param {Event[]} events @param {number} skipped */
export function rowsOf(events, skipped) {
  const byStart = (/** @type {Event} */ one, /** @type {Event} */ other) => one.ts - other.ts || other.dur - one.dur;
  const spans = events.filter(({ name }) => name === RUN).sort(byStart).slice(skipped);
  /** @type {Map<string, Total>} */
  const totals = new Map();
  for (const { total, run, time } of executed(events.filter(isNode).sort(byStart), spans, totals)) {
    total.spent[run] = (total.spent[run] ?? 0) + Math.max(0, time);
    total.row.calls++;
  }
  const rows = [...totals.values()].map(({ row, spent }) => ({
    ...row, time_us: medianOfWhole(Array.from(spans, (_, run) => spent[run] ?? 0)),
  }));
  rows.sort((one, other) => other.time_us - one.time_us);
  return { runs: spans.length, runUs: spans.length ? medianOfWhole(spans.map(({ dur }) => dur)) : 0, rows };
}

/** Lists the nodes of a run, each with its time without that of the nodes of the same thread inside it. */
function executed(/** @type {Event[]} */ nodes, /** @type {Event[]} */ spans, /** @type {Map<string, Total>} */ totals) {
  /** @type {Executed[]} */
  const done = [];
  /** @type {Map<number, Executed[]>} */
  let open = new Map();
  let run = 0;
  for (const event of nodes) {
    for (; run < spans.length && event.ts > spans[run].ts + spans[run].dur; run++) open = new Map();
    if (run === spans.length) break;
    if (event.ts < spans[run].ts) continue;
    const stack = open.get(event.tid) ?? [];
    open.set(event.tid, stack);
    const end = event.ts + event.dur;
    // starts are whole microseconds, so a node that starts when this one ends is not inside it
    for (let top = stack.at(-1); top && (top.end <= event.ts || top.end < end); top = stack.at(-1)) stack.pop();
    const holder = stack.at(-1);
    if (holder) holder.time -= event.dur;
    const one = { total: totalOf(totals, event, stack.map(({ total }) => total.row.name)), run, end, time: event.dur };
    stack.push(one);
    done.push(one);
  }
  return done;
}

/** @param {Map<string, Total>} totals @param {Event} event @param {string[]} path */
function totalOf(totals, { name: named, args }, path) {
  const [name, index] = [named.slice(0, -SUFFIX.length), Number.parseInt(args.node_index ?? -1, 10)];
  const row = { path, name, op_type: args.op_name, provider: args.provider, index, time_us: 0, calls: 0 };
  const key = JSON.stringify([path, name, row.op_type, row.provider, index]);
  const total = totals.get(key) ?? { row, spent: [] };
  totals.set(key, total);
  return total;
}

/** Computes the median of times in whole µs, interpolated among equal ones, as `median_grouped`. @param {number[]} all */
function medianOfWhole(all) {
  const sorted = Float64Array.from(all).sort();
  const middle = sorted[sorted.length >> 1];
  const below = sorted.indexOf(middle);
  const equal = sorted.lastIndexOf(middle) - below + 1;
  return Math.max(0, middle - 0.5 + (sorted.length / 2 - below) / equal);
}

const isNode = (/** @type {Event} */ { cat, name }) => cat === "Node" && name.endsWith(SUFFIX);

/** Says whether the fields of an event that are read have their types. @param {any} event */
function isEvent(event) {
  const { name, ts, dur, args } = event ?? {};
  if (typeof name !== "string") return false;
  if (name !== RUN && !isNode(event)) return true;
  if (![ts, dur].every((time) => Number.isFinite(time) && time >= 0)) return false;
  const texts = name === RUN ? [] : [name, args?.op_name, args?.provider];
  return texts.every((text) => typeof text === "string" && text.length <= MAX_NAME && text.isWellFormed() && !text.includes("\0"));
}

/** Computes shares of providers in executed nodes, by count and by time; by count where none took a measurable time. @param {Row[]} rows */
function sharesOf(rows) {
  const timeOf = (/** @type {Row[]} */ some) => some.reduce((sum, row) => sum + row.time_us, 0);
  const total = timeOf(rows);
  return [...new Set(rows.map(({ provider }) => provider))].map((name) => {
    const own = rows.filter(({ provider }) => provider === name);
    const share = total ? timeOf(own) / total : own.length / rows.length;
    return { name, nodes: own.length, time_share: Math.min(1, share) };
  });
}
