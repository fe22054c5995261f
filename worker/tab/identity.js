/**
 * Keeps this browser's identity in IndexedDB: the node's number, and an Ed25519 key that cannot be read. The farm has
 * the public half, whose fingerprint a person compares.
 */

/** @typedef {{nodeId: string, name: string, fingerprint: string, keys: CryptoKeyPair}} Identity */

const DATABASE = "onnxfarm-node";
const STORE = "kept";
const KEY = "identity";

/** Makes a key pair whose private half even this page cannot read. @returns {Promise<CryptoKeyPair>} */
export const makeKeys = async () =>
  /** @type {CryptoKeyPair} */ (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]));

/** @param {CryptoKeyPair} keys @returns {Promise<string>} base64 of 32 bytes */
export async function publicKey(keys) {
  return base64(new Uint8Array(await crypto.subtle.exportKey("raw", keys.publicKey)));
}

/** Makes the fingerprint as farm/contract/signatures.py: 16 bytes of SHA-256, in groups of four digits. @param {string} key */
export async function fingerprintOf(key) {
  const raw = Uint8Array.from(atob(key), (sign) => sign.charCodeAt(0));
  return (await sha256(raw)).slice(0, 32).match(/.{4}/g)?.join(":") ?? "";
}

/** Signs a request for a secret. @param {Identity} identity */
export async function proof({ nodeId, keys }) {
  const signedAt = Math.floor(Date.now() / 1000);
  const message = new TextEncoder().encode(`onnxfarm node secret\n${nodeId}\n${signedAt}`);
  const signature = new Uint8Array(await crypto.subtle.sign("Ed25519", keys.privateKey, message));
  return { node_id: nodeId, signed_at: signedAt, signature: base64(signature) };
}

/** @returns {Promise<Identity | undefined>} */
export const load = () => inStore("readonly", (store) => store.get(KEY));
export const keep = (/** @type {Identity} */ identity) => inStore("readwrite", (store) => store.put(identity, KEY));
/** Deletes the key, so that this browser has to join as another node. */
export const forget = () => inStore("readwrite", (store) => store.delete(KEY));

/** @param {BufferSource} bytes @returns {Promise<string>} in hexadecimal digits */
export async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {Uint8Array} bytes */
export function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/**
 * @template T
 * @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest<T>} act @returns {Promise<T>}
 */
async function inStore(mode, act) {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const database = await answered(opening);
  try {
    return await answered(act(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function answered(request) {
  return new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
}
