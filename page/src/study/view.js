// The view of a study: state, best trial and progress, charts, the table of trials.

import { element, LITERAL, write } from "../dom.js";
import { progressBar, StateLine } from "../run/head.js";
import { report } from "../run/report.js";
import { stopButton } from "../run/stop.js";
import { keepFocus } from "../standing.js";
import { StudyCharts } from "./charts.js";
import { told } from "./columns.js";
import { StudySource } from "./source.js";
import { Trials } from "./table.js";

/** @import { Model, StudyState, View } from "../protocol.d.ts" */
/** @import { OpenRun } from "../runs/panels.js" */

/**
 * How far it is, how long it still takes, and the best trial so far.
 * @param {HTMLElement} root
 * @param {StudySource} source
 */
function progress(root, source) {
  const bar = element("progress", { "aria-label": "trials" });
  const [left, best] = [element("span", { class: "dn-soft" }), element("span", { class: "dn-best-trial" })];
  const line = element("div", { class: "dn-progress" }, bar, left, best);
  root.append(line);
  const change = () => {
    const { trials = [], ended = 0, wanted = 1, progress: phase, left: time = "", best: found = "" } = source.summary;
    line.hidden = Boolean(phase) && !trials.length;  // the bar of its phase says more
    Object.assign(bar, { max: Math.max(1, wanted), value: ended });
    write(left, time);
    write(best, found);
  };
  source.listeners.push(change);
  change();
}

/**
 * @param {Model<StudyState>} model
 * @param {OpenRun} [openRun] where no kernel draws charts
 * @returns {View}
 */
export function openStudy(model, openRun) {
  const root = element("section", { class: `distrain distrain-runs distrain-study ${LITERAL}`, role: "region", "aria-label": "study" });
  const source = new StudySource(model);
  const [stop, endStop] = stopButton(root, source, "study");
  const head = new StateLine(root, source, stop, "study");
  progress(root, source);
  progressBar(root, source);
  report(root, source);
  /** @type {Trials | null} */
  let trials = null;
  const charts = new StudyCharts({
    picked: () => trials?.show(),
    chosen: (trial) => trials?.find(trial),
    told: (trial) => {
      const found = source.summary.trials?.find(({ id }) => id === trial);
      return found ? told(found) : "";
    },
    name: () => `study-${source.summary.id}`,
    table: () => trials?.save(),
  });
  root.append(charts.root);
  const change = () => {
    if (source.summary.id === undefined) return;
    trials ??= new Trials(root, source, {
      passes: (trial) => charts.passing?.has(trial) !== false,
      lit: (trial) => charts.light(trial),
    }, openRun);
    if (source.charts) charts.show(source.charts);
    trials.show();
  };
  source.listeners.push(change);
  change();
  const end = () => { endStop(); head.close(); trials?.close(); source.close(); };
  source.toKernel({ kind: "shown" });
  return { root, moved: keepFocus(root), end };
}
