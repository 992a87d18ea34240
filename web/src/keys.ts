// Random words of a step's key, as JAX draws them: the block cipher Threefry-2x32 with 20 rounds (Salmon et al., 2011).

import { StepKey } from "./game";

const ROTATIONS = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
];
const PARITY = 0x1bd11bda;

/** The encrypted pair of words. */
export function threefry(key: StepKey, first: number, second: number): StepKey {
  const keys = [key[0], key[1], key[0] ^ key[1] ^ PARITY];
  let x = (first + keys[0]) | 0;
  let y = (second + keys[1]) | 0;
  for (let block = 0; block < 5; block++) {
    for (const turn of ROTATIONS[block % 2]) {
      x = (x + y) | 0;
      y = ((y << turn) | (y >>> (32 - turn))) ^ x;
    }
    x = (x + keys[(block + 1) % 3]) | 0;
    y = (y + keys[(block + 2) % 3] + block + 1) | 0;
  }
  return [x >>> 0, y >>> 0];
}

/** `random_words` of hopplus/games/board.py: the words of the keys that the key is split into. */
export function wordsOf(key: StepKey, count: number): number[] {
  const pairs = Array.from({ length: Math.ceil(count / 2) }, (_, index) => threefry(key, 0, index));
  return pairs.flat().slice(0, count);
}

/** Distinct numbers below `population` from uniform words: the first cards of a Fisher-Yates shuffle. */
export function distinctOf(words: number[], population: number): number[] {
  const cards = Array.from({ length: population }, (_, card) => card);
  return words.map((word, index) => {
    const left = population - index;
    // Python multiplies in two halves of 16 bits; the product of a word and a number of cells is exact here.
    const pick = index + Math.floor((word * left) / 2 ** 32);
    [cards[index], cards[pick]] = [cards[pick], cards[index]];
    return cards[index];
  });
}
