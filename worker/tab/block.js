/**
 * Measures a block: facts, checks, first traces, rounds, further traces and the end report, as worker/agent/execution.py
 * does. One launch runs at a time, and can end its cell, but never the block.
 */

import { ENGINES, FAILING, WEBGPU } from "./contract.js";
import { adapter } from "./device.js";
import { Away, Refused } from "./farm.js";
import { readArrays } from "./npz.js";
import { compareOutput } from "./parity.js";
import { Pace } from "./pace.js";
import { Problem } from "./problem.js";
import { diceOf, roundOrder, shuffled } from "./rounds.js";
import { CANCELLED } from "./sandbox.js";

const TRACE_RUNS = 30;
const [TRACE_S, FURTHER_TRACE_S] = [0.5, 0.25];
const NOT_HERE = "A browser does not do this part of a run: measure it on a node with a Python agent.";

/**
 * @typedef {import("./contract.js").ArmOrder} ArmOrder
 * @typedef {import("./contract.js").Reason} Reason
 * @typedef {import("./contract.js").Reply} Reply
 * @typedef {import("./farm.js").Report} Report
 * @typedef {{order: ArmOrder, sandbox: import("./sandbox.js").Sandbox, launched: object, reference: Record<string, import("./npz.js").Tensor>}} Prepared
 * @typedef {{files: import("./files.js").Files, farm: import("./farm.js").Farm, facts: () => Promise<object>,
 *   report: (report: Report) => Promise<Reply>, say: (doing: string, leftS: number | null) => void, signal: AbortSignal}}
 *   Environment
 */

/** Ends the block now, for a reason. */
class Stop extends Error {
  /** @param {Reason} reason */
  constructor(reason) {
    super(reason.text);
    this.reason = reason;
  }
}

/** Measures the block of a lease and reports it; throws where the farm takes no reports of it any more. */
export class Block {
  /** @param {import("./contract.js").Lease} lease @param {Environment} environment */
  constructor(lease, environment) {
    this.lease = lease;
    this.order = lease.order;
    this.environment = environment;
    this.began = performance.now();
    /** @type {Map<number, Prepared>} */
    this.alive = new Map();
    this.pace = new Pace(this.order.promised_s);
    this.hasRounds = false;
    /** The most rounds and traces that are still to come; the farm may end the block sooner. */
    this.toCome = { rounds: this.order.max_rounds, traces: 0 };
  }

  async run() {
    /** @type {Reason | null} */
    let reason = null;
    try {
      await this.#measure();
    } catch (problem) {
      if (!(problem instanceof Stop)) throw problem;
      // a block that took too long keeps the rounds that it has
      reason = problem.reason.code === "timeout" && this.hasRounds ? null : problem.reason;
    }
    const wallS = (performance.now() - this.began) / 1000;
    await this.environment.report({ kind: "end", reason, wall_s: wallS });
  }

  async #measure() {
    const { order, environment } = this;
    await environment.report({ kind: "facts", facts: await environment.facts() });
    if (order.divergences.length) throw new Stop({ code: "not_supported", text: NOT_HERE });
    for (const arm of order.arms) await this.#prepare(arm);
    this.pace.began = performance.now();
    for (const arm of [...this.alive.values()]) await this.#check(arm);
    await this.#traceFirst();
    await this.#tellWhatIsLeftOut(order.arms.filter((arm) => arm.evaluation), "accuracy");
    const reply = await this.#measureRounds();
    await this.#traceAgain(reply);
    await this.#tellWhatIsLeftOut(order.sustained_s ? order.arms : [], "curve");
  }

  /** Fetches the runtime and files of an arm. Where that fails, its check reports the reason. @param {ArmOrder} arm */
  async #prepare(arm) {
    const { distribution, version } = arm.cell.runtime;
    this.#tell(`waiting for the farm: ${distribution}==${version} and the files of arm ${arm.arm}`);
    try {
      this.alive.set(arm.arm, await prepared(arm, this.lease.token, this.environment.files));
    } catch (problem) {
      const reason = reasonOf(problem);
      this.#stopIfOver();
      await this.#tellCheck({ kind: "check", arm: arm.arm, reason });
    }
    this.#stopIfOver();
  }

  /** @param {Prepared} arm */
  async #check(arm) {
    this.#say(arm, "checking");
    const answer = await this.#launch(arm, "check");
    const report = { kind: "check", arm: arm.order.arm, requested_providers: ENGINES[arm.order.cell.provider].requested };
    if (answer.reason) {
      this.alive.delete(arm.order.arm);
      return this.#tellCheck({ ...report, reason: answer.reason });
    }
    return this.#tellCheck({ ...report, ...(await checked(arm, answer)) });
  }

  /** @param {Report} report */
  async #tellCheck(report) {
    await this.environment.report(report);
    this.#stopIfFailFast(Number(report.arm), /** @type {Reason | undefined} */ (report.reason));
  }

  async #traceFirst() {
    if (this.order.budget === "glance") return;
    const began = performance.now();
    for (const arm of this.alive.values()) await this.#trace(arm, 0, TRACE_S);
    this.pace.traceS = (performance.now() - began) / 1000 / Math.max(1, this.alive.size);
  }

  /** Traces an arm. Where that fails, the cell stays measured, without placement. */
  async #trace(/** @type {Prepared} */ arm, /** @type {number} */ round, /** @type {number} */ traceS) {
    this.#say(arm, round ? `trace ${round + 1}` : "tracing");
    const answer = await this.#launch(arm, "trace", { traceRuns: TRACE_RUNS, traceS });
    const place = { kind: "trace", arm: arm.order.arm, trace_round: round };
    if (answer.reason) return void (await this.environment.report({ ...place, reason: answer.reason }));
    const sha256 = round ? null : await this.#kept(arm, answer.events);
    await this.environment.report({ ...place, ...answer.found, raw_sha256: sha256 });
  }

  /** Sends a raw trace. It may fail, because the figures are in the report. */
  async #kept(/** @type {Prepared} */ arm, /** @type {string} */ events) {
    const packed = new Blob([events]).stream().pipeThrough(new CompressionStream("gzip"));
    try {
      return await this.environment.farm.trace(this.lease, arm.order.arm, 0, await new Response(packed).blob());
    } catch (problem) {
      if (problem instanceof Away || problem instanceof Refused) return null;
      throw problem;
    }
  }

  /** @returns {Promise<Reply>} */
  async #measureRounds() {
    const { first_round: first, max_rounds: most } = this.order;
    /** @type {Reply} */
    let reply = { go_on: true, trace_arms: [], trace_rounds: 0 };
    for (let number = first; number < first + most && this.alive.size && reply.go_on; number++) {
      const began = performance.now();
      const samples = await this.#round(number);
      this.pace.measured((performance.now() - began) / 1000);
      const report = { kind: "round", round: number, samples, is_last: !this.pace.hasRoomForARound };
      reply = await this.environment.report(report);
      this.hasRounds = true;
    }
    return reply;
  }

  /** @param {number} number */
  async #round(number) {
    const { block, seed, budget } = this.order;
    const samples = [];
    const places = roundOrder([...this.alive.keys()], number, `${block}/${seed}`);
    for (const [position, arm] of places.entries()) {
      const prepared = /** @type {Prepared} */ (this.alive.get(arm));
      this.toCome.rounds = this.order.first_round + this.order.max_rounds - number - position / places.length;
      this.#say(prepared, `round ${number + 1}`);
      const answer = await this.#launch(prepared, "sample", { budget });
      if (answer.reason) {
        this.alive.delete(arm);
        samples.push({ arm, position, reason: answer.reason });
        if (this.order.fail_fast) await this.environment.report({ kind: "round", round: number, samples });
        this.#stopIfFailFast(arm, answer.reason);
      } else {
        const phases = { ...answer.phases, process: answer.wallMs };
        samples.push({ arm, position, sample: { ...answer.sample, phases_ms: phases } });
      }
    }
    return samples;
  }

  /** Takes interleaved traces for attribution, as the last reply asked for. @param {Reply} reply */
  async #traceAgain(reply) {
    const dice = diceOf(`${this.order.block}/${this.order.seed}/traces`);
    const asked = reply.trace_arms.filter((arm) => this.alive.has(arm));
    this.toCome.rounds = 0;
    const arms = asked.slice(0, this.pace.traceable(asked.length, reply.trace_rounds));
    for (let round = 1; round <= reply.trace_rounds && this.pace.hasRoomForTraces(arms.length); round++) {
      for (const [place, arm] of shuffled([...arms], dice).entries()) {
        this.toCome.traces = (reply.trace_rounds - round + 1) * arms.length - place;
        await this.#trace(/** @type {Prepared} */ (this.alive.get(arm)), round, FURTHER_TRACE_S);
      }
    }
  }

  /** Reports for each arm what the order asks for and a browser does not do. */
  async #tellWhatIsLeftOut(/** @type {ArmOrder[]} */ arms, /** @type {string} */ kind) {
    for (const { arm, evaluation } of arms) {
      if (!this.alive.has(arm)) continue;
      const recipe = /** @type {any} */ (evaluation)?.recipe;
      const said = kind === "accuracy" ? { recipe } : {};
      await this.environment.report({ kind, arm, reason: { code: "not_supported", text: NOT_HERE }, ...said });
    }
  }

  /** @param {Prepared} arm @param {import("./answers.js").Kind} kind @param {object} more */
  async #launch(arm, kind, more = {}) {
    const how = { timeoutS: this.order.runner_timeout_s, signal: this.environment.signal };
    const answer = await arm.sandbox.launch({ ...arm.launched, kind, ...more }, how);
    this.#stopIfOver();
    return answer;
  }

  /** @param {Prepared} arm @param {string} what */
  #say(arm, what) {
    const { runtime } = arm.order.cell;
    this.#tell(`${what}: ${runtime.distribution}==${runtime.version}, arm ${arm.order.arm}`);
  }

  /** @param {string} doing */
  #tell(doing) {
    this.environment.say(doing, this.pace.remainingS(this.toCome.rounds, this.toCome.traces));
  }

  #stopIfOver() {
    if (this.environment.signal.aborted) throw new Stop(CANCELLED);
    const limitS = this.order.block_timeout_s;
    if ((performance.now() - this.began) / 1000 > limitS) {
      const text = `The block took longer than its limit of ${limitS.toFixed(0)} s; give it fewer cells or more time.`;
      throw new Stop({ code: "timeout", text });
    }
  }

  /** @param {number} arm @param {Reason | undefined} reason */
  #stopIfFailFast(arm, reason) {
    if (!this.order.fail_fast || !reason || !FAILING.has(reason.code)) return;
    const text = `Arm ${arm} ended as ${reason.code} and the matrix says fail-fast: ${reason.text}`.slice(0, 2000);
    throw new Stop({ code: "fail_fast", text });
  }
}

/** @param {ArmOrder} order @param {string} token @param {import("./files.js").Files} files @returns {Promise<Prepared>} */
async function prepared(order, token, files) {
  const { provider, runtime, session } = order.cell;
  if (!Object.hasOwn(ENGINES, provider)) throw new Problem("provider_not_in_build", `A browser has no ${provider}.`);
  const sandbox = await files.runtime(runtime.version, provider);
  const bytes = await Promise.all(order.bundle.files.map((file) => files.ofBlock(file, token)));
  const named = order.bundle.files.map((file, at) => ({ path: file.name, data: new Blob([bytes[at]]) }));
  const model = named.find((file) => file.path === order.bundle.main);
  if (!model) throw new Problem("artifact_unavailable", `The bundle has no ${order.bundle.main}.`);
  const inputs = await readArrays(await files.ofBlock(order.inputs, token));
  const reference = order.reference ? await readArrays(await files.ofBlock(order.reference, token)) : Object.create(null);
  const external = named.filter((file) => file !== model);
  return { order, sandbox, reference, launched: { provider, model: model.data, external, inputs, session } };
}

/** Makes the contract's CheckReport of a check's answer. @param {Prepared} arm @param {any} answer */
async function checked({ order, reference }, answer) {
  const { provider, runtime } = order.cell;
  if (answer.version && answer.version !== runtime.version) {
    const text = `The module says that it is ${answer.version}, and ${runtime.version} was asked for.`;
    return { reason: { code: "garbled", text } };
  }
  // an output may have any name
  const limits = (/** @type {string} */ name) => (Object.hasOwn(order.tolerances, name) ? order.tolerances[name] : order.tolerance);
  const outputs = Object.entries(answer.outputs);
  const gpu = provider === WEBGPU ? await adapter() : null;
  return {
    active_providers: ENGINES[provider].requested,
    import_ms: answer.phases.import,
    session_ms: answer.phases.session,
    first_ms: answer.phases.first,
    outputs: outputs.map(([name, value]) => compareOutput(name, value, reference[name], limits(name), Object.hasOwn(order.tolerances, name))),
    is_repeatable: answer.isRepeatable,
    packages: { [runtime.distribution]: runtime.version },
    provider_facts: {
      "clock resolution": `${answer.resolutionMs} ms`,
      "isolated": answer.isIsolated ? "yes" : "no",
      ...(gpu ? { adapter: gpu.name } : {}),
    },
    ...(gpu?.isSoftware ? { is_simulated: true } : {}),
  };
}

/** @param {unknown} problem @returns {Reason} */
function reasonOf(problem) {
  if (problem instanceof Problem) return problem.reason;
  if (problem instanceof Away || problem instanceof Refused) {
    return { code: "artifact_unavailable", text: `The farm did not give what the cell needs: ${problem.message}` };
  }
  throw problem;
}
