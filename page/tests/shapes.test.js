// Answers by chance: what is taken in has the kinds of values that the page is written for, or none is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Misshapen, namedRun, namedStudy, taken } from "../src/shapes.js";

const ROUNDS = 20_000;
const progress = { phase: "sending", total: 2, done: 1, since: 5 };
const run = {
  id: 3, name: "r", state: "running", phase: "", final: false, where: "", size: "", begin: 1, end: 2, now: 3,
  steps: [{ label: "a", begin: 1, end: 2 }], labels: { 0: "rank 0" }, pools: { primary: "1" }, progress, note: "", error: "", resumable: true,
};
const tableRun = {
  id: 3, name: "r", state: "running", final: false, place: "", size: "", machines: "", experiment: "", study: "", cause: "",
  begin: 1, end: 2, best: { tag: "loss", value: 0.5 }, progress,
};
const studyRow = {
  id: 3, key: "k", name: "s", state: "running", final: false, progress: "", running: 1, best: "", cause: "", begin: 1, end: 2,
};
const sessionRow = {
  name: "lab", ranks: "2", state: "ready", place: "local", last: "", final: false, idle: "", limit: "", memory: "",
};
const trial = {
  id: 1, state: "running", final: false, parameters: { lr: 0.5 }, goals: { loss: 1 }, steps: 4, begin: 1, end: 2, run: 7, why: "",
};
const curves = { lines: [{ run: "r", tag: "t", step: [1], value: [2], wall_time: [3], low: [1], high: [3] }], notes: ["n"] };
const line = [0, 1.5, 0, "o", false, "text"];
const drawn = {
  sheet: "<div>", lines: [{ step: "AA==", wide: false, value: "AA==", seconds: "AA==", began: 0, low: "", high: "" }],
  shape: {
    keys: [["", "t"]], newest: { t: "1" }, dots: 9, thinned: false,
    traces: [{ type: "scatter", name: "t", xaxis: "x", yaxis: "y2", line: { color: "#123456", width: 2 }, marker: { size: 5 } }],
  },
};
const media = { rows: [{ kind: "image", run: "", tag: "t", count: 1, last: 2 }], hparams: { r: { lr: 0.5 } }, notes: ["n"] };
/** @type {[string, any][]} what is asked, and an answer in which nothing is missing */
const ANSWERS = [
  ["summary", run],
  ["log", { lines: [line], bars: [line], first: 0, rows: 1, total: 1, end: true }],
  ["search", { total: 1, searched: 1, done: true, row: 1, place: 0 }],
  ["first-error", { row: 1 }],
  ["tracebacks", { folds: [[1, 2]] }],
  ["metrics", curves], ["times", curves], ["resources", curves], ["curves", curves],
  ["charts", { seen: "1", end: false, metrics: drawn, times: drawn, resources: drawn, media }],
  ["media", media],
  ["media", { step: 1, note: "", text: "", data: "", form: "image/png", steps: [1], edges: [1], counts: [[1]], notes: [""] }],
  ["runs", { runs: [tableRun] }],
  ["studies", { studies: [studyRow] }],
  ["sessions", { sessions: [sessionRow] }],
  ["study", {
    seen: "1", end: false,
    summary: {
      ...run, labels: {}, pools: {}, ended: 1, wanted: 2, adds_trials: true, stops_trials: true, left: "", best: "", front: [1],
      names: ["lr"], goals: ["loss"], trials: [trial],
    },
    charts: { sheet: "<div>", axes: [{ name: "lr", kind: "log", low: 0, high: 1, values: ["a"] }], shares: { lr: [0.5] } },
  }],
  ["row", studyRow],
  ["compare", {
    titles: ["r"], runs: [tableRun], rows: [{ name: "a", texts: ["b"], numbers: [1], best: [0], differs: true }],
  }],
];
const EVIL = "<img src=x onerror=evil()>";
const INSTEAD = [EVIL, "", "../../files/a?", 0, -1, 1.5, NaN, Infinity, 2 ** 53, true, null, undefined, [], [EVIL], {}, { evil: EVIL }];

/** @param {unknown} value */
function kind(value) {
  if (value === null || Array.isArray(value)) return value === null ? "nothing" : "list";
  return typeof value === "number" && !Number.isFinite(value) ? "no number" : typeof value;
}

/**
 * Every place in the value, as the names that lead there.
 * @param {any} value
 * @param {string[]} way
 * @returns {string[][]}
 */
function places(value, way = []) {
  if (typeof value !== "object" || value === null) return [way];
  return [way, ...Object.keys(value).flatMap((name) => places(value[name], [...way, name]))];
}

/**
 * @param {any} value
 * @param {string[]} way
 */
const at = (value, way) => way.reduce((inner, name) => inner?.[name], value);

/**
 * A copy with another value at a place, and one more name beside it.
 * @param {any} value
 * @param {string[]} way
 * @param {unknown} other
 */
function replaced(value, way, other) {
  if (way.length === 0) return other;
  const made = structuredClone(value);
  const beside = at(made, way.slice(0, -1));
  beside[/** @type {string} */ (way.at(-1))] = other;
  return made;
}

/** @param {number} seed */
function chance(seed) {
  let state = seed;
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

// Where a text may be a number, and the other way round.
const EITHER = /^(summary,trials,\d,parameters|media,hparams,r|hparams,r),lr$/;

test("an answer that is whole is taken as it is", () => {
  for (const [path, answer] of ANSWERS) assert.deepEqual(JSON.parse(JSON.stringify(taken(path, answer))), answer, path);
});

test("an answer by chance is taken with the kinds of its values, or not at all", () => {
  const draw = chance(32);
  let takenIn = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const [path, answer] = /** @type {[string, any]} */ (ANSWERS[draw(ANSWERS.length)]);
    const ways = places(answer);
    const way = /** @type {string[]} */ (ways[draw(ways.length)]);
    const other = INSTEAD[draw(INSTEAD.length)];
    let known;
    try {
      known = taken(path, replaced(answer, way, other));
    } catch (error) {
      assert.ok(error instanceof Misshapen, `${path} ${way}: ${error}`);
      continue;
    }
    takenIn += 1;
    const got = at(known, way);
    const either = EITHER.test(String(way)) && ["string", "number", "boolean"].includes(typeof got);
    const ok = either || [kind(at(answer, way)), "nothing", "undefined"].includes(kind(got));
    assert.ok(ok, `${path} ${way}: ${JSON.stringify(other)} became ${JSON.stringify(got)}`);
    for (const inner of places(known)) {
      const value = at(known, inner);
      assert.ok(kind(value) !== "no number" || EITHER.test(String(inner)), `${path} ${inner}: ${value}`);
      if (inner.at(-1) === "id") assert.ok(Number.isSafeInteger(value) && value > 0, `${path} ${inner}: ${value}`);
    }
  }
  assert.ok(takenIn > ROUNDS / 50 && takenIn < ROUNDS / 2, String(takenIn));
});

test("a name in a document by chance is a whole number, a time and a hash, or none", () => {
  const draw = chance(33);
  const whole = { run: 3, study: 4, home: "0a", created: 5.5, part: "charts", evil: EVIL };
  for (let round = 0; round < ROUNDS / 10; round++) {
    const name = /** @type {string} */ (Object.keys(whole)[draw(6)]);
    const given = { ...whole, [name]: INSTEAD[draw(INSTEAD.length)] };
    for (const named of [namedRun(given), namedStudy(given)]) {
      if (named === null) continue;
      assert.ok(!("evil" in named) && /^[0-9a-f]*$/.test(named.home) && Number.isFinite(named.created));
      assert.ok(["run", "study"].some((key) => Number.isSafeInteger(at(named, [key])) && at(named, [key]) > 0));
    }
  }
});
