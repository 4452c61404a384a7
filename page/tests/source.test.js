// Who is asked about a run: the server where one answers, else the kernel.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { afterEach, beforeEach, test } from "node:test";
import { Refused, RunSource } from "../src/source.js";

const LOG = { lines: [], bars: [], first: 0, rows: 0, total: 0, end: false };

/**
 * @param {string} state
 * @param {number} now
 */
const summary = (state, now) => ({
  id: 3, name: "r", state, phase: "", final: false, where: "", size: "", begin: 0, end: null, now, steps: [], labels: {},
  pools: {}, progress: null, note: "", error: "",
});

/** A widget's model whose kernel answers what `answers` says. */
class Kernel {
  constructor() {
    /** @type {Record<string, any>} */
    this.state = { run: 3, home: "h", summary: { state: "running", now: 1 } };
    /** @type {Map<string, (message: any) => void>} */
    this.listeners = new Map();
    /** @type {any[]} */
    this.asked = [];
    /** @type {object | null} null while it computes */
    this.answer = { body: { ...LOG, total: 7 } };
    this.widget_manager = null;
  }

  get(/** @type {any} */ name) { return this.state[name]; }
  set() {}
  save_changes() {}
  on(/** @type {string} */ event, /** @type {(message: any) => void} */ listener) { this.listeners.set(event, listener); }
  off(/** @type {string} */ event) { this.listeners.delete(event); }

  send(/** @type {any} */ message) {
    this.asked.push(message);
    if (this.answer) this.listeners.get("msg:custom")?.({ kind: "answer", id: message.id, ...this.answer });
  }
}

/** @type {import("node:http").Server} */
let server;
/** @type {{status: number, body: object}} */
let response;
/** @type {string[]} */
let requests;

beforeEach(async () => {
  requests = [];
  server = createServer((request, reply) => {
    requests.push(`${request.headers.authorization} ${request.headers["x-xsrftoken"]} ${request.url}`);
    reply.writeHead(response.status, { "content-type": "application/json" }).end(JSON.stringify(response.body));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(null)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const config = { baseUrl: `http://127.0.0.1:${port}/base`, token: "t" };
  globalThis.document = /** @type {any} */ ({
    cookie: "a=b; _xsrf=x", querySelector: () => ({ textContent: JSON.stringify(config) }),
  });
});

afterEach(() => { server.closeAllConnections(); server.close(); });

/** @param {Kernel} kernel */
async function opened(kernel) {
  const source = new RunSource(/** @type {any} */ (kernel));
  await source.probed;
  return source;
}

test("the server answers where it can", async () => {
  response = { status: 200, body: summary("succeeded", 5) };
  const kernel = new Kernel();
  const source = await opened(kernel);
  assert.deepEqual([source.served, source.summary.state], [true, "succeeded"]);
  response = { status: 200, body: LOG };
  assert.deepEqual(await source.ask("log", { first: 2 }), response.body);
  assert.equal(requests.at(-1), "token t x /base/distrain/runs/3/log?first=2&home=h");
  assert.deepEqual(kernel.asked, []);
  source.close();
});

test("the kernel answers where the server has no such run", async () => {
  response = { status: 404, body: {} };
  const source = await opened(new Kernel());
  assert.equal(source.served, false);
  assert.equal((await source.ask("log", { first: 2 })).total, 7);
  source.close();
});

test("a server that goes away is followed by the kernel", async () => {
  response = { status: 200, body: summary("running", 1) };
  const kernel = new Kernel();
  const source = await opened(kernel);
  response = { status: 500, body: {} };
  assert.equal((await source.ask("log", { first: 2 })).total, 7);
  assert.deepEqual([source.served, kernel.asked[0].query], [false, { first: "2" }]);
  source.close();
});

test("a server that comes back answers again, however long that takes", async (t) => {
  response = { status: 200, body: summary("running", 5) };
  const source = await opened(new Kernel());
  t.mock.timers.enable({ apis: ["setTimeout"] });
  response = { status: 500, body: {} };
  await source.ask("log");
  for (const status of [500, 500, 200]) {
    response = { status, body: summary("failed", 9) };
    t.mock.timers.tick(5000);
    await source.probed;
    await Promise.resolve();
  }
  assert.deepEqual([source.served, source.summary.state], [true, "failed"]);
  source.close();
});

for (const [silent, begin] of /** @type {const} */ ([
  ["says nothing", () => {}],
  ["stops in the middle", (/** @type {import("node:http").ServerResponse} */ reply) => reply.writeHead(200).write("{")],
  ["answers with somebody else's page", (/** @type {import("node:http").ServerResponse} */ reply) => reply.end("<html>")],
])) {
  test(`a server that ${silent} is given up after a while, and asked again`, async (t) => {
    const within = AbortSignal.timeout;
    t.mock.method(AbortSignal, "timeout", (/** @type {number} */ ms) => within.call(AbortSignal, ms / 600));
    const [answer] = server.listeners("request");
    server.removeAllListeners("request").on("request", (_, reply) => { begin(reply); });
    const source = await opened(new Kernel());
    assert.equal(source.served, false);
    assert.equal((await source.ask("log")).total, 7);
    server.removeAllListeners("request").on("request", /** @type {any} */ (answer));
    response = { status: 200, body: summary("failed", 9) };
    assert.notEqual(source.again, undefined);
    t.mock.restoreAll();
    await source.probeAgain();
    assert.equal(source.summary.state, "failed");
    source.close();
  });
}

test("either's refusal has words for the reader", async () => {
  response = { status: 200, body: summary("running", 1) };
  const kernel = new Kernel();
  kernel.answer = { error: "no such rank" };
  const source = await opened(kernel);
  response = { status: 400, body: { message: "not a pattern" } };
  await assert.rejects(source.ask("search"), (error) => error instanceof Refused && error.message === "not a pattern");
  await assert.rejects(source.askKernel("search", {}), (error) => error instanceof Refused && error.message === "no such rank");
  source.close();
});

test("an old summary is no news", async () => {
  response = { status: 404, body: {} };
  const source = await opened(new Kernel());
  source.learn({ state: "failed", now: 9 });
  source.learn({ state: "running", now: 8 });
  assert.equal(source.summary.state, "failed");
  source.close();
});

test("a kernel that owes an answer is busy after a while", async (t) => {
  response = { status: 404, body: {} };
  const kernel = new Kernel();
  const source = await opened(kernel);
  t.mock.timers.enable({ apis: ["Date"] });
  kernel.answer = null;
  source.askKernel("log", {});
  assert.equal(source.kernelIsBusy, false);
  t.mock.timers.tick(1001);
  assert.equal(source.kernelIsBusy, true);
  kernel.listeners.get("msg:custom")?.({ kind: "answer", id: kernel.asked[0].id, body: "" });
  assert.equal(source.kernelIsBusy, false);
  source.close();
});

test("what the server refuses to do is said in its words, and the kernel is not asked", async () => {
  response = { status: 200, body: summary("running", 1) };
  const kernel = new Kernel();
  const source = await opened(kernel);
  response = { status: 409, body: { message: "run 3 can't be cancelled: Read-only file system" } };
  await assert.rejects(source.order("POST", "cancel"), (error) => error instanceof Refused && /Read-only/.test(error.message));
  assert.deepEqual([source.served, kernel.asked], [true, []]);
  source.close();
});

test("what has another shape is no answer, and what nobody knows is dropped", async () => {
  response = { status: 200, body: { ...summary("running", 1), evil: "<b>" } };
  const source = await opened(new Kernel());
  assert.deepEqual([source.served, "evil" in source.summary], [true, false]);
  for (const body of [{}, [], null, { ...LOG, lines: "<b>" }, { ...LOG, total: -1 }, { ...LOG, lines: [[1, 2, 3]] }]) {
    response = { status: 200, body: /** @type {any} */ (body) };
    source.served = true;
    assert.equal((await source.ask("log")).total, 7);
    assert.equal(source.served, false);
  }
  source.close();
});

for (const run of ["../../files/theirs.ipynb?", "1/../..", "1", 1.5, -1, 0, 1e300, null, undefined, {}, ["1"], "1?a=", "%2e%2e"]) {
  test(`nothing is asked about a run of the number ${JSON.stringify(run)}`, async () => {
    response = { status: 200, body: summary("running", 1) };
    const kernel = new Kernel();
    kernel.state.run = run;
    const source = await opened(kernel);
    await source.order("POST", "cancel").catch(() => {});
    const written = ["1", "1?a="].includes(/** @type {any} */ (String(run)));
    assert.deepEqual(requests.filter((line) => !/ \/base\/distrain\/runs\/1\//.test(line)), []);
    assert.equal(requests.length > 0, written && run !== "1?a=");
    source.close();
  });
}
