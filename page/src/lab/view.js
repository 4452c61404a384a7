// All of a run or of a study, from the page's server alone: state, Stop, log and charts.

import { element } from "../dom.js";
import { openRun } from "../run/view.js";
import { Misshapen, taken } from "../shapes.js";
import { NoServer, request } from "../source.js";
import { openStudy } from "../study/view.js";
import { ServedCharts } from "./charts.js";
import { PageModel } from "./model.js";

/** @import { Model, RunReference, RunState, StudyReference, StudyState, View } from "../protocol.d.ts" */

/**
 * What a view of this run takes for its widget's model.
 * @param {Pick<RunReference, "run" | "home">} reference
 * @returns {Model<RunState>}
 */
export function modelOf({ run, home }) {
  /** @type {RunState} */
  const state = { run, home, key: `${home}-${run}`, summary: {}, batch: {}, waiting: false, kernel: "" };
  return new PageModel(state);
}

/**
 * The same for a study.
 * @param {Pick<StudyReference, "study" | "home">} reference
 * @returns {Model<StudyState>}
 */
export function studyModelOf({ study, home }) {
  /** @type {StudyState} */
  const state = { study, run: 0, home, key: `${home}-study-${study}`, state: {}, waiting: false, kernel: "" };
  return new PageModel(state);
}

/**
 * Whether the page's server has this very run: in another place a number is that of another run. Null
 * where it doesn't say so now.
 * @param {RunReference} reference
 */
export function isServed({ run, home, created }) { return began(`runs/${run}`, "summary", home, created); }

/** @param {StudyReference} reference */
export function isServedStudy({ study, home, created }) { return began(`studies/${study}`, "row", home, created); }

/**
 * @param {string} place
 * @param {"summary" | "row"} path
 * @param {string} home
 * @param {number} created
 */
async function began(place, path, home, created) {
  try {
    const answer = await request(`distrain/${place}/${path}?${new URLSearchParams({ home })}`);
    return answer.ok && taken(path, await answer.json()).begin === created;
  } catch (error) {
    return error instanceof NoServer || error instanceof Misshapen ? false : null;
  }
}

/**
 * @param {Model<RunState>} model
 * @param {() => Promise<DataView>} code of plotly
 * @returns {View}
 */
export function openServed(model, code) {
  const run = openRun(model, "charts");
  const charts = new ServedCharts(model, code);
  const root = element("div", { class: "distrain-live" }, run.root, charts.root);
  return { root, moved: run.moved, end: () => { run.end(); charts.close(); } };
}

/**
 * The runs of its trials are shown with their charts.
 * @param {Model<StudyState>} model
 * @param {() => Promise<DataView>} code of plotly
 * @returns {View}
 */
export function openServedStudy(model, code) {
  return openStudy(model, (run) => openServed(modelOf({ run, home: model.get("home") }), code));
}
