// Compares the page's rules and agents with episodes that Python has played; used by tests and by benchmarks/share.py.

import { Agent } from "./agent";
import { StepKey } from "./game";
import { PageData, Session } from "./session";
import { Random, sampleAction } from "./numbers";

export interface Recorded {
  seats: string[];
  first: any;
  actions: number[][];
  /** State, rewards and ends after each step. */
  after: any[];
  rewards: number[][];
  over: boolean[][];
  /** [steps][seats][actions] */
  probabilities: number[][][];
  /** [steps][seats][others][goal]; null for a script. */
  goals: (number[][] | null)[][];
  uniforms: number[][];
  /** The random key of each step. */
  keys: StepKey[];
  sampled: number[][];
  /** An episode with the players of the one before, who remember it. */
  remembering: boolean;
}

export interface Compared {
  states: number;
  episodes: number;
  /** Episodes whose states, rewards and ends are equal in every step. */
  episodes_equal: number;
  largest_difference: { probabilities: number; beliefs: number };
  sampled: number;
  sampled_unequal: number;
  first_difference: string;
}

const TOLERANCE = 1e-5;

export function compare(page: PageData, weights: Float32Array, recorded: Recorded[]): Compared {
  const result: Compared = {
    states: 0,
    episodes: 0,
    episodes_equal: 0,
    largest_difference: { probabilities: 0, beliefs: 0 },
    sampled: 0,
    sampled_unequal: 0,
    first_difference: "",
  };
  let session: Session | null = null;
  for (const episode of recorded) {
    if (!episode.remembering || !session) session = new Session(page, weights, episode.seats, new Random(0));
    session.start(episode.remembering, episode.first);
    let isEqual = true;
    episode.actions.forEach((actions, step) => {
      compareThoughts(session!, episode, step, result);
      session!.play(actions, episode.keys[step]);
      const { state, over } = session!.now;
      const rewards = session!.moments[step].rewards;
      const wrong = different({ state, rewards, over }, { state: episode.after[step], rewards: episode.rewards[step], over: episode.over[step] });
      if (wrong && isEqual) {
        isEqual = false;
        result.first_difference ||= `episode ${result.episodes}, step ${step}: ${wrong}`;
      }
    });
    if (!session.isOver) isEqual = false;
    result.episodes += 1;
    result.episodes_equal += Number(isEqual);
  }
  return result;
}

function compareThoughts(session: Session, episode: Recorded, step: number, result: Compared): void {
  const { thoughts, over } = session.now;
  result.states += 1;
  thoughts.forEach((thought, seat) => {
    const wanted = episode.probabilities[step][seat];
    const largest = result.largest_difference;
    largest.probabilities = Math.max(largest.probabilities, difference(thought!.probabilities, wanted));
    const player = session.players[seat];
    const goals = episode.goals[step][seat];
    if (player instanceof Agent && goals) {
      player.goalsOf(thought!.state).forEach((goal, place) => {
        largest.beliefs = Math.max(largest.beliefs, difference(goal, goals[place]));
      });
    }
    if (over[seat]) return;
    const uniform = episode.uniforms[step][seat];
    if (isNearBoundary(wanted, uniform)) return;
    result.sampled += 1;
    result.sampled_unequal += Number(sampleAction(thought!.probabilities, uniform) !== episode.sampled[step][seat]);
  });
}

/** Whether the number lies so near a boundary between two actions that rounding may decide. */
function isNearBoundary(probabilities: number[], uniform: number): boolean {
  const total = probabilities.reduce((sum, one) => sum + one, 0);
  let sum = 0;
  return probabilities.slice(0, -1).some((one) => {
    sum += one;
    return Math.abs(sum - uniform * total) <= TOLERANCE;
  });
}

/** The largest difference; infinite where one is no number. */
function difference(one: ArrayLike<number>, other: ArrayLike<number>): number {
  if (one.length !== other.length) return Infinity;
  let largest = 0;
  for (let index = 0; index < one.length; index++) {
    const apart = Math.abs(one[index] - other[index]);
    largest = apart >= 0 ? Math.max(largest, apart) : Infinity;
  }
  return largest;
}

/** The name of the first entry that differs; empty if none does. */
function different(one: any, other: any, name = ""): string {
  if (typeof other === "object" && other !== null) {
    if (typeof one !== "object" || one === null) return name;
    for (const key of Object.keys(other)) {
      const wrong = different(one[key], other[key], `${name}.${key}`);
      if (wrong) return wrong;
    }
    return Object.keys(one).length === Object.keys(other).length ? "" : name;
  }
  return one === other ? "" : `${name} is ${one}, not ${other}`;
}
