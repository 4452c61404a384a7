// What JupyterLab loads as a prebuilt extension: a container as webpack's module federation makes
// them, with one module and nothing of its own to share.

import { runsPlugin } from "./extension.js";

/** @import { ShareScope } from "./jupyterlab.d.ts" */

const NAME = "distrain-nb";
const PACKAGES = {
  application: "@jupyterlab/application",
  apputils: "@jupyterlab/apputils",
  rendermime: "@jupyterlab/rendermime",
  statusbar: "@jupyterlab/statusbar",
  components: "@jupyterlab/ui-components",
  widgets: "@lumino/widgets",
};
const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
/** @type {ShareScope} */
let scope = {};

/**
 * The page's own copy of a package; undefined where it has none.
 * @param {string} name
 */
async function shared(name) {
  const versions = Object.values(scope[name] ?? {});
  const chosen = versions.find(({ loaded }) => loaded) ?? versions.at(-1);
  if (!chosen) return undefined;
  chosen.loaded = 1;  // others that share it take the same one
  return (await chosen.get())();
}

const container = {
  /** @param {ShareScope} given */
  init(given) { scope = given; },
  /** @param {string} module */
  async get(module) {
    if (module !== "./extension") throw new Error(`${NAME} has no module ${module}`);
    const found = Object.entries(PACKAGES).map(async ([name, from]) => [name, await shared(from)]);
    const plugin = runsPlugin(Object.fromEntries(await Promise.all(found)), new URL(".", src));
    return () => ({ __esModule: true, default: plugin });
  },
};

/** @type {any} */
const page = window;
(page._JUPYTERLAB ??= {})[NAME] = container;
