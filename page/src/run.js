// The live view of a run as a widget, with what stands for its charts.

import { element } from "./dom.js";
import { openRun } from "./run/view.js";
import { stand, standsWhereMarked } from "./standing.js";

/** @import { Model, RunState, Widget } from "./protocol.d.ts" */

const LOOK_EVERY_MS = 200;

/**
 * What stands for the charts until plotly has drawn them.
 * @param {Element} root
 * @param {Model<RunState>} model
 */
function sketch(root, model) {
  const place = element("div");
  root.append(place);
  const change = () => { place.innerHTML = model.get("sketch"); };
  model.on("change:sketch", change);
  change();
  const clock = setInterval(() => {
    const output = root.closest(".jp-OutputArea-output, .output_area, .cell-output");
    place.hidden = Boolean(output?.querySelector(".dn-figure[data-drawn]"));
  }, LOOK_EVERY_MS);
  return () => { clearInterval(clock); model.off("change:sketch", change); place.remove(); };
}

/** @param {Widget<RunState>} widget */
function render(widget) {
  const end = stand(widget, openRun);
  const root = widget.el.firstElementChild;
  const endSketch = root ? sketch(root, widget.model) : () => {};
  return () => { endSketch(); end(); };
}

export default { initialize: standsWhereMarked(openRun), render };
