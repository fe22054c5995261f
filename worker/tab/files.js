/** Fetches the farm's files, checks their digests, and keeps the releases of ONNX Runtime Web. */

import { ENGINES } from "./contract.js";
import { Refused, sleep } from "./farm.js";
import { sha256 } from "./identity.js";
import { Problem } from "./problem.js";
import { Sandbox } from "./sandbox.js";

const KEPT = "onnxfarm-runtimes";
const ASK_AGAIN_S = 1;
// the time within which the farm fetches a release from npm, or says why not
const PATIENCE_S = 600;

// the maximum of arms in a block; with more releases, the least recently used one is closed
const MAX_SANDBOXES = 16;

export class Files {
  /** @param {import("./farm.js").Farm} farm */
  constructor(farm) {
    this.farm = farm;
    /** @type {Map<string, Promise<Sandbox>>} */
    this.sandboxes = new Map();
    /** The versions that were fetched. @type {Set<string>} */
    this.ready = new Set();
  }

  /**
   * Opens a release in a frame of its own, for a provider. Throws Problem where that fails.
   * @param {string} version @param {string} provider
   */
  runtime(version, provider) {
    const key = `${version} ${provider}`;
    const known = this.sandboxes.get(key) ?? this.#sandbox(version, ENGINES[provider]);
    this.sandboxes.delete(key);
    this.sandboxes.set(key, known);
    const [[oldest, unused]] = this.sandboxes;
    if (this.sandboxes.size > MAX_SANDBOXES) {
      this.sandboxes.delete(oldest);
      unused.then((sandbox) => sandbox.close(), () => undefined);
    }
    known.then(() => this.ready.add(version), () => this.sandboxes.delete(key));
    return known;
  }

  /** @param {import("./contract.js").FileRef} file @param {string} token @returns {Promise<ArrayBuffer>} */
  async ofBlock(file, token) {
    return checked(await this.farm.file(file.sha256, token), file);
  }

  /** @param {string} version @param {import("./contract.js").Engine} engine */
  async #sandbox(version, { files: names, isSecure }) {
    const files = await this.#listed(version);
    const bytes = async (/** @type {string} */ name) => {
      const file = files.find((listed) => listed.name === name);
      if (!file) throw new Problem("runtime_install_failed", `The farm has no ${name} of onnxruntime-web ${version}.`);
      return this.#kept(file);
    };
    const [module, glue, binary] = await Promise.all(names.map(bytes));
    const sandbox = new Sandbox({ module: new Blob([module]), glue: new Blob([glue]), binary: new Blob([binary]), isSecure });
    await sandbox.open();
    return sandbox;
  }

  /** @param {string} version */
  async #listed(version) {
    for (let waited = 0; waited < PATIENCE_S; waited += ASK_AGAIN_S) {
      try {
        const { is_ready: isReady, files } = await this.farm.runtime(version);
        if (isReady) return files;
      } catch (problem) {
        if (!(problem instanceof Refused)) throw problem;
        const isUnknown = problem.status === 404 || problem.code === "unknown_runtime";
        throw new Problem(isUnknown ? "unknown_runtime" : "runtime_install_failed", problem.message);
      }
      await sleep(ASK_AGAIN_S);
    }
    throw new Problem("runtime_install_failed", `The farm has not fetched onnxruntime-web ${version} in time.`);
  }

  /** @param {import("./contract.js").FileRef} file */
  async #kept(file) {
    const cache = await caches.open(KEPT);
    const place = `./${file.sha256}`;
    const known = await (await cache.match(place))?.arrayBuffer();
    if (known && (await sha256(known)) === file.sha256) return known;
    const bytes = await checked(await this.farm.runtimeFile(file.sha256), file);
    await cache.put(place, new Response(bytes)).catch(() => undefined);
    return bytes;
  }
}

/** @param {ArrayBuffer} bytes @param {import("./contract.js").FileRef} file */
async function checked(bytes, file) {
  if ((await sha256(bytes)) === file.sha256) return bytes;
  throw new Problem("artifact_unavailable", `The file ${file.name} is not the one that its digest names.`);
}
