// Scripted players, as in hopplus/games/coplayers.py.

import { Observation, Spec, plane, planeIndex } from "./game";
import { oneHot, uniform } from "./numbers";
import { FAR, NUM_MOVES, Paths, pathsAroundWalls, straightPaths } from "./paths";
import { Player, PlayerState, Thought } from "./player";

type Target = [planeName: string, action: number];

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
  ) {
    super(spec, name);
  }

  protected choose(observation: Observation, legal: boolean[]): Float32Array {
    return nearest(this.spec, this.targets, observation, legal);
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
    const stags = plane(this.spec, observation, planeIndex(this.spec, this.stags[0][0]));
    return count + Number(own.some((is, cell) => is && stags[cell]));
  }
}

/** Takes a shortest path to a nearest target and acts on it; the first kind of target that is there counts. */
function nearest(spec: Spec, targets: Target[], observation: Observation, legal: boolean[]): Float32Array {
  const own = plane(spec, observation, 0);
  const staying = oneHot(spec.stay ?? 0, legal.length);
  if (!own.some(Boolean)) return staying;
  const paths = spec.straight_paths
    ? straightPaths(own, spec.height, spec.width)
    : pathsAroundWalls(plane(spec, observation, planeIndex(spec, "obstacles")).map((is) => !is), own, spec.height, spec.width);
  for (const [name, action] of targets) {
    const wanted = plane(spec, observation, planeIndex(spec, name));
    if (!wanted.some(Boolean)) continue;
    const intended = approach(wanted, paths, action, legal.length);
    const possible = intended.map((one, index) => (legal[index] ? one : 0));
    return possible.some((one) => one > 0) ? possible : staying;
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
  const action = (wanted: string) => spec.action_names.indexOf(wanted);
  const hares: Target[] = [["hares", action("hunt hare")]];
  const stags: Target[] = [["stags", action("hunt stag")], ...hares];
  if (name === "random") return new RandomPlay(spec, text);
  if (name === "nearest_stag") return new Nearest(spec, text, stags);
  if (name === "nearest_hare") return new Nearest(spec, text, hares);
  if (name === "patient_stag") return new PatientStag(spec, text, stags, hares, Number(given ?? 3));
  throw new Error(`there is no script called ${text}`);
}
