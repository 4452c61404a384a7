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

/** @type {import("../src/protocol.d.ts").Option[]} */
const BY_INTENT = [
  ["n1-standard-8", "8 vCPU, 30 GB, 16 Gbit/s, takes T4, V100", true, "cheap", "1gpu 8gpu t4 16gb v100"],
  ["n2-highcpu-80", "80 vCPU, 80 GB, 32 Gbit/s", true],
  ["a2-ultragpu-8g", "8 × A100_80GB (80 GB), 96 vCPU, 1,360 GB", true, "8gpu 80gb", ""],
  ["a3-highgpu-1g", "1 × H100 (80 GB), 26 vCPU, 234 GB", true, "1gpu 80gb", ""],
  ["a3-highgpu-8g", "8 × H100 (80 GB), 208 vCPU, 1,872 GB, 1,000 Gbit/s", false, "8gpu 80gb", ""],
  ["ml.g7.48xlarge", "8 × RTX PRO 4500 (32 GB), 192 vCPU, 768 GiB", false, "8gpu 32gb", ""],
];

for (const [text, ...found] of [
  ["H100", "a3-highgpu-1g", "a3-highgpu-8g"],
  ["8 gpu", "a2-ultragpu-8g", "n1-standard-8", "a3-highgpu-8g", "ml.g7.48xlarge"],
  ["8 GPUs v100", "n1-standard-8"],
  ["8 x h100", "a3-highgpu-8g"],
  ["1×H100", "a3-highgpu-1g"],
  ["80GB", "a2-ultragpu-8g", "a3-highgpu-1g", "n2-highcpu-80", "a3-highgpu-8g"],
  ["80 gb a100", "a2-ultragpu-8g"],
  ["1360 gb", "a2-ultragpu-8g"],
  ["768 GiB", "ml.g7.48xlarge"],
  ["cheap", "n1-standard-8"],
]) {
  test(`${text} finds what has it first, then what takes it, then what does not fit`, () => {
    assert.deepEqual(matching(BY_INTENT, text).map(([value]) => value), found);
  });
}

test("the ids of two forms of a page differ, though each has loaded its code for itself", async () => {
  const [one, other] = await Promise.all(["one", "other"].map((name) => import(`../src/dom.js?${name}`)));
  assert.notEqual(one.uid("field"), other.uid("field"));
  assert.notEqual(one.uid("field"), one.uid("field"));
});
