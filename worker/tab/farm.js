/** Calls the farm's API for nodes (farm/contract/node.py) over HTTPS, with one method for each address. */

/** One of the contract's reports. @typedef {{kind: string} & Record<string, unknown>} Report */

const ROOT = new URL("../", import.meta.url);
const ANSWER_MS = 30_000;

/** There was no answer, or one to try later: the same request may be sent again. */
export class Away extends Error {}

/** The farm refuses the request, and would again. `code` is the reason for programs. */
export class Refused extends Error {
  /** @param {number} status @param {string} code @param {string} text */
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

export class Farm {
  constructor() {
    this.secret = "";
    /** Gets a new secret when the farm does not know this one any more. @type {(() => Promise<void>) | null} */
    this.renew = null;
  }

  /** @param {object} enrolment @returns {Promise<{node_id: string, health: string, fingerprint: string}>} */
  enrol(enrolment) {
    return this.#json("POST", "enrol", { body: enrolment });
  }

  /** @param {object} request @returns {Promise<{secret: string, expires_at: string, rotate_at: string}>} */
  grant(request) {
    return this.#json("POST", "secret", { body: request });
  }

  /** @param {object} said @param {{isLast?: boolean}} how @returns {Promise<import("./contract.js").Welcome>} */
  hello(said, { isLast = false } = {}) {
    return this.#json("POST", "hello", { body: said, isLast });
  }

  /**
   * Waits for the next message of this node's queues; null when there was none in time.
   * @param {number} waitS @param {AbortSignal} signal @returns {Promise<{message: {body: string}} | null>}
   */
  async message(waitS, signal) {
    const answer = await this.#answer("GET", `messages?wait=${waitS}`, { signal, waitMs: waitS * 1000 });
    return answer.status === 204 ? null : answer.json();
  }

  /** @param {string} block @param {number} attempt @returns {Promise<import("./contract.js").Lease>} */
  claim(block, attempt) {
    return this.#json("POST", `blocks/${block}/claim`, { body: { attempt } });
  }

  /** @param {import("./contract.js").Lease} lease @param {string} doing @returns {Promise<{lease_s: number}>} */
  heartbeat({ order, token }, doing) {
    const body = { attempt: order.attempt, doing: doing.slice(0, 300) };
    return this.#json("POST", `blocks/${order.block}/heartbeat`, { body, token });
  }

  /**
   * @param {import("./contract.js").Lease} lease @param {Report} report @param {{isLast?: boolean}} how
   * @returns {Promise<import("./contract.js").Reply>}
   */
  report({ order, token }, report, { isLast = false } = {}) {
    const body = { attempt: order.attempt, report };
    return this.#json("POST", `blocks/${order.block}/reports`, { body, token, isLast });
  }

  /**
   * Stores a gzipped trace, and returns its digest.
   * @param {import("./contract.js").Lease} lease @param {number} arm @param {number} round @param {Blob} packed
   * @returns {Promise<string>}
   */
  async trace({ order, token }, arm, round, packed) {
    const address = `blocks/${order.block}/traces/${arm}/${round}?attempt=${order.attempt}`;
    const answer = await this.#answer("PUT", address, { bytes: packed, token });
    return (await answer.json()).sha256;
  }

  /** @param {string} version @returns {Promise<{is_ready: boolean, files: import("./contract.js").FileRef[]}>} */
  runtime(version) {
    return this.#json("GET", `runtimes/${version}`);
  }

  /** @param {string} sha256 @returns {Promise<ArrayBuffer>} */
  async runtimeFile(sha256) {
    return (await this.#answer("GET", `runtime-files/${sha256}`, { waitMs: 600_000 })).arrayBuffer();
  }

  /** @param {string} sha256 @param {string} token @returns {Promise<ArrayBuffer>} */
  async file(sha256, token) {
    return (await this.#answer("GET", `files/${sha256}`, { token, waitMs: 600_000 })).arrayBuffer();
  }

  /** @param {string} method @param {string} address @param {Asked} asked @returns {Promise<any>} */
  async #json(method, address, asked = {}) {
    return (await this.#answer(method, address, asked)).json();
  }

  /**
   * @typedef {{body?: object, bytes?: Blob, token?: string, signal?: AbortSignal, waitMs?: number, isLast?: boolean}}
   *   Asked
   * @param {string} method @param {string} address @param {Asked} asked @returns {Promise<Response>}
   */
  async #answer(method, address, asked) {
    const shown = this.secret;
    let answer = await this.#once(method, address, asked);
    if (answer.status === 401 && this.renew && address !== "secret") {
      if (this.secret === shown) await this.renew();
      answer = await this.#once(method, address, asked);
    }
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => ({}));
    const text = said.detail ?? `The farm answered ${answer.status}.`;
    if ([408, 425, 429].includes(answer.status) || answer.status >= 500) throw new Away(text);
    throw new Refused(answer.status, said.code ?? "", text);
  }

  /** @param {string} method @param {string} address @param {Asked} asked @returns {Promise<Response>} */
  async #once(method, address, { body, bytes, token, signal, waitMs = 0, isLast = false }) {
    /** @type {Record<string, string>} */
    const headers = {};
    // the page supports few features of orders, and reports for each arm what it left out
    if (address.endsWith("/claim")) headers["X-Understands"] = "accuracies";
    if (this.secret) headers.Authorization = `Bearer ${this.secret}`;
    if (token) headers["X-Attempt-Token"] = token;
    if (body) headers["Content-Type"] = "application/json";
    const limit = AbortSignal.timeout(ANSWER_MS + waitMs);
    try {
      return await fetch(new URL(address, ROOT), {
        method,
        headers,
        body: body ? JSON.stringify(body) : bytes,
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
        keepalive: isLast,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
      });
    } catch (problem) {
      throw new Away(`The farm does not answer (${/** @type {Error} */ (problem).message}).`);
    }
  }
}

/** Reads the block and attempt that a message offers. @param {{message: {body: string}}} offer */
export function calledFor(offer) {
  const [, named] = JSON.parse(atob(offer.message.body));
  return { block: String(named.block), attempt: Number(named.attempt) };
}

/** Computes the seconds to wait after a number of tries. @param {number} tries */
export const pauseAfter = (tries) => Math.min(30, 0.5 * 2 ** Math.min(tries, 8)) * (0.75 + Math.random() / 2);
export const sleep = (/** @type {number} */ seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
