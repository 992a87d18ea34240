// Scripted players, as in hopplus/games/coplayers.py.

import { Observation, Spec, anyOf, plane, planeIndex, planesOf } from "./game";
import { oneHot, uniform } from "./numbers";
import { FAR, NUM_MOVES, Paths, pathsAroundWalls, straightPaths, target } from "./paths";
import { Player, PlayerState, Thought } from "./player";

/** Cells that are on in any of these planes, and the action there. */
type Target = [planes: number[], action: number];

abstract class Script implements Player {
  goalNames: string[] = [];

  constructor(
    protected spec: Spec,
    public name: string,
  ) {}

  init(): PlayerState {
    return { count: 0 };
  }

  nextEpisode(): PlayerState {
    return this.init();
  }

  act(observation: Observation, legal: boolean[], state: PlayerState): Thought {
    return { probabilities: this.choose(observation, legal, state.count), state: { count: this.next(observation, state.count) } };
  }

  protected next(_observation: Observation, count: number): number {
    return count;
  }

  protected abstract choose(observation: Observation, legal: boolean[], count: number): Float32Array;
}

class RandomPlay extends Script {
  protected choose(_observation: Observation, legal: boolean[]): Float32Array {
    return uniform(legal);
  }
}

class Nearest extends Script {
  constructor(
    spec: Spec,
    name: string,
    private targets: Target[],
    /** Planes whose cells it does not walk on. */
    private avoided: number[] = [],
  ) {
    super(spec, name);
  }

  protected choose(observation: Observation, legal: boolean[]): Float32Array {
    return nearest(this.spec, this.targets, observation, legal, this.avoided);
  }
}

class PatientStag extends Script {
  constructor(
    spec: Spec,
    name: string,
    private stags: Target[],
    private hares: Target[],
    private patience: number,
  ) {
    super(spec, name);
  }

  protected choose(observation: Observation, legal: boolean[], count: number): Float32Array {
    return nearest(this.spec, count < this.patience ? this.stags : this.hares, observation, legal);
  }

  protected next(observation: Observation, count: number): number {
    const own = plane(this.spec, observation, 0);
    const stags = anyOf(this.spec, observation, this.stags[0][0]);
    return count + Number(own.some((is, cell) => is && stags[cell]));
  }
}

type Choice = "nearest" | "strongest" | "easy";

/** Walks beside the food that it chooses, around all that blocks, and loads. */
class Forager extends Script {
  constructor(
    spec: Spec,
    name: string,
    private choice: Choice,
  ) {
    super(spec, name);
  }

  protected choose(observation: Observation, legal: boolean[]): Float32Array {
    const spec = this.spec;
    const own = plane(spec, observation, 0);
    const others = Array.from({ length: spec.num_agents - 1 }, (_, place) => place + 1);
    const blocked = anyOf(spec, observation, [planeIndex(spec, "obstacles"), ...planesOf(spec, "food_"), ...others]);
    const wanted = this.wanted(observation, own);
    const beside = own.map((isOwn, cell) => {
      if (blocked[cell] && !isOwn) return false;
      return [...Array(NUM_MOVES).keys()].some((move) => wanted[target(cell, move, spec.height, spec.width)]);
    });
    const paths = pathsAroundWalls(blocked.map((is) => !is), own, spec.height, spec.width);
    return possibleOr(oneHot(spec.stay!, legal.length), approach(beside, paths, spec.action_names.indexOf("load"), legal.length), legal);
  }

  /** The cells of the foods that it chooses among. */
  private wanted(observation: Observation, own: boolean[]): boolean[] {
    const foods = planesOf(this.spec, "food_");
    const every = anyOf(this.spec, observation, foods);
    if (this.choice === "nearest") return every;
    if (this.choice === "strongest") {
      const ofLevel = foods.map((index) => plane(this.spec, observation, index));
      return ofLevel.reverse().find((cells) => cells.some(Boolean)) ?? every;
    }
    const level = planesOf(this.spec, "level_").findIndex((index) => plane(this.spec, observation, index)[own.indexOf(true)]) + 1;
    const easy = anyOf(this.spec, observation, foods.slice(0, level));
    return easy.some(Boolean) ? easy : every;
  }
}

/** The intended actions that are legal; the other distribution if none is. */
function possibleOr(otherwise: Float32Array, intended: Float32Array, legal: boolean[]): Float32Array {
  const possible = intended.map((one, index) => (legal[index] ? one : 0));
  return possible.some((one) => one > 0) ? possible : otherwise;
}

/** Takes a shortest path to a nearest target and acts on it; the first kind of target that is there counts. */
function nearest(spec: Spec, targets: Target[], observation: Observation, legal: boolean[], avoided: number[] = []): Float32Array {
  const own = plane(spec, observation, 0);
  const staying = oneHot(spec.stay ?? 0, legal.length);
  if (!own.some(Boolean)) return staying;
  const blocked = [planeIndex(spec, "obstacles"), ...avoided];
  const paths =
    spec.straight_paths && !avoided.length
      ? straightPaths(own, spec.height, spec.width)
      : pathsAroundWalls(anyOf(spec, observation, blocked).map((is) => !is), own, spec.height, spec.width);
  for (const [planes, action] of targets) {
    const wanted = anyOf(spec, observation, planes);
    if (wanted.some(Boolean)) return possibleOr(staying, approach(wanted, paths, action, legal.length), legal);
  }
  return staying;
}

/** Acts on a wanted cell, or moves to one of the nearest; all of them and all shortest paths are equally likely. */
function approach(wanted: boolean[], paths: Paths, action: number, numActions: number): Float32Array {
  let closest = FAR;
  wanted.forEach((is, cell) => (closest = is ? Math.min(closest, paths.distance[cell]) : closest));
  const sums = new Float64Array(numActions);
  let count = 0;
  wanted.forEach((is, cell) => {
    if (!is || paths.distance[cell] !== closest) return;
    count += 1;
    const moves = [...Array(NUM_MOVES).keys()].filter((move) => (paths.moves[cell] >> move) & 1);
    for (const move of moves) sums[move] += 1 / moves.length;
  });
  const probabilities = Float32Array.from(sums, (one) => one / Math.max(count, 1));
  probabilities[action] = closest === 0 ? 1 : 0;
  return probabilities;
}

/** The scripts of a game with a name each; `patient_stag(3)` takes a number. */
export function makeScript(spec: Spec, text: string): Player {
  const [, name, given] = /^(\w+)(?:\((\d+)\))?$/.exec(text) ?? [null, text, undefined];
  const to = (planes: string, action: string): Target => [planesOf(spec, planes), spec.action_names.indexOf(action)];
  const hares = [to("hares", "hunt hare")];
  const stags = [to("stags", "hunt stag"), ...hares];
  if (name === "random") return new RandomPlay(spec, text);
  if (name === "nearest_stag") return new Nearest(spec, text, stags);
  if (name === "nearest_hare") return new Nearest(spec, text, hares);
  if (name === "patient_stag") return new PatientStag(spec, text, stags, hares, Number(given ?? 3));
  if (name === "any_coins") return new Nearest(spec, text, [to("coins_", "stay")]);
  if (name === "own_coins") {
    const avoided = planesOf(spec, "coins_").slice(1);
    return new Nearest(spec, text, [to("coins_0", "stay")], avoided);
  }
  const choices: Record<string, Choice> = { nearest_food: "nearest", strongest_food: "strongest", easy_food: "easy" };
  if (name in choices) return new Forager(spec, text, choices[name]);
  throw new Error(`there is no script called ${text}`);
}
