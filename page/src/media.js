// What event files have besides scalars: histograms, images, texts and hyperparameters.

import { PlotFrame, plotlyCode } from "./charts/frame.js";
import { MediaFold } from "./charts/media.js";
import { element, fold, LITERAL } from "./dom.js";
import { Source } from "./source.js";
import { stand, standsWhereMarked } from "./standing.js";

/** @import { MediaRow, MediaState, Model, View, Widget } from "./protocol.d.ts" */

/** @type {[MediaRow["kind"], string][]} */
const KINDS = [["histogram", "Histograms"], ["image", "Images"], ["text", "Texts"]];

/**
 * A row for each name, a column for each run of the HParams plugin.
 * @param {Record<string, Record<string, unknown>>} values by run and name
 */
function hparamsTable(values) {
  const runs = Object.keys(values);
  const names = [...new Set(runs.flatMap((run) => Object.keys(values[run])))];
  const table = element("table", { class: "dn-hparams" });
  if (runs.length > 1 || runs[0]) {
    const heads = runs.map((run) => element("th", { scope: "col" }, run || "run"));
    table.append(element("tr", {}, element("td"), ...heads));
  }
  for (const name of names) {
    const cells = runs.map((run) => element("td", {}, String(values[run][name] ?? "")));
    table.append(element("tr", {}, element("th", { scope: "row" }, name), ...cells));
  }
  return table;
}

/**
 * @param {Model<MediaState>} model
 * @returns {View}
 */
export function openMedia(model) {
  const root = element("div", { class: `distrain-charts ${LITERAL}` });
  const source = new Source(model);
  const plot = (/** @type {HTMLElement} */ place, /** @type {string} */ title) => (
    new PlotFrame(place, title, () => plotlyCode(model))
  );
  const folds = KINDS.map(([kind, title]) => new MediaFold(kind, title, source, plot));
  const hparams = fold("Hyperparameters", "dn-media");
  const notes = element("div", { class: "dn-media-notes" });
  root.append(...folds.map((each) => each.box), hparams.box, notes);
  const change = () => {
    const index = model.get("index");
    for (const each of folds) each.update(index.rows ?? []);
    const values = index.hparams ?? {};
    hparams.box.hidden = !Object.keys(values).length;
    hparams.inside.replaceChildren(hparamsTable(values));
    notes.replaceChildren(...(index.notes ?? []).map((note) => element("div", { class: "dn-chart-note" }, note)));
  };
  model.on("change:index", change);
  change();
  const end = () => {
    model.off("change:index", change);
    for (const each of folds) each.close();
    source.close();
  };
  return { root, end };
}

/** @param {Widget<MediaState>} widget */
const render = (widget) => stand(widget, openMedia);

export default { initialize: standsWhereMarked(openMedia), render };
