// The networks of trained agents, as in hopplus/models: actor-critic with memory and pointer, opponent model, posterior.

import { Observation, Spec, features, plane, planeIndex } from "./game";
import {
  LEAST,
  MASKED,
  Tensor,
  at,
  concatenate,
  dense,
  heads,
  masked,
  relu,
  sigmoid,
  softmax,
  softplus,
  sum,
  tanh,
} from "./numbers";
import { FAR, NUM_MOVES, pathsAroundWalls, straightPaths } from "./paths";

const UNREACHABLE = 255;
const FIRST_GATE = -1;
const MOVES = ["up", "down", "left", "right"];

/** The arrays of a seat's player by their names in Python. */
export type Arrays = Map<string, Tensor>;

/** The arrays whose names begin with `prefix`, without it; null if there are none. */
export function part(arrays: Arrays, prefix: string): Arrays | null {
  const found: Arrays = new Map();
  for (const [name, tensor] of arrays) if (name.startsWith(`${prefix}.`)) found.set(name.slice(prefix.length + 1), tensor);
  return found.size ? found : null;
}

/** The arrays at one index of their first axis. */
export function indexed(arrays: Arrays, index: number): Arrays {
  return new Map([...arrays].map(([name, tensor]) => [name, at(tensor, index)]));
}

const layer = (arrays: Arrays, name: string): [Tensor, Tensor] => {
  const prefix = name ? `${name}.` : "";
  return [arrays.get(`${prefix}weight`)!, arrays.get(`${prefix}bias`)!];
};

/** What a network of destinations reads of one view. */
export interface Seen {
  observation: Observation;
  legal: boolean[];
  distance: Int32Array;
  moves: Uint8Array;
}

/** Whether players walk on a board with obstacles. */
export const walks = (spec: Spec): boolean =>
  spec.planes.some((one) => one.kind === "walker") &&
  planeIndex(spec, "obstacles") >= 0 &&
  MOVES.every((name, index) => spec.action_names[index] === name);

export function seenFrom(spec: Spec, observation: Observation, legal: boolean[]): Seen {
  if (!walks(spec)) return { observation, legal, distance: new Int32Array(0), moves: new Uint8Array(0) };
  const own = plane(spec, observation, 0);
  const free = plane(spec, observation, planeIndex(spec, "obstacles")).map((is) => !is);
  const { height, width } = spec;
  const paths = spec.straight_paths ? straightPaths(own, height, width) : pathsAroundWalls(free, own, height, width);
  const distance = paths.distance.map((one, cell) => Math.min(free[cell] || !spec.straight_paths ? one : FAR, UNREACHABLE));
  return { observation, legal, distance, moves: paths.moves };
}

/** What is compared at every cell, from what is on it and how far it is: a row for each cell. Equal cells share a row. */
function cellKeys(spec: Spec, cell: [Tensor, Tensor], seen: Seen): Float32Array[] {
  const channels = spec.planes.length;
  const content = new Float32Array(channels + 2);
  const rows: Float32Array[] = [];
  const known = new Map<number, Float32Array>();
  for (let index = 0; index < seen.distance.length; index++) {
    const distance = seen.distance[index];
    let name = distance; // and a bit for each plane
    for (let channel = 0, bit = 256; channel < channels; channel++, bit *= 2) {
      content[channel] = seen.observation.planes[index * channels + channel];
      name += content[channel] * bit;
    }
    content[channels] = near(distance) / 8;
    content[channels + 1] = distance === 0 ? 1 : 0;
    let row = known.get(name);
    if (!row) known.set(name, (row = relu(dense(content, ...cell))));
    rows.push(row);
  }
  return rows;
}

const near = (distance: number): number => (distance < UNREACHABLE ? distance : 0);

function destinations(keys: Float32Array[], query: ArrayLike<number>, offset: number, rate: number, seen: Seen): Float32Array {
  const scores = keys.map((key, cell) => {
    if (seen.distance[cell] >= UNREACHABLE) return MASKED;
    let score = offset - rate * near(seen.distance[cell]);
    for (let index = 0; index < key.length; index++) score += key[index] * query[index];
    return score;
  });
  return softmax(scores);
}

/** The action probabilities of a player whose destinations have these probabilities. */
function walkTo(weights: Float32Array, seen: Seen, onTheSpot: ArrayLike<number>): Float32Array {
  const result = new Float64Array(seen.legal.length);
  let here = 0;
  weights.forEach((weight, cell) => {
    if (seen.distance[cell] === 0) here += weight;
    let count = 0;
    for (let move = 0; move < NUM_MOVES; move++) count += (seen.moves[cell] >> move) & 1;
    for (let move = 0; move < NUM_MOVES; move++) if ((seen.moves[cell] >> move) & 1) result[move] += weight / count;
  });
  const stands = seen.legal.map((is, action) => is && action >= NUM_MOVES);
  softmax(masked(onTheSpot, stands)).forEach((share, action) => (result[action] += here * share));
  return Float32Array.from(result);
}

/** What the opponent model computes of a view, whatever the goal. */
export interface ReadView {
  seen: Seen;
  view: Float32Array | null;
  keys: Float32Array[];
}

export function readView(spec: Spec, arrays: Arrays, seen: Seen): ReadView {
  const reads = arrays.has("view.weight");
  return {
    seen,
    view: reads ? relu(dense(features(spec.fields, seen.observation), ...layer(arrays, "view"))) : null,
    keys: arrays.has("cell.weight") ? cellKeys(spec, layer(arrays, "cell"), seen) : [],
  };
}

/** The opponent model: a mixture of destinations and of a plain network. */
export function predictOther(arrays: Arrays, { seen, view, keys }: ReadView, goal: Float32Array): Float32Array {
  const count = seen.legal.length;
  let outputs = arrays.get("heads.bias")!.data;
  if (view) {
    outputs = heads(relu(dense(concatenate(view, goal), ...layer(arrays, "mixed"))), ...layer(arrays, "heads"));
  }
  const plain = softmax(masked(outputs, seen.legal));
  if (!arrays.has("cell.weight")) return plain.map((one) => one + LEAST);
  const onTheSpot = outputs.subarray(count, 2 * count);
  const gate = sigmoid(outputs[outputs.length - 1]);
  const wanted = heads(concatenate(goal, [1]), ...layer(arrays, "query"));
  const query = wanted.subarray(0, wanted.length - 1);
  const key = arrays.get("key.weight")!;
  const ofKeys = new Float64Array(key.shape[1]);
  query.forEach((one, row) => {
    for (let column = 0; column < ofKeys.length; column++) ofKeys[column] += one * key.data[row * ofKeys.length + column];
  });
  const offset = sum(Array.from(query, (one, row) => one * arrays.get("key.bias")!.data[row]));
  const weights = destinations(keys, ofKeys, offset, softplus(wanted[wanted.length - 1]), seen);
  return walkTo(weights, seen, onTheSpot).map((one, action) => gate * one + (1 - gate) * plain[action] + LEAST);
}

export interface Decision {
  probabilities: Float32Array;
  value: number;
  hidden: Float32Array | null;
}

/** The policy and the critic of one seat. */
export function decide(
  spec: Spec,
  arrays: Arrays,
  observation: Observation,
  legal: boolean[],
  goals: Float32Array,
  hidden: Float32Array | null,
): Decision {
  let inputs = concatenate(features(spec.fields, observation), goals);
  for (let index = 0; arrays.has(`trunk.layers.${index}.weight`); index++) {
    inputs = tanh(dense(inputs, ...layer(arrays, `trunk.layers.${index}`)));
  }
  if (hidden) inputs = hidden = remember(arrays, hidden, inputs);
  const outputs = heads(inputs, ...layer(arrays, "heads"));
  let probabilities = softmax(masked(outputs, legal));
  if (arrays.has("pointer.cell.weight")) probabilities = point(spec, arrays, inputs, observation, legal, probabilities);
  return { probabilities, value: outputs[outputs.length - 1], hidden };
}

/** A gated recurrent unit. */
function remember(arrays: Arrays, hidden: Float32Array, inputs: Float32Array): Float32Array {
  const size = hidden.length;
  const ofInputs = dense(inputs, ...layer(arrays, "memory.inputs"));
  const ofHidden = dense(hidden, ...layer(arrays, "memory.hidden"));
  return hidden.map((before, index) => {
    const reset = sigmoid(ofInputs[index] + ofHidden[index]);
    const update = sigmoid(ofInputs[size + index] + ofHidden[size + index]);
    const fresh = Math.tanh(ofInputs[2 * size + index] + reset * ofHidden[2 * size + index]);
    return (1 - update) * fresh + update * before;
  });
}

/** The network with destinations: it points at cells and walks there. */
function point(
  spec: Spec,
  arrays: Arrays,
  trunk: Float32Array,
  observation: Observation,
  legal: boolean[],
  plain: Float32Array,
): Float32Array {
  const seen = seenFrom(spec, observation, legal);
  const outputs = heads(trunk, ...layer(arrays, "pointer.heads"));
  const size = arrays.get("pointer.cell.bias")!.data.length;
  const gate = sigmoid(outputs[outputs.length - 1] + FIRST_GATE);
  const keys = cellKeys(spec, layer(arrays, "pointer.cell"), seen);
  const weights = destinations(keys, outputs.subarray(0, size), 0, softplus(outputs[size]), seen);
  const walking = walkTo(weights, seen, outputs.subarray(size + 1, outputs.length - 1));
  return walking.map((one, action) => (legal[action] ? gate * one + (1 - gate) * plain[action] + LEAST : 0));
}

/** The posterior's embedding of a co-player's view. */
export const embed = (spec: Spec, arrays: Arrays, view: Observation): Float32Array =>
  relu(dense(features(spec.fields, view), ...layer(arrays, "view")));

/** What a step adds to the evidence; nothing where no action was taken. */
export function evidenceOf(arrays: Arrays, embedded: Float32Array, action: number, numActions: number): Float32Array {
  if (action < 0) return new Float32Array(arrays.get("step.bias")!.data.length);
  const took = new Float32Array(numActions);
  took[action] = 1;
  return tanh(dense(concatenate(embedded, took), ...layer(arrays, "step")));
}

/** The posterior's outputs; a conditional one decodes without noise. */
export function infer(arrays: Arrays, embedded: Float32Array, evidence: Float32Array): Float32Array {
  let inputs = concatenate(embedded, evidence);
  if (arrays.has("decoder.weight")) {
    const noise = new Float32Array(arrays.get("decoder.weight")!.shape[0] - inputs.length);
    inputs = relu(dense(concatenate(inputs, noise), ...layer(arrays, "decoder")));
  }
  return heads(inputs, ...layer(arrays, "code"));
}

