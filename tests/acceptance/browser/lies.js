/**
 * What a lying tab may send, by the modules of worker/tab themselves. Evaluated in the tab's own page, step by step;
 * `window.liar` and `window.other` are two nodes that joined. The names are those of
 * tests/integration/node_api/test_bad_input.py.
 */
const at = (name) => import(`/api/node/v1/tab/${name}.js`);

window.steps = {
  async join({ codes }) {
    const [{ Farm }, identity, { facts }] = [await at("farm"), await at("identity"), await at("device")];
    const joined = async (name, code) => {
      const [farm, keys] = [new Farm(), await identity.makeKeys()];
      const enrolment = { code, name, public_key: await identity.publicKey(keys), facts: await facts(name), contract_version: 2 };
      return { farm, keys, nodeId: (await farm.enrol(enrolment)).node_id, enrolment };
    };
    window.liar = await joined("liar", codes[0]);
    window.other = await joined("other", codes[1]);
    return [window.liar.nodeId, window.other.nodeId];
  },

  async hello() {
    const { proof } = await at("identity");
    for (const one of [window.liar, window.other]) {
      one.farm.secret = (await one.farm.grant(await proof(one))).secret;
      one.said = {
        contract_version: 2, facts: one.enrolment.facts, tags: { wasm: "a trace" }, providers: ["WasmExecutionProvider"],
        runtimes: [], state: "idle", block: null, self_test: null, doing: "",
      };
      await one.farm.hello(one.said);
    }
  },

  async lie({ lateCode }) {
    const { liar, other } = window;
    const [{ Farm, calledFor }, { makeKeys, proof }, { summarise }] = [await at("farm"), await at("identity"), await at("windows")];
    // a block rung twice is offered twice: what is over is not given out again
    const claimed = async (after = 0) => {
      for (;;) {
        const offer = await liar.farm.message(5, new AbortController().signal);
        const { block, attempt } = offer ? calledFor(offer) : { block: "", attempt: 0 };
        if (attempt > after) return liar.farm.claim(block, attempt);
      }
    };
    const earlier = await claimed();
    const gone = { code: "cancelled", text: "The page of this node was closed." };
    await liar.farm.report(earlier, { kind: "end", reason: gone, wall_s: 0 });
    const lease = await claimed(earlier.order.attempt);
    const { token, order: { block, attempt } } = lease;
    const check = (more = {}) => ({ kind: "check", arm: 0, requested_providers: ["WasmExecutionProvider"], first_ms: 1, ...more });
    const sample = async (ms, count) => ({
      ...(await summarise(Array.from({ length: count }, () => ms * 1e6))), warmup_runs: 3, warmup_ms: 1, is_stable: true,
    });
    const round = async (changes, number = 0, ms = 1, count = 20) => ({
      kind: "round", round: number,
      samples: [{ arm: 0, position: 0, sample: { ...(await sample(ms, count)), ...changes } }],
    });
    const report = (what, by = liar, how = lease) => by.farm.report(how, what);
    const packed = async () => new Response(new Blob(["[]"]).stream().pipeThrough(new CompressionStream("gzip"))).blob();
    const lies = {
      "a forged attempt token": () => report(check(), liar, { ...lease, token: `ofa_${"f".repeat(64)}` }),
      "no attempt token": () => report(check(), liar, { ...lease, token: "" }),
      "another node with the right token": () => report(check(), other),
      "a replayed report of an earlier attempt": () => report(check(), liar, earlier),
      "a report of an attempt to come": () =>
        report(check(), liar, { ...lease, order: { ...lease.order, attempt: lease.order.attempt + 1 } }),
      "a report over the limit": () => report(check({ log_tail: " ".repeat(2 ** 21) })),
      "a report of no known kind": () => report({ kind: "gossip" }),
      "a latency that is no number": async () => report(await round({ p50_ms: NaN })),
      "a p50 above p99": async () => report(await round({ p50_ms: 9 })),
      "a p50 that its timings do not have": async () => report(await round({ p50_ms: 0.5, min_ms: 0.5 })),
      "more inference than the wall clock has": async () => report(await round({}, 0, 1000, 600)),
      "a cell of another block": () => report(check({ arm: 9 })),
      "a round that is not due": async () => report(await round({}, 5)),
      "a trace of an arm that is not there": async () => liar.farm.trace(lease, 9, 0, await packed()),
      "what is no trace": () => liar.farm.trace(lease, 0, 0, new Blob(["no gzip"])),
      "a file of another block": () => liar.farm.file("0".repeat(64), token),
      "a block that another node measures": () => other.farm.claim(block, attempt),
      "another report in the place of the first": async () => {
        await report(check());
        return report(check({ first_ms: 99 }));
      },
      "a secret that nobody was given": () => Object.assign(new Farm(), { secret: "ofn_nobody" }).hello(other.said),
      "a signature of another key": async () => liar.farm.grant(await proof({ ...other, keys: await makeKeys() })),
      "an enrolment code used twice": () => new Farm().enrol({ ...liar.enrolment, name: "second" }),
      "an enrolment code that comes late": () => new Farm().enrol({ ...liar.enrolment, name: "late", code: lateCode }),
      "a tag that the facts deny": () => other.farm.hello({ ...other.said, tags: { arm: "trust me" } }),
      "a tag without evidence": () => other.farm.hello({ ...other.said, tags: { garage: " " } }),
      "a provider's tag that no probe has proven": () => other.farm.hello({ ...other.said, tags: { cuda: "trust me" } }),
      "a processor that says it is two": () =>
        other.farm.hello({ ...other.said, tags: { x86: "yes" }, facts: { ...other.said.facts, arch: "aarch64" } }),
      "a report after the end": async () => {
        await report({ kind: "end", reason: null, wall_s: 0 });
        // one that was taken before would only be answered again
        return report({ kind: "facts", facts: liar.enrolment.facts });
      },
    };
    const answers = {};
    for (const [name, lie] of Object.entries(lies)) answers[name] = await window.steps.answerTo(lie);
    return answers;
  },

  async revoked() {
    return { "a revoked secret": await window.steps.answerTo(() => window.other.farm.hello(window.other.said)) };
  },

  async answerTo(lie) {
    try {
      return ["taken", JSON.stringify(await lie()), ""];
    } catch (problem) {
      return [problem.status ?? problem.name, problem.code ?? "", problem.message];
    }
  },
};
