/** Files of the farm, each checked against its digest: releases of ONNX Runtime Web, kept, and those of a block. */

import { ENGINES, Problem } from "./contract.js";
import { Refused, sleep } from "./farm.js";
import { sha256 } from "./identity.js";

const KEPT = "onnxfarm-runtimes";
const ASK_AGAIN_S = 1;
// the farm fetches a release from npm within this time, or says why not
const PATIENCE_S = 600;

/** `compiled` once a release: each launch makes an instance of its own. @typedef {{module: string, glue: string, compiled: WebAssembly.Module}} Runtime */

export class Files {
  /** @param {import("./farm.js").Farm} farm */
  constructor(farm) {
    this.farm = farm;
    /** @type {Map<string, Promise<Runtime>>} */
    this.runtimes = new Map();
    /** Versions that are here. @type {Set<string>} */
    this.ready = new Set();
  }

  /**
   * A release, ready to be imported for a provider. Throws Problem with why it cannot be had.
   * @param {string} version @param {string} provider
   */
  runtime(version, provider) {
    const key = `${version} ${provider}`;
    const known = this.runtimes.get(key) ?? this.#runtime(version, ENGINES[provider].files);
    this.runtimes.set(key, known);
    known.then(() => this.ready.add(version), () => this.runtimes.delete(key));
    return known;
  }

  /** @param {import("./contract.js").FileRef} file @param {string} token @returns {Promise<ArrayBuffer>} */
  async ofBlock(file, token) {
    return checked(await this.farm.file(file.sha256, token), file);
  }

  /** @param {string} version @param {string[]} names @returns {Promise<Runtime>} */
  async #runtime(version, names) {
    const files = await this.#listed(version);
    const bytes = async (/** @type {string} */ name) => {
      const file = files.find((one) => one.name === name);
      if (!file) throw new Problem("runtime_install_failed", `The farm has no ${name} of onnxruntime-web ${version}.`);
      return this.#kept(file);
    };
    const [module, glue, binary] = await Promise.all(names.map(bytes));
    return { module: moduleOf(module), glue: moduleOf(glue), compiled: await WebAssembly.compile(binary) };
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
    const known = await cache.match(place);
    if (known) {
      const bytes = await known.arrayBuffer();
      if ((await sha256(bytes)) === file.sha256) return bytes;
    }
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

/** @param {ArrayBuffer} bytes */
function moduleOf(bytes) {
  return URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
}
