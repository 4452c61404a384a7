// Counts and times are as the kernel says them: tests/ui/test_words.py reads the same examples.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { progressText } from "../src/run/head.js";
import { age, brief, clockTime, duration, plural, size } from "../src/words.js";

const examples = JSON.parse(readFileSync(new URL("../../tests/ui/words.json", import.meta.url), "utf8"));

test("plurals", () => {
  for (const [count, noun, words] of examples.plural) assert.equal(plural(count, noun), words);
});

test("durations", () => {
  for (const [seconds, words] of examples.duration) assert.equal(duration(seconds), words);
});

test("sizes have two digits or more", () => {
  const sizes = [0, 512, 1536, 12 * 2 ** 20, 5 * 2 ** 30];
  assert.deepEqual(sizes.map(size), ["0 B", "512 B", "1.5 KiB", "12 MiB", "5.0 GiB"]);
});

test("progress has only what is known", () => {
  const nothing = { phase: "reading", total: 0, done: 0, since: 0 };
  assert.equal(progressText(nothing, 100), "reading");
  assert.equal(progressText({ ...nothing, done: 512 }, 100), "reading: 512 B");
  const known = { phase: "sending", total: 40 * 2 ** 20, done: 12 * 2 ** 20, since: 96.9 };
  assert.equal(progressText(known, 100), "sending: 12 MiB of 40 MiB, 3.1 s");
  const steps = { ...nothing, phase: "", done: 300, total: 1000, unit: "steps", left: "about 4 min left" };
  assert.equal(progressText(steps, 100), "300 of 1,000 steps, about 4 min left");
  assert.equal(progressText({ ...steps, phase: "map", left: "" }, 100), "map: 300 of 1,000 steps");
  assert.equal(progressText({ ...steps, done: 40, total: 100, unit: "%" }, 100), "40 %, about 4 min left");
  assert.equal(progressText({ ...steps, done: 2, total: 0, unit: "passes", left: "" }, 100), "2 passes begun");
});

test("a clock that is behind gives no negative duration", () => {
  assert.equal(duration(-3), "0.0 s");
});

test("an age has one unit", () => {
  assert.deepEqual([0, 59, 60, 7199, 86400 * 3].map(age), ["0 s ago", "59 s ago", "1 min ago", "1 h ago", "3 d ago"]);
});

test("a time of day has milliseconds", () => {
  const seconds = new Date(2026, 0, 2, 3, 4, 5, 6).getTime() / 1000;
  assert.equal(clockTime(seconds), "03:04:05.006");
});

test("numbers have about four digits", () => {
  assert.deepEqual([0, 0.031234, 99.5, 12345.6, 1.2e-5, 3e9].map(brief), ["0", "0.03123", "99.5", "12350", "1.200e-5", "3.000e+9"]);
});
