// A chart's numbers, without plotly.

import assert from "node:assert/strict";
import { test } from "node:test";
import { apart, bandOf } from "../src/charts/band.js";
import { choiceOf, Kept } from "../src/charts/kept.js";
import { asPicture, hoverMode } from "../src/charts/layout.js";
import { across, byNumber, csv, edges, isThinned, refined, smoothed, stepsWithin, unpacked } from "../src/charts/lines.js";
import { ridges } from "../src/charts/ridges.js";

/** @param {number[]} step */
function line(...step) {
  const value = step.map((at) => at * 10);
  return { step, value, wall: step.map((at) => 1000 + at), low: value, high: value };
}

test("numbers are read wherever they begin in what came", () => {
  const bytes = new Uint8Array(1 + 8 + 8 + 8);
  const at = (/** @type {ArrayBufferView} */ numbers, /** @type {number} */ place) => {
    bytes.set(new Uint8Array(numbers.buffer), place);
    return new DataView(bytes.buffer, place, 8);
  };
  const packed = {
    step: at(Float64Array.of(2 ** 53), 1), wide: true,
    value: at(Float32Array.of(0.5, 1.5), 9), seconds: at(Float32Array.of(0, 2), 17), began: 100,
    low: new DataView(bytes.buffer, 0, 0), high: new DataView(bytes.buffer, 0, 0),
  };
  const read = unpacked(packed);
  assert.ok(!isThinned(read) && isThinned(unpacked({ ...packed, low: packed.value, high: packed.value })));
  assert.deepEqual([[...read.step], [...read.value], [...read.wall]], [[2 ** 53], [0.5, 1.5], [100, 102]]);
});

test("lines of an answer find their numbers; what is no number becomes NaN", () => {
  /** @type {[string, string][]} */
  const keys = [["a", "loss"], ["b", "loss"]];
  const found = byNumber([{ run: "b", tag: "loss", step: [1], value: [null], wall_time: [null], low: [null], high: [2] }], keys);
  assert.deepEqual([...found.keys()], [1]);
  const { value, low, high } = found.get(1) ?? {};
  assert.deepEqual([value, low, high], [[NaN], [NaN], [2]]);
});

test("smoothing is not pulled towards zero and skips what is no number", () => {
  assert.deepEqual(smoothed([4, 4, NaN, 4], 0.9).map((value) => Number(value.toFixed(9))), [4, 4, NaN, 4]);
  const [, second] = smoothed([0, 1], 0.5);
  assert.ok(Math.abs(second - 2 / 3) < 1e-12);
});

test("smoothing leaves alone what is constant", () => {
  const constant = new Float32Array(50).fill(0.1);
  for (const weight of [0.05, 0.6, 0.99]) assert.deepEqual(smoothed(constant, weight), constant);
  const exact = [...constant].fill(0.1);
  assert.deepEqual(smoothed(exact, 0.97), exact);
});

test("a band on a logarithmic axis begins at its least positive value", () => {
  const band = { low: [-1, 0, 2, NaN, -4], high: [3, 0.5, 4, 5, -2] };
  assert.deepEqual(edges(band, "linear"), band);
  assert.deepEqual(edges(band, "log"), { low: [0.5, 0.5, 2, NaN, NaN], high: [3, 0.5, 4, 5, NaN] });
});

test("finer points take the place of those between them", () => {
  const joined = refined(line(0, 10, 20, 30), line(9, 10, 11, 20));
  assert.deepEqual(joined.step, [0, 9, 10, 11, 20, 30]);
  assert.deepEqual(joined.value, [0, 90, 100, 110, 200, 300]);
  assert.ok(!isThinned(joined));
  const coarse = { ...line(0, 10, 20, 30), low: [-1, -2, -3, -4], high: [500, 501, 502, 503] };
  const within = refined(coarse, line(9, 10, 11, 20));
  assert.deepEqual(within.low, [-1, 90, 100, 110, 200, -4]);
  assert.deepEqual(within.high, [500, 90, 100, 110, 200, 503]);
});

test("the x axis is steps, seconds or the reader's time of day", () => {
  assert.deepEqual(across(line(0, 1), "relative", 1000), [0, 1]);
  const at = new Date(2026, 0, 2, 3, 4, 5).getTime() / 1000;
  assert.deepEqual(across({ ...line(0), wall: [at] }, "wall", 0), ["2026-01-02T03:04:05.000"]);
  assert.deepEqual(across({ ...line(0), wall: [NaN] }, "wall", 0), [null]);
});

test("what is seen of an axis is found in steps, with the point before it", () => {
  assert.deepEqual(stepsWithin([line(0, 10, 20, 30)], "step", 0, [12, 22]), [10, 30]);
  assert.deepEqual(stepsWithin([line(0, 10, 20, 30)], "relative", 1000, [0, 10]), [0, 20]);
  const seen = across({ ...line(5, 6), wall: [0, 60] }, "wall", 0);
  const stretch = /** @type {[string, string]} */ ([seen[0], seen[1]]);
  assert.deepEqual(stepsWithin([{ ...line(5, 6), wall: [0, 60] }], "wall", 0, stretch), [5, 6]);
  assert.equal(stepsWithin([line(0, 1)], "step", 0, [5, 6]), null);
});

test("a table quotes what would end a cell", () => {
  const table = csv([{ run: 'a "b"', tag: "x,y", step: [1], value: [null], wall_time: [2], low: null, high: null }]);
  assert.equal(table, 'run,tag,step,wall_time,value\n"a ""b""","x,y",1,2,nan\n');
});

test("the newest hill stands in front", () => {
  const told = { steps: [1, 2], edges: [0, 1, 2], counts: [[1, 0], [0, 4]], notes: [] };
  const [hills, layout] = ridges(told, { width: 300, text: "black", ground: "white" });
  assert.deepEqual(hills.map((hill) => hill.y[0]), [1, 0]);
  assert.deepEqual([layout.yaxis.tickvals, layout.yaxis.ticktext], [[1, 0], ["1", "2"]]);
});

test("a picture has a title for each metric, and a legend that names each series once", () => {
  const boxes = new Map([["loss", { left: 40, top: 60, width: 300, height: 100 }]]);
  const lines = ["a", "b", "a", "b"].map((name, number) => ({ name, visible: number < 3 }));
  const averaged = { name: "a", visible: true, hoverinfo: "skip" };
  const [data, layout] = asPicture([[averaged, ...lines], { width: 400, height: 200 }], boxes, "#fff");
  assert.deepEqual(data.map(({ showlegend }) => showlegend), [false, true, true, false, false]);
  assert.deepEqual([layout.showlegend, layout.annotations[0].text], [true, "<b>loss</b>"]);
  assert.equal(asPicture([[lines[0]], { width: 400, height: 200 }], boxes, "#fff")[1].showlegend, false);
});

test("what many lines say at a step is said of the nearest one", () => {
  const ranks = (/** @type {number} */ count) => Array.from({ length: count }, (_, rank) => ({ name: `rank-${rank}` }));
  assert.equal(hoverMode([...ranks(8), ...ranks(8)]), "x unified");
  assert.equal(hoverMode(ranks(64)), "closest");
});

test("many lines have a band, at the steps of the one with the most points", () => {
  const line = (/** @type {number[]} */ step, /** @type {number[]} */ value) => ({ step, value, wall: step, low: value, high: value });
  const { low, mean, high, far } = bandOf([line([0, 2], [0, 4]), line([0, 1, 2], [1, 1, NaN]), line([1, 2], [6, 5])]);
  assert.deepEqual([...low.value], [0, 1, 4]);
  assert.deepEqual([...mean.value], [0.5, 3, 4.5]);
  assert.deepEqual([...high.value], [1, 6, 5]);
  assert.deepEqual(low.step, [0, 1, 2]);
  assert.equal(far.length, 3);
});

test("what is left out of many lines is in their band", () => {
  const whole = { ...line(0, 1, 2), low: [0, 5, 5], high: [10, 10, 99] };
  const { low, high } = bandOf([whole, line(0, 1, 2)]);
  assert.deepEqual([[...low.value], [...high.value]], [[0, 5, 5], [10, 10, 99]]);
});

test("those stand out that are several times as far from the middle as most, three at most", () => {
  assert.deepEqual(apart([1, 1, 9, 1, 1.2, 1]), [2]);
  assert.deepEqual(apart([1, 1, 9, 7, 8, 6, 1, 1, 1, 1]), [2, 4, 3]);
  assert.deepEqual(apart([0, 0, 0]), []);
});

test("a choice is kept where the page may keep it, and taken only as far as it makes sense", () => {
  const first = { pinned: [], mode: "step", scale: "linear", smoothing: 0 };
  for (const odd of [null, 3, {}, { pinned: "loss", mode: "x", scale: 1, smoothing: 1 }]) assert.deepEqual(choiceOf(odd), first);
  const kept = new Kept("metrics");  // there is no localStorage
  for (const tag of ["loss", "rate", "loss"]) kept.pin(tag);
  assert.deepEqual(kept.choice, { ...first, pinned: ["rate"] });
  assert.ok(kept.isPinned("rate") && !kept.isPinned("loss"));
});
