// What a list of options narrows down to.

import assert from "node:assert/strict";
import { test } from "node:test";
import { matching } from "../src/form/combobox.js";

/** @type {import("../src/protocol.d.ts").Option[]} */
const MACHINES = [["n1-standard-4", "4 vCPU, 15 GB", true], ["a2-highgpu-1g", "12 vCPU, 1 A100", true]];

test("all words have to be in the value or its detail", () => {
  assert.deepEqual(matching(MACHINES, "").map(([value]) => value), ["n1-standard-4", "a2-highgpu-1g"]);
  assert.deepEqual(matching(MACHINES, "A100 vcpu").map(([value]) => value), ["a2-highgpu-1g"]);
  assert.deepEqual(matching(MACHINES, "n1 a100"), []);
});
