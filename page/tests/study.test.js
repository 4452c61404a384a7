// A study: what stands where on its axes, which trials brushes let pass, what its table says.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sorted } from "../src/runs/columns.js";
import { marksOf, nearestLine, nearestMark, stepOf, textAt, within } from "../src/study/axes.js";
import { asCsv, columnsOf, told } from "../src/study/columns.js";

/** @import { StudyAxis, StudySummary, Trial } from "../src/protocol.d.ts" */

/**
 * @param {number} id
 * @param {Partial<Trial>} [more]
 * @returns {Trial}
 */
function trial(id, more = {}) {
  return {
    id, state: "succeeded", final: true, parameters: { lr: 0.01 * id }, goals: { loss: 1 / id }, steps: 4,
    begin: 1000, end: 1010, run: id, why: "", ...more,
  };
}

/** @param {Trial[]} trials */
function summary(...trials) {
  return /** @type {StudySummary} */ (/** @type {unknown} */ ({ names: ["lr", "tag"], goals: ["loss"], trials, now: 1020 }));
}

/**
 * @param {Partial<StudyAxis>} more
 * @returns {StudyAxis}
 */
function axis(more) { return { name: "a", kind: "linear", low: 0, high: 10, values: [], ...more }; }

test("a place on an axis is told in its scale, as the kernel puts values there", () => {
  assert.equal(textAt(axis({}), 0.5), "5");
  assert.equal(textAt(axis({}), 0), "0");
  assert.equal(textAt(axis({ kind: "log", low: 1e-4, high: 1 }), 0.5), "0.01");
  assert.equal(textAt(axis({ kind: "reverse-log", low: 1e-4, high: 1 }), 0.5), "0.9901");
  const listed = axis({ kind: "listed", values: ["sgd", "adam"] });
  assert.deepEqual([0, 0.49, 0.51, 1].map((share) => textAt(listed, share)), ["sgd", "sgd", "adam", "adam"]);
  assert.equal(stepOf(listed), 0.5);
});

test("brushes let those pass that stand within all of them", () => {
  const shares = { 1: [0.1, 0.5], 2: [0.6, null], 3: [0.9, 0.2] };
  assert.equal(within(shares, [null, null]), null);
  assert.deepEqual(within(shares, [[0.5, 1], null]), new Set([2, 3]));
  assert.deepEqual(within(shares, [[0.5, 1], [0, 1]]), new Set([3]));
});

test("between two axes the line that passes nearest is found", () => {
  const shares = { 1: [0, 0, 1], 2: [1, 1, null] };
  const at = { width: 100, height: 100 };
  assert.equal(nearestLine(shares, { ...at, x: 10, y: 97 }), 1);
  assert.equal(nearestLine(shares, { ...at, x: 10, y: 2 }), 2);
  assert.equal(nearestLine(shares, { ...at, x: 75, y: 52 }), 1);
  assert.equal(nearestLine(shares, { ...at, x: 75, y: 2 }), null);
  const absent = { 1: [0.5, null, 0.5], 2: [0, 1, 0] };
  assert.equal(nearestLine(absent, { ...at, x: 50, y: 107 }), 1);
  assert.equal(nearestLine({}, { ...at, x: 75, y: 2 }), null);
});

test("a path is a dot, or a line of pieces", () => {
  assert.deepEqual(marksOf(3, "M250.0 500.5h0"), [{ trial: 3, points: [[0.25, 0.5005]] }]);
  assert.deepEqual(marksOf(3, "M250.0 1000v-40"), [{ trial: 3, points: [[0.25, 1]] }]);
  assert.deepEqual(marksOf(4, "M0 -100L500 200M700 300L1000 400"), [
    { trial: 4, points: [[0, -0.1], [0.5, 0.2]] }, { trial: 4, points: [[0.7, 0.3], [1, 0.4]] },
  ]);
});

test("of dots and lines the nearest is found, a line also between its points", () => {
  const marks = [...marksOf(1, "M0 0L1000 1000"), ...marksOf(2, "M0 1000L400 1000M800 1000L1000 1000"), ...marksOf(3, "M900 100h0")];
  const at = { width: 200, height: 100 };
  assert.equal(nearestMark(marks, { ...at, x: 100, y: 55 }), 1);
  assert.equal(nearestMark(marks, { ...at, x: 100, y: 60 }), null);
  assert.equal(nearestMark(marks, { ...at, x: 40, y: 96 }), 2);
  assert.equal(nearestMark(marks, { ...at, x: 120, y: 99 }), null);  // where it is interrupted
  assert.equal(nearestMark(marks, { ...at, x: 190, y: 17 }), 3);
  assert.equal(nearestMark([], { ...at, x: 0, y: 0 }), null);
});

test("trials are sorted by goals and parameters, those without a value last", () => {
  const trials = [trial(1), trial(2, { goals: {} }), trial(3, { parameters: { lr: 0.5 } })];
  const columns = columnsOf(summary(...trials));
  const by = (/** @type {string} */ name, down = false) => {
    const column = columns.find((each) => each.name === name);
    assert.ok(column);
    return sorted(trials, { column, down }, 1020).map(({ id }) => id);
  };
  assert.deepEqual(columns.map(({ name }) => name), ["trial", "state", "loss", "lr", "tag", "steps", "duration", "run"]);
  assert.deepEqual(by("loss"), [3, 1, 2]);
  assert.deepEqual(by("loss", true), [1, 3, 2]);
  assert.deepEqual(by("lr"), [1, 2, 3]);
});

test("a trial is told beside the mouse, with why it ended", () => {
  const text = told(trial(7, { state: "stopped", why: "worse than others" }));
  assert.equal(text, "trial 7, stopped\nloss 0.1429\nlr = 0.07\nworse than others");
});

test("a saved table quotes what needs it", () => {
  const csv = asCsv(summary(trial(1, { parameters: { tag: 'a,"b"' }, end: null, why: "odd" })));
  assert.deepEqual(csv.split("\r\n"), [
    "trial,state,loss,lr,tag,steps,duration,run,why",
    '1,succeeded,1,,"a,""b""",4,20.000,1,odd',
  ]);
});
