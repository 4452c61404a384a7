// Looks after all runs for as long as the page is open: which there are, and which have ended.

import { RunsSource } from "../runs/source.js";
import { PageModel } from "./model.js";

/** @import { TableRun } from "../protocol.d.ts" */

const RUNNING_MS = 2000;
const RESTING_MS = 5000;
const HIDDEN_MS = 10_000;
const ABSENT_MS = 30_000;

export class Watch {
  /** @param {(run: TableRun) => void} ended is called with each run that has ended meanwhile */
  constructor(ended) {
    this.source = new RunsSource(new PageModel({ run: 0, home: "", key: "runs" }));
    this.ended = ended;
    /** @type {Map<number, boolean> | null} whether a run has ended, by number; null at first */
    this.known = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.source.listeners.push(() => this.compare());
    this.source.probed.then(() => this.wait());
  }

  get runs() { return this.source.runs ?? []; }
  get running() { return this.runs.filter((run) => !run.final); }

  compare() {
    const before = this.known;
    this.known = new Map(this.runs.map((run) => [run.id, run.final]));
    if (!before) return;
    const newest = Math.max(0, ...before.keys());
    for (const run of this.runs) {
      const wasRunning = before.get(run.id) === false || (!before.has(run.id) && run.id > newest);
      if (run.final && wasRunning) this.ended(run);
    }
  }

  /** Look now: there is news. */
  async look() {
    clearTimeout(this.timer);
    if (this.source.served) await this.source.refresh().catch(() => {});
    else await this.source.probe();
    this.wait();
  }

  wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), this.pause);
  }

  get pause() {
    if (!this.source.served) return ABSENT_MS;
    if (document.hidden) return HIDDEN_MS;
    return this.running.length ? RUNNING_MS : RESTING_MS;
  }
}
