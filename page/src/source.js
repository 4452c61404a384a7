// Asking about a run: its server extension where there is one, which answers whatever the kernel is
// doing, else the kernel.

import { ownPath } from "./address.js";
import { taken } from "./shapes.js";

/** @import { Asking, RunSummary, Model, RunState } from "./protocol.d.ts" */
/** @typedef {Record<string, string | number>} Query */
/** @typedef {{resolve: (body: any) => void, reject: (error: Error) => void}} Waiting */

const PROBE_AGAIN_MS = 5000;
const KERNEL_IS_BUSY_AFTER_MS = 1000;
const ANSWERS_WITHIN_MS = 60_000;

/** Jupyter writes it as a script: an element of that id which isn't one may be an output's. */
function pageConfig() {
  const config = document.querySelector("script#jupyter-config-data");
  return config ? JSON.parse(config.textContent) : null;
}

/**
 * Where the page's Jupyter server answers that path, which is one of ours.
 * @param {string} path
 */
export function serverAddress(path) {
  const { baseUrl } = pageConfig();
  return `${baseUrl.endsWith("/") ? baseUrl : `${baseUrl}/`}${ownPath(path)}`;
}

/** The page has no Jupyter server, and won't have one: any other failure may be over a moment later. */
export class NoServer extends Error {}

/**
 * What the page's server answers, whole within a minute. Raises NoServer.
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function request(path, options = {}) {
  const config = pageConfig();
  if (!config) throw new NoServer("this page has no Jupyter server");
  const cookie = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/);
  /** @type {Record<string, string>} */
  const headers = {};
  if (cookie) headers["X-XSRFToken"] = cookie[1];
  if (config.token) headers.Authorization = `token ${config.token}`;
  const signal = AbortSignal.timeout(ANSWERS_WITHIN_MS);
  const answer = await fetch(serverAddress(path), { ...options, headers, signal });
  if (answer.status >= 500) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer;
}

/** @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** The other half has said no: its words are for the reader. */
export class Refused extends Error {}

/** Nobody is there who could answer. */
export class Gone extends Error {
  constructor() {
    super("The kernel of this output has ended or restarted, and Jupyter's server does not answer either. Run its cell again.");
  }
}

/**
 * Asks the server or the kernel about one run.
 * @template {Asking} [State=Asking]
 */
export class Source {
  /** @param {Model<State>} model */
  constructor(model) {
    this.model = model;
    /** @type {boolean | null} whether the server answers; null before it was asked */
    this.served = null;
    /** @type {Map<string, Waiting>} */
    this.waiting = new Map();
    this.name = Math.random().toString(36).slice(2);  // tells its questions from others'
    this.number = 0;
    /** @type {number | null} */
    this.waitingSince = null;
    this.closed = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.again = undefined;
    this.receiving = (/** @type {any} */ message) => this.receive(message);
    model.on("msg:custom", this.receiving);
    this.probed = this.probe();
  }

  /**
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    return `distrain/runs/${this.model.get("run")}/${path}?${this.words(query)}`;
  }

  /** @param {Query} query */
  words(query) {
    return new URLSearchParams({ ...asText(query), home: this.model.get("home") });
  }

  /** What is asked first, to see whether the server answers. */
  get opening() { return "summary"; }

  /**
   * Take the answer to the opening.
   * @param {object} _answer
   */
  learn(_answer) {}

  async probe() {
    try {
      const answer = await request(this.address(this.opening));
      this.served = answer.ok;
      if (answer.ok) this.learn(taken(this.opening, await answer.json()));
    } catch (error) {
      this.served = false;
      if (!(error instanceof NoServer)) this.lost();
    }
    return this.served;
  }

  /** Whether the server answers now. */
  async answersItself() { return this.served ?? this.probed; }

  /**
   * The answer. Raises Refused for a question that makes no sense.
   * @param {string} path
   * @param {Query} [query]
   * @returns {Promise<any>}
   */
  async ask(path, query = {}) {
    if (this.served ?? await this.probed) {
      try {
        const answer = await request(this.address(path, query));
        const body = await answer.json();
        if (answer.ok) return taken(path, body);
        if (answer.status === 400) throw new Refused(body.message);
      } catch (error) {
        if (error instanceof Refused) throw error;
      }
      this.lost();
    }
    return taken(path, await this.askKernel(path, query));
  }

  /**
   * Have the server do something; says whether it has. Raises Refused.
   * @param {string} method
   * @param {string} path
   * @param {Query} [query]
   */
  async order(method, path, query = {}) {
    if (!(this.served ?? await this.probed)) return false;
    const answer = await request(this.address(path, query), { method }).catch(() => null);
    if (answer && [400, 409].includes(answer.status)) throw new Refused((await answer.json()).message);
    if (!answer?.ok) this.lost();
    return answer?.ok ?? false;
  }

  /** The server is not there now, or doesn't know the run any more: look again every now and then. */
  lost() {
    this.served = false;
    clearTimeout(this.again);
    if (!this.closed) this.again = setTimeout(() => this.probeAgain(), PROBE_AGAIN_MS);
  }

  async probeAgain() {
    this.probed = this.probe();
    if (!await this.probed) this.lost();
  }

  /**
   * @param {string} path
   * @param {Query} query
   * @returns {Promise<any>}
   */
  askKernel(path, query) {
    const id = `${this.name}-${++this.number}`;
    const since = this.waitingSince ?? Date.now();
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    if (this.toKernel({ kind: "ask", id, path, query: asText(query) })) {
      this.waitingSince = since;
      return answer;
    }
    this.waiting.delete(id);
    return Promise.reject(new Gone());
  }

  /**
   * Tell the kernel something; says whether there is one.
   * @param {object} message
   */
  toKernel(message) {
    try {
      this.model.send(message);
      return true;
    } catch {  // it has ended, or restarted and knows nothing of this view
      return false;
    }
  }

  /** @param {{kind: string, id: string, body?: any, error?: string}} message */
  receive(message) {
    const waiting = message.kind === "answer" ? this.waiting.get(message.id) : undefined;
    if (!waiting) return;
    this.waiting.delete(message.id);
    this.waitingSince = this.waiting.size ? Date.now() : null;
    if (message.error === undefined) waiting.resolve(message.body);
    else waiting.reject(new Refused(message.error));
  }

  /** Whether the kernel has owed an answer for a while: it is busy with something else. */
  get kernelIsBusy() {
    return this.waitingSince !== null && Date.now() - this.waitingSince > KERNEL_IS_BUSY_AFTER_MS;
  }

  close() {
    this.closed = true;
    clearTimeout(this.again);
    this.model.off("msg:custom", this.receiving);
  }
}

/** Knows the state of its run, from whoever told it last. */
export class RunSource extends /** @type {typeof Source<RunState>} */ (Source) {
  /** @param {Model<RunState>} model */
  constructor(model) {
    super(model);
    /** @type {Partial<RunSummary>} */
    this.summary = {};
    /** @type {(() => void)[]} */
    this.listeners = [];
    this.learning = () => this.learn(model.get("summary"));
    model.on("change:summary", this.learning);
    this.learning();
  }

  /**
   * @override
   * @param {Partial<RunSummary>} summary
   */
  learn(summary) {
    if (summary.state === undefined || (this.summary.now ?? 0) > (summary.now ?? 0)) return;
    this.summary = summary;
    for (const listener of this.listeners) listener();
  }

  /** @override */
  close() {
    super.close();
    this.model.off("change:summary", this.learning);
  }
}

/**
 * @param {Query} query
 * @returns {Record<string, string>}
 */
function asText(query) {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
}
