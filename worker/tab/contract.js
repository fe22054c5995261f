/**
 * What this page agrees on with the farm: farm/contract and farm/rules, as far as a browser needs them. A test holds the
 * numbers equal to those of the farm.
 */

export const CONTRACT_VERSION = 2;
export const DISTRIBUTION = "onnxruntime-web";
/** The release that the probe and the self-test run on. */
export const PROBED_WITH = "1.30.0";
export const PROVIDER = "WasmExecutionProvider";
/** What the profile of ONNX Runtime Web calls it. */
export const PROVIDER_IN_PROFILE = "CPUExecutionProvider";
export const TAG = "wasm";
export const MODULE = "ort.wasm.min.mjs";
export const GLUE = "ort-wasm-simd-threaded.mjs";
export const BINARY = "ort-wasm-simd-threaded.wasm";
export const WEBGPU = "WebGpuExecutionProvider";
export const WEBGPU_TAG = "webgpu";
/** The tag of a browser whose adapter is the processor in a GPU's place. */
export const WEBGPU_SOFTWARE_TAG = "webgpu-simulated";
export const WEBGPU_MODULE = "ort.webgpu.min.mjs";
export const WEBGPU_GLUE = "ort-wasm-simd-threaded.asyncify.mjs";
export const WEBGPU_BINARY = "ort-wasm-simd-threaded.asyncify.wasm";
export const WEBNN = "WebNNExecutionProvider";
export const WEBNN_TAG = "webnn";
/**
 * What a browser runs: the package's word for the provider, and its files. What WebGPU or WebNN does not take runs as
 * WebAssembly. `isSecure`: browsers give it to secure contexts alone (frame.js).
 * @typedef {{short: string, files: string[], requested: string[], isSecure: boolean}} Engine
 * @type {Record<string, Engine>}
 */
export const ENGINES = {
  [PROVIDER]: { short: "wasm", files: [MODULE, GLUE, BINARY], requested: [PROVIDER], isSecure: false },
  [WEBNN]: { short: "webnn", files: [WEBGPU_MODULE, WEBGPU_GLUE, WEBGPU_BINARY], requested: [WEBNN, PROVIDER], isSecure: true },
  [WEBGPU]: { short: "webgpu", files: [WEBGPU_MODULE, WEBGPU_GLUE, WEBGPU_BINARY], requested: [WEBGPU, PROVIDER], isSecure: true },
};
/** Codes of reasons that end a cell as failed, and not as refused. */
export const FAILING = new Set([
  "timeout", "crashed", "runtime_install_failed", "artifact_unavailable", "out_of_memory", "flooded", "garbled",
  "inference_failed", "node_lost", "internal",
]);

/**
 * @typedef {{code: string, text: string}} Reason
 * @typedef {{name: string, sha256: string, bytes: number}} FileRef
 * @typedef {{main: string, files: FileRef[]}} Bundle
 * @typedef {{threads: number, optimization: string, spinning: boolean, memory_pattern: boolean, arena: boolean,
 *   config: Record<string, string>}} SessionSettings
 * @typedef {{runtime: {distribution: string, version: string}, provider: string, session: SessionSettings}} CellSpec
 * @typedef {{atol: number, rtol: number}} Tolerance
 * @typedef {{arm: number, cell: CellSpec, bundle: Bundle, inputs: FileRef, reference: FileRef | null,
 *   tolerance: Tolerance, tolerances: Record<string, Tolerance>, evaluation: object | null}} ArmOrder
 * @typedef {{block: string, attempt: number, budget: string, seed: number, max_rounds: number, first_round: number,
 *   fail_fast: boolean, runner_timeout_s: number, block_timeout_s: number, promised_s: number | null,
 *   sustained_s: number, arms: ArmOrder[], divergences: object[]}} BlockOrder
 * @typedef {{order: BlockOrder, token: string, lease_s: number}} Lease
 * @typedef {{go_on: boolean, trace_arms: number[], trace_rounds: number}} Reply
 * @typedef {{kind: string} & Record<string, unknown>} Report
 * @typedef {{wait_s: number, hello_every_s: number, is_paused: boolean}} NodeSettings
 * @typedef {{health: string, queues: string[], settings: NodeSettings, sentence: string}} Welcome
 */

/** A cell, or a block, that cannot be measured: a code for programs, one sentence for people. */
export class Problem extends Error {
  /** @param {string} code @param {string} text */
  constructor(code, text) {
    super(text);
    this.code = code;
  }

  /** @returns {Reason} */
  get reason() {
    return { code: this.code, text: this.message.slice(0, 2000) };
  }
}
