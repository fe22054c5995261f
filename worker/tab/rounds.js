/** Orders the arms of a round at random, balanced over rounds, as worker/agent/measurement/schedule.py does. */

/**
 * Takes rows of a Williams square over shuffled arms: in k rounds, each of k arms has every place once.
 * @param {number[]} arms @param {number} number of the round @param {string} seed
 */
export function roundOrder(arms, number, seed) {
  const count = arms.length;
  if (count < 2) return [...arms];
  const [cycle, row] = [Math.floor(number / count), number % count];
  const dice = diceOf(`${seed}/${cycle}`);
  const names = shuffled([...arms].sort((one, other) => one - other), dice);
  const shifts = shuffled(Array.from(names, (_, at) => at), dice);
  // 0, 1, count-1, 2, count-2, …: neighbours differ by every amount once
  const steps = Array.from(names, (_, at) => (at % 2 ? (at + 1) / 2 : count - at / 2));
  const places = steps.map((step) => (step + shifts[row]) % count);
  // for an odd number, every other cycle is reversed, so that two cycles balance which arm follows which
  if (count % 2 && cycle % 2) places.reverse();
  return places.map((place) => names[place]);
}

/** @template T @param {T[]} all @param {() => number} dice @returns {T[]} */
export function shuffled(all, dice) {
  for (let at = all.length - 1; at > 0; at--) {
    const other = Math.floor(dice() * (at + 1));
    [all[at], all[other]] = [all[other], all[at]];
  }
  return all;
}

/** Makes a generator of numbers from 0 to 1 by the seed (mulberry32 on an FNV-1a digest). @param {string} seed */
export function diceOf(seed) {
  let state = 0x811c9dc5;
  for (const sign of seed) state = Math.imul(state ^ sign.charCodeAt(0), 0x01000193);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

