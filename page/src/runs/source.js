// Asking about all runs, studies or sessions: the server first, else the kernel, as for one run.

import { Gone, Source } from "../source.js";

/** @import { Asking, Model, RunState, SessionRow, StudyRow, TableRun } from "../protocol.d.ts" */
/** @import { Change } from "../run/annotation.js" */
/** @import { Query } from "../source.js" */

class ListSource extends Source {
  /** @param {Model<Asking>} model */
  constructor(model) {
    super(model);
    /** @type {(() => void)[]} */
    this.listeners = [];
  }

  /**
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    return `distrain/${path}?${this.words(query)}`;
  }

  async refresh() { this.learn(await this.ask(this.opening)); }

  tell() { for (const listener of this.listeners) listener(); }
}

export class RunsSource extends ListSource {
  /** @type {TableRun[] | null} null before anything is known */
  runs = null;

  /** @override */
  get opening() { return "runs"; }

  /**
   * @override
   * @param {{runs?: TableRun[]}} answer
   */
  learn({ runs }) {
    if (!runs) return;
    this.runs = runs;
    this.tell();
  }

  /**
   * Cancel a run, or delete one that has ended. Raises Refused.
   * @param {number} run
   * @param {"cancel" | "delete"} action
   */
  async act(run, action) {
    const [method, path] = action === "delete" ? ["DELETE", `runs/${run}`] : ["POST", `runs/${run}/${action}`];
    if (!await this.order(method, path)) await this.askKernel(action, { run });
  }

  /**
   * Change note and tags of a run. Raises Refused.
   * @param {number} run
   * @param {Change} change
   */
  async annotate(run, change) {
    if (!await this.order("POST", `runs/${run}/annotate`, change)) await this.askKernel("annotate", { ...change, run });
    await this.refresh();
  }
}

export class StudiesSource extends ListSource {
  /** @type {StudyRow[] | null} null before anything is known */
  studies = null;

  /** @override */
  get opening() { return "studies"; }

  /**
   * @override
   * @param {{studies?: StudyRow[]}} answer
   */
  learn({ studies }) {
    if (!studies) return;
    this.studies = studies;
    this.tell();
  }

  /**
   * Raises Refused.
   * @param {number} study
   */
  async cancel(study) {
    if (!await this.order("POST", `studies/${study}/cancel`)) await this.askKernel("cancel", { study });
  }
}

/** A server that was started before an update knows no sessions: that is nothing to its runs. */
export class SessionsSource extends ListSource {
  /** @type {SessionRow[]} */
  sessions = [];

  /** @override */
  get opening() { return "sessions"; }

  /**
   * @override
   * @param {{sessions?: SessionRow[]}} answer
   */
  learn({ sessions }) {
    if (!sessions) return;
    this.sessions = sessions;
    this.tell();
  }

  /**
   * End a session with its ranks. Raises Refused, and Gone where no server is there to do it.
   * @param {string} name
   */
  async end(name) {
    if (!await this.order("POST", `sessions/${encodeURIComponent(name)}/stop`)) throw new Gone();
  }
}

/**
 * What a view of one run takes for its own widget: the table's, with the run's number put in.
 * @param {Model<Asking>} model of the table
 * @param {number} run
 * @returns {Model<RunState>}
 */
export function modelOf(model, run) {
  /** @type {RunState} */
  const state = {
    run, home: model.get("home"), key: `${model.get("key")}-${run}`,
    summary: {}, batch: {}, waiting: false, kernel: "",
  };
  return {
    get: (name) => state[name],
    set: () => {},
    save_changes: () => {},
    send: (/** @type {{query?: Query}} */ message) => {
      model.send({ ...message, query: { ...message.query, run: String(run) } });
    },
    on: (event, listener) => { if (event === "msg:custom") model.on(event, listener); },
    off: (event, listener) => { if (event === "msg:custom") model.off(event, listener); },
    widget_manager: model.widget_manager,
  };
}
