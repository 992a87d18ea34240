// Arithmetic of small networks. Sums run in double precision and are rounded to float32 at the end of a layer, so that
// they are nearer to the exact result than any float32 order of summation; Python's agree within its own rounding.

export const MASKED = -1e9;
export const LEAST = 1e-8;
export const NO_ACTION = -1;

export interface Tensor {
  shape: number[];
  data: Float32Array;
}

/** The part of a tensor at one index of its first axis. */
export function at(tensor: Tensor, index: number): Tensor {
  const size = tensor.data.length / tensor.shape[0];
  return { shape: tensor.shape.slice(1), data: tensor.data.subarray(index * size, (index + 1) * size) };
}

/** x W + b with W stored by input. Inputs are mostly zeros, which cost nothing. */
export function dense(inputs: ArrayLike<number>, weight: Tensor, bias: Tensor): Float32Array {
  const [rows, columns] = weight.shape;
  const sums = Float64Array.from(bias.data);
  for (let row = 0; row < rows; row++) {
    const input = inputs[row];
    if (!input) continue;
    const start = row * columns;
    for (let column = 0; column < columns; column++) sums[column] += input * weight.data[start + column];
  }
  return Float32Array.from(sums);
}

/** W x + b with W stored by output. */
export function heads(inputs: ArrayLike<number>, weight: Tensor, bias: Tensor): Float32Array {
  const [rows, columns] = weight.shape;
  const result = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    let sum = bias.data[row];
    for (let column = 0; column < columns; column++) sum += inputs[column] * weight.data[row * columns + column];
    result[row] = sum;
  }
  return result;
}

export const tanh = (numbers: Float32Array): Float32Array => numbers.map(Math.tanh);
export function relu(numbers: Float32Array): Float32Array {
  for (let index = 0; index < numbers.length; index++) if (!(numbers[index] > 0)) numbers[index] = 0;
  return numbers;
}

export const sigmoid = (one: number): number => Math.fround(1 / (1 + Math.exp(-one)));
export const softplus = (one: number): number => Math.fround(Math.max(one, 0) + Math.log1p(Math.exp(-Math.abs(one))));

export function softmax(logits: ArrayLike<number>): Float32Array {
  let most = -Infinity;
  for (let index = 0; index < logits.length; index++) most = Math.max(most, logits[index]);
  const powers = new Float64Array(logits.length);
  let total = 0;
  for (let index = 0; index < powers.length; index++) total += powers[index] = Math.exp(logits[index] - most);
  const shares = new Float32Array(powers.length);
  for (let index = 0; index < powers.length; index++) shares[index] = powers[index] / total;
  return shares;
}

export function masked(logits: ArrayLike<number>, allowed: boolean[]): Float32Array {
  return Float32Array.from(allowed, (is, index) => (is ? logits[index] : MASKED));
}

export function sum(numbers: ArrayLike<number>): number {
  let total = 0;
  for (let index = 0; index < numbers.length; index++) total += numbers[index];
  return total;
}

export function argmax(numbers: ArrayLike<number>): number {
  let best = 0;
  for (let index = 1; index < numbers.length; index++) if (numbers[index] > numbers[best]) best = index;
  return best;
}

export function concatenate(...parts: ArrayLike<number>[]): Float32Array {
  const result = new Float32Array(parts.reduce((length, part) => length + part.length, 0));
  let start = 0;
  for (const part of parts) {
    result.set(part, start);
    start += part.length;
  }
  return result;
}

export function oneHot(index: number, size: number): Float32Array {
  const result = new Float32Array(size);
  if (index >= 0 && index < size) result[index] = 1;
  return result;
}

/** Uniform over the allowed entries; zeros if there is none. */
export function uniform(allowed: boolean[]): Float32Array {
  const count = Math.max(allowed.filter(Boolean).length, 1);
  return Float32Array.from(allowed, (is) => (is ? 1 / count : 0));
}

/** The first action whose cumulative probability, in float32, is above the number. */
export function sampleAction(probabilities: Float32Array, number: number): number {
  const sums = new Float32Array(probabilities.length);
  sums[0] = probabilities[0];
  for (let action = 1; action < sums.length; action++) sums[action] = sums[action - 1] + probabilities[action];
  const wanted = Math.fround(number * sums[sums.length - 1]);
  let passed = 0;
  for (let action = 0; action < sums.length - 1; action++) passed += Number(sums[action] <= wanted);
  return passed;
}

/** Random numbers of a seed: the generator sfc32. */
export class Random {
  private words: Uint32Array;

  constructor(seed: number) {
    this.words = Uint32Array.from([seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0, 0x9e3779b9, 1]);
    for (let count = 0; count < 16; count++) this.word();
  }

  word(): number {
    const words = this.words;
    const result = (words[0] + words[1] + words[3]) >>> 0;
    words[3] += 1;
    words[0] = words[1] ^ (words[1] >>> 9);
    words[1] = words[2] + (words[2] << 3);
    words[2] = ((words[2] << 21) | (words[2] >>> 11)) + result;
    return result;
  }

  /** A whole number below the bound. */
  below(bound: number): number {
    return Math.floor((this.word() / 2 ** 32) * bound);
  }

  /** From [0, 1) with 23 bits, as in Python, so that none is rounded to 1. */
  uniform(): number {
    return (this.word() >>> 9) * 2 ** -23;
  }

  /** Distinct numbers below `population`, in random order. */
  distinct(count: number, population: number): number[] {
    const cards = Array.from({ length: population }, (_, card) => card);
    for (let index = 0; index < count; index++) {
      const pick = index + this.below(population - index);
      [cards[index], cards[pick]] = [cards[pick], cards[index]];
    }
    return cards.slice(0, count);
  }
}
