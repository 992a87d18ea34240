// A trained agent as a player: beliefs about goals, predictions of co-players, and the policy that reads them.
// As in hopplus/agents and hopplus/planning/beliefs.py.

import { Game, Observation, Spec, viewOf } from "./game";
import { Arrays, ReadView, decide, embed, evidenceOf, indexed, infer, part, predictOther, readView, seenFrom } from "./network";
import { Tensor, concatenate, oneHot, softmax, sum, uniform } from "./numbers";
import { Player, PlayerState, Thought } from "./player";

const SMOOTHING = 0.05;
const MEMORY = 0.995;

export interface AgentData {
  name: string;
  agent: string;
  /** How many sets of parameters there are: one for each seat that learned, or one for all. */
  sets: number;
  goals: { kind: "none" | "hindsight" | "continuous" | "discrete"; size: number; evidence: number; hidden: number };
  goal_names: string[];
  as_input: boolean;
  /** Width of the recurrent state; 0 without memory. */
  memory_size: number;
  /** Place of each array in the weights of the page, in numbers. */
  arrays: Record<string, { shape: number[]; start: number }>;
}

interface CoPlayerBelief {
  belief: Float32Array;
  counts: Float32Array;
  revealed: Float32Array;
  /** Action probabilities for each goal in the last state; empty at first. */
  predicted: Float32Array[];
  legal: boolean[];
}

interface CoPlayerEvidence {
  total: Float32Array;
  embedded: Float32Array;
}

/** Where an agent's arrays lie in the page. */
export function arraysOf(data: AgentData, weights: Float32Array, set: number): Arrays {
  const arrays: Arrays = new Map();
  for (const [name, { shape, start }] of Object.entries(data.arrays)) {
    const size = shape.slice(1).reduce((product, one) => product * one, 1);
    const from = start + set * size;
    const tensor: Tensor = { shape: shape.slice(1), data: weights.subarray(from, from + size) };
    arrays.set(name, tensor);
  }
  return arrays;
}

export class Agent implements Player {
  goalNames: string[];
  private spec: Spec;
  private policy: Arrays;
  /** The opponent model of each co-player in seat order after the seat. */
  private others: Arrays[] | null;
  private posterior: Arrays | null;

  constructor(
    public name: string,
    private data: AgentData,
    private game: Game,
    weights: Float32Array,
    seat: number,
  ) {
    const arrays = arraysOf(data, weights, Math.min(seat, data.sets - 1));
    this.spec = game.spec;
    this.goalNames = data.goal_names;
    this.policy = part(arrays, "params")!;
    const others = part(arrays, "opponents.others");
    const last = (others?.get("heads.bias")?.shape[0] ?? 1) - 1;
    this.others = others && Array.from({ length: this.numOthers }, (_, place) => indexed(others, Math.min(place, last)));
    this.posterior = part(arrays, "opponents.posterior");
  }

  private get numOthers(): number {
    return this.spec.num_agents - 1;
  }

  init(): PlayerState {
    const { kind, size, evidence, hidden } = this.data.goals;
    const memory = Array.from({ length: this.numOthers }, () => {
      if (kind === "hindsight") return this.fresh(new Float32Array(size).fill(1));
      if (kind === "none") return null;
      return { total: new Float32Array(evidence), embedded: new Float32Array(hidden) };
    });
    return { memory, hidden: this.data.memory_size ? new Float32Array(this.data.memory_size) : null };
  }

  private fresh(counts: Float32Array): CoPlayerBelief {
    const total = sum(counts);
    return {
      belief: counts.map((one) => one / total),
      counts,
      revealed: counts.map(() => 0),
      predicted: [],
      legal: [],
    };
  }

  nextEpisode(state: PlayerState): PlayerState {
    if (this.data.goals.kind !== "hindsight") return this.init();
    const memory = state.memory.map((one: CoPlayerBelief) => {
      const seen = one.revealed.some((is) => is > 0) ? one.revealed : one.belief;
      return this.fresh(one.counts.map((count, goal) => MEMORY * count + seen[goal]));
    });
    return { ...this.init(), memory };
  }

  act(observation: Observation, legal: boolean[], state: PlayerState): Thought {
    const views = Array.from({ length: this.numOthers }, (_, place) => viewOf(this.spec, observation, place + 1));
    const seen = (this.others ?? []).map((arrays, place) => {
      const view = views[place];
      return readView(this.spec, arrays, seenFrom(this.spec, view, this.game.legalInView(view)));
    });
    const { memory, goals } = this.update(observation, views, seen, state.memory);
    const predicted = this.others ? this.predict(seen, memory, goals) : undefined;
    const inputs = goals.map((goal, place) => {
      if (!this.data.as_input) return goal;
      return concatenate(goal, predicted![place].map((one, action) => (seen[place].seen.legal[action] ? one : 0)));
    });
    const decision = decide(this.spec, this.policy, observation, legal, concatenate(...inputs), state.hidden);
    return {
      probabilities: decision.probabilities,
      state: { memory, hidden: decision.hidden },
      beliefs: this.goalNames.length ? goals : undefined,
      predicted,
      value: decision.value,
    };
  }

  /** What the agent holds about goals, for comparisons. */
  goalsOf(state: PlayerState): Float32Array[] {
    if (this.data.goals.kind === "hindsight") return state.memory.map((one: CoPlayerBelief) => one.belief);
    if (this.data.goals.kind === "none") return [];
    return state.memory.map((one: CoPlayerEvidence) => this.latent(one));
  }

  private update(observation: Observation, views: Observation[], seen: ReadView[], memory: any[]): { memory: any[]; goals: Float32Array[] } {
    const kind = this.data.goals.kind;
    if (kind === "none") return { memory, goals: memory.map(() => new Float32Array(0)) };
    if (kind === "hindsight") {
      const events = this.game.eventsInView(observation).slice(1);
      const updated = memory.map((one: CoPlayerBelief, place) =>
        this.filtered(one, observation.last_actions[place + 1], events[place], seen[place], place),
      );
      return { memory: updated, goals: updated.map((one) => one.belief) };
    }
    const posterior = this.posterior!;
    const updated = memory.map((one: CoPlayerEvidence, place) => {
      const added = evidenceOf(posterior, one.embedded, observation.last_actions[place + 1], this.spec.action_names.length);
      return { total: one.total.map((before, index) => before + added[index]), embedded: embed(this.spec, posterior, views[place]) };
    });
    return { memory: updated, goals: updated.map((one) => this.latent(one)) };
  }

  /** The Bayes filter over hindsight goals of one co-player, after its last action. */
  private filtered(kept: CoPlayerBelief, action: number, events: boolean[], read: ReadView, place: number): CoPlayerBelief {
    let belief = kept.belief;
    if (action >= 0 && kept.predicted.length) {
      const chance = uniform(kept.legal)[action];
      const weights = belief.map((one, goal) => one * ((1 - SMOOTHING) * kept.predicted[goal][action] + SMOOTHING * chance));
      const total = sum(weights);
      if (total > 0) belief = weights.map((one) => one / total);
    }
    const revealed = kept.revealed.map((one, goal) => Math.max(one, Number(events[goal] ?? false)));
    const size = belief.length;
    const predicted = Array.from({ length: size }, (_, goal) =>
      goal === size - 1 ? uniform(read.seen.legal) : predictOther(this.others![place], read, oneHot(goal, size)),
    );
    return { belief, counts: kept.counts, revealed, predicted, legal: read.seen.legal };
  }

  private latent(one: CoPlayerEvidence): Float32Array {
    const outputs = infer(this.posterior!, one.embedded, one.total);
    return this.data.goals.kind === "continuous" ? outputs.slice(0, this.data.goals.size) : softmax(outputs);
  }

  /** The action probabilities of each co-player, averaged over the belief or given its goal vector. */
  private predict(seen: ReadView[], memory: any[], goals: Float32Array[]): Float32Array[] {
    if (this.data.goals.kind !== "hindsight") return seen.map((one, place) => predictOther(this.others![place], one, goals[place]));
    return memory.map((one: CoPlayerBelief) =>
      one.predicted[0].map((_, action) => sum(one.predicted.map((each, goal) => one.belief[goal] * each[action]))),
    );
  }
}
