// JupyterLab's extension, as far as it needs no page: its models, what has ended, its container.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PageModel } from "../src/lab/model.js";
import { announce, endOf } from "../src/lab/notices.js";
import { counted } from "../src/lab/panel.js";
import { Watch } from "../src/lab/watch.js";
import { Source } from "../src/source.js";

globalThis.document = /** @type {any} */ ({ querySelector: () => null });  // of no Jupyter server

/**
 * @param {number} id
 * @param {boolean} final
 * @param {string} study
 * @returns {any}
 */
const row = (id, final, study = "") => ({ id, name: `r${id}`, state: final ? "succeeded" : "running", final, begin: 0, end: final ? 185 : null, cause: "", study });

test("where no kernel is, whoever asks it is told so", async () => {
  const source = new Source(/** @type {any} */ (new PageModel({ run: 1, home: "", key: "" })));
  assert.equal(await source.probed, false);
  await assert.rejects(source.ask("log"), /does not answer now/);
  source.close();
});

test("a model tells what has changed, for as long as one listens", () => {
  const model = new PageModel({ sheet: "" });
  /** @type {string[]} */
  const heard = [];
  const listen = () => heard.push(model.get("sheet"));
  model.on("change:sheet", listen);
  model.set("sheet", "one");
  model.off("change:sheet", listen);
  model.set("sheet", "two");
  assert.deepEqual(heard, ["one"]);
});

test("runs that end while the page looks are told once, those that had ended before never", async () => {
  /** @type {number[]} */
  const ended = [];
  const watch = new Watch((news) => ended.push(...news.map(({ item }) => item.id)));
  await watch.probed;
  clearTimeout(watch.timer);
  for (const runs of [
    [row(3, false), row(2, true)],
    [row(4, true), row(3, false), row(2, true), row(1, true)],  // 1 was unreadable, 4 was short
    [row(4, true), row(3, true), row(2, true)],
    [row(4, true), row(3, true)],
  ]) watch.source.learn({ runs });
  assert.deepEqual(ended, [4, 3]);
  assert.deepEqual(watch.running, []);
  clearTimeout(watch.timer);
});

test("sessions that nobody knows of leave the runs alone", async () => {
  const watch = new Watch(() => {});
  await watch.probed;
  clearTimeout(watch.timer);
  watch.source.served = watch.studySource.served = true;
  watch.source.ask = async () => ({ runs: [row(1, false)] });
  watch.studySource.ask = async () => ({ studies: [] });
  watch.sessionSource.ask = async () => { watch.sessionSource.lost(); throw new Error("404"); };
  await watch.refresh();
  assert.equal(watch.source.served, true);
  assert.equal(watch.running.length, 1);
  assert.deepEqual(watch.sessions, []);
  watch.sessionSource.close();
  clearTimeout(watch.timer);
});

test("a run that stands still is told once for each reason", async () => {
  /** @type {string[]} */
  const told = [];
  const watch = new Watch((news) => told.push(...news.map(({ item }) => endOf(item))));
  await watch.probed;
  clearTimeout(watch.timer);
  for (const alarm of ["", "it stands still: rank 2 waits", "it stands still: 2 ranks wait", "", "it has cost 50 USD", "it has cost 50 USD"]) {
    watch.source.learn({ runs: [{ ...row(3, false), alarm }] });
  }
  assert.deepEqual(told, ["r3 #3: it stands still: rank 2 waits", "r3 #3: it has cost 50 USD"]);
  clearTimeout(watch.timer);
});

test("the runs of a study's trials are its own matter: the study's end is told, once", async () => {
  /** @type {string[]} */
  const ended = [];
  const watch = new Watch((news) => ended.push(...news.map(({ item, what }) => `${what} ${item.id}`)));
  await watch.probed;
  clearTimeout(watch.timer);
  const study = (/** @type {boolean} */ final) => ({ ...row(1, final), key: "k", progress: "", running: 0, best: "" });
  for (const [studies, runs] of [
    [[study(false)], [row(2, false), row(1, false, "k")]],
    [[study(false)], [row(3, true, "k"), row(2, false), row(1, true, "k")]],
    [[study(true)], [row(4, true, "of another list"), row(3, true, "k"), row(2, false), row(1, true, "k")]],
  ]) {
    watch.studySource.learn({ studies });
    watch.source.learn({ runs });
  }
  assert.deepEqual(ended, ["run 4", "study 1"]);
  assert.deepEqual(watch.runs.map(({ id }) => id), [4, 2]);
  assert.deepEqual([watch.running.length, watch.runningStudies.length], [1, 0]);
  clearTimeout(watch.timer);
});

test("what there is is counted in words", () => {
  assert.deepEqual([counted(0, 0), counted(1, 0), counted(0, 2), counted(2, 1)], ["", "1 study", "2 runs", "2 studies, 1 run"]);
});

test("the end of a run is one line", () => {
  assert.equal(endOf(row(12, true)), "r12 #12 succeeded after 3 min 05 s");
  assert.equal(endOf({ ...row(1, true), best: "best loss 0.2 in trial 3" }), "r1 #1 succeeded after 3 min 05 s: best loss 0.2 in trial 3");
  assert.equal(endOf({ ...row(12, true), state: "failed", cause: "ValueError: odd" }), "r12 #12 failed after 3 min 05 s: ValueError: odd");
});

test("many that end at once share a notification", () => {
  globalThis.document = /** @type {any} */ ({ querySelector: () => null, querySelectorAll: () => [] });
  /** @type {any[]} */
  const emitted = [];
  /** @type {any[]} */
  const opened = [];
  const run = (/** @type {number} */ id, state = "succeeded") => ({ item: { ...row(id, true), state }, what: /** @type {const} */ ("run") });
  const say = (/** @type {any[]} */ news) => announce(
    news, /** @type {any} */ ({ emit: (/** @type {any[]} */ ...args) => emitted.push(args) }), (item) => opened.push(item.id), () => opened.push("panel"),
  );
  say([run(1), run(2), run(3, "failed")]);
  assert.deepEqual(emitted.map(([text]) => text.split(" ")[0]), ["r1", "r2", "r3"]);
  say([run(4), run(5), run(6), { item: row(1, true), what: "study" }, { item: { ...row(7, false), alarm: "it stands still" }, what: "run" }]);
  assert.deepEqual(emitted.slice(3).map(([text, kind]) => [text, kind]), [
    ["r7 #7: it stands still", "warning"], ["3 runs and 1 study have ended: 4 succeeded", "success"],
  ]);
  say([run(8, "failed"), ...Array.from({ length: 104 }, (_, at) => run(9 + at))]);
  const [text, kind, { autoClose, actions: [action] }] = emitted.at(-1);
  assert.deepEqual([text, kind, autoClose], ["105 runs have ended: 1 failed, 104 succeeded", "error", false]);
  action.callback();
  assert.deepEqual(opened, ["panel"]);
});
