// The page: buttons, keys, players, and what is shown of their thoughts.

import { Look, drawBoard, drawTable } from "./draw";
import { MatrixGame } from "./matrix";
import { Random } from "./numbers";
import { EpisodeList } from "./episodes";
import { PERSON, PageData, Session, fileOf } from "./session";
import { ThoughtsShown, showSeat } from "./seats";
import { Language, say, sayAction } from "./words";

const PAUSE = 500;
const KEYS: Record<string, string> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
  w: "up",
  s: "down",
  a: "left",
  d: "right",
  " ": "stay",
};

const find = <T extends HTMLElement>(name: string): T => document.getElementById(name) as T;

export class Page {
  session!: Session;
  seats: string[];
  language: Language;
  episodes: EpisodeList;
  private shownStep: number | null = null;
  private given = new Map<number, number>();
  private timer: number | undefined;
  private random: Random;
  private shown: ThoughtsShown = { beliefs: true, predicted: false, policy: true };

  constructor(
    private data: PageData & Look,
    private weights: Float32Array,
    seed: number,
  ) {
    this.seats = [...data.lineup];
    this.random = new Random(seed);
    this.language = navigator.language.startsWith("zh") ? "zh" : "en";
    this.episodes = new EpisodeList(data, weights);
    this.listen();
    this.begin();
  }

  /** The seats of people. */
  private get people(): number[] {
    return this.seats.flatMap((text, seat) => (text === PERSON ? [seat] : []));
  }

  /** The person whose move it is; none if the game waits for nobody, or an earlier step is shown. */
  private get mover(): number | undefined {
    if (this.isReplaying || this.session.isOver) return undefined;
    return this.people.find((seat) => !this.session.now.over[seat] && !this.given.has(seat));
  }

  private get isReplaying(): boolean {
    return this.episodes.replayed !== null || (this.shownStep !== null && this.shownStep < this.session.moments.length - 1);
  }

  private text = (name: string, ...values: (string | number)[]): string => say(this.language, name, ...values);

  private begin(remembering = false): void {
    this.pause();
    this.given.clear();
    this.episodes.replayed = null;
    this.shownStep = null;
    const isSame = this.session && this.session.seats.join() === this.seats.join();
    if (!isSame) this.session = new Session(this.data, this.weights, [...this.seats], this.random);
    this.session.greedy = find<HTMLInputElement>("greedy").checked;
    this.session.start(remembering && isSame);
    this.render();
  }

  /** A person has chosen; when all have, everybody acts. */
  private choose(action: number): void {
    const seat = this.mover;
    if (seat === undefined || !this.session.now.legal[seat][action]) return;
    this.given.set(seat, action);
    if (this.mover === undefined) this.advance();
    else this.render();
  }

  private advance(): void {
    if (this.session.isOver || this.mover !== undefined || this.isReplaying) return;
    this.session.greedy = find<HTMLInputElement>("greedy").checked;
    this.session.play(this.session.choose(this.given));
    this.given.clear();
    this.shownStep = null;
    if (this.session.isOver) {
      this.episodes.add(this.session.saved());
      this.pause();
    } else if (this.people.length && this.mover === undefined && this.timer === undefined) {
      return this.run(); // all people have left: the others play to the end, so that the episode is complete
    }
    this.render();
  }

  private back(): void {
    if (this.isReplaying || this.session.moments.length < 2) return;
    this.pause();
    if (this.session.isOver) this.episodes.removeLast();
    this.given.clear();
    this.session.back();
    // A person who has moves to make is asked again; where nobody is asked, one step is enough.
    while (this.people.length && this.mover === undefined && this.session.moments.length > 1) this.session.back();
    this.render();
  }

  private run(): void {
    if (this.timer !== undefined) return this.pause();
    this.timer = window.setInterval(() => (this.mover === undefined ? this.advance() : undefined), PAUSE);
    this.render();
  }

  private pause(): void {
    window.clearInterval(this.timer);
    this.timer = undefined;
  }

  private listen(): void {
    const clicks: Record<string, () => void> = {
      language: () => ((this.language = this.language === "en" ? "zh" : "en"), this.render()),
      new: () => this.begin(find<HTMLInputElement>("remember").checked),
      step: () => this.advance(),
      run: () => this.run(),
      back: () => this.back(),
      save: () => this.save(),
      forget: () => (this.episodes.clear(), this.render()),
      current: () => ((this.episodes.replayed = null), (this.shownStep = null), this.render()),
    };
    for (const [name, fn] of Object.entries(clicks)) find(name).addEventListener("click", fn);
    find("shown").addEventListener("input", (event) => {
      this.shownStep = Number((event.target as HTMLInputElement).value);
      this.render();
    });
    for (const name of ["beliefs", "predicted", "policy"] as const) {
      const box = find<HTMLInputElement>(`show-${name}`);
      box.checked = this.shown[name];
      box.addEventListener("change", () => ((this.shown[name] = box.checked), this.render()));
    }
    // A list of players that is open would close at the next step.
    find("seats").addEventListener("focusin", () => this.timer !== undefined && (this.pause(), this.render()));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    const place = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT|TEXTAREA)$/.test(place.tagName)) return;
    const isButton = place.tagName === "BUTTON" || place.tagName === "SUMMARY";
    if (isButton && (event.key === " " || event.key === "Enter")) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const names = this.session.game.spec.action_names;
    const commands: Record<string, () => void> = {
      z: () => this.back(),
      n: () => this.begin(find<HTMLInputElement>("remember").checked),
      p: () => this.run(),
      Enter: () => this.advance(),
    };
    let action = key in KEYS ? names.indexOf(KEYS[key]) : /^[1-9]$/.test(key) ? Number(key) - 1 : -1;
    if (key === "e" && this.mover !== undefined) {
      const legal = this.session.now.legal[this.mover];
      action = names.findIndex((name, index) => /^(hunt|load)/.test(name) && legal[index]);
    }
    if (action >= 0 && action < names.length) this.choose(action);
    else if (key in commands) commands[key]();
    else return;
    event.preventDefault();
  }

  private save(): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([fileOf(this.data, this.episodes.saved)], { type: "application/json" }));
    link.download = "episodes.json";
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /** Draws everything anew. */
  render(): void {
    const session = this.episodes.replayed ?? this.session;
    const last = session.moments.length - 1;
    const step = Math.min(this.shownStep ?? last, last);
    const { spec } = session.game;
    this.renderWords(session);
    const slider = find<HTMLInputElement>("shown");
    Object.assign(slider, { max: String(last), value: String(step) });
    slider.setAttribute("aria-valuetext", this.text("time", step, spec.horizon));
    const moment = session.moments[step];
    if (session.game instanceof MatrixGame) drawTable(find("board"), spec, session.game.payoff, moment, this.language);
    else drawBoard(find("board"), spec, this.data, session.game.board(moment.state), this.people, this.language);
    this.renderStatus(session, step);
    this.renderActions();
    const seats = session.seats.map((text, seat) =>
      showSeat(this.data, session, step, seat, text, this.shown, this.language, (chosen) => {
        this.seats[seat] = chosen;
        this.begin();
        find(`seat-${seat}`).focus();
      }),
    );
    const focused = document.activeElement?.id ?? "";
    find("seats").replaceChildren(...seats);
    if (focused.startsWith("seat-")) find(focused).focus();
    this.episodes.show(find("episode-list"), this.language, (index) => {
      this.pause();
      this.episodes.replay(index);
      this.shownStep = 0;
      this.render();
    });
  }

  private renderWords(session: Session): void {
    document.documentElement.lang = this.language;
    document.title = `${this.text("title")}: ${this.data.game.name}`;
    for (const element of document.querySelectorAll<HTMLElement>("[data-text]")) element.textContent = this.text(element.dataset.text!);
    find("language").setAttribute("aria-label", this.text("language_label"));
    find("run").textContent = this.text(this.timer === undefined ? "run" : "pause");
    find("save").textContent = this.text("save", this.episodes.saved.length);
    find<HTMLButtonElement>("save").disabled = find<HTMLButtonElement>("forget").disabled = !this.episodes.saved.length;
    find<HTMLButtonElement>("step").disabled = this.mover !== undefined || session.isOver || this.isReplaying;
    find<HTMLButtonElement>("run").disabled = session.isOver || this.isReplaying;
    find<HTMLButtonElement>("back").disabled = this.isReplaying || this.session.moments.length < 2;
    find("current").hidden = this.episodes.replayed === null;
    const { kind, spec, settings } = this.data.game;
    const worth = ["stag_reward", "hare_reward", "coin_reward", "cost"].filter((name) => name in settings);
    find("rules-text").textContent = this.text(`rules_${kind}`, spec.horizon, ...worth.map((name) => settings[name]));
  }

  private renderStatus(session: Session, step: number): void {
    const { spec } = session.game;
    const parts = [this.text("time", step, spec.horizon)];
    const before = session.moments[step - 1];
    if (before?.actions) {
      const did = before.actions.map((action, seat) => [seat, action]).filter(([, action]) => action >= 0);
      parts.push(did.map(([seat, action]) => this.text("did", seat + 1, sayAction(this.language, spec.action_names[action]))).join(", "));
      before.rewards!.forEach((reward, seat) => {
        if (reward) parts.push(this.text("got", seat + 1, Number(reward.toFixed(2))));
      });
    }
    if (this.isReplaying) parts.push(this.text("replaying", step, session.moments.length - 1));
    else if (session.isOver) parts.push(this.text("over", step));
    else if (this.mover !== undefined) parts.push(this.text("your_move", this.mover + 1));
    else parts.push(this.text("watching"));
    const stop = this.text("stop");
    find("status").textContent = `${parts.join(stop)}${stop}`.trim();
  }

  private renderActions(): void {
    const mover = this.mover;
    const buttons = this.session.game.spec.action_names.map((name, action) => {
      const button = document.createElement("button");
      button.textContent = sayAction(this.language, name);
      button.className = `action ${name.replace(" ", "-")}`;
      button.disabled = mover === undefined || !this.session.now.legal[mover][action];
      button.setAttribute("aria-keyshortcuts", String(action + 1));
      button.addEventListener("click", () => {
        this.choose(action);
        document.querySelectorAll<HTMLButtonElement>(".action")[action]?.focus();
      });
      return button;
    });
    find("actions").replaceChildren(...buttons);
  }
}
