/** Reads the facts of this browser and its machine, and what they lack to be a node. */

import { makeKeys } from "./identity.js";

// a module with one instruction of 128 bits
const SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);
export const NO_WEBNN = "none";
const LOW_BATTERY = 0.2;
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render|software/i;

/** Lists what this browser lacks to be a node, each in one sentence. @returns {Promise<string[]>} */
export async function obstacles() {
  const found = [];
  if (!isSecureContext) {
    found.push(
      `${location.origin} is not an https:// address: browsers keep keys and run threads there alone. ` +
        "Ask the operator of the farm to serve it by TLS (`onnxfarm serve --tls-cert … --tls-key …`, or a proxy).",
    );
  } else if (!crossOriginIsolated) {
    found.push("This page is not isolated from other sites, so that its clock is coarse: open it in a tab of its own.");
  }
  if (!WebAssembly.validate(SIMD)) {
    found.push("This browser has no WebAssembly SIMD, which ONNX Runtime Web needs: update it, or take another.");
  }
  if (isSecureContext && !(await makeKeys().catch(() => null))) {
    found.push("This browser makes no Ed25519 keys, by which the farm knows its nodes: update it, or take another.");
  }
  if (typeof indexedDB === "undefined") {
    found.push("This browser keeps nothing (IndexedDB), so that it would forget its key: leave private browsing.");
  }
  return found;
}

/** Makes the contract's Facts; null for those that the browser does not tell. @param {string} name */
export async function facts(name) {
  const [told, missing] = [await agentData(), await webnn()];
  return {
    hostname: name,
    os: told.os,
    arch: told.arch,
    logical_cores: navigator.hardwareConcurrency || null,
    sandbox: "browser",
    gpus: [],
    more: {
      browser: told.browser,
      model: told.model,
      clock_resolution_ms: clockResolutionMs(),
      is_isolated: crossOriginIsolated,
      webgpu: (await adapter())?.name ?? "none",
      webnn: !missing ? "there" : missing === NO_WEBNN ? NO_WEBNN : `${NO_WEBNN}: ${missing}`,
    },
  };
}

/** Measures the smallest step of the clock in milliseconds. */
export function clockResolutionMs() {
  let least = Infinity;
  for (let tries = 0; tries < 50; tries++) {
    const before = performance.now();
    let after = before;
    while (after === before) after = performance.now();
    least = Math.min(least, after - before);
  }
  return Math.round(least * 1e6) / 1e6;
}

/**
 * Returns the device of WebGPU; null without one. `isSoftware`: the processor emulates a GPU, so its times mean nothing.
 * @returns {Promise<{name: string, isSoftware: boolean} | null>}
 */
export async function adapter() {
  const found = await /** @type {any} */ (navigator).gpu?.requestAdapter().catch(() => null);
  if (!found) return null;
  const info = found.info ?? {};
  const told = [info.vendor, info.architecture, info.device, info.description].filter(Boolean).join(" ");
  const isSoftware = Boolean(info.isFallbackAdapter ?? found.isFallbackAdapter) || SOFTWARE.test(told);
  return { name: `${told || "unnamed"}${isSoftware ? " (software)" : ""}`.slice(0, 200), isSoftware };
}

/** Returns why WebNN does not work: NO_WEBNN where it is missing, else the browser's message; empty where it works. */
export async function webnn() {
  const { ml } = /** @type {any} */ (navigator);
  if (!ml) return NO_WEBNN;
  return ml.createContext().then(() => "", (/** @type {Error} */ problem) => problem.message.slice(0, 200) || "unknown");
}

/** Returns a sentence that says why nothing may be measured now (a low battery); empty when measuring is allowed. */
export async function pauseOfDevice() {
  const battery = await /** @type {any} */ (navigator).getBattery?.();
  if (battery && !battery.charging && battery.level < LOW_BATTERY) {
    return `The battery is at ${Math.round(battery.level * 100)} %: connect a charger to go on.`;
  }
  return "";
}

/** @returns {Promise<{os: string, arch: string, browser: string, model: string}>} */
async function agentData() {
  const data = /** @type {any} */ (navigator).userAgentData;
  const wanted = ["architecture", "bitness", "model", "platformVersion", "fullVersionList"];
  const told = data ? await data.getHighEntropyValues(wanted).catch(() => null) : null;
  if (!told) return { os: osOfText(), arch: "unknown", browser: browserOfText(), model: "" };
  /** @type {{brand: string, version: string}[]} */
  const brands = told.fullVersionList ?? data.brands;
  const brand = brands.findLast(({ brand: name }) => !/not.?a.?brand/i.test(name));
  const kinds = /** @type {Record<string, string>} */ ({ "x86 64": "x86_64", "x86 32": "i686", "arm 64": "aarch64" });
  return {
    os: `${told.platform} ${told.platformVersion ?? ""}`.trim() || "unknown",
    arch: kinds[`${told.architecture} ${told.bitness}`] ?? (told.architecture || "unknown"),
    browser: brand ? `${brand.brand} ${brand.version}` : browserOfText(),
    model: told.model ?? "",
  };
}

const osOfText = () => navigator.userAgent.match(/\(([^;)]+[^)]*)\)/)?.[1]?.slice(0, 80) ?? "unknown";
const browserOfText = () =>
  navigator.userAgent.match(/(Firefox|Version|Chrome)\/[\d.]+/)?.[0]?.replace("Version", "Safari") ?? "unknown";
