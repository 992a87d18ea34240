// What a game offers. To add one: write a file like stag_hunt.ts, add it to GAMES in games.ts, and describe its settings
// in hopplus/share/games.py. Names of a state's fields are those of its Python class: a saved state is read by both.

import { NO_ACTION, concatenate, oneHot } from "./numbers";

export interface Plane {
  name: string;
  kind: "walker" | "set" | "category" | "counter" | "fixed";
  /** One of as many planes as there are players; these follow the walkers, in the order of the players. */
  per_player: boolean;
}

export interface Field {
  name: string;
  kind: "planes" | "vector" | "categories";
  shape: number[];
  below: number;
  layout: "own" | "shared" | "players";
}

export interface Spec {
  name: string;
  version: number;
  num_agents: number;
  action_names: string[];
  horizon: number;
  stay: number | null;
  straight_paths: boolean;
  height: number;
  width: number;
  planes: Plane[];
  fields: Field[];
  /** The action of each event, or NO_ACTION. */
  event_actions: number[];
}

export interface GameData {
  kind: string;
  name: string;
  spec: Spec;
  settings: any;
}

/** An array for each field of the spec. */
export type Observation = Record<string, ArrayLike<number>>;
/** Plain arrays and numbers by name. */
export type State = Record<string, any>;

/** A source of random numbers for the start of an episode. */
export interface Draws {
  below(bound: number): number;
  distinct(count: number, population: number): number[];
}

/** The random key of a step, as in JAX: two words. Python repeats a saved step with it. */
export type StepKey = [number, number];

export interface Game {
  spec: Spec;
  /** Whether a step draws random numbers; its key is then saved with the episode. */
  isRandom: boolean;
  reset(random: Draws): State;
  step(state: State, actions: number[], key: StepKey): { state: State; rewards: number[] };
  observe(state: State): Observation[];
  legal(state: State): boolean[][];
  terminated(state: State): boolean[];
  legalInView(observation: Observation): boolean[];
  /** For each player in the viewer's order, which events it was seen to reach in the last step. */
  eventsInView(observation: Observation): boolean[][];
  /** Planes with the players in seat order, [height, width, planes]; empty without a board. */
  board(state: State): Uint8Array;
}

/** An illegal action acts as `stay`, or as the first legal one. */
export function asPlayed(legal: boolean[][], actions: number[], stay: number | null): number[] {
  return actions.map((action, seat) => {
    if (legal[seat][action]) return action;
    return stay === null ? Math.max(legal[seat].indexOf(true), 0) : stay;
  });
}

/** The view of each seat of one board: the viewer first, then the other seats in order after it. */
export function egoViews(
  spec: Spec,
  board: Uint8Array,
  present: boolean[],
  time: number,
  lastActions: number[],
): Observation[] {
  const count = spec.num_agents;
  return present.map((isThere, seat) => {
    const view: Observation = {
      time: Float32Array.of(isThere ? Math.fround(time / spec.horizon) : 0),
      last_actions: Int32Array.from({ length: count }, (_, place) =>
        isThere ? lastActions[(seat + place) % count] : NO_ACTION,
      ),
    };
    if (spec.planes.length) view.planes = isThere ? rolled(spec, board, seat) : board.map(() => 0);
    return view;
  });
}

/** How many planes each player has: its walker, and others of its own. */
const numBlocks = (spec: Spec): number => 1 + spec.planes.filter((one) => one.per_player).length / spec.num_agents;

function rolled(spec: Spec, board: Uint8Array, offset: number): Uint8Array {
  const count = spec.num_agents;
  const channels = spec.planes.length;
  const ofPlayers = count * numBlocks(spec);
  return board.map((_, index) => {
    const channel = index % channels;
    if (channel >= ofPlayers) return board[index];
    const place = channel % count;
    return board[index - place + ((place + offset) % count)];
  });
}

/** The view of the co-player `offset` seats after the viewer. */
export function viewOf(spec: Spec, observation: Observation, offset: number): Observation {
  const view: Observation = {};
  for (const field of spec.fields) {
    const array = observation[field.name] as any;
    if (field.layout !== "players") view[field.name] = array;
    else if (field.kind === "planes") {
      view[field.name] = rolled(spec, array, offset);
    } else {
      view[field.name] = array.map((one: number, index: number) =>
        index < spec.num_agents ? array[(index + offset) % spec.num_agents] : one,
      );
    }
  }
  return view;
}

/** An observation as one vector: categories one-hot, where none is all zeros. */
export function features(fields: Field[], observation: Observation): Float32Array {
  return concatenate(
    ...fields.map((field) => {
      const array = observation[field.name];
      if (field.kind !== "categories") return array;
      return concatenate(...Array.from(array, (one) => oneHot(one, field.below)));
    }),
  );
}

/** The cells that are on in any of these planes of an observation. */
export function anyOf(spec: Spec, observation: Observation, indices: number[]): boolean[] {
  const planes = observation.planes;
  const channels = spec.planes.length;
  return Array.from({ length: spec.height * spec.width }, (_, cell) => indices.some((index) => planes[cell * channels + index] > 0));
}

/** The planes whose names begin like this. */
export const planesOf = (spec: Spec, prefix: string): number[] =>
  spec.planes.flatMap((one, index) => (one.name.startsWith(prefix) ? [index] : []));

/** One plane of an observation. */
export function plane(spec: Spec, observation: Observation, index: number): boolean[] {
  const cells = new Array<boolean>(spec.height * spec.width);
  for (let cell = 0, at = index; cell < cells.length; cell++, at += spec.planes.length) cells[cell] = observation.planes[at] > 0;
  return cells;
}

export const planeIndex = (spec: Spec, name: string): number => spec.planes.findIndex((one) => one.name === name);
