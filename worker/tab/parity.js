/** Compares outputs with their references, as worker/runner/parity.py does. The farm judges the differences. */

/** @typedef {import("./npz.js").Tensor} Tensor */

const EXACT = new Set(["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]);

// the minimum tolerance of float16 outputs: eight units in the last place
const LEAST = 2 ** -7;
// stands for minus infinity in masked scores
const MASKED = -10_000;

/**
 * Makes the contract's OutputParity: differences in float64, without elements that are not finite in both.
 * @param {string} name @param {Tensor} value @param {Tensor | undefined} reference
 * `atol` is a part of the reference's scale, and at least the precision of a 16-bit output, unless `isAbsolute`.
 * @param {import("./contract.js").Tolerance} tolerance @param {boolean} isAbsolute
 */
export function compareOutput(name, value, reference, { atol, rtol }, isAbsolute = false) {
  const found = numbers(value);
  const facts = {
    name,
    dtype: value.dtype,
    shape: value.shape,
    elements: found.length,
    nan_count: count(found, Number.isNaN),
    inf_count: count(found, (value) => Math.abs(value) === Infinity),
  };
  if (!reference) return facts;
  const known = { ...facts, reference_shape: reference.shape };
  if (reference.shape.join() !== value.shape.join()) return { ...known, violations: Math.max(1, found.length) };
  const wanted = numbers(reference);
  const isExact = EXACT.has(value.dtype) && EXACT.has(reference.dtype);
  const least = value.dtype === "float16" && !isAbsolute ? LEAST : 0;
  const [floor, slope] = [Math.max(atol, least) * (isAbsolute ? 1 : scaleOf(wanted)), Math.max(rtol, least)];
  const limit = (/** @type {number} */ old) => floor + slope * Math.abs(old);
  const told = { ...known, ...differences(found, wanted, limit), top1_agreement: top1(value, found, wanted) };
  // exact types are compared as they are, because float64 does not hold all 64-bit integers
  return isExact ? { ...told, violations: found.filter((_, at) => value.data[at] != reference.data[at]).length } : told;
}

/** Computes the root mean square of the finite values without masked scores, at least 1. @param {Float64Array} all */
function scaleOf(all) {
  const finite = all.filter(Number.isFinite);
  const lowest = 0.999 * Math.min(finite.reduce((low, value) => Math.min(low, value), 0), MASKED);
  const masked = count(finite, (value) => value <= lowest);
  const own = masked > 1 ? finite.filter((value) => value > lowest) : finite;
  const largest = own.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (largest <= 1) return 1;
  const squares = own.reduce((sum, value) => sum + (value / largest) ** 2, 0);
  return Math.max(1, largest * Math.sqrt(squares / own.length));
}

/** Says whether two outputs are the same to the last bit. @param {Tensor} one @param {Tensor} other */
export function areBitEqual(one, other) {
  const [first, second] = [one, other].map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return first.length === second.length && first.every((byte, at) => byte === second[at]);
}

/** @param {Float64Array} found @param {Float64Array} wanted @param {(old: number) => number} limit */
function differences(found, wanted, limit) {
  let [maxAbs, maxRel, squares, finite, violations] = [0, -1, 0, 0, 0];
  for (let at = 0; at < found.length; at++) {
    const [now, old] = [found[at], wanted[at]];
    if (!Number.isFinite(now) || !Number.isFinite(old)) {
      if (!Object.is(now, old)) violations++;
      continue;
    }
    const gap = Math.abs(now - old);
    finite++;
    if (gap > limit(old)) violations++;
    maxAbs = Math.max(maxAbs, gap);
    squares += gap * gap;
    if (old !== 0) maxRel = Math.max(maxRel, gap / Math.abs(old));
  }
  if (!finite) return { violations };
  const rmse = Math.sqrt(squares / finite);
  return {
    violations,
    max_abs: maxAbs,
    max_rel: maxRel >= 0 && Number.isFinite(maxRel) ? maxRel : null,
    rmse: Number.isFinite(rmse) ? rmse : null,
    cosine: cosine(found, wanted),
  };
}

/** Computes the cosine of the elements that are finite in both. Scaling first keeps large squares finite. */
function cosine(/** @type {Float64Array} */ found, /** @type {Float64Array} */ wanted) {
  let [topFound, topWanted] = [0, 0];
  const places = [];
  for (let at = 0; at < found.length; at++) {
    if (!Number.isFinite(found[at]) || !Number.isFinite(wanted[at])) continue;
    places.push(at);
    topFound = Math.max(topFound, Math.abs(found[at]));
    topWanted = Math.max(topWanted, Math.abs(wanted[at]));
  }
  if (topFound === 0 && topWanted === 0) return 1;
  if (topFound === 0 || topWanted === 0) return null;
  let [product, one, other] = [0, 0, 0];
  for (const at of places) {
    const [now, old] = [found[at] / topFound, wanted[at] / topWanted];
    product += now * old;
    one += now * now;
    other += old * old;
  }
  return Math.max(-1, Math.min(1, product / (Math.sqrt(one) * Math.sqrt(other))));
}

/** Computes the share of rows whose largest score is at the same place; only for two-dimensional float outputs. */
function top1(/** @type {Tensor} */ value, /** @type {Float64Array} */ found, /** @type {Float64Array} */ wanted) {
  const [rows, columns] = value.shape;
  const isScores = value.shape.length === 2 && columns > 1 && rows > 0 && value.dtype.startsWith("float");
  if (!isScores || found.some(Number.isNaN) || wanted.some(Number.isNaN)) return null;
  let same = 0;
  for (let row = 0; row < rows; row++) {
    const [now, old] = [found, wanted].map((all) => largest(all.subarray(row * columns, (row + 1) * columns)));
    if (now === old) same++;
  }
  return same / rows;
}

/** Finds the index of the first largest value. @param {Float64Array} row */
const largest = (row) => row.reduce((best, score, at) => (score > row[best] ? at : best), 0);

/** @param {Tensor} tensor @returns {Float64Array} */
const numbers = ({ dtype, data }) =>
  Float64Array.from(data, dtype === "float16" && data instanceof Uint16Array ? halfOf : Number);

/** Converts 16 bits to their number (IEEE 754 binary16). @param {number} bits */
function halfOf(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

/** @param {Float64Array} values @param {(value: number) => boolean} is */
const count = (values, is) => values.reduce((sum, value) => sum + (is(value) ? 1 : 0), 0);
