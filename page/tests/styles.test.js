// Styles of several widgets stand in one page: none may reach what is another's.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const STATIC = new URL("../../distrain_nb/ui/static/", import.meta.url);
const SHARED = "run";
/** @type {Record<string, string>} the class of a view by its file; `.distrain` is what all share */
const ROOTS = { run: ".distrain", runs: ".distrain.distrain-runs", form: ".distrain.dn-form", problem: ".distrain.dn-problem", charts: ".distrain-charts" };
const THEME = '[data-jp-theme-light="false"] ';
const HOST = ".jp-RenderedHTMLCommon:has(ROOT)";

/**
 * Selectors with their declarations.
 * @param {string} name
 */
function rules(name) {
  const text = readFileSync(new URL(`${name}.css`, STATIC), "utf8").replace(/\/\*.*?\*\//gs, "");
  const frames = text.replace(/@keyframes[^{]*\{(?:[^{}]*\{[^}]*\})*\s*\}/g, "");
  const flat = frames.replace(/@(?:container|media)[^{]*\{/g, "");
  return [...flat.matchAll(/([^{}]+)\{([^{}]*)\}/g)].flatMap(([, selectors, body]) => (
    split(selectors).map((selector) => ({ selector, body: body.trim() }))
  ));
}

/** @param {string} selectors */
function split(selectors) {
  return selectors.trim().split(/,(?![^(]*\))/).map((each) => each.trim().replace(/\s+/g, " "));
}

/**
 * @param {string} selector
 * @param {string} root
 */
function isBelow(selector, root) {
  const own = selector.startsWith(THEME) ? selector.slice(THEME.length) : selector;
  const next = own.slice(root.length)[0] ?? " ";
  return selector === HOST.replace("ROOT", root) || (own.startsWith(root) && " :[>".includes(next));
}

for (const [name, root] of Object.entries(ROOTS)) {
  test(`every rule of ${name}.css is below its own root, or the same for all`, () => {
    const shared = new Set([SHARED, "charts"].flatMap(rules).map(({ selector, body }) => `${selector} {${body}}`));
    const found = rules(name);
    assert.ok(found.length > 20);
    const leaks = found.filter(({ selector, body }) => (
      !isBelow(selector, root) && !(shared.has(`${selector} {${body}}`) && name !== "charts")
    ));
    assert.deepEqual(leaks.map(({ selector }) => selector), []);
  });
}
