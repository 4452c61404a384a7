// A run's HTML is in a frame without scripts, forms and an origin, and what fetches is forbidden there.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Misshapen, taken } from "../src/shapes.js";

const SOURCE = readFileSync(join(import.meta.dirname, "../src/displays.js"), "utf8");
const FRAME = readFileSync(join(import.meta.dirname, "../src/charts/frame.js"), "utf8");

test("the only frame of a run's HTML allows nothing", () => {
  assert.deepEqual(SOURCE.match(/sandbox: "[^"]*"/g), ['sandbox: ""']);
  assert.deepEqual(SOURCE.match(/element\("iframe"/g), ['element("iframe"']);
  assert.match(SOURCE, /<head><meta http-equiv="Content-Security-Policy" content="\$\{POLICY\}">/);
  assert.match(SOURCE, /POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"/);
});

test("plotly's frame has no origin and fetches nothing", () => {
  assert.match(FRAME, /sandbox: "allow-scripts allow-downloads"/);
  assert.match(FRAME, /Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' blob:; [^"]*img-src data: blob:/);
});

test("only what a page shows is taken", () => {
  const image = { form: "image/png", data: "iVBORw0KGgo=" };
  assert.deepEqual(taken("display", { image, html: "<b>", label: "a" }).image, image);
  assert.equal(taken("display", { image, html: "<b>" }).html, undefined);
  for (const answer of [
    { image: { form: "image/svg+xml", data: "" } }, { image: { form: "text/html", data: "" } },
    { image: { form: "image/png", data: '"><script>' } }, { page: ["<b>"] }, { figure: { data: [{ type: "mesh3d" }], layout: {} } },
    { figure: { data: [null], layout: {} } }, { table: { rows: [[["a", true, -1, 1]]], note: "" } }, { table: { rows: [["a"]], note: "" } },
  ]) assert.throws(() => taken("display", answer), Misshapen, JSON.stringify(answer));
});
