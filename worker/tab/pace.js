/** How a block keeps the time that was promised for it, as worker/agent/measurement/schedule.py does. Seconds everywhere. */

// rounds up to the first look come before everything else; further ones leave this share to further traces
const FIRST_LOOK = 8;
const TRACES_SHARE = 0.25;
const PAIR = 2;

export class Pace {
  /** @param {number | null} promisedS null: nothing was promised */
  constructor(promisedS) {
    this.promisedS = promisedS ?? Infinity;
    this.rounds = 0;
    this.roundS = 0;
    /** That the first trace of an arm took. */
    this.traceS = 0;
    /** Since when the promised time counts. */
    this.began = performance.now();
  }

  /** @param {number} seconds that the last round took */
  measured(seconds) {
    this.rounds++;
    this.roundS = seconds;
  }

  get hasRoomForARound() {
    const isLimited = this.promisedS < Infinity && this.rounds >= FIRST_LOOK;
    return this.leftS >= this.roundS + (isLimited ? TRACES_SHARE * this.promisedS : 0);
  }

  /** @param {number} arms */
  hasRoomForTraces(arms) {
    return this.leftS >= arms * this.traceS;
  }

  /** How many of so many arms may be traced so often; those of one comparison at least. */
  traceable(/** @type {number} */ arms, /** @type {number} */ rounds) {
    const eachS = rounds * this.traceS;
    if (arms <= PAIR || eachS === 0 || this.leftS >= arms * eachS) return arms;
    return Math.max(PAIR, Math.floor(this.leftS / eachS));
  }

  /**
   * Seconds that so many rounds and traces take at the pace of the last ones, within what was promised; before the
   * first round what is left of that. Null: nobody knows yet.
   * @param {number} rounds @param {number} traces
   */
  remainingS(rounds, traces) {
    const needsS = this.rounds ? rounds * this.roundS + traces * this.traceS : Infinity;
    const leftS = Math.max(0, Math.min(this.leftS, needsS));
    return leftS < Infinity ? leftS : null;
  }

  get leftS() {
    return this.promisedS - (performance.now() - this.began) / 1000;
  }
}
