// The table of runs: order and texts of its columns.

import assert from "node:assert/strict";
import { test } from "node:test";
import { causeText, COLUMNS, sorted } from "../src/runs/columns.js";
import { inOrder } from "../src/runs/comparison.js";
import { hasWords } from "../src/runs/filters.js";
import { modelOf } from "../src/runs/source.js";

/** @import { TableRun } from "../src/protocol.d.ts" */

/**
 * @param {number} id
 * @param {Partial<TableRun>} [more]
 * @returns {TableRun}
 */
function run(id, more = {}) {
  return {
    id, name: `run-${id}`, state: "running", final: false, place: "this machine", size: "", machines: "", experiment: "", study: "",
    cause: "", begin: 1000, end: null, best: null, progress: null, ...more,
  };
}

/** @param {string} name */
function column(name) {
  const found = COLUMNS.find((each) => each.name === name);
  assert.ok(found);
  return found;
}

/**
 * @param {TableRun[]} runs
 * @param {string} name
 * @param {boolean} down
 */
function order(runs, name, down) {
  return sorted(runs, { column: column(name), down }, 2000).map(({ id }) => id);
}

test("names are in the order of their numbers", () => {
  const runs = [run(1, { name: "a10" }), run(2, { name: "a9" }), run(3, { name: "A1" })];
  assert.deepEqual(order(runs, "name", false), [3, 2, 1]);
});

test("runs without a value come last either way, the newest first among equals", () => {
  const best = (/** @type {number} */ value) => ({ best: { tag: "loss", value } });
  const runs = [run(1), run(2, best(0.5)), run(3, best(0.25)), run(4)];
  assert.deepEqual(order(runs, "best metric", false), [3, 2, 4, 1]);
  assert.deepEqual(order(runs, "best metric", true), [2, 3, 4, 1]);
});

test("a run that goes on lasts up to now", () => {
  const runs = [run(1), run(2, { end: 1005 })];
  assert.deepEqual(runs.map((each) => column("duration").text(each, 1090)), ["1 min 30 s", "5.0 s"]);
});

test("the state has a sign and what takes long", () => {
  const progress = { phase: "sending the image", total: 0, done: 0, since: 0 };
  assert.equal(column("state").text(run(1, { progress }), 0), "● running: sending the image");
});

test("a filter looks for all words in all that the table says", () => {
  const failed = run(12, { name: "night", state: "failed", cause: "ValueError: Odd", place: "Vertex AI", machines: "--primary n1-standard-4" });
  for (const words of ["", "NIGHT", "#12", "odd vertex", "n1-standard failed "]) assert.ok(hasWords(failed, words), words);
  for (const words of ["day", "night sagemaker"]) assert.ok(!hasWords(failed, words), words);
});

test("compared runs are in the order of a row, those without a value last", () => {
  const row = { best: [], differs: true };
  const rows = [
    { ...row, name: "loss", texts: ["0.5", "", "0.25"], numbers: [0.5, null, 0.25] },
    { ...row, name: "machine", texts: ["a10", "a9", "a9"], numbers: [] },
  ];
  assert.deepEqual(inOrder(rows, 3, null), [0, 1, 2]);
  assert.deepEqual(inOrder(rows, 3, { name: "loss", down: false }), [2, 0, 1]);
  assert.deepEqual(inOrder(rows, 3, { name: "loss", down: true }), [0, 2, 1]);
  assert.deepEqual(inOrder(rows, 3, { name: "machine", down: false }), [1, 2, 0]);
});

test("what one run's view asks goes through the table's widget with the run's number", () => {
  /** @type {object[]} */
  const sent = [];
  /** @type {Record<string, any>} */
  const state = { home: "h", key: "k", run: 0 };
  const table = /** @type {any} */ ({
    get: (/** @type {string} */ name) => state[name], send: (/** @type {object} */ message) => sent.push(message),
  });
  const model = modelOf(table, 7);
  model.send({ kind: "ask", path: "log", query: { first: "0" } });
  assert.deepEqual(sent, [{ kind: "ask", path: "log", query: { first: "0", run: "7" } }]);
  assert.deepEqual([model.get("run"), model.get("key"), model.get("home")], [7, "k-7", "h"]);
});

test("of a cause the error comes before who had it", () => {
  assert.equal(causeText({ cause: "rank 1 failed first: ValueError: odd" }), "ValueError: odd (rank 1)");
  assert.equal(causeText({ cause: "no answer for 60 s" }), "no answer for 60 s");
});
