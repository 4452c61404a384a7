// The view of a run: state line, Stop, report, log of all ranks, from whoever answers for it.

import { element, LITERAL } from "../dom.js";
import { Toolbar } from "../log/toolbar.js";
import { RunSource } from "../source.js";
import { keepFocus } from "../standing.js";
import { annotationLine } from "./annotation.js";
import { progressBar, StateLine } from "./head.js";
import { report } from "./report.js";
import { resumeButton, stopButton } from "./stop.js";

/** @import { Log } from "../log/log.js" */
/** @import { Batch, Model, RunState, View } from "../protocol.d.ts" */

const LOOK_EVERY_MS = 200;
const SUMMARY_EVERY = 2;   // looks

/**
 * Batches are numbered. One that is `whole` has all lines that the kernel keeps, so that a view that
 * has missed some, or has just come, is put right even when the kernel can't be asked.
 * @param {Log} log
 * @param {RunSource} source
 */
function receiveBatches(log, source) {
  const { model } = source;
  /** @type {number | null} */
  let next = null;
  const receive = () => {
    const batch = model.get("batch");
    if (source.served || batch.seq === undefined || batch.seq + 1 === next) return;
    if (!batch.whole && batch.seq !== next) {
      source.toKernel({ kind: "resync" });
      return;
    }
    next = batch.seq + 1;
    log.take(/** @type {Batch} */ (batch));
  };
  model.on("change:batch", receive);
  source.probed.then((served) => {
    receive();
    if (!served && next === null) source.toKernel({ kind: "resync" });
  });
  return () => model.off("change:batch", receive);
}

/**
 * Where the server answers nothing depends on the kernel: look there, up to the end of the run.
 * @param {Log} log
 * @param {RunSource} source
 */
function look(log, source) {
  let looks = 0;
  let closed = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  async function once() {
    if (!source.served || document.hidden) return false;
    const before = source.summary.final;
    if (looks++ % SUMMARY_EVERY === 0) source.learn(await source.ask("summary", { watching: 1 }));
    await log.refresh();
    return before;
  }
  async function again() {
    const over = await once().catch(() => false);
    if (!closed && !over) timer = setTimeout(again, LOOK_EVERY_MS);
  }
  source.probed.then(async () => {
    await log.refresh().catch(() => {});
    if (!source.summary.final) again();
  });
  return () => { clearTimeout(timer); closed = true; };
}

/**
 * @param {Model<RunState>} model
 * @returns {View}
 */
export function openRun(model) {
  const root = element("section", { class: `distrain ${LITERAL}`, role: "region", "aria-label": "run" });
  const source = new RunSource(model);
  const [stop, endStop] = stopButton(root, source);
  const head = new StateLine(root, source, stop);
  head.node.append(resumeButton(root, source), annotationLine(root, source));
  progressBar(root, source);
  report(root, source);
  const toolbar = new Toolbar(root, source);
  source.listeners.push(() => toolbar.relabel());
  const ends = [
    receiveBatches(toolbar.log, source), look(toolbar.log, source), endStop,
    () => head.close(), () => toolbar.close(), () => source.close(),
  ];
  const refocus = keepFocus(root);
  // What came while it stood nowhere is not drawn yet.
  const moved = () => { toolbar.log.draw(); refocus(); };
  const end = () => { for (const each of ends) each(); };
  source.toKernel({ kind: "shown" });
  return { root, moved, end };
}
