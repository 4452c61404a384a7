// The live table of runs as a widget: it stands where its still picture is marked.

import { element, LITERAL } from "./dom.js";
import { RunsSource } from "./runs/source.js";
import { Table } from "./runs/table.js";
import { keepFocus, standsWhereMarked } from "./standing.js";

/** @import { Asking, Model, View } from "./protocol.d.ts" */

/**
 * @param {Model<Asking>} model
 * @returns {View}
 */
function openRuns(model) {
  const root = element("section", { class: `distrain distrain-runs ${LITERAL}`, role: "region", "aria-label": "runs" });
  const source = new RunsSource(model);
  const table = new Table(root, source);
  return { root, moved: keepFocus(root), end: () => { table.close(); source.close(); } };
}

export default { initialize: standsWhereMarked(openRuns) };
