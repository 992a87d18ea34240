// The rules of the stag hunt, as in hopplus/games/stag_hunt.py; prey stands still.

import {
  Draws,
  Game,
  GameData,
  Observation,
  Spec,
  State,
  asPlayed,
  egoViews,
  plane,
  planeIndex,
} from "./game";
import { NO_ACTION } from "./numbers";
import { STAY, drawCells, emptyBoard, moved, noActions, targets } from "./walking";

const HUNT_STAG = 5;
const HUNT_HARE = 6;

interface Settings {
  num_stags: number;
  num_hares: number;
  stag_reward: number;
  hare_reward: number;
  steps_after_first_catch: number | null;
  /** Layouts of walls to draw from, each a list of cells. */
  walls: number[][];
}

export class StagHunt implements Game {
  isRandom = false;
  spec: Spec;
  private settings: Settings;

  constructor(data: GameData) {
    this.spec = data.spec;
    this.settings = data.settings;
  }

  reset(random: Draws): State {
    const { num_agents, horizon } = this.spec;
    const numPrey = this.settings.num_stags + this.settings.num_hares;
    const { walls, cells } = drawCells(this.spec, this.settings.walls, num_agents + numPrey, random);
    return {
      position: cells.slice(0, num_agents),
      present: new Array(num_agents).fill(true),
      last_actions: noActions(this.spec),
      prey_position: cells.slice(num_agents),
      prey_alive: new Array(numPrey).fill(true),
      walls,
      time: 0,
      ends_at: horizon,
    };
  }

  step(state: State, chosen: number[]): { state: State; rewards: number[] } {
    const actions = asPlayed(this.legal(state), chosen, STAY);
    const { num_stags, stag_reward, hare_reward, steps_after_first_catch } = this.settings;
    const rewards: number[] = actions.map(() => 0);
    const present = [...state.present];
    const alive = [...state.prey_alive];
    const caughtBy: number[] = actions.map(() => 0);
    const onStag: boolean[] = actions.map(() => false);
    let isCaught = false;
    state.prey_position.forEach((cell: number, prey: number) => {
      const [hunt, needed] = prey < num_stags ? [HUNT_STAG, 2] : [HUNT_HARE, 1];
      const hunters = actions
        .map((_, seat) => seat)
        .filter((seat) => actions[seat] === hunt && state.present[seat] && state.position[seat] === cell);
      if (!state.prey_alive[prey] || hunters.length < needed) return;
      isCaught = true;
      alive[prey] = false;
      for (const seat of hunters) {
        caughtBy[seat] += hunters.length;
        onStag[seat] ||= prey < num_stags;
        present[seat] = false;
      }
    });
    caughtBy.forEach((sharers, seat) => {
      if (sharers) rewards[seat] = Math.fround(Math.fround(onStag[seat] ? stag_reward : hare_reward) / sharers);
    });
    const time = state.time + 1;
    let ends_at = state.ends_at;
    if (steps_after_first_catch !== null && isCaught) ends_at = Math.min(ends_at, time + steps_after_first_catch);
    const position = moved(this.spec, state, actions);
    const last_actions = actions.map((action, seat) => (state.present[seat] ? action : NO_ACTION));
    return {
      state: { ...state, position, present, last_actions, prey_alive: alive, time, ends_at },
      rewards,
    };
  }

  observe(state: State): Observation[] {
    return egoViews(this.spec, this.board(state), state.present, state.time, state.last_actions);
  }

  legal(state: State): boolean[][] {
    const over = this.terminated(state);
    return state.position.map((cell: number, seat: number) => {
      const playing = !over[seat];
      const allowed = targets(this.spec, cell, (to) => state.walls[to]).map((to) => playing && to >= 0);
      const here = (kind: "stag" | "hare") =>
        state.prey_position.some(
          (prey: number, index: number) =>
            prey === cell && state.prey_alive[index] && index < this.settings.num_stags === (kind === "stag"),
        );
      return [...allowed, true, playing && here("stag"), playing && here("hare")];
    });
  }

  terminated(state: State): boolean[] {
    return state.present.map((is: boolean) => !is || state.time >= state.ends_at);
  }

  legalInView(observation: Observation): boolean[] {
    const own = plane(this.spec, observation, 0).indexOf(true);
    const playing = observation.time[0] < 1;
    const see = (name: string) => plane(this.spec, observation, planeIndex(this.spec, name));
    const walls = see("obstacles");
    const allowed = targets(this.spec, own, (to) => walls[to]).map((to) => playing && to >= 0);
    return [...allowed, true, ...["stags", "hares"].map((name) => playing && own >= 0 && see(name)[own])];
  }

  eventsInView(observation: Observation): boolean[][] {
    return Array.from({ length: this.spec.num_agents }, (_, place) => {
      const isGone = !plane(this.spec, observation, place).some(Boolean);
      return this.spec.event_actions.map((action) => isGone && observation.last_actions[place] === action);
    });
  }

  board(state: State): Uint8Array {
    const { num_agents } = this.spec;
    const { board, mark } = emptyBoard(this.spec);
    state.position.forEach((cell: number, seat: number) => state.present[seat] && mark(cell, seat));
    state.walls.forEach((is: boolean, cell: number) => is && mark(cell, num_agents));
    state.prey_position.forEach((cell: number, prey: number) => {
      if (state.prey_alive[prey]) mark(cell, num_agents + (prey < this.settings.num_stags ? 1 : 2));
    });
    return board;
  }
}
