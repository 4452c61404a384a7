// The live table of a comparison as a widget: it stands where its still picture is marked.

import { element, LITERAL } from "./dom.js";
import { Comparison } from "./runs/comparison.js";
import { Source } from "./source.js";
import { keepFocus, standsWhereMarked } from "./standing.js";

/** @import { CompareState, Model, View } from "./protocol.d.ts" */
/** @import { Query } from "./source.js" */

class CompareSource extends /** @type {typeof Source<CompareState>} */ (Source) {
  /** @override */
  get opening() { return "compare"; }

  /**
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    return `distrain/${path}?${this.words({ ...query, runs: this.model.get("runs") })}`;
  }
}

/**
 * @param {Model<CompareState>} model
 * @returns {View}
 */
function openComparison(model) {
  const root = element("section", { class: `distrain distrain-runs ${LITERAL}`, role: "region", "aria-label": "comparison" });
  const source = new CompareSource(model);
  const table = new Comparison(root, () => source.ask("compare"));
  return { root, moved: keepFocus(root), end: () => { table.close(); source.close(); } };
}

export default { initialize: standsWhereMarked(openComparison) };
