// `node build.js FOLDER` joins each widget's modules, and its styles, into one file in the folder.

import { build } from "esbuild";

const WIDGETS = ["run", "runs", "charts", "media", "form", "problem"];
const STYLES = ["run", "runs", "charts", "form", "problem"];
const here = import.meta.dirname;
const folder = process.argv[2];

await build({
  absWorkingDir: here,
  entryPoints: [
    ...WIDGETS.map((name) => ({ in: `src/${name}.js`, out: name })),
    ...STYLES.map((name) => ({ in: `styles/${name}.css`, out: name })),
  ],
  outdir: folder,
  bundle: true,
  format: "esm",
  target: "esnext",
  charset: "utf8",
  banner: { js: "// Made from page/src by `make page`: edit that." },
});
