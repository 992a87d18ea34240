// The rules of level-based foraging, as in hopplus/games/foraging.py.

import { Draws, Game, GameData, Observation, Spec, State, anyOf, asPlayed, egoViews, plane, planeIndex, planesOf } from "./game";
import { STAY, drawCells, emptyBoard, moved, noActions, targets } from "./walking";

const LOAD = 5;

interface Settings {
  num_foods: number;
  player_levels: number;
  food_levels: number;
  walls: number[][];
}

export class Foraging implements Game {
  isRandom = false;
  spec: Spec;
  private settings: Settings;

  constructor(data: GameData) {
    this.spec = data.spec;
    this.settings = data.settings;
  }

  reset(random: Draws): State {
    const count = this.spec.num_agents;
    const { num_foods, player_levels, food_levels } = this.settings;
    const { walls, cells } = drawCells(this.spec, this.settings.walls, count + num_foods, random);
    const levels = (length: number, most: number) => Array.from({ length }, () => 1 + random.below(most));
    return {
      position: cells.slice(0, count),
      level: levels(count, player_levels),
      last_actions: noActions(this.spec),
      food_position: cells.slice(count),
      food_level: levels(num_foods, food_levels),
      food_remains: new Array(num_foods).fill(true),
      walls,
      time: 0,
    };
  }

  step(state: State, chosen: number[]): { state: State; rewards: number[] } {
    const actions = asPlayed(this.legal(state), chosen, STAY);
    const food_remains = [...state.food_remains];
    // The shares of a player are a sum of fractions, which is rounded once: numerators over the product of strengths.
    const worth = actions.map(() => [] as { level: number; strength: number }[]);
    state.food_position.forEach((_: number, food: number) => {
      if (!state.food_remains[food]) return;
      const loaders = actions.map((_, seat) => seat).filter((seat) => actions[seat] === LOAD && this.isBeside(state, seat, food));
      const strength = loaders.reduce((total, seat) => total + state.level[seat], 0);
      if (!loaders.length || strength < state.food_level[food]) return;
      food_remains[food] = false;
      for (const seat of loaders) worth[seat].push({ level: state.food_level[food], strength });
    });
    const rewards = worth.map((parts, seat) => {
      const whole = parts.reduce((product, { strength }) => product * strength, 1);
      const total = parts.reduce((sum, { level, strength }) => sum + level * (whole / strength), 0);
      return Math.fround((state.level[seat] * total) / whole);
    });
    const wanted = moved(this.spec, state, actions);
    const position = wanted.map((cell, seat) =>
      wanted.some((other, index) => index !== seat && other === cell) ? state.position[seat] : cell,
    );
    return { state: { ...state, position, last_actions: actions, food_remains, time: state.time + 1 }, rewards };
  }

  observe(state: State): Observation[] {
    const present = state.position.map(() => true);
    return egoViews(this.spec, this.board(state), present, state.time, state.last_actions);
  }

  legal(state: State): boolean[][] {
    const playing = !this.terminated(state)[0];
    const foods = state.food_position.filter((_: number, food: number) => state.food_remains[food]);
    const taken = new Set<number>([...state.position, ...foods]);
    return state.position.map((cell: number, seat: number) => [
      ...targets(this.spec, cell, (to) => state.walls[to] || taken.has(to)).map((to) => playing && to >= 0),
      true,
      playing && state.food_position.some((_: number, food: number) => state.food_remains[food] && this.isBeside(state, seat, food)),
    ]);
  }

  terminated(state: State): boolean[] {
    const isOver = state.time >= this.spec.horizon || !state.food_remains.some(Boolean);
    return state.position.map(() => isOver);
  }

  legalInView(observation: Observation): boolean[] {
    const { num_agents } = this.spec;
    const own = plane(this.spec, observation, 0).indexOf(true);
    const foods = anyOf(this.spec, observation, planesOf(this.spec, "food_"));
    const others = Array.from({ length: num_agents - 1 }, (_, place) => place + 1);
    const blocked = anyOf(this.spec, observation, [planeIndex(this.spec, "obstacles"), ...planesOf(this.spec, "food_"), ...others]);
    const playing = observation.time[0] < 1 && foods.some(Boolean);
    return [
      ...targets(this.spec, own, (to) => blocked[to]).map((to) => playing && to >= 0),
      true,
      playing && targets(this.spec, own, (to) => !foods[to]).some((to) => to >= 0),
    ];
  }

  eventsInView(): boolean[][] {
    return Array.from({ length: this.spec.num_agents }, () => this.spec.event_actions.map(() => false));
  }

  board(state: State): Uint8Array {
    const { board, mark } = emptyBoard(this.spec);
    const count = this.spec.num_agents;
    const { food_levels } = this.settings;
    state.position.forEach((cell: number, seat: number) => {
      mark(cell, seat);
      mark(cell, count + food_levels + state.level[seat]);
    });
    state.walls.forEach((is: boolean, cell: number) => is && mark(cell, count));
    state.food_position.forEach((cell: number, food: number) => {
      if (state.food_remains[food]) mark(cell, count + state.food_level[food]);
    });
    return board;
  }

  /** Whether a player stands on one of the four cells around a food. */
  private isBeside(state: State, seat: number, food: number): boolean {
    return targets(this.spec, state.position[seat], () => false).includes(state.food_position[food]);
  }
}
