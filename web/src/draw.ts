// The board as an SVG picture with a description in words, and the table of a matrix game.

import { Spec } from "./game";
import { Language, say, sayAction, sayThing } from "./words";
import { Moment } from "./session";

const NAMESPACE = "http://www.w3.org/2000/svg";
const PLACES = [
  [-0.25, 0.25],
  [0.25, 0.25],
  [-0.25, -0.25],
  [0.25, -0.25],
];

export interface Symbol {
  name: string;
  paths: { d: string; fill: string; stroke: string; width: number }[];
}

export interface Look {
  symbols: Symbol[];
  colours: string[];
}

function make(name: string, attributes: Record<string, string | number>, parent?: Element, text?: string): Element {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  parent?.append(element);
  return element;
}

/** Draws one state; the board's planes are the players in seat order, then the rest. */
export function drawBoard(into: Element, spec: Spec, look: Look, board: Uint8Array, people: number[], language: Language): void {
  const { height, width, planes, num_agents } = spec;
  const svg = make("svg", { viewBox: `-0.03 -0.03 ${width + 0.06} ${height + 0.06}`, role: "img" });
  svg.setAttribute("aria-label", describe(spec, board, people, language));
  for (let cell = 0; cell < height * width; cell++) {
    const [row, column] = [Math.floor(cell / width), cell % width];
    const on = planes.map((_, index) => board[cell * planes.length + index] > 0);
    const isWall = planes.some((one, index) => one.kind === "fixed" && on[index]);
    const floor = isWall ? "wall" : (row + column) % 2 ? "other-floor" : "floor";
    make("rect", { x: column, y: row, width: 1, height: 1, class: floor }, svg);
    planes.forEach((one, index) => {
      const symbol = look.symbols.find((each) => each.name === one.name);
      if (!on[index] || one.kind !== "set" || !symbol) return;
      const group = make("g", { transform: `translate(${column + 0.5} ${row + 0.45}) scale(0.8)` }, svg);
      for (const { d, fill, stroke, width: thickness } of symbol.paths) {
        make("path", { d, fill, stroke, "stroke-width": thickness, "stroke-linecap": "round" }, group);
      }
    });
    const here = planes.map((_, index) => index).filter((index) => index < num_agents && on[index]);
    const level = planes.findIndex((one, index) => one.kind === "category" && on[index]);
    here.forEach((seat) => drawPlayer(svg, seat, here.length === 1 ? 0.5 : 0.5 + PLACES[seat % 4][0], 0.5 + (here.length === 1 ? 0.22 : PLACES[seat % 4][1]), row, column, look, people, levelOf(spec, level)));
  }
  into.replaceChildren(svg);
}

function drawPlayer(svg: Element, seat: number, x: number, y: number, row: number, column: number, look: Look, people: number[], level: number): void {
  const group = make("g", { transform: `translate(${column + x} ${row + y})` }, svg);
  const isPerson = people.includes(seat);
  make("circle", { r: 0.21, fill: look.colours[seat], class: isPerson ? "piece person" : "piece" }, group);
  make("text", { y: level ? 0.05 : 0.09, class: "piece-number" }, group, String(seat + 1));
  for (let dot = 0; dot < level; dot++) {
    make("circle", { cx: 0.09 * (dot - (level - 1) / 2), cy: 0.125, r: 0.032, class: "dot" }, group);
  }
}

/** The level that a plane shows, as in level_2; 0 without a plane. */
const levelOf = (spec: Spec, index: number): number => (index < 0 ? 0 : Number(spec.planes[index].name.replace("level_", "")));

/** The board in words, for screen readers. */
export function describe(spec: Spec, board: Uint8Array, people: number[], language: Language): string {
  const parts: string[] = [];
  spec.planes.forEach((one, index) => {
    if (one.kind === "fixed" || one.kind === "category") return;
    for (let cell = 0; cell < spec.height * spec.width; cell++) {
      if (!board[cell * spec.planes.length + index]) continue;
      const place = say(language, "cell", Math.floor(cell / spec.width) + 1, (cell % spec.width) + 1);
      const who = index < spec.num_agents ? say(language, "player", index + 1) : sayThing(language, one.name);
      const level = spec.planes.findIndex((each, of) => each.kind === "category" && board[cell * spec.planes.length + of]);
      const about = people.includes(index) ? [say(language, "you")] : [];
      if (index < spec.num_agents && level >= 0) about.push(say(language, "level", levelOf(spec, level)));
      parts.push(`${who}${about.length ? ` (${about.join(", ")})` : ""}: ${place}`);
    }
  });
  return parts.join("; ") || say(language, "empty");
}

/** A game without a board: its payoffs, and what was chosen in the last round. */
export function drawTable(into: Element, spec: Spec, payoff: number[][], moment: Moment, language: Language): void {
  const table = document.createElement("table");
  const caption = table.createCaption();
  caption.textContent = say(language, "payoff");
  const head = table.createTHead().insertRow();
  head.append(document.createElement("td"));
  const header = (name: string, scope: string) => {
    const cell = document.createElement("th");
    cell.scope = scope;
    cell.textContent = sayAction(language, name);
    return cell;
  };
  spec.action_names.forEach((name) => head.append(header(name, "col")));
  const body = table.createTBody();
  payoff.forEach((paid, action) => {
    const row = body.insertRow();
    row.append(header(spec.action_names[action], "row"));
    paid.forEach((one) => (row.insertCell().textContent = String(one)));
  });
  const last = document.createElement("p");
  const chosen = moment.state.last_actions as number[];
  const shown = chosen.map((action, seat) => say(language, "did", seat + 1, action < 0 ? "–" : sayAction(language, spec.action_names[action])));
  last.textContent = `${say(language, "last")}: ${shown.join(", ")}`;
  into.replaceChildren(table, last);
}
