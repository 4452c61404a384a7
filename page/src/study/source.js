// Asking the kernel about a study; that of a cell which waits for it tells by itself.

import { Source } from "../source.js";

/** @import { Model, StudyAnswer, StudyState, StudySummary, StudyCharts } from "../protocol.d.ts" */
/** @import { Query } from "../source.js" */

const LOOK_EVERY_MS = 800;
const TOLD_WITHIN_MS = 2500;  // by a kernel that tells by itself; after that, it is asked

export class StudySource extends /** @type {typeof Source<StudyState>} */ (Source) {
  /** @param {Model<StudyState>} model */
  constructor(model) {
    super(model);
    /** @type {Partial<StudySummary>} */
    this.summary = {};
    /** @type {StudyCharts | null} */
    this.charts = null;
    this.seen = "";
    this.heardAt = 0;
    /** @type {(() => void)[]} */
    this.listeners = [];
    this.learning = () => this.learn(model.get("state"));
    model.on("change:state", this.learning);
    this.learning();
    this.asking = false;
    this.clock = setInterval(() => this.look(), LOOK_EVERY_MS);
  }

  /** The runs of its trials, as panels ask for them. */
  get runs() {
    return (this.summary.trials ?? []).flatMap(({ run, final }) => (run === null ? [] : [{ id: run, final }]));
  }

  /**
   * Servers know runs, but no studies.
   * @override
   */
  async probe() {
    this.served = false;
    return false;
  }

  /**
   * @override
   * @param {Partial<StudyAnswer>} answer
   */
  learn({ seen, summary, charts }) {
    this.heardAt = Date.now();
    if (!summary || (this.summary.now ?? 0) > summary.now) return;
    this.seen = seen ?? "";
    this.summary = summary;
    this.charts = charts ?? this.charts;
    for (const listener of this.listeners) listener();
  }

  /** What nobody has told for a while is asked for. */
  async look() {
    const isTold = this.model.get("waiting") && Date.now() - this.heardAt < TOLD_WITHIN_MS;
    if (!this.asking && !document.hidden && !this.summary.final && !isTold) await this.refresh();
  }

  async refresh() {
    this.asking = true;
    try {
      this.learn(await this.ask("study", { seen: this.seen }));
    } catch { /* it asks again */ } finally {
      this.asking = false;
    }
  }

  /**
   * Stop a trial, or want more of them. Raises Refused.
   * @param {"stop" | "more"} action
   * @param {Query} query
   */
  async act(action, query) {
    await this.askKernel(action, query);
  }

  /** @override */
  close() {
    super.close();
    clearInterval(this.clock);
    this.model.off("change:state", this.learning);
  }
}
