// Bundles src/ into the script that `hopplus share` writes into pages. `--check` compares instead of writing.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "hopplus", "share", "templates", "page.js");

function checksum() {
  const hash = createHash("sha256");
  for (const name of readdirSync(join(here, "src")).sort()) {
    hash.update(name).update("\0").update(readFileSync(join(here, "src", name))).update("\0");
  }
  return hash.digest("hex");
}

const { outputFiles } = await build({
  entryPoints: [join(here, "src", "main.ts")],
  bundle: true,
  format: "iife",
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  minifySyntax: true,
  minifyWhitespace: true,
  write: false,
});
const text = `// Built from web/src by "npm run build"; do not edit. sha256 of the sources: ${checksum()}\n${outputFiles[0].text}`;
if (!process.argv.includes("--check")) {
  writeFileSync(target, text);
} else if (readFileSync(target, "utf8") !== text) {
  console.error("page.js is not what its sources give: run npm run build in web/");
  process.exit(1);
}
