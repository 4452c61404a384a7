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
/** @import { Batch, Model, RunState, RunSummary, View } from "../protocol.d.ts" */

// While nothing comes, each pause is longer than the one before.
const SHORTEST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 1000;
const LONGER = 1.5;
const SUMMARY_EVERY_MS = 400;

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
 * What the reader does may change the run, so a click is followed by a look.
 * @param {HTMLElement} root
 * @param {Log} log
 * @param {RunSource} source
 * @param {"log" | "charts"} watching
 */
function look(root, log, source, watching) {
  let summarized = 0;
  let pause = SHORTEST_PAUSE_MS;
  let closed = false;
  let waits = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const isOver = (before = source.summary) => Boolean(before.final) && log.isRead;
  async function once() {
    if (!source.served || document.hidden) return isOver();
    const before = source.summary;
    if (Date.now() - summarized >= SUMMARY_EVERY_MS) {
      summarized = Date.now();
      source.learn(await source.ask("summary", { watching }));
    }
    const isNew = await log.refresh() || stateOf(source.summary) !== stateOf(before);
    pause = isNew ? SHORTEST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, pause * LONGER);
    return isOver(before);
  }
  async function again() {
    waits = false;
    const over = await once().catch(() => false);
    waits = !closed && !over;
    if (waits) timer = setTimeout(again, pause);
  }
  function soon() {
    pause = SHORTEST_PAUSE_MS;
    if (!waits) return;
    clearTimeout(timer);
    timer = setTimeout(again, pause);
  }
  root.addEventListener("click", soon);
  source.probed.then(async () => {
    await log.refresh().catch(() => {});
    if (!isOver()) again();
  });
  return () => { clearTimeout(timer); closed = true; waits = false; };
}

/** @param {Partial<RunSummary>} summary */
function stateOf({ state, phase, progress }) { return JSON.stringify([state, phase, progress]); }

/**
 * @param {Model<RunState>} model
 * @param {"log" | "charts"} [watching] what the page has from its server: `charts` where whoever
 *   opens this view draws them too, so that the kernel needn't
 * @returns {View}
 */
export function openRun(model, watching = "log") {
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
    receiveBatches(toolbar.log, source), look(root, toolbar.log, source, watching), endStop,
    () => head.close(), () => toolbar.close(), () => source.close(),
  ];
  const refocus = keepFocus(root);
  // What came while it stood nowhere is not drawn yet.
  const moved = () => { toolbar.log.draw(); refocus(); };
  const end = () => { for (const each of ends) each(); };
  source.toKernel({ kind: "shown" });
  return { root, moved, end };
}
