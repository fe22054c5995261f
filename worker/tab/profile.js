/** ONNX Runtime's profile (Chrome trace), summed up per executed node: medians over the runs that count. */

import { PROVIDER, PROVIDER_IN_PROFILE } from "./contract.js";
import { median } from "./windows.js";

const SUFFIX = "_kernel_time";
const MOST_NODES = 2000;
const MAX_NAME = 1000;

/**
 * @typedef {{name: string, cat: string, ts: number, dur: number, args: Record<string, any>}} Event
 * @typedef {{node: string, op_type: string, provider: string, time_us: number, calls: number}} Operator
 */

/**
 * The events that were printed to the console, under the farm's name of the provider. Throws where they are none.
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

/** Whether what is read of an event has its type; of executed nodes that is more. @param {any} event */
function isEvent(event) {
  const { name, cat, ts, dur, args } = event ?? {};
  if (typeof name !== "string" || !(Number(ts) >= 0) || !(Number(dur ?? 0) >= 0)) return false;
  if (cat !== "Node" || !name.endsWith(SUFFIX)) return true;
  const texts = [name, args?.op_name, args?.provider];
  return texts.every((text) => typeof text === "string" && text.length <= MAX_NAME && text.isWellFormed() && !text.includes("\0"));
}

/** The contract's TraceReport without its place; the first run warms up. @param {Event[]} events */
export function summariseProfile(events) {
  const runs = events.filter((one) => one.name === "model_run").sort((one, other) => one.ts - other.ts).slice(1);
  /** @type {Map<string, {operator: Operator, spent: number[]}>} */
  const nodes = new Map();
  let calls = 0;
  runs.forEach((run, at) => {
    for (const event of events) {
      const isInside = event.ts >= run.ts && event.ts <= run.ts + run.dur;
      if (!isInside || event.cat !== "Node" || !event.name.endsWith(SUFFIX)) continue;
      const row = rowOf(nodes, event);
      row.spent[at] = (row.spent[at] ?? 0) + Number(event.dur);
      row.operator.calls++;
      calls++;
    }
  });
  const operators = [...nodes.values()].map(({ operator, spent }) => ({
    ...operator,
    time_us: median(Array.from(runs, (_, at) => spent[at] ?? 0)),
    calls: Math.max(1, Math.round(operator.calls / Math.max(1, runs.length))),
  }));
  operators.sort((one, other) => other.time_us - one.time_us);
  return {
    runs: runs.length,
    run_us: runs.length ? median(runs.map((run) => Number(run.dur))) : null,
    providers: calls ? sharesOf(operators) : [],
    operators: operators.slice(0, MOST_NODES),
  };
}

/** @param {Map<string, {operator: Operator, spent: number[]}>} nodes @param {Event} event */
function rowOf(nodes, { name, args }) {
  const node = name.slice(0, -SUFFIX.length);
  const key = [node, args.op_name, args.provider, args.node_index].join("\n");
  const operator = { node: node || args.op_name, op_type: args.op_name, provider: args.provider, time_us: 0, calls: 0 };
  const row = nodes.get(key) ?? { operator, spent: [] };
  nodes.set(key, row);
  return row;
}

/** Executed nodes of each provider by count and by time; by count where none took a measurable time. */
function sharesOf(/** @type {Operator[]} */ operators) {
  const total = operators.reduce((sum, one) => sum + one.time_us, 0);
  const names = [...new Set(operators.map((one) => one.provider))];
  return names.map((name) => {
    const own = operators.filter((one) => one.provider === name);
    const spent = own.reduce((sum, one) => sum + one.time_us, 0);
    return { name, nodes: own.length, time_share: Math.min(1, total ? spent / total : own.length / operators.length) };
  });
}
