// `node build.js FOLDER` joins each widget's modules, and its styles, into one file in the folder.

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { build } from "esbuild";

const WIDGETS = ["run", "runs", "compare", "charts", "media", "form", "problem"];
const STYLES = ["run", "runs", "charts", "form", "problem"];
// Where a view has rules besides those that all share (`.distrain`), these outrank them, in
// whatever order a page gets the styles of its widgets.
/** @type {Record<string, [root: string, own: string]>} */
const OWN_RULES = {
  "runs.css": [".distrain", ".distrain.distrain-runs"],
  "form.css": [".dn-form", ".distrain.dn-form"],
};
const here = import.meta.dirname;
const folder = process.argv[2];

const belowOwnRoot = {
  name: "below its own root",
  /** @param {import("esbuild").PluginBuild} building */
  setup(building) {
    building.onLoad({ filter: /styles[/\\](runs|form)\.css$/ }, async ({ path }) => {
      const [root, own] = OWN_RULES[basename(path)];
      return { contents: (await readFile(path, "utf8")).replaceAll(root, own), loader: "css" };
    });
  },
};

await build({
  absWorkingDir: here,
  entryPoints: [
    ...WIDGETS.map((name) => ({ in: `src/${name}.js`, out: name })),
    ...STYLES.map((name) => ({ in: `styles/${name}.css`, out: name })),
  ],
  outdir: folder,
  bundle: true,
  plugins: [belowOwnRoot],
  format: "esm",
  target: "esnext",
  charset: "utf8",
  banner: { js: "// Made from page/src by `make page`: edit that." },
});
