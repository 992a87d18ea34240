// Shortest paths on a board: the distance of each cell, and bits of the first moves (up, down, left, right) towards it.

export const FAR = 1_000_000;
export const NUM_MOVES = 4;
const STEPS = [
  [-1, 0],
  [1, 0],
  [0, -1],
  [0, 1],
];

export interface Paths {
  distance: Int32Array;
  moves: Uint8Array;
}

/** The cell that a move leads to; -1 beyond the board. */
export function target(cell: number, move: number, height: number, width: number): number {
  const row = Math.floor(cell / width) + STEPS[move][0];
  const column = (cell % width) + STEPS[move][1];
  return row >= 0 && row < height && column >= 0 && column < width ? row * width + column : -1;
}

/** Without walls: the Manhattan distance from the marked cell, or from the first one if none is marked. */
export function straightPaths(start: boolean[], height: number, width: number): Paths {
  const cell = Math.max(start.indexOf(true), 0);
  const distance = new Int32Array(height * width);
  const moves = new Uint8Array(height * width);
  for (let index = 0; index < distance.length; index++) {
    const down = Math.floor(index / width) - Math.floor(cell / width);
    const right = (index % width) - (cell % width);
    distance[index] = Math.abs(down) + Math.abs(right);
    [-down, down, -right, right].forEach((towards, move) => (moves[index] |= towards > 0 ? 1 << move : 0));
  }
  return { distance, moves };
}

/** Around walls, ring by ring; a cell inherits the first moves of its neighbours in the ring before. */
export function pathsAroundWalls(free: boolean[], start: boolean[], height: number, width: number): Paths {
  const distance = new Int32Array(height * width).fill(FAR);
  const moves = new Uint8Array(height * width);
  let ring: number[] = [];
  start.forEach((is, cell) => {
    if (is) {
      distance[cell] = 0;
      ring.push(cell);
    }
  });
  for (let length = 1; ring.length; length++) {
    const next = new Set<number>();
    for (const cell of ring) {
      for (let move = 0; move < NUM_MOVES; move++) {
        const to = target(cell, move, height, width);
        if (to < 0 || !free[to] || distance[to] < length) continue;
        distance[to] = length;
        moves[to] |= length === 1 ? 1 << move : moves[cell];
        next.add(to);
      }
    }
    ring = [...next];
  }
  return { distance, moves };
}
