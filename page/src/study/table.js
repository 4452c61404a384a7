// The trials of a study: the runs' table with their columns, and what can be done with each.

import { button, element, OWN_KEYS, saveAs, write } from "../dom.js";
import { Panels } from "../runs/panels.js";
import { SortedRow, SortedTable } from "../runs/sorted.js";
import { messageOf } from "../source.js";
import { plural } from "../words.js";
import { asCsv, columnsOf } from "./columns.js";

/** @import { StudySummary, Trial } from "../protocol.d.ts" */
/** @import { OpenRun } from "../runs/panels.js" */
/** @import { StudySource } from "./source.js" */

const SAID_MS = 8000;
const MORE = 10;  // trials

/** @extends {SortedTable<Trial>} */
export class Trials extends SortedTable {
  /**
   * `passes` says which trials have a row, `lit` is told which one has the focus or the mouse.
   * @param {HTMLElement} root
   * @param {StudySource} source
   * @param {{passes: (trial: number) => boolean, lit: (trial: number | null) => void}} acts
   * @param {OpenRun} [openRun] where no kernel draws charts
   */
  constructor(root, source, acts, openRun) {
    const columns = columnsOf(/** @type {StudySummary} */ (source.summary));
    super("trials", columns, columns[0]);
    this.source = source;
    this.acts = acts;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.silence = undefined;
    this.count = element("strong");
    this.compare = button("Compare", () => this.panels.compare(this.chosen), {
      class: "dn-chip", title: "Show what differs between the ticked trials' runs",
    });
    this.status = element("span", { class: "dn-soft", role: "status" });
    const bar = element("div", { class: "dn-bar", role: "toolbar", "aria-label": "trials" });
    bar.append(this.count, this.compare, ...(source.summary.adds_trials ? [this.more()] : []), this.status);
    root.append(bar, this.frame);
    this.panels = new Panels(root, source, openRun);
    this.ticked();
    this.clock = setInterval(() => { if (!source.summary.final) this.show(); }, 1000);
  }

  more() {
    const field = element("input", {
      class: "dn-more", type: "number", min: 1, step: 1, value: MORE, "aria-label": "number of trials to add", ...OWN_KEYS,
    });
    const want = () => {
      const trials = Number(field.value);
      if (field.checkValidity() && trials >= 1) this.act("more", { trials }, `${plural(trials, "trial")} more`);
      else field.reportValidity();
    };
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") want(); });
    return element("span", { class: "dn-wanted" }, field, button("More trials", want, { class: "dn-chip" }));
  }

  /**
   * @override
   * @param {Trial} trial
   */
  row(trial) { return new Row(this, trial); }

  /**
   * @override
   * @param {Trial} trial
   */
  open(trial) {
    if (trial.run === null) this.say(`trial ${trial.id} has no run yet`);
    else this.panels.attach({ id: trial.run, title: `trial ${trial.id}, run ${trial.run}: log and charts` });
  }

  /** @override */
  show() {
    const { trials = [], wanted = 0 } = this.source.summary;
    const passing = trials.filter(({ id }) => this.acts.passes(id));
    this.fill(passing, this.columns, Date.now() / 1000);
    const front = new Set(this.source.summary.front);
    for (const [id, row] of this.rows) row.node.classList.toggle("dn-top", front.has(id));
    const some = passing.length < trials.length ? `${passing.length} of ` : "";
    write(this.count, trials.length ? `${some}${plural(trials.length, "trial")}` : `0 of ${plural(wanted, "trial")}`);
    this.frame.hidden = !trials.length;
    this.ticked();
  }

  /**
   * Bring a trial's row into view, and mark it.
   * @param {number} trial
   */
  find(trial) {
    const row = this.reveal(trial);
    row?.node.scrollIntoView({ block: "nearest" });
    row?.node.focus({ preventScroll: true });
  }

  get chosen() { return this.tickedItems.flatMap(({ run }) => (run === null ? [] : [run])); }

  /** @override */
  ticked() {
    const count = this.chosen.length;
    this.compare.disabled = count < 2;
    write(this.compare, count < 2 ? "Compare: select two" : `Compare ${count}`);
  }

  /** @param {Trial} trial */
  stop(trial) {
    this.act("stop", { trial: trial.id }, `trial ${trial.id} is being stopped; its value so far counts`);
  }

  /**
   * @param {"stop" | "more"} action
   * @param {Record<string, number>} query
   * @param {string} done what is said then
   */
  async act(action, query, done) {
    this.say(this.source.served ? "" : "asking the kernel…");
    try {
      await this.source.act(action, query);
      this.say(done);
    } catch (error) {
      this.say(messageOf(error));
    }
    await this.source.refresh();
  }

  save() {
    const summary = /** @type {StudySummary} */ (this.source.summary);
    saveAs(`study-${summary.id}.csv`, [asCsv(summary)], "text/csv");
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.status.textContent = ""; }, SAID_MS);
  }

  close() {
    clearTimeout(this.silence);
    clearInterval(this.clock);
    this.panels.close();
  }
}

/** @extends {SortedRow<Trial>} */
class Row extends SortedRow {
  /**
   * @param {Trials} table
   * @param {Trial} trial
   */
  constructor(table, trial) {
    super(table, trial, "trial");
    this.trials = table;
    for (const [event, lit] of Object.entries({ focusin: true, pointerenter: true, focusout: false, pointerleave: false })) {
      this.node.addEventListener(event, () => table.acts.lit(lit ? this.item.id : null));
    }
    this.buttons();
  }

  /** @override */
  buttons() {
    const { item, trials } = this;
    const held = this.actions.contains(document.activeElement);
    const open = this.button("Open", "Show its log and charts below the table", () => trials.open(this.item));
    const stop = this.button("Stop", "Stop this trial: its value so far counts", () => { stop.disabled = true; trials.stop(this.item); });
    stop.hidden = item.final || !trials.source.summary.stops_trials;
    this.actions.replaceChildren(open, stop);
    if (held) open.focus();
  }
}
