// Lines of the log by their rows, folds and colours, without a page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ansiPieces, plainText } from "../src/log/ansi.js";
import { Folds } from "../src/log/folds.js";
import { Rows } from "../src/log/rows.js";
import { patternOf } from "../src/log/search.js";
import { noOutput, processNamed } from "../src/log/toolbar.js";
import { lowestOf, topsOf } from "../src/log/wrapped.js";
import { kindOf } from "../src/run/report.js";

/** @import { Batch, LineRow, LogAnswer } from "../src/protocol.d.ts" */

/**
 * @param {number} first
 * @param {string[]} records
 * @param {Partial<Batch>} [more]
 * @returns {Batch}
 */
function batch(first, records, more = {}) {
  const bytes = new TextEncoder().encode(records.map((record) => `${record}\n`).join(""));
  const lines = new DataView(bytes.buffer);
  return { seq: 0, whole: false, first, total: first + records.length, bars: [], lines, ...more };
}

/**
 * @param {number} first
 * @param {number} count
 * @param {Partial<LogAnswer>} [more]
 * @returns {LogAnswer}
 */
function answer(first, count, more = {}) {
  const lines = Array.from({ length: count }, (_, n) => /** @type {LineRow} */ ([first + n, 0, 0, "o", false, `line ${first + n}`]));
  return { lines, bars: [], first, rows: 100, total: 100, end: false, ...more };
}

test("a batch's lines keep their tabs", () => {
  const rows = new Rows();
  rows.takeBatch(batch(0, ["1\te\t2.5\ta\tb"]));
  assert.deepEqual(rows.lines.get(0), { number: 0, time: 2.5, process: 1, stream: "e", text: "a\tb" });
});

test("lines that come twice are there once", () => {
  const rows = new Rows();
  rows.takeBatch(batch(0, ["0\to\t0\ta", "0\to\t0\tb"]));
  rows.takeBatch(batch(1, ["0\to\t0\tb", "0\to\t0\tc"]));
  assert.equal(rows.count, 3);
  assert.deepEqual([...rows.lines.values()].map(({ text }) => text), ["a", "b", "c"]);
  assert.deepEqual(rows.recent.map(({ number }) => number), [0, 1, 2]);
});

test("a batch that leaves lines out leaves a gap", () => {
  const rows = new Rows();
  rows.takeBatch(batch(0, ["0\to\t0\ta"]));
  rows.takeBatch(batch(5, ["0\to\t0\tf"]));
  assert.deepEqual([rows.count, rows.total, rows.missing(0, 6)], [6, 6, 1]);
  rows.takeAnswer(answer(1, 4, { rows: 6, total: 6 }));
  assert.equal(rows.missing(0, 6), null);
});

test("a filter counts the rows that pass, and doubts its count after a gap", () => {
  const rows = new Rows();
  rows.takeBatch(batch(0, ["0\to\t0\ta", "1\to\t0\tb", "0\te\t0\tc"]));
  rows.choose({ process: "0" });
  assert.deepEqual([rows.count, rows.total, rows.query], [2, 3, { process: "0" }]);
  rows.choose({ stream: "e" });
  assert.deepEqual([rows.count, rows.lines.get(0)?.text], [1, "c"]);
  rows.takeBatch(batch(9, ["0\te\t0\tz"]));
  assert.equal(rows.exact, false);
  rows.takeAnswer(answer(0, 2, { rows: 2, total: 10 }));
  assert.deepEqual([rows.exact, rows.count], [true, 2]);
});

test("a filter by pool asks what pool a rank is in", () => {
  const rows = new Rows();
  rows.pools = { 0: "primary", 1: "workers" };
  rows.takeBatch(batch(0, ["0\to\t0\ta", "1\to\t0\tb"]));
  rows.choose({ role: "workers" });
  assert.deepEqual([...rows.lines.values()].map(({ text }) => text), ["b"]);
});

test("an answer without anything new says so, and lines that come again stay the same", () => {
  const rows = new Rows();
  const bars = [/** @type {LineRow} */ ([100, 0, 0, "e", true, "50 %"])];
  assert.equal(rows.takeAnswer(answer(98, 2, { bars }), true), true);
  const held = rows.lines.get(99);
  assert.equal(rows.takeAnswer(answer(98, 2, { bars }), true), false);
  assert.equal(rows.lines.get(99), held);
  assert.equal(rows.takeAnswer(answer(98, 2), true), true);
  assert.deepEqual(rows.bars, []);
  assert.equal(rows.takeAnswer(answer(99, 2, { rows: 101, total: 101 })), true);
  assert.equal(rows.lines.get(99), held);
});

test("rows far from what is looked at are forgotten", () => {
  const rows = new Rows();
  rows.takeAnswer(answer(0, 13000, { rows: 30000, total: 30000 }));
  rows.tidy(12500);
  assert.deepEqual([rows.lines.has(0), rows.lines.has(12500)], [false, true]);
});

test("folds hide rows, and places count those that are left", () => {
  const rows = new Rows();
  rows.takeAnswer(answer(0, 200, { rows: 200, total: 200 }));
  const folds = new Folds();
  folds.find([[10, 20], [30, 31], [150, 160]], rows);
  assert.deepEqual(folds.closed, [[10, 20]]);  // one is short, one near the end
  assert.equal(folds.placeOf(rows.count), 191);
  assert.deepEqual([10, 11, 12].map((place) => folds.rowAt(place)), [10, 20, 21]);
  for (let place = 0; place < 191; place++) assert.equal(folds.placeOf(folds.rowAt(place)), place);
  assert.deepEqual(folds.at(10), { open: false, lines: 9 });
  folds.reveal(15);
  assert.deepEqual([folds.closed, folds.at(10)], [[], { open: true, lines: 9 }]);
});

test("a traceback between which others write stays open", () => {
  const rows = new Rows();
  rows.takeAnswer(answer(0, 200, { rows: 200, total: 200 }));
  rows.lines.set(15, { number: 15, time: 0, process: 1, stream: "o", text: "" });
  const folds = new Folds();
  folds.find([[10, 20]], rows);
  assert.deepEqual(folds.closed, []);
});

/** @param {string} text */
function html(text) {
  return ansiPieces(text).map(([part, look]) => {
    const shown = part.replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    const style = look.style ? ` style="${look.style}"` : "";
    return look.class ? `<span class="${look.class}"${style}>${shown}</span>` : shown;
  }).join("");
}

test("colours are as in a document", () => {
  const examples = JSON.parse(readFileSync(new URL("../../tests/ui/ansi.json", import.meta.url), "utf8"));
  for (const [text, shown] of examples) assert.equal(html(text), shown);
  assert.equal(plainText("\x1b[2K\x1b[31mred\x1b[0m \x1b]0;title\x07"), "red ");
});

test("what Python's expressions say is marked", () => {
  const found = (/** @type {string} */ text, /** @type {string} */ line) => line.match(patternOf(text, true, true) ?? /$^/);
  assert.deepEqual(found("(?i)STEP (?P<n>[0-9]+)", "a step 12")?.[0], "step 12");
  assert.deepEqual(found("\\Aa\\-b\\Z", "a-b")?.[0], "a-b");
  assert.equal(patternOf("a(?<=b", true, true), null);
  assert.deepEqual("a.b axb".match(patternOf("A.B", false, false) ?? /$^/), ["a.b"]);
});

test("wrapped rows are as high as they are, and the last fills what is in sight", () => {
  assert.deepEqual([lowestOf([18, 18], 100), lowestOf([18, 36, 36], 54)], [0, 1.5]);
  assert.deepEqual(topsOf([18, 36, 18], 1.5), [-36, -18, 18]);
  assert.deepEqual(topsOf([], 0), []);
});

test("one of a thousand ranks is found by its name, or by the number in it", () => {
  /** @type {[string, string][]} */
  const entries = [["0", "rank 7"], ["1", "rank 77"], ["2", "workers 7"], ["3", "workers 8"]];
  const found = ["7", "Rank 77 ", "workers 7", "8", "", "rank", "9"].map((text) => processNamed(entries, text));
  assert.deepEqual(found, ["0", "1", "2", "3", "", undefined, undefined]);
});

test("a log without lines says what is waited for", () => {
  assert.equal(noOutput({ final: false, state: "starting", phase: "importing torch" }), "no output yet: importing torch");
  assert.equal(noOutput({ final: false, state: "running", phase: "running" }), "no output yet");
  assert.equal(noOutput({ final: true, state: "failed", phase: "failed" }), "no output");
  assert.equal(noOutput({ final: true, state: "succeeded", phase: "" }, false), "reading the log…");
});

test("a report marks the notebook's lines, places and what was raised", () => {
  const lines = ["  Cell In[3], line 4, in <module>", "    raise ValueError", '  File "a.py", line 1', "    f()", "ValueError: odd"];
  assert.deepEqual(lines.map((line, n) => kindOf(line, lines[n - 1] ?? "")), ["dn-cell", "dn-cell", "dn-place", "", "dn-raised"]);
});
