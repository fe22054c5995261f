/** Keeps a block within its promised time, as worker/agent/measurement/schedule.py does. All times are in seconds. */

// after FIRST_LOOK rounds, a round is begun only if it leaves this share of the promised time to further traces
const FIRST_LOOK = 8;
const TRACES_SHARE = 0.25;
const PAIR = 2;

export class Pace {
  /** @param {number | null} promisedS null: nothing was promised */
  constructor(promisedS) {
    this.promisedS = promisedS ?? Infinity;
    this.rounds = 0;
    this.roundS = 0;
    /** The time of an arm's first trace. */
    this.traceS = 0;
    /** The moment from which the promised time counts. */
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

  /** Computes how many of the arms may be traced in further rounds: at least the two of one comparison. */
  traceable(/** @type {number} */ arms, /** @type {number} */ rounds) {
    const eachS = rounds * this.traceS;
    if (arms <= PAIR || eachS === 0 || this.leftS >= arms * eachS) return arms;
    return Math.max(PAIR, Math.floor(this.leftS / eachS));
  }

  /**
   * Estimates the seconds of further rounds and traces by the last ones, at most the rest of the promised time. Before
   * the first round it is that rest. Null: nothing was promised and nothing is measured yet.
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
