/** A cell, or a block, that cannot be measured: a code for programs, one sentence for people. */
export class Problem extends Error {
  /** @param {import("./contract.js").ReasonCode} code @param {string} text */
  constructor(code, text) {
    super(text);
    this.code = code;
  }

  /** @returns {import("./contract.js").Reason} */
  get reason() {
    return { code: this.code, text: this.message.slice(0, 2000) };
  }
}
