// Repeated matrix games, as in hopplus/games/matrix.py.

import { Game, GameData, Observation, Spec, State, egoViews } from "./game";
import { NO_ACTION } from "./numbers";

export class MatrixGame implements Game {
  isRandom = false;
  spec: Spec;
  /** payoff[a][b] is the reward of action a against action b. */
  payoff: number[][];

  constructor(data: GameData) {
    this.spec = data.spec;
    this.payoff = data.settings.payoff;
  }

  reset(): State {
    return { last_actions: new Array(this.spec.num_agents).fill(NO_ACTION), time: 0 };
  }

  step(state: State, actions: number[]): { state: State; rewards: number[] } {
    const isOver = this.terminated(state)[0];
    const rewards = actions.map((action, seat) => {
      let total = 0;
      this.payoff[action].forEach((paid, against) => {
        const count = actions.filter((other, index) => index !== seat && other === against).length;
        total = Math.fround(total + Math.fround(count * Math.fround(paid)));
      });
      return isOver ? 0 : Math.fround(total / (actions.length - 1));
    });
    return { state: { last_actions: [...actions], time: state.time + 1 }, rewards };
  }

  observe(state: State): Observation[] {
    const present = state.last_actions.map(() => true);
    return egoViews(this.spec, new Uint8Array(0), present, state.time, state.last_actions);
  }

  legal(state: State): boolean[][] {
    return state.last_actions.map(() => this.payoff.map(() => true));
  }

  terminated(state: State): boolean[] {
    return state.last_actions.map(() => state.time >= this.spec.horizon);
  }

  legalInView(): boolean[] {
    return this.payoff.map(() => true);
  }

  eventsInView(): boolean[][] {
    const none = this.spec.event_actions.map(() => false);
    return Array.from({ length: this.spec.num_agents }, () => none);
  }

  board(): Uint8Array {
    return new Uint8Array(0);
  }
}
