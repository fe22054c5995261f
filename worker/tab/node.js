/** Runs the node while its page is visible and not paused: approval, hellos, the long poll and blocks. */

import { Block } from "./block.js";
import { CONTRACT_VERSION, DISTRIBUTION } from "./contract.js";
import { facts, pauseOfDevice } from "./device.js";
import { Away, Refused, calledFor, pauseAfter, sleep } from "./farm.js";
import { Files } from "./files.js";
import { proof } from "./identity.js";
import { probe } from "./probe.js";
import { Problem } from "./problem.js";

const APPROVAL_S = 2;
const PAUSED_S = 5;
const REPORT_TRIES = 12;
/** After this number of leases without an answer, the farm has given the block to another node. */
const PATIENCE_LEASES = 4;

/**
 * `leftS`: the maximum of seconds that the block still takes; null: not known.
 * @typedef {{state: "pending" | "ready" | "measuring" | "paused" | "refused" | "away", sentence: string, doing: string,
 *   leftS: number | null, blocks: number}} Standing
 */

/** Says whether the farm does not know this node any more. @param {unknown} problem */
function isGone(problem) {
  return problem instanceof Refused && (problem.status === 401 || ["retired", "bad_signature"].includes(problem.code));
}

export class Node {
  /** @param {import("./farm.js").Farm} farm @param {import("./identity.js").Identity} identity */
  constructor(farm, identity) {
    this.farm = farm;
    this.identity = identity;
    this.files = new Files(farm);
    this.farm.renew = () => this.#renewSecret();
    this.isPausedHere = false;
    /** @type {(standing: Standing) => void} */
    this.onChange = () => undefined;
    /** @type {Standing} */
    this.standing = { state: "pending", sentence: "", doing: "", leftS: null, blocks: 0 };
    /** @type {import("./probe.js").Abilities | null} */
    this.abilities = null;
    /** @type {import("./contract.js").Lease | null} */
    this.lease = null;
    /** Ends the present work when the page is hidden, paused or left. */
    this.now = new AbortController();
    this.helloAt = 0;
    this.helloEveryS = 60;
    this.isOver = false;
    /** @type {import("./contract.js").Welcome | null} */
    this.lastWelcome = null;
    /** Whether the last hello said that the page is away. */
    this.wasAway = false;
    this.tries = 0;
    /** @type {object | null} */
    this.facts = null;
  }

  /** Runs until the farm refuses this node, or the page is left. */
  async run() {
    try {
      await this.#approved();
      while (!this.isOver) await this.#turn();
    } catch (problem) {
      if (!isGone(problem)) throw problem;
      this.#tell({ state: "refused", sentence: /** @type {Error} */ (problem).message, doing: "" });
    }
  }

  /** Gives the block back to the farm when the page was hidden, or the owner paused the node. */
  reconsider() {
    if (this.pause) this.now.abort();
    else if (this.now.signal.aborted) this.now = new AbortController();
  }

  /** Gives the block back when the page may be closing, by the last request that a page can send. */
  leave() {
    this.now.abort();
    const reason = { code: "cancelled", text: "The page of this node was closed." };
    const lost = () => undefined;
    if (this.lease) this.farm.report(this.lease, { kind: "end", reason, wall_s: 0 }, { isLast: true }).catch(lost);
    if (this.farm.secret) this.#hello({ isLeaving: true }).catch(lost);
  }

  /** Says in one sentence why this page takes no block; empty when it does. */
  get pause() {
    if (this.isPausedHere) return "Paused here.";
    return document.visibilityState === "hidden" ? "The page is hidden: show it to go on." : "";
  }

  /** Waits until a person has compared the fingerprint. */
  async #approved() {
    for (let tries = 0; !this.farm.secret; tries++) {
      try {
        await this.#renewSecret();
      } catch (problem) {
        if (isGone(problem) || !(problem instanceof Refused || problem instanceof Away)) throw problem;
        this.#tell({ state: problem instanceof Away ? "away" : "pending", sentence: /** @type {Error} */ (problem).message });
        await sleep(Math.min(30, APPROVAL_S * 1.2 ** Math.min(tries, 16)));
      }
    }
  }

  async #renewSecret() {
    this.farm.secret = (await this.farm.grant(await proof(this.identity))).secret;
  }

  async #turn() {
    try {
      this.abilities ??= await this.#probe();
      const paused = this.pause || (await pauseOfDevice());
      if (paused) return await this.#rest(paused);
      if (this.now.signal.aborted) this.now = new AbortController();
      const welcome = await this.#welcome();
      if (welcome.queues.length === 0) return await this.#rest(welcome.sentence || "The farm gives this node no work now.");
      this.#tell({ state: "ready", sentence: "Waiting for work.", doing: "" });
      const offer = await this.farm.message(welcome.settings.wait_s, this.now.signal);
      if (offer && !this.pause) await this.#take(calledFor(offer));
      this.tries = 0;
    } catch (problem) {
      if (isGone(problem) || !(problem instanceof Error)) throw problem;
      // another node has the block, or the page was hidden meanwhile
      if ((problem instanceof Refused && problem.status === 409) || this.now.signal.aborted) return;
      if (![Refused, Away, Problem].some((kind) => problem instanceof kind)) throw problem;
      this.tries++;
      this.#tell({ state: problem instanceof Away ? "away" : "paused", sentence: problem.message, doing: "" });
      await sleep(pauseAfter(this.tries));
    }
  }

  async #probe() {
    this.#tell({ state: "paused", sentence: "Trying what this browser can do; the farm may have to fetch ONNX Runtime Web." });
    const found = await probe(this.files);
    this.helloAt = 0;
    return found;
  }

  /** @param {string} sentence */
  async #rest(sentence) {
    this.#tell({ state: "paused", sentence, doing: "" });
    if (performance.now() >= this.helloAt) await this.#welcome(Boolean(this.pause));
    await sleep(this.pause ? 0.5 : PAUSED_S);
  }

  /** Says hello when it is due, or when a pause began or ended. @param {boolean} isAway */
  async #welcome(isAway = false) {
    const isDue = performance.now() >= this.helloAt || this.wasAway !== isAway;
    if (isDue || !this.lastWelcome) {
      this.lastWelcome = await this.#hello({ isLeaving: isAway });
      this.wasAway = isAway;
      this.helloEveryS = this.lastWelcome.settings.hello_every_s;
      this.helloAt = performance.now() + this.helloEveryS * 1000;
    }
    return this.lastWelcome;
  }

  async #hello({ isLeaving = false } = {}) {
    const { abilities, lease } = this;
    const runtimes = [...this.files.ready].map((version) => ({ distribution: DISTRIBUTION, version }));
    const said = {
      contract_version: CONTRACT_VERSION,
      facts: (this.facts ??= await facts(this.identity.name)),
      tags: abilities?.tags ?? {},
      providers: abilities?.providers ?? [],
      runtimes,
      state: isLeaving ? "leaving" : lease ? "measuring" : "idle",
      block: lease?.order.block ?? null,
      self_test: abilities?.selfTest ?? null,
      doing: "",
    };
    const welcome = await this.farm.hello(said, { isLast: isLeaving });
    if (welcome.health === "retired") throw new Refused(401, "retired", welcome.sentence);
    return welcome;
  }

  /** @param {{block: string, attempt: number}} called */
  async #take({ block, attempt }) {
    const lease = await this.farm.claim(block, attempt);
    this.lease = lease;
    const over = new AbortController();
    const signal = AbortSignal.any([this.now.signal, over.signal]);
    const beats = this.#keepLease(lease, over);
    try {
      const environment = {
        files: this.files,
        farm: this.farm,
        facts: () => facts(this.identity.name),
        report: (/** @type {import("./farm.js").Report} */ report) => this.#report(lease, report, over.signal),
        say: (/** @type {string} */ doing, /** @type {number | null} */ leftS) =>
          this.#tell({ state: "measuring", sentence: `Block ${block}`, doing, leftS }),
        signal,
      };
      await new Block(lease, environment).run();
      if (!signal.aborted) this.standing.blocks++;
    } finally {
      over.abort();
      this.lease = null;
      await beats;
    }
  }

  /** Sends a heartbeat every quarter of the lease. Ends the block when the farm gave it away, or the battery is low. */
  async #keepLease(/** @type {import("./contract.js").Lease} */ lease, /** @type {AbortController} */ over) {
    let [leaseS, answeredAt] = [lease.lease_s, performance.now()];
    while (!over.signal.aborted) {
      await Promise.race([sleep(leaseS / 4), new Promise((done) => over.signal.addEventListener("abort", done))]);
      if (over.signal.aborted) return;
      try {
        leaseS = (await this.farm.heartbeat(lease, this.standing.doing)).lease_s;
        answeredAt = performance.now();
        if (await pauseOfDevice()) this.now.abort();
      } catch (problem) {
        const isLate = performance.now() - answeredAt > PATIENCE_LEASES * leaseS * 1000;
        if (problem instanceof Refused || isLate) over.abort();
      }
    }
  }

  /** @param {import("./contract.js").Lease} lease @param {import("./farm.js").Report} report @param {AbortSignal} over */
  async #report(lease, report, over) {
    for (let tries = 1; ; tries++) {
      try {
        return await this.farm.report(lease, report);
      } catch (problem) {
        if (!(problem instanceof Away) || tries === REPORT_TRIES || over.aborted) throw problem;
        await sleep(pauseAfter(tries));
      }
    }
  }

  /** @param {Partial<Standing>} changed */
  #tell(changed) {
    Object.assign(this.standing, changed);
    this.onChange(this.standing);
  }
}
