/** Says why a cell or a block cannot be measured, by a code for programs and one sentence for people. */
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
