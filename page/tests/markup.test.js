// Text becomes elements in one place, and addresses are made in one.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ownPath } from "../src/address.js";

const SOURCES = join(import.meta.dirname, "../src");
/** @type {Record<string, string[]>} what makes elements or code of text, or asks, and where it may stand */
const DOORS = {
  "innerHTML|outerHTML|insertAdjacentHTML|document\\.write|createContextualFragment|setHTML\\w*|\\beval\\(|new Function": [],
  DOMParser: ["markup.js"],
  srcdoc: ["charts/frame.js", "displays.js"],  // of frames without an origin: see displays.test.js
  "(?<!async |[.\\w])fetch\\(|XMLHttpRequest|WebSocket|sendBeacon|EventSource": ["lab/charts.js", "source.js"],
  "\\bbaseUrl\\b": ["source.js"],
};

for (const [door, allowed] of Object.entries(DOORS)) {
  test(`${door}: ${allowed.join(", ") || "nowhere"}`, () => {
    const names = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"));
    assert.ok(names.length > 30);
    const having = names.filter((name) => new RegExp(door).test(readFileSync(join(SOURCES, name), "utf8")));
    assert.deepEqual(having.sort(), allowed);
  });
}

test("addresses are ours, with whole numbers", () => {
  for (const path of [
    "distrain/version", "distrain/runs?home=", "distrain/runs/12/log?first=-200&count=200&home=0a", "distrain/runs/12",
    "distrain/compare?runs=3%2C5&home=", "distrain/studies/1/study?seen=&watching=1&home=", "distrain/runs/1/first-error?text=%E2%80%9C+*",
    "api/kernels/0f3a4c6e-1b2d/interrupt", "distrain/sessions?home=", "distrain/sessions/lab-2.b/stop?home=", "distrain/sessions/n%C3%A4he/stop?home=",
  ]) assert.equal(ownPath(path), path);
  for (const path of [
    "", "/", "distrain/", "distrain/runs/0", "distrain/runs/01/log", "distrain/runs/1.5/log", "distrain/runs/-1/log",
    "distrain/runs/1/../2", "distrain/runs/../../files/a?", "distrain/runs/%2e%2e/log", "distrain/runs/1/log#a", "distrain/runs//log",
    "distrain/runs/1\\2/log", "distrain/runs/1/log/more", "distrain/runs/1?a=/summary?home=", "distrain/runs/12345678901234567/log",
    "//evil.invalid/distrain/runs", "https://evil.invalid/distrain/runs", "distrain/runs/1/log\n", "api/contents/a",
    "api/kernels/../contents/interrupt", "api/kernels//interrupt", "distrain/sessions/../stop", "distrain/sessions/a%2F..%2Fruns/stop",
    "distrain/sessions/a%2e/stop", "distrain/sessions/lab", "distrain/sessions//stop", "distrain/sessions/lab/cells",
  ]) assert.throws(() => ownPath(path), /is no address of distrain-nb/);
});
