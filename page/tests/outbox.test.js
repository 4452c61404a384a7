// What the form sends arrives, once and in its order, also where a front end loses messages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "../src/form/outbox.js";

/** @param {import("node:test").TestContext} context */
function opened(context) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  /** @type {any[]} */
  const came = [];
  const model = { isGone: false, send(/** @type {any} */ message) {
    if (model.isGone) throw new Error("the kernel has gone");
    came.push(message.number);
  } };
  return { came, model, clock: context.mock.timers, outbox: new Outbox(/** @type {any} */ (model)) };
}

test("what gets no answer is sent again, at longer and longer intervals", (context) => {
  const { came, clock, outbox } = opened(context);
  outbox.send({ do: "undo" });
  outbox.send({ do: "redo" });
  assert.deepEqual(came, [1, 2]);
  clock.tick(2000);
  assert.deepEqual(came, [1, 2, 1, 2]);
  clock.tick(3999);
  assert.equal(came.length, 4);
  clock.tick(1);
  assert.equal(came.length, 6);
});

test("an answer to a message answers those before it", (context) => {
  const { came, clock, outbox } = opened(context);
  outbox.send({ do: "undo" });
  outbox.send({ do: "undo" });
  outbox.send({ do: "undo" });
  outbox.hear(["another page", 3]);
  outbox.hear([outbox.page, 2]);
  clock.tick(2000);
  assert.deepEqual(came, [1, 2, 3, 3]);
  outbox.hear([outbox.page, 3]);
  assert.equal(outbox.isWaiting, false);
  clock.tick(600_000);
  assert.equal(came.length, 4);
});

test("a state that is older than the last answer has the newest asked for until it comes", (context) => {
  const { came, clock, outbox } = opened(context);
  outbox.send({ do: "undo" });
  outbox.send({ do: "undo" });
  outbox.hear([outbox.page, 2]);
  outbox.hear([outbox.page, 1]);
  outbox.hear([outbox.page, 1]);
  assert.deepEqual(came, [1, 2, 2]);
  assert.equal(outbox.isWaiting, true);
  clock.tick(2000);
  assert.deepEqual(came, [1, 2, 2, 2]);
  outbox.hear([outbox.page, 2]);
  assert.equal(outbox.isWaiting, false);
  clock.tick(600_000);
  assert.equal(came.length, 4);
});

test("nothing is sent to a kernel that has gone", (context) => {
  const { came, model, clock, outbox } = opened(context);
  outbox.send({ do: "undo" });
  model.isGone = true;
  clock.tick(2000);
  assert.throws(() => outbox.send({ do: "redo" }));
  model.isGone = false;
  clock.tick(600_000);
  assert.deepEqual(came, [1]);
  assert.equal(outbox.send({ do: "redo" }), 2, "the kernel waits for no number that was never sent");
});
