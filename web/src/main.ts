// The script of the page; without a document, in node, it only offers the same functions.

import { compare } from "./parity";
import { Random, sampleAction } from "./numbers";
import { Page } from "./page";
import { makeScript } from "./scripts";
import { Session, decodeWeights, fileOf } from "./session";

const api: Record<string, unknown> = { Random, Session, compare, decodeWeights, fileOf, makeScript, sampleAction };
(globalThis as any).hopplus = api;

if (typeof document !== "undefined") {
  const read = (name: string) => document.getElementById(name)!.textContent!;
  const seed = crypto.getRandomValues(new Uint32Array(1))[0];
  api.data = JSON.parse(read("data"));
  api.weights = decodeWeights(read("weights"));
  api.page = new Page(api.data as any, api.weights as Float32Array, seed);
}
