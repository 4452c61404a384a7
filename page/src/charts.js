// Where charts stand: below the view of their run, and instead of the drawing that a document has.

import { Charts } from "./charts/charts.js";
import { plotlyCode } from "./charts/frame.js";
import { element, fold, LITERAL } from "./dom.js";
import { Source } from "./source.js";
import { stand, standsWhereMarked } from "./standing.js";

/** @import { ChartsState, Model, View, Widget } from "./protocol.d.ts" */
/** @import { Query } from "./source.js" */

/** Asks about several runs at once. */
export class ComparedSource extends /** @type {typeof Source<any>} */ (Source) {
  /** @override */
  get opening() { return "curves"; }

  /**
   * @override
   * @param {Query} query
   */
  words(query) { return super.words({ ...query, runs: this.model.get("runs") }); }

  /**
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) { return `distrain/${path}?${this.words(query)}`; }
}

/**
 * Charts with a title of their own are closed until the reader opens them.
 * @param {Model<ChartsState>} model
 * @returns {View}
 */
export function openCharts(model) {
  const root = element("div", { class: `distrain-charts ${LITERAL}` });
  const source = model.get("runs") ? new ComparedSource(model) : new Source(model);
  const folded = model.get("title") ? fold(model.get("title")) : null;
  if (folded) root.append(folded.box);
  const charts = new Charts(model, folded?.inside ?? root, source, () => plotlyCode(model));
  // Up to then the drawing of the document stays, alone. A frame that was not kept has to draw anew.
  /** @type {View["ready"]} */
  const ready = async (kept) => {
    if (folded || (kept && charts.plot.isDrawn)) return;
    root.dataset.coming = "";
    await new Promise((resolve) => { charts.plot.whenDrawn = () => resolve(null); });
    delete root.dataset.coming;
  };
  return { root, ready, end: () => { charts.close(); source.close(); } };
}

/** @param {Widget<ChartsState>} widget */
const render = (widget) => stand(widget, openCharts);

export default { initialize: standsWhereMarked(openCharts), render };
