// A player of a seat: a pure function of the seat's view and of its own state.

import { Observation } from "./game";

export type PlayerState = any;

export interface Thought {
  probabilities: Float32Array;
  state: PlayerState;
  /** What it believes about each co-player in seat order after it, if its goals have names. */
  beliefs?: Float32Array[];
  /** The action probabilities that it expects of each co-player. */
  predicted?: Float32Array[];
  /** What it expects to get from here on. */
  value?: number;
}

export interface Player {
  name: string;
  goalNames: string[];
  init(): PlayerState;
  nextEpisode(state: PlayerState): PlayerState;
  act(observation: Observation, legal: boolean[], state: PlayerState): Thought;
}
