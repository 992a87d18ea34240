// The episodes that were played to their end: listed, replayed, saved.

import { Random } from "./numbers";
import { PageData, SavedEpisode, Session } from "./session";
import { Language, say } from "./words";

export class EpisodeList {
  saved: SavedEpisode[] = [];
  replayed: Session | null = null;

  constructor(
    private data: PageData,
    private weights: Float32Array,
  ) {}

  add(episode: SavedEpisode): void {
    this.saved.push(episode);
  }

  removeLast(): void {
    this.saved.pop();
  }

  clear(): void {
    this.saved = [];
    this.replayed = null;
  }

  /** Plays an episode again with the same actions; players think anew, as in a first episode. */
  replay(index: number): void {
    const episode = this.saved[index];
    this.replayed = new Session(this.data, this.weights, episode.seats, new Random(0));
    this.replayed.start(false, episode.first);
    episode.actions.forEach((actions, step) => this.replayed!.play(actions, episode.keys?.[step]));
  }

  show(into: HTMLElement, language: Language, onReplay: (index: number) => void): void {
    if (!this.saved.length) {
      const none = document.createElement("li");
      none.className = "nothing";
      none.textContent = say(language, "no_episodes");
      into.replaceChildren(none);
      return;
    }
    into.replaceChildren(
      ...this.saved.map((episode, index) => {
        const item = document.createElement("li");
        const returns = episode.seats.map((_, seat) => episode.rewards.reduce((total, one) => total + one[seat], 0));
        const words = returns.map((one) => Number(one.toFixed(2))).join(", ");
        const button = document.createElement("button");
        button.textContent = say(language, "replay");
        button.setAttribute("aria-label", say(language, "replay_label", index + 1));
        button.addEventListener("click", () => onReplay(index));
        item.append(`${say(language, "episode", index + 1, words)} `, button);
        return item;
      }),
    );
  }
}
