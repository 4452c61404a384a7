// Asking about a study: the server first, else the kernel; that of a cell which waits for it tells by
// itself.

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
    this.over = false;
    // What two tell may differ in what they have computed: the server's word is enough.
    this.learning = () => { if (!this.served) this.learn(model.get("state")); };
    model.on("change:state", this.learning);
    this.learning();
    this.asking = false;
    this.clock = setInterval(() => this.look(), LOOK_EVERY_MS);
  }

  /** The runs of its trials, as panels ask for them. */
  get runs() {
    return (this.summary.trials ?? []).flatMap(({ run, final }) => (run === null ? [] : [{ id: run, final }]));
  }

  /** @override */
  get opening() { return "study"; }

  /**
   * Comparisons are of runs, and the server's.
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    const place = path === "compare" ? path : `studies/${this.model.get("study")}/${path}`;
    return `distrain/${place}?${this.words(query)}`;
  }

  /**
   * @override
   * @param {Partial<StudyAnswer>} answer
   */
  learn({ seen, summary, charts, end }) {
    this.heardAt = Date.now();
    if (!summary || (this.summary.now ?? 0) > summary.now) return;
    this.seen = seen ?? "";
    this.summary = { ...summary, trials: summary.trials ?? this.summary.trials ?? [] };
    this.over = end ?? summary.final;
    this.charts = charts ?? this.charts;
    for (const listener of this.listeners) listener();
  }

  /** What nobody has told for a while is asked for. */
  async look() {
    const isTold = !this.served && this.model.get("waiting") && Date.now() - this.heardAt < TOLD_WITHIN_MS;
    if (!this.asking && !document.hidden && !this.over && !isTold) await this.refresh();
  }

  async refresh() {
    this.asking = true;
    try {
      this.learn(await this.ask("study", { seen: this.seen, watching: 1 }));
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
    if (!await this.order("POST", action, query)) await this.askKernel(action, query);
  }

  /** @override */
  close() {
    super.close();
    clearInterval(this.clock);
    this.model.off("change:state", this.learning);
  }
}
