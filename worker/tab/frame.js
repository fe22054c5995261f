/**
 * Runs a release of ONNX Runtime Web in a frame of an opaque origin, which may not connect to anything. The policy is in
 * farm/gateway/tab.py, which also puts this text into the frame. The frame gets one release, then orders. Each order runs
 * in a new worker, whose first message is the answer. Nothing of the release runs in the frame itself.
 */
"use strict";
{
  /**
   * `modules`: those of the runner by name, each after its imports. `isSecure`: whether the worker needs a secure
   * context.
   * @typedef {{modules: [string, string][], module: Blob, glue: Blob, binary: Blob, isSecure: boolean}} Release
   */

  /** @type {{address: string, sent: object} | null} */
  let opened = null;

  addEventListener("message", ({ data, source, ports: [port] }) => {
    if (source !== parent || !port) return;
    if (data.release) open(data.release, port);
    else launch(data.order, port);
  });

  /** @param {Release} release @param {MessagePort} port */
  async function open({ modules, module, glue, binary, isSecure }, port) {
    const text = `(${begin})(${JSON.stringify(`(${beginThread})()`)})`;
    // Chromium gives a worker of an opaque origin either: isolation, for a fine clock and threads, to one that comes from
    // a blob; a secure context, for WebGPU and WebNN, to one that comes from data
    const address = isSecure ? `data:text/javascript,${encodeURIComponent(text)}` : URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    try {
      const compiled = await WebAssembly.compile(await binary.arrayBuffer());
      opened = { address, sent: { modules, module, glue, compiled } };
      port.postMessage({});
    } catch (problem) {
      port.postMessage({ problem: String(problem) });
    }
  }

  /** @param {object} order @param {MessagePort} port */
  function launch(order, port) {
    if (!opened) return port.postMessage({ problem: "no release was given" });
    const worker = new Worker(opened.address);
    const end = (/** @type {object} */ answer) => {
      worker.onmessage = worker.onmessageerror = worker.onerror = null;
      worker.terminate();
      port.postMessage(answer);
    };
    worker.onmessage = ({ data }) => end({ found: data });
    worker.onmessageerror = () => end({ problem: "its answer could not be read" });
    worker.onerror = (event) => end({ problem: event.message || "the browser ended it" });
    worker.postMessage({ ...opened.sent, order });
  }

  /** Runs in the worker: loads the runner's modules, and answers the order. @param {string} thread the worker's text */
  function begin(thread) {
    /** @param {BlobPart} part */
    const addressOf = (part) => URL.createObjectURL(new Blob([part], { type: "text/javascript" }));

    /** The address of the last module. @param {[string, string][]} modules */
    function linked(modules) {
      /** @type {Record<string, string>} */
      const addresses = {};
      let last = "";
      for (const [name, text] of modules) {
        const own = text.replace(/ from "\.\/([a-z]+\.js)";/g, (_, other) => ` from "${addresses[other]}";`);
        last = addresses[name] = addressOf(own);
      }
      return last;
    }

    self.onmessage = async ({ data: { modules, module, glue, compiled, order } }) => {
      self.onmessage = null;
      const { Worker } = self;
      const threadAddress = addressOf(thread);
      // threads are modules, which Chromium loads in no worker of an opaque origin: they import theirs themselves
      self.Worker = /** @type {any} */ (
        function (/** @type {unknown} */ _, /** @type {WorkerOptions | undefined} */ options) {
          const worker = new Worker(threadAddress, { name: options?.name });
          worker.postMessage(glue);
          return worker;
        }
      );
      const { run } = await import(linked(modules));
      self.postMessage(await run({ ...order, module: addressOf(module), glue: addressOf(glue), compiled }));
    };
  }

  /** Runs in a thread of WebAssembly: what arrives while its module loads waits. */
  function beginThread() {
    const began = async (/** @type {MessageEvent} */ { data: glue }) => {
      /** @type {unknown[]} */
      const waiting = [];
      const wait = (/** @type {MessageEvent} */ event) => {
        event.stopImmediatePropagation();
        waiting.push(event.data);
      };
      self.addEventListener("message", wait);
      await import(URL.createObjectURL(glue));
      self.removeEventListener("message", wait);
      for (const data of waiting) self.dispatchEvent(new MessageEvent("message", { data }));
    };
    self.addEventListener("message", began, { once: true });
  }
}
