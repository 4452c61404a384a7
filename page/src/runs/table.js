// The table of all runs: kept current, sorted by any column.

import { button, element, OWN_KEYS, write } from "../dom.js";
import { messageOf } from "../source.js";
import { plural } from "../words.js";
import { className, COLUMNS, sorted } from "./columns.js";
import { Filters } from "./filters.js";
import { Panels } from "./panels.js";
import { Row } from "./row.js";

/** @import { TableRun } from "../protocol.d.ts" */
/** @import { Column } from "./columns.js" */
/** @import { RunsSource } from "./source.js" */

const RUNS_EVERY_MS = 2000;
const AGES_EVERY_MS = 1000;
const SAID_MS = 8000;

export class Table {
  /**
   * @param {HTMLElement} root
   * @param {RunsSource} source
   */
  constructor(root, source) {
    this.source = source;
    /** @type {Map<number, Row>} by the run's number */
    this.rows = new Map();
    /** @type {Row | undefined} the one that the Tab key goes to */
    this.current = undefined;
    this.order = { column: COLUMNS[0], down: true };
    this.closed = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.silence = undefined;
    this.count = element("strong");
    this.compare = button("Compare", () => this.panels.compare(this.chosen), {
      class: "dn-chip", title: "Show what differs between the ticked runs",
    });
    this.status = element("span", { class: "dn-soft", role: "status" });
    this.body = element("tbody");
    this.heads = COLUMNS.map((column) => this.head(column));
    this.frame = element("div", { class: "dn-runs", ...OWN_KEYS }, this.table());
    this.filters = new Filters(() => this.show());
    const bar = element("div", { class: "dn-bar", role: "toolbar", "aria-label": "runs" });
    bar.append(this.count, this.filters.node, this.compare, this.status);
    root.append(bar, this.frame);
    this.panels = new Panels(root, source);
    this.ticked();
    source.listeners.push(() => this.show());
    this.clock = setInterval(() => this.show(), AGES_EVERY_MS);
    this.look();
  }

  table() {
    const unseen = (/** @type {string} */ text, className = "") => (
      element("th", { class: className, scope: "col" }, element("span", { class: "dn-unseen" }, text))
    );
    const line = element("tr", {}, unseen("compare"), ...this.heads, unseen("actions", "dn-row-actions"));
    const label = "runs; arrow keys go from run to run, Enter opens one";
    return element("table", { class: "dn-table", "aria-label": label }, element("thead", {}, line), this.body);
  }

  /** @param {Column} column */
  head(column) {
    const sort = button(column.name, () => this.sort(column), { class: "dn-sort", title: `Sort by ${column.name}` });
    return element("th", { class: className(column), scope: "col" }, sort);
  }

  /** @param {Column} column */
  sort(column) {
    const down = this.order.column === column ? !this.order.down : false;
    this.order = { column, down };
    this.show();
  }

  look() {
    const again = async () => {
      if (!document.hidden) await this.source.refresh().catch(() => {});
      if (!this.closed) this.timer = setTimeout(again, RUNS_EVERY_MS);
    };
    this.source.probed.then(again);
  }

  // ---- On screen -------------------------------------------------------------------------

  show() {
    const { runs } = this.source;
    if (!runs) return;
    const now = Date.now() / 1000;
    const columns = COLUMNS.filter((column) => column.name !== "experiment" || runs.some((run) => run.experiment));
    this.showHeads(columns);
    this.filters.offer(runs);
    const passing = runs.filter((run) => this.filters.passes(run));
    const there = new Set(passing.map((run) => run.id));
    for (const [id, row] of this.rows) if (!there.has(id)) this.leave(id, row);
    sorted(passing, this.order, now).forEach((run, place) => {
      const row = this.rows.get(run.id) ?? new Row(this, run);
      this.rows.set(run.id, row);
      row.show(run, now, columns);
      this.put(row.node, place);
    });
    if (!this.current || !this.rows.has(this.current.run.id)) this.visit(this.rowAt(0));
    const running = runs.filter((run) => !run.final).length;
    const some = passing.length < runs.length ? `${passing.length} of ` : "";
    const words = `${some}${plural(runs.length, "run")}${running ? `, ${running} running` : ""}`;
    write(this.count, runs.length ? words : "no runs yet");
    this.frame.hidden = !runs.length;
    this.ticked();
  }

  /** @param {Column[]} columns those that are shown */
  showHeads(columns) {
    this.heads.forEach((head, place) => {
      const column = COLUMNS[place];
      head.hidden = !columns.includes(column);
      if (column !== this.order.column) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
    });
  }

  /**
   * What is moved loses the focus.
   * @param {HTMLElement} node
   * @param {number} place
   */
  put(node, place) {
    const there = this.body.children[place];
    if (there === node) return;
    const held = node.contains(document.activeElement) ? document.activeElement : null;
    this.body.insertBefore(node, there ?? null);
    if (held instanceof HTMLElement) held.focus({ preventScroll: true });
  }

  /**
   * @param {number} id
   * @param {Row} row
   */
  leave(id, row) {
    const held = row.node.contains(document.activeElement);
    const next = row.node.nextElementSibling ?? row.node.previousElementSibling;
    row.node.remove();
    this.rows.delete(id);
    if (held && next instanceof HTMLElement) next.focus();
  }

  /** @param {number} place */
  rowAt(place) {
    const node = this.body.children[place];
    return [...this.rows.values()].find((row) => row.node === node);
  }

  /** @param {Row | undefined} row */
  visit(row) {
    if (row === this.current) return;
    this.current?.reachable(false);
    this.current = row;
    row?.reachable(true);
  }

  /**
   * @param {Row} row
   * @param {number} by
   */
  move(row, by) {
    const last = this.body.children.length - 1;
    const place = [...this.body.children].indexOf(row.node) + by;
    this.rowAt(Math.max(0, Math.min(last, place)))?.node.focus();
  }

  // ---- Actions ---------------------------------------------------------------------------

  get chosen() {
    return [...this.rows.values()].filter((row) => row.tick.checked).map((row) => row.run.id);
  }

  ticked() {
    const count = this.chosen.length;
    this.compare.disabled = count < 2;
    this.compare.textContent = count < 2 ? "Compare (tick two)" : `Compare ${count}`;
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
    this.panels.close();
  }
}
