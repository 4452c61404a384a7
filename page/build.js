// `node build.js ROOT` joins the modules of each widget, and of JupyterLab's extension, and their
// styles, into one file each, below the root of the project or of a copy.

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { build } from "esbuild";

const WIDGETS = ["run", "runs", "study", "compare", "charts", "displays", "media", "form", "problem"];
const STYLES = ["run", "runs", "study", "charts", "form", "problem"];
// Where a view has rules besides those that all share (`.distrain`), these outrank them, in
// whatever order a page gets the styles of its widgets.
/** @type {Record<string, [root: string, own: string]>} */
const OWN_RULES = {
  "runs.css": [".distrain", ".distrain.distrain-runs"],
  "form.css": [".dn-form", ".distrain.dn-form"],
};
const STATIC = "distrain_nb/ui/static";
const EXTENSION = "jupyter-config/labextension/static";
const here = import.meta.dirname;

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

const shared = {
  absWorkingDir: here,
  outdir: process.argv[2],
  bundle: true,
  plugins: [belowOwnRoot],
  target: "esnext",
  charset: /** @type {const} */ ("utf8"),
  banner: { js: "// Made from page/src by `make page`: edit that." },
};

await build({
  ...shared,
  entryPoints: [
    ...WIDGETS.map((name) => ({ in: `src/${name}.js`, out: `${STATIC}/${name}` })),
    ...STYLES.map((name) => ({ in: `styles/${name}.css`, out: `${STATIC}/${name}` })),
  ],
  format: "esm",
});
// JupyterLab loads it with the page, whether there are runs or not.
await build({
  ...shared,
  entryPoints: [
    { in: "src/lab/remote.js", out: `${EXTENSION}/remoteEntry` },
    { in: "styles/lab.css", out: `${EXTENSION}/lab` },
  ],
  format: "iife",
  minify: true,
});
