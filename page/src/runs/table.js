// The table of all runs: kept current, sorted by any column.

import { button, element, write } from "../dom.js";
import { annotationForm } from "../run/annotation.js";
import { messageOf } from "../source.js";
import { plural } from "../words.js";
import { COLUMNS } from "./columns.js";
import { Filters } from "./filters.js";
import { Overlay } from "./overlay.js";
import { Panels } from "./panels.js";
import { Row } from "./row.js";
import { SortedTable } from "./sorted.js";

/** @import { TableRun } from "../protocol.d.ts" */
/** @import { RunsSource } from "./source.js" */

const RUNS_EVERY_MS = 2000;
const AGES_EVERY_MS = 1000;
const SAID_MS = 8000;

/** @extends {SortedTable<TableRun>} */
export class Table extends SortedTable {
  /**
   * @param {HTMLElement} root
   * @param {RunsSource} source
   */
  constructor(root, source) {
    super("runs", COLUMNS, COLUMNS[0], { "data-folds": "" });
    this.source = source;
    this.closed = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.silence = undefined;
    this.count = element("strong");
    this.compare = button("Compare", () => { this.panels.compare(this.chosen); this.ticked(); }, {
      class: "dn-chip", title: "Show what differs between the ticked runs",
    });
    this.status = element("span", { class: "dn-soft", role: "status" });
    this.filters = new Filters(() => this.show());
    const bar = element("div", { class: "dn-bar", role: "toolbar", "aria-label": "runs" });
    bar.append(this.count, this.filters.node, this.compare, this.status);
    root.append(bar, this.frame);
    this.overlay = new Overlay(root, () => this.panels, () => this.untick());
    this.panels = new Panels(root, source);
    this.ticked();
    source.listeners.push(() => this.show());
    this.clock = setInterval(() => this.show(), AGES_EVERY_MS);
    this.look();
  }

  look() {
    const again = async () => {
      if (!document.hidden) await this.source.refresh().catch(() => {});
      if (!this.closed) this.timer = setTimeout(again, RUNS_EVERY_MS);
    };
    this.source.probed.then(again);
  }

  /**
   * @override
   * @param {TableRun} run
   */
  row(run) { return new Row(this, run); }

  /**
   * @override
   * @param {TableRun} run
   */
  open(run) { this.panels.attach(run); }

  /** @override */
  show() {
    const { runs } = this.source;
    if (!runs) return;
    const columns = COLUMNS.filter(({ name }) => (name !== "experiment" && name !== "cost") || runs.some((run) => run[name]));
    this.filters.offer(runs);
    const passing = runs.filter((run) => this.filters.passes(run));
    this.fill(passing, columns, Date.now() / 1000);
    const running = runs.filter((run) => !run.final).length;
    const some = passing.length < runs.length ? `${passing.length} of ` : "";
    const words = `${some}${plural(runs.length, "run")}${running ? `, ${running} running` : ""}`;
    write(this.count, runs.length ? words : "no runs yet");
    this.frame.hidden = !runs.length;
    this.ticked();
  }

  // ---- Actions ---------------------------------------------------------------------------

  get chosen() { return this.tickedItems.map((run) => run.id); }

  /** @override */
  ticked() {
    const count = this.chosen.length;
    this.compare.disabled = count < 2;
    this.compare.textContent = count < 2 ? "Compare: select two" : `Compare ${count}`;
    this.overlay?.show(this.panels?.hasCompared(this.chosen) ? [] : this.chosen);
  }

  /** @param {TableRun} run */
  annotate({ id, annotation }) {
    const title = `run ${id}: note and tags`;
    const panel = this.panels.open(title);
    if (!panel) return;
    const { form, focus } = annotationForm(id, annotation, (change) => this.source.annotate(id, change), () => {
      this.panels.shut(title);
      this.rows.get(id)?.node.focus();
    });
    panel.body.append(form);
    focus();
  }

  /**
   * @param {TableRun} run
   * @param {"cancel" | "delete"} action
   * @param {string} done what is said then
   */
  async act(run, action, done) {
    this.say(this.source.served ? "" : "asking the kernel…");
    try {
      await this.source.act(run.id, action);
      this.say(done);
    } catch (error) {
      this.say(messageOf(error));
    }
    await this.source.refresh().catch(() => {});
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.status.textContent = ""; }, SAID_MS);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    clearInterval(this.clock);
    this.overlay.close();
    this.panels.close();
  }
}
