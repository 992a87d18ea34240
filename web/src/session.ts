// Episodes in play: the moments of one episode, stepping back, series with the same players, and saved episodes.

import { Agent, AgentData } from "./agent";
import { Draws, Game, GameData, State, StepKey } from "./game";
import { makeGame } from "./games";
import { NO_ACTION, Random, argmax, sampleAction } from "./numbers";
import { Player, PlayerState, Thought } from "./player";
import { makeScript } from "./scripts";

export const PERSON = "person";

export interface PageData {
  game: GameData;
  scripts: string[];
  agents: AgentData[];
  lineup: string[];
  version: string;
}

/** One state of an episode, what every player thinks in it, and, once it is known, what was done in it. */
export interface Moment {
  state: State;
  legal: boolean[][];
  over: boolean[];
  /** Before they saw this state. */
  before: PlayerState[];
  thoughts: (Thought | null)[];
  actions: number[] | null;
  rewards: number[] | null;
  key: StepKey | null;
}

/** One episode as it is saved. */
export interface SavedEpisode {
  seats: string[];
  first: State;
  actions: number[][];
  rewards: number[][];
  /** Of a game whose steps draw random numbers: the key of each step. */
  keys?: StepKey[];
}

export function makePlayer(page: PageData, game: Game, weights: Float32Array, text: string, seat: number): Player | null {
  if (text === PERSON) return null;
  const [, name, number] = /^(.*?)(?::(\d+))?$/.exec(text)!;
  const data = page.agents.find((one) => one.name === name);
  if (data) return new Agent(text, data, game, weights, number ? Number(number) - 1 : seat);
  return makeScript(game.spec, text);
}

export class Session {
  game: Game;
  players: (Player | null)[];
  moments: Moment[] = [];

  constructor(
    page: PageData,
    weights: Float32Array,
    public seats: string[],
    private random: Random,
    public greedy = false,
  ) {
    this.game = makeGame(page.game);
    this.players = seats.map((text, seat) => makePlayer(page, this.game, weights, text, seat));
  }

  get now(): Moment {
    return this.moments[this.moments.length - 1];
  }

  get isOver(): boolean {
    return this.now.over.every(Boolean);
  }

  /** Starts with new players, or with those of the last episode, who remember it. */
  start(remembering = false, first: State | null = null, draws: Draws = this.random): void {
    const last = this.moments.length ? this.now : null;
    const states = this.players.map((player, seat) => {
      if (!player) return null;
      return remembering && last ? player.nextEpisode(last.before[seat]) : player.init();
    });
    this.moments = [this.look(first ?? this.game.reset(draws), states)];
  }

  private look(state: State, before: PlayerState[]): Moment {
    const legal = this.game.legal(state);
    const views = this.game.observe(state);
    const thoughts = this.players.map((player, seat) => player && player.act(views[seat], legal[seat], before[seat]));
    return { state, legal, over: this.game.terminated(state), before, thoughts, actions: null, rewards: null, key: null };
  }

  /** What everybody does now; `given` are the actions of people, by seat. */
  choose(given: Map<number, number>): number[] {
    return this.now.thoughts.map((thought, seat) => {
      if (given.has(seat)) return given.get(seat)!;
      if (!thought) return this.game.spec.stay ?? 0;
      return this.greedy ? argmax(thought.probabilities) : sampleAction(thought.probabilities, this.random.uniform());
    });
  }

  play(actions: number[], given?: StepKey): void {
    const moment = this.now;
    moment.key = given ?? (this.game.isRandom ? [this.random.word(), this.random.word()] : [0, 0]);
    const { state, rewards } = this.game.step(moment.state, actions, moment.key);
    moment.actions = actions.map((action, seat) => (moment.over[seat] ? NO_ACTION : action));
    moment.rewards = rewards;
    this.moments.push(this.look(state, moment.thoughts.map((thought) => thought && thought.state)));
  }

  /** Back to the state before, which is played anew. */
  back(): void {
    if (this.moments.length < 2) return;
    this.moments.pop();
    this.now.actions = this.now.rewards = this.now.key = null;
  }

  returns(until = this.moments.length): number[] {
    return this.seats.map((_, seat) => this.moments.slice(0, until).reduce((total, one) => total + (one.rewards?.[seat] ?? 0), 0));
  }

  saved(): SavedEpisode {
    const done = this.moments.filter((one) => one.actions);
    return {
      seats: this.seats,
      first: this.moments[0].state,
      actions: done.map((one) => one.actions!),
      rewards: done.map((one) => one.rewards!),
      ...(this.game.isRandom ? { keys: done.map((one) => one.key!) } : {}),
    };
  }
}

/** The text of a file of episodes, as hopplus reads it. */
export function fileOf(page: PageData, episodes: SavedEpisode[]): string {
  const { name, spec, settings } = page.game;
  const about = { format: "hopplus-episodes", version: 1, game: name, game_name: spec.name, game_version: spec.version };
  return `${JSON.stringify({ ...about, hopplus: page.version, settings: { ...settings, walls: undefined }, episodes })}\n`;
}

/** Weights from the page's text: float32 numbers in base64. */
export function decodeWeights(text: string): Float32Array {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}
