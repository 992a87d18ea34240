// What the games have in common whose players walk on a board.

import { Draws, Spec, State } from "./game";
import { NO_ACTION } from "./numbers";
import { NUM_MOVES, target } from "./paths";

export const STAY = 4;

/** Walls of one of the layouts, and distinct free cells in random order. */
export function drawCells(spec: Spec, layouts: number[][], count: number, random: Draws): { walls: boolean[]; cells: number[] } {
  const walls: boolean[] = new Array(spec.height * spec.width).fill(false);
  for (const cell of layouts[random.below(layouts.length)]) walls[cell] = true;
  const free = walls.map((_, cell) => cell).filter((cell) => !walls[cell]);
  return { walls, cells: random.distinct(count, free.length).map((rank) => free[rank]) };
}

export const noActions = (spec: Spec): number[] => new Array(spec.num_agents).fill(NO_ACTION);

/** The cells that the four moves lead to; -1 where the board ends or a cell is blocked. */
export function targets(spec: Spec, cell: number, blocked: (to: number) => boolean): number[] {
  return Array.from({ length: NUM_MOVES }, (_, move) => {
    const to = cell < 0 ? -1 : target(cell, move, spec.height, spec.width);
    return to >= 0 && !blocked(to) ? to : -1;
  });
}

/** The cells after moves, which must be legal. */
export const moved = (spec: Spec, state: State, actions: number[]): number[] =>
  actions.map((action, seat) =>
    action < NUM_MOVES ? target(state.position[seat], action, spec.height, spec.width) : state.position[seat],
  );

/** An empty board, and what marks a cell of a plane. */
export function emptyBoard(spec: Spec): { board: Uint8Array; mark: (cell: number, index: number) => void } {
  const board = new Uint8Array(spec.height * spec.width * spec.planes.length);
  return { board, mark: (cell, index) => (board[cell * spec.planes.length + index] = 1) };
}
