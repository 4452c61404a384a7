// Asking about a study: its server first, else the kernel; the kernel of a cell that waits tells by itself.

import { Refused, request, Source } from "../source.js";

/** @import { Model, StudyAnswer, StudyState, StudySummary, StudyCharts } from "../protocol.d.ts" */
/** @import { Query } from "../source.js" */

const LOOK_EVERY_MS = 800;
const TOLD_WITHIN_MS = 2500;  // by a kernel that tells by itself; after that, it is asked
const OF_STUDY = ["cancel", "stop", "more"];

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

  /** @override */
  get opening() { return "study"; }

  /**
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    const study = `studies/${this.model.get("study")}`;
    const below = path === "study" ? study : OF_STUDY.includes(path) ? `${study}/${path}` : path;
    return `distrain/${below}?${this.words(query)}`;
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
    if (this.served ?? await this.probed) {
      const answer = await request(this.address(action, query), { method: "POST" }).catch(() => null);
      if (answer?.ok) return;
      if (answer?.status === 400) throw new Refused((await answer.json()).message);
      this.lost();
    }
    await this.askKernel(action, query);
  }

  /** @override */
  close() {
    super.close();
    clearInterval(this.clock);
    this.model.off("change:state", this.learning);
  }
}
