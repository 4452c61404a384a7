// A row of the table: what is known of a run, and what can be done with it.

import { button, element } from "../dom.js";
import { className, COLUMNS } from "./columns.js";

/** @import { TableRun } from "../protocol.d.ts" */
/** @import { Column } from "./columns.js" */
/** @import { Table } from "./table.js" */

export class Row {
  /**
   * @param {Table} table
   * @param {TableRun} run
   */
  constructor(table, run) {
    this.table = table;
    this.run = run;
    this.tick = element("input", {
      type: "checkbox", "aria-label": `compare run ${run.id}`, onchange: () => table.ticked(),
    });
    this.cells = COLUMNS.map((column) => element("td", { class: className(column) }));
    /** @type {HTMLButtonElement} Delete or Stop */
    this.last = button("", () => {});
    this.actions = element("td", { class: "dn-row-actions" });
    const parts = [element("td", {}, this.tick), ...this.cells, this.actions];
    this.node = element("tr", {
      tabindex: "-1",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onfocusin: () => table.visit(this),
    }, ...parts);
    this.buttons();
  }

  /**
   * @param {TableRun} run
   * @param {number} now
   * @param {Column[]} columns those that are shown
   */
  show(run, now, columns) {
    const ended = run.final !== this.run.final;
    this.run = run;
    this.node.dataset.state = run.state;
    this.node.setAttribute("aria-label", `run ${run.id}, ${run.name}, ${run.state}`);
    COLUMNS.forEach((column, place) => {
      const cell = this.cells[place];
      const [text, detail] = [column.text(run, now), column.detail?.(run) ?? ""];
      cell.hidden = !columns.includes(column);
      if (cell.textContent === text + detail) return;
      cell.replaceChildren(text, detail ? element("div", { class: "dn-detail" }, detail) : "");
      cell.title = detail || (column.name === "name" ? text : "");
    });
    if (ended) this.buttons();
  }

  buttons() {
    const { run, table } = this;
    const held = this.actions.contains(document.activeElement);
    this.last = run.final
      ? this.button("Delete", "Forget this run and remove its files", () => this.confirm())
      : this.button("Stop", "Stop this run", () => this.stop());
    this.actions.replaceChildren(
      this.button("Open", "Show its state, log and charts below the table", () => table.panels.attach(run)),
      this.last,
    );
    if (held) this.last.focus();
  }

  /**
   * @param {string} text
   * @param {string} title
   * @param {() => void} act
   */
  button(text, title, act) {
    const tabindex = this.table.current === this ? 0 : -1;
    return button(text, act, { class: "dn-chip", title, "aria-label": `${text} run ${this.run.id}`, tabindex });
  }

  stop() {
    this.last.disabled = true;
    this.table.act(this.run, "cancel", `run ${this.run.id} is being stopped`);
  }

  /** Files are gone for good: ask first, over the row, with the harmless answer at hand. */
  confirm() {
    const { id } = this.run;
    const asked = `Delete run ${id} and its files?`;
    const back = () => { box.remove(); this.node.focus(); };
    const keep = button("Keep", back, { class: "dn-chip", title: "Delete nothing" });
    const remove = button("Delete", () => this.table.act(this.run, "delete", `run ${id} is deleted`), {
      class: "dn-chip dn-danger", title: `Delete run ${id} with its files`, "aria-label": `Yes, delete run ${id}`,
    });
    const box = element("div", {
      class: "dn-asked", role: "alertdialog", "aria-label": asked,
      onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Escape") back(); },
    }, element("span", {}, asked), remove, keep);
    this.actions.querySelector(".dn-asked")?.remove();
    this.actions.append(box);
    keep.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    /** @type {Record<string, number>} */
    const moves = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.table.move(this, moves[event.key]);
    else if (event.target !== this.node) return;
    else if (event.key === "Enter") this.table.panels.attach(this.run);
    else if (event.key === " ") this.tick.click();
    else if (event.key === "Delete" && this.run.final) this.confirm();
    else return;
    event.preventDefault();
  }

  /**
   * Only the row that was visited last is on the way of the Tab key.
   * @param {boolean} yes
   */
  reachable(yes) {
    this.node.tabIndex = yes ? 0 : -1;
    for (const it of /** @type {NodeListOf<HTMLElement>} */ (this.node.querySelectorAll("button, input"))) {
      it.tabIndex = yes ? 0 : -1;
    }
  }
}
