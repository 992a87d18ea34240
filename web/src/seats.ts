// One seat of the page: who plays it, its return, and what its player thinks.

import { Look } from "./draw";
import { PERSON, PageData, Session } from "./session";
import { Language, say, sayAction, sayThing } from "./words";

export interface ThoughtsShown {
  beliefs: boolean;
  predicted: boolean;
  policy: boolean;
}

function element<K extends keyof HTMLElementTagNameMap>(name: K, kind: string, text = ""): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.className = kind;
  made.textContent = text;
  return made;
}

export function showSeat(
  data: PageData & Look,
  session: Session,
  step: number,
  seat: number,
  text: string,
  shown: ThoughtsShown,
  language: Language,
  onChoose: (chosen: string) => void,
): HTMLElement {
  const moment = session.moments[step];
  const box = element("article", "seat");
  box.setAttribute("aria-label", say(language, "player", seat + 1));
  const head = element("div", "seat-head");
  const chip = element("span", "chip", String(seat + 1));
  chip.style.background = data.colours[seat];
  head.append(chip, chooser(data, seat, text, language, onChoose));
  const got = session.returns(step)[seat];
  const isGone = moment.over[seat] && moment.state.present?.[seat] === false;
  const words = [say(language, "return", Number(got.toFixed(2)))];
  if (isGone) words.push(say(language, "left"));
  const thought = moment.thoughts[seat];
  if (thought?.value !== undefined && shown.policy && !moment.over[seat]) words.push(say(language, "value", Number(thought.value.toFixed(1)) || 0));
  box.append(head, element("p", "seat-return", words.join(", ")));
  if (!thought || moment.over[seat]) return box;
  const others = session.seats.map((_, place) => ((seat + place) % session.seats.length) + 1).slice(1);
  const names = session.game.spec.action_names.map((name) => sayAction(language, name));
  const goals = session.players[seat]!.goalNames.map((name) => sayThing(language, name));
  if (shown.policy) box.append(bars(say(language, "plays"), names, thought.probabilities));
  if (shown.beliefs) thought.beliefs?.forEach((one, place) => box.append(bars(say(language, "believes", others[place]), goals, one)));
  if (shown.predicted) {
    thought.predicted?.forEach((one, place) => {
      if (!moment.over[others[place] - 1]) box.append(bars(say(language, "predicts", others[place]), names, one));
    });
  }
  return box;
}

function chooser(data: PageData, seat: number, text: string, language: Language, onChoose: (chosen: string) => void): HTMLElement {
  const select = element("select", "who");
  select.id = `seat-${seat}`;
  select.setAttribute("aria-label", say(language, "seat_label", seat + 1));
  const option = (value: string, words: string) => new Option(words, value, false, value === text);
  select.append(option(PERSON, say(language, "person")));
  const agents = document.createElement("optgroup");
  agents.label = say(language, "agents");
  for (const agent of data.agents) {
    if (agent.sets === 1) agents.append(option(agent.name, agent.name));
    else for (let set = 1; set <= agent.sets; set++) agents.append(option(`${agent.name}:${set}`, say(language, "seat_of", agent.name, set)));
  }
  const scripts = document.createElement("optgroup");
  scripts.label = say(language, "scripts");
  scripts.append(...data.scripts.map((name) => option(name, say(language, name))));
  select.append(agents, scripts);
  select.addEventListener("change", () => onChoose(select.value));
  return select;
}

/** Probabilities as bars with numbers; small ones are left out. */
function bars(title: string, names: string[], shares: ArrayLike<number>): HTMLElement {
  const list = element("dl", "bars");
  list.setAttribute("aria-label", title);
  const box = element("div", "bars-box");
  box.append(element("h4", "", title), list);
  names
    .map((name, index) => ({ name, share: shares[index] }))
    .filter(({ share }) => share >= 0.005)
    .sort((one, other) => other.share - one.share)
    .forEach(({ name, share }) => {
      const percent = `${Math.round(100 * share)}%`;
      const bar = element("dd", "", percent);
      bar.style.setProperty("--share", percent);
      list.append(element("dt", "", name), bar);
    });
  return box;
}
