// The games that a page can play, by the `kind` of their data.

import { Coins } from "./coins";
import { Foraging } from "./foraging";
import { Game, GameData } from "./game";
import { MatrixGame } from "./matrix";
import { StagHunt } from "./stag_hunt";

export const GAMES: Record<string, new (data: GameData) => Game> = {
  stag_hunt: StagHunt,
  matrix: MatrixGame,
  foraging: Foraging,
  coins: Coins,
};

export const makeGame = (data: GameData): Game => new GAMES[data.kind](data);
