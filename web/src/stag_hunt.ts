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
import { NUM_MOVES, target } from "./paths";

const STAY = 4;
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
  spec: Spec;
  private settings: Settings;

  constructor(data: GameData) {
    this.spec = data.spec;
    this.settings = data.settings;
  }

  reset(random: Draws): State {
    const { num_agents, height, width, horizon } = this.spec;
    const numPrey = this.settings.num_stags + this.settings.num_hares;
    const walls: boolean[] = new Array(height * width).fill(false);
    for (const cell of this.settings.walls[random.below(this.settings.walls.length)]) walls[cell] = true;
    const free = walls.map((_, cell) => cell).filter((cell) => !walls[cell]);
    const cells = random.distinct(num_agents + numPrey, free.length).map((rank) => free[rank]);
    return {
      position: cells.slice(0, num_agents),
      present: new Array(num_agents).fill(true),
      last_actions: new Array(num_agents).fill(NO_ACTION),
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
    const { height, width } = this.spec;
    const position = actions.map((action, seat) =>
      action < NUM_MOVES ? target(state.position[seat], action, height, width) : state.position[seat],
    );
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
    const { height, width } = this.spec;
    return state.position.map((cell: number, seat: number) => {
      const playing = !over[seat];
      const allowed: boolean[] = [];
      for (let move = 0; move < NUM_MOVES; move++) {
        const to = target(cell, move, height, width);
        allowed.push(playing && to >= 0 && !state.walls[to]);
      }
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
    const { height, width } = this.spec;
    const own = plane(this.spec, observation, 0).indexOf(true);
    const playing = observation.time[0] < 1;
    const see = (name: string) => plane(this.spec, observation, planeIndex(this.spec, name));
    const walls = see("obstacles");
    const allowed: boolean[] = [];
    for (let move = 0; move < NUM_MOVES; move++) {
      const to = own < 0 ? -1 : target(own, move, height, width);
      allowed.push(playing && to >= 0 && !walls[to]);
    }
    return [...allowed, true, ...["stags", "hares"].map((name) => playing && own >= 0 && see(name)[own])];
  }

  eventsInView(observation: Observation): boolean[][] {
    return Array.from({ length: this.spec.num_agents }, (_, place) => {
      const isGone = !plane(this.spec, observation, place).some(Boolean);
      return this.spec.event_actions.map((action) => isGone && observation.last_actions[place] === action);
    });
  }

  board(state: State): Uint8Array {
    const { num_agents, height, width, planes } = this.spec;
    const board = new Uint8Array(height * width * planes.length);
    const mark = (cell: number, index: number) => (board[cell * planes.length + index] = 1);
    state.position.forEach((cell: number, seat: number) => state.present[seat] && mark(cell, seat));
    state.walls.forEach((is: boolean, cell: number) => is && mark(cell, num_agents));
    state.prey_position.forEach((cell: number, prey: number) => {
      if (state.prey_alive[prey]) mark(cell, num_agents + (prey < this.settings.num_stags ? 1 : 2));
    });
    return board;
  }
}
