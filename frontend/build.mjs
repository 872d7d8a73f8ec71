// Bundle three.js for the page, and copy axe for its tests. `npm ci && npm run build` gives the same files every time.

import { build } from "esbuild";
import { copyFile, readFile, stat } from "node:fs/promises";

const MOST_BYTES = 900_000; // of the bundle, before compression
const OUT = "../src/compdiffuser/web/static/three.js";
const { devDependencies: pinned } = JSON.parse(await readFile("package.json", "utf8"));

await build({
  entryPoints: ["three.js"],
  outfile: OUT,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "inline",
  banner: { js: `// three.js ${pinned.three}, MIT licence; bundled by \`npm run build\` in frontend/. Do not edit.` },
});
await copyFile("node_modules/axe-core/axe.min.js", "../tests/web/axe.min.js");
const { size } = await stat(OUT);
console.log(`${OUT}: ${size} bytes`);
if (size > MOST_BYTES) throw new Error(`the bundle may have ${MOST_BYTES} bytes`);
