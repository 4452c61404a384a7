// Looks after all runs and studies for as long as the page is open: which there are, and which have
// ended. The runs of a study's trials are the study's own matter.

import { RunsSource, SessionsSource, StudiesSource } from "../runs/source.js";
import { PageModel } from "./model.js";

/** @import { StudyRow, TableRun } from "../protocol.d.ts" */
/** @typedef {"run" | "study"} What */
/** @typedef {{item: TableRun | StudyRow, what: What}} News */

const RUNNING_MS = 2000;
const RESTING_MS = 5000;
const HIDDEN_MS = 10_000;
const ABSENT_MS = 30_000;

/** Tells of each item that has ended meanwhile. */
class Ends {
  /** @type {Map<number, boolean> | null} whether an item has ended, by number; null at first */
  known = null;

  /**
   * @template {{id: number, final: boolean}} Item
   * @param {Item[]} items
   */
  among(items) {
    const before = this.known;
    this.known = new Map(items.map(({ id, final }) => [id, final]));
    if (!before) return [];
    const newest = Math.max(0, ...before.keys());
    return items.filter(({ id, final }) => final && (before.get(id) === false || (!before.has(id) && id > newest)));
  }
}

/** Tells of each run that makes no progress, once for each reason. */
class Alarms {
  /** @type {Map<number, string> | null} by number; null at first */
  known = null;

  /** @param {TableRun[]} runs */
  among(runs) {
    const before = this.known;
    this.known = new Map(runs.map(({ id, alarm = "" }) => [id, alarm.split(":")[0]]));
    return before ? runs.filter(({ id, alarm }) => alarm && before.get(id) !== this.known?.get(id)) : [];
  }
}

export class Watch {
  /** @param {(items: News[]) => void} ended is called with what has ended or needs its user */
  constructor(ended) {
    const model = new PageModel({ run: 0, home: "", key: "runs" });
    this.source = new RunsSource(model);
    this.studySource = new StudiesSource(model);
    this.sessionSource = new SessionsSource(model);
    this.ended = ended;
    this.alarms = new Alarms();
    this.ends = { run: new Ends(), study: new Ends() };
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.source.listeners.push(() => this.compare());
    this.probed = Promise.all([this.source.probed, this.studySource.probed]).then(() => this.wait());
  }

  get studies() { return this.studySource.studies ?? []; }

  /** Those that have ranks. */
  get sessions() { return this.sessionSource.sessions.filter((session) => !session.final); }

  /** Without those of the trials of studies. */
  get runs() {
    const keys = new Set(this.studies.map(({ key }) => key));
    return (this.source.runs ?? []).filter(({ study }) => !study || !keys.has(study));
  }

  get running() { return this.runs.filter((run) => !run.final); }
  get runningStudies() { return this.studies.filter((study) => !study.final); }

  compare() {
    const runs = [...this.alarms.among(this.runs), ...this.ends.run.among(this.runs)];
    const studies = this.ends.study.among(this.studies);
    /** @type {News[]} */
    const news = [
      ...runs.map((item) => /** @type {const} */ ({ item, what: "run" })),
      ...studies.map((item) => /** @type {const} */ ({ item, what: "study" })),
    ];
    if (news.length) this.ended(news);
  }

  /** Look now: there is news. */
  async look() {
    clearTimeout(this.timer);
    if (this.source.served) await this.refresh().catch(() => {});
    else await Promise.all([this.source, this.studySource, this.sessionSource].map((source) => source.probe()));
    this.wait();
  }

  /** Studies after runs, so that each trial's is known. */
  async refresh() {
    const runs = await this.source.ask("runs");
    await this.studySource.refresh().catch(() => {});
    this.source.learn(runs);
    await this.sessionSource.refresh().catch(() => {});
  }

  wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), this.pause);
  }

  get pause() {
    if (!this.source.served) return ABSENT_MS;
    if (document.hidden) return HIDDEN_MS;
    return this.running.length || this.runningStudies.length ? RUNNING_MS : RESTING_MS;
  }
}
