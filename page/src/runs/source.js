// Asking about all runs: the server first, else the kernel, as for one run.

import { Refused, request, Source } from "../source.js";

/** @import { Asking, Model, RunState, TableRun } from "../protocol.d.ts" */
/** @import { Query } from "../source.js" */

export class RunsSource extends Source {
  /** @param {Model<Asking>} model */
  constructor(model) {
    super(model);
    /** @type {TableRun[] | null} null before anything is known */
    this.runs = null;
    /** @type {(() => void)[]} */
    this.listeners = [];
  }

  /** @override */
  get opening() { return "runs"; }

  /**
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    return `distrain/${path}?${this.words(query)}`;
  }

  /**
   * @override
   * @param {{runs?: TableRun[]}} answer
   */
  learn({ runs }) {
    if (!runs) return;
    this.runs = runs;
    for (const listener of this.listeners) listener();
  }

  async refresh() { this.learn(await this.ask("runs")); }

  /**
   * Cancel a run, or delete one that has ended. Raises Refused.
   * @param {number} run
   * @param {"cancel" | "delete"} action
   */
  async act(run, action) {
    if (this.served ?? await this.probed) {
      const [method, path] = action === "delete" ? ["DELETE", `runs/${run}`] : ["POST", `runs/${run}/${action}`];
      const answer = await request(this.address(path), { method }).catch(() => null);
      if (answer?.ok) return;
      if (answer?.status === 409) throw new Refused((await answer.json()).message);
      this.lost();
    }
    await this.askKernel(action, { run });
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
