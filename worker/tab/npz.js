/** Reads the arrays of an `.npz`: a ZIP of numpy's `.npy` files (stored or deflated, in C order). */

import { Problem } from "./problem.js";

/**
 * @typedef {{dtype: string, shape: number[], data: any}} Tensor
 * `dtype` is ONNX Runtime Web's name, and `data` the typed array.
 */

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const STORED = 0;
const DEFLATED = 8;

/** @type {Record<string, [string, any]>} */
const KINDS = {
  "<f4": ["float32", Float32Array],
  "<f8": ["float64", Float64Array],
  "<f2": ["float16", /** @type {any} */ (globalThis).Float16Array ?? Uint16Array],
  "|b1": ["bool", Uint8Array],
  "|u1": ["uint8", Uint8Array],
  "|i1": ["int8", Int8Array],
  "<u2": ["uint16", Uint16Array],
  "<i2": ["int16", Int16Array],
  "<u4": ["uint32", Uint32Array],
  "<i4": ["int32", Int32Array],
  "<u8": ["uint64", BigUint64Array],
  "<i8": ["int64", BigInt64Array],
};

/** Finds the typed array of a type of ONNX Runtime Web; undefined for a type that is not read here. @param {string} dtype */
export const arrayOf = (dtype) => Object.values(KINDS).find(([name]) => name === dtype)?.[1];

/** Reads all arrays of an archive by name. A name may be any text. @param {ArrayBuffer} archive @returns {Promise<Record<string, Tensor>>} */
export async function readArrays(archive) {
  const view = new DataView(archive);
  /** @type {Record<string, Tensor>} */
  const arrays = Object.create(null);
  for (const entry of entriesOf(view)) {
    arrays[entry.name.replace(/\.npy$/, "")] = tensorOf(await contentOf(view, entry), entry.name);
  }
  return arrays;
}

/** @param {DataView<ArrayBuffer>} view */
function* entriesOf(view) {
  let end = view.byteLength - 22;
  while (end >= 0 && view.getUint32(end, true) !== END) end--;
  if (end < 0) throw new Problem("artifact_unavailable", "The inputs of this cell are not an .npz file.");
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left--) {
    if (view.getUint32(at, true) !== ENTRY) throw new Problem("artifact_unavailable", "The .npz file is broken.");
    const length = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(new Uint8Array(view.buffer, at + 46, length));
    const method = view.getUint16(at + 10, true);
    yield { name, method, packed: view.getUint32(at + 20, true), header: view.getUint32(at + 42, true) };
    at += 46 + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
}

/** @param {DataView<ArrayBuffer>} view @param {{name: string, method: number, packed: number, header: number}} entry */
async function contentOf(view, { name, method, packed, header }) {
  const start = header + 30 + view.getUint16(header + 26, true) + view.getUint16(header + 28, true);
  const bytes = new Uint8Array(view.buffer, start, packed);
  if (method === STORED) return bytes.slice().buffer;
  if (method !== DEFLATED) throw new Problem("not_supported", `The array ${name} is packed by method ${method}.`);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
}

/** @param {ArrayBuffer} file @param {string} name @returns {Tensor} */
function tensorOf(file, name) {
  const view = new DataView(file);
  const isLong = view.getUint8(6) > 1;
  const length = isLong ? view.getUint32(8, true) : view.getUint16(8, true);
  const start = (isLong ? 12 : 10) + length;
  const header = new TextDecoder("latin1").decode(new Uint8Array(file, start - length, length));
  const kind = header.match(/'descr':\s*'([^']+)'/)?.[1] ?? "";
  const shape = (header.match(/'shape':\s*\(([^)]*)\)/)?.[1] ?? "").split(",").map((part) => part.trim());
  if (!Object.hasOwn(KINDS, kind) || /'fortran_order':\s*True/.test(header)) {
    throw new Problem("not_supported", `The array ${name} has the type ${kind || "unknown"}, which browsers are not given.`);
  }
  const [dtype, Kind] = KINDS[kind];
  return { dtype, shape: shape.filter(Boolean).map(Number), data: new Kind(file.slice(start)) };
}
