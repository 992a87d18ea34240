// The rules of the coin game, as in hopplus/games/coins.py.

import { Draws, Game, GameData, Observation, Spec, State, StepKey, asPlayed, egoViews, plane, planeIndex } from "./game";
import { distinctOf, wordsOf } from "./keys";
import { STAY, drawCells, emptyBoard, moved, noActions, targets } from "./walking";

interface Settings {
  coin_reward: number;
  cost: number;
  walls: number[][];
}

export class Coins implements Game {
  isRandom = true;
  spec: Spec;
  private settings: Settings;

  constructor(data: GameData) {
    this.spec = data.spec;
    this.settings = data.settings;
  }

  reset(random: Draws): State {
    const count = this.spec.num_agents;
    const { walls, cells } = drawCells(this.spec, this.settings.walls, 2 * count, random);
    return {
      position: cells.slice(0, count),
      coin_position: cells.slice(count),
      last_actions: noActions(this.spec),
      walls,
      time: 0,
    };
  }

  step(state: State, chosen: number[], key: StepKey): { state: State; rewards: number[] } {
    const actions = asPlayed(this.legal(state), chosen, STAY);
    const position = moved(this.spec, state, actions);
    const takers: number[][] = state.coin_position.map((coin: number) =>
      actions.map((_, seat) => seat).filter((seat) => position[seat] === coin),
    );
    const gains = actions.map(() => 0);
    takers.forEach((seats) => {
      for (const seat of seats) gains[seat] = Math.fround(Math.fround(this.settings.coin_reward) / seats.length);
    });
    const rewards = takers.map((seats, owner) => {
      const others = seats.filter((seat) => seat !== owner).length;
      const paid = Math.fround(Math.fround(Math.fround(this.settings.cost) * others) / Math.max(seats.length, 1));
      return Math.fround(gains[owner] - paid);
    });
    const coin_position = this.returned(state, position, takers, key);
    return { state: { ...state, position, coin_position, last_actions: actions, time: state.time + 1 }, rewards };
  }

  /** The coins' cells after those that were taken came back on free cells, in the order of their old cells. */
  private returned(state: State, position: number[], takers: number[][], key: StepKey): number[] {
    const coins: number[] = [...state.coin_position];
    const occupied = new Set([...position, ...coins]);
    const free = state.walls.flatMap((isWall: boolean, cell: number) => (isWall || occupied.has(cell) ? [] : [cell]));
    const ranks = distinctOf(wordsOf(key, coins.length), free.length);
    const taken = coins.map((_, owner) => owner).filter((owner) => takers[owner].length);
    taken.sort((one, other) => state.coin_position[one] - state.coin_position[other]);
    taken.forEach((owner, turn) => (coins[owner] = free[ranks[turn]]));
    return coins;
  }

  observe(state: State): Observation[] {
    const present = state.position.map(() => true);
    return egoViews(this.spec, this.board(state), present, state.time, state.last_actions);
  }

  legal(state: State): boolean[][] {
    const playing = state.time < this.spec.horizon;
    return state.position.map((cell: number) => [
      ...targets(this.spec, cell, (to) => state.walls[to]).map((to) => playing && to >= 0),
      true,
    ]);
  }

  terminated(state: State): boolean[] {
    return state.position.map(() => state.time >= this.spec.horizon);
  }

  legalInView(observation: Observation): boolean[] {
    const own = plane(this.spec, observation, 0).indexOf(true);
    const walls = plane(this.spec, observation, planeIndex(this.spec, "obstacles"));
    const playing = observation.time[0] < 1;
    return [...targets(this.spec, own, (to) => walls[to]).map((to) => playing && to >= 0), true];
  }

  eventsInView(): boolean[][] {
    return Array.from({ length: this.spec.num_agents }, () => this.spec.event_actions.map(() => false));
  }

  board(state: State): Uint8Array {
    const { board, mark } = emptyBoard(this.spec);
    const count = this.spec.num_agents;
    state.position.forEach((cell: number, seat: number) => mark(cell, seat));
    state.coin_position.forEach((cell: number, seat: number) => mark(cell, count + seat));
    state.walls.forEach((is: boolean, cell: number) => is && mark(cell, 2 * count));
    return board;
  }
}
