// JupyterLab's extension, as far as it needs no page: its models, what has ended, its container.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PageModel } from "../src/lab/model.js";
import { endOf } from "../src/lab/notices.js";
import { Watch } from "../src/lab/watch.js";
import { Source } from "../src/source.js";

/**
 * @param {number} id
 * @param {boolean} final
 * @returns {any}
 */
const row = (id, final) => ({ id, name: `r${id}`, state: final ? "succeeded" : "running", final, begin: 0, end: final ? 185 : null, cause: "" });

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
  const watch = new Watch((run) => ended.push(run.id));
  await watch.source.probed;
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

test("the end of a run is one line", () => {
  assert.equal(endOf(row(12, true)), "r12 #12 succeeded after 3 min 05 s");
  assert.equal(endOf({ ...row(12, true), state: "failed", cause: "ValueError: odd" }), "r12 #12 failed after 3 min 05 s: ValueError: odd");
});
