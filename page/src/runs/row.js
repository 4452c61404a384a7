// A row of the table of runs: what is known of one, and what can be done with it.

import { button, element } from "../dom.js";
import { SortedRow } from "./sorted.js";

/** @import { TableRun } from "../protocol.d.ts" */
/** @import { Table } from "./table.js" */

/** @extends {SortedRow<TableRun>} */
export class Row extends SortedRow {
  /**
   * @param {Table} table
   * @param {TableRun} run
   */
  constructor(table, run) {
    super(table, run, "run");
    this.runs = table;
    /** @type {HTMLButtonElement} Delete or Stop */
    this.last = button("", () => {});
    this.buttons();
  }

  /** @override */
  get label() { return `run ${this.item.id}, ${this.item.name}, ${this.item.state}`; }

  /** @override */
  buttons() {
    const { item } = this;
    const held = this.actions.contains(document.activeElement);
    this.last = item.final
      ? this.button("Delete", "Forget this run and remove its files", () => this.confirm())
      : this.button("Stop", "Stop this run", () => this.stop());
    const note = this.button("Note", "Change its note and tags", () => this.runs.annotate(this.item));
    note.setAttribute("aria-label", `Note and tags of run ${item.id}`);
    this.actions.replaceChildren(
      note,
      this.button("Open", "Show its state, log and charts below the table", () => this.table.open(item)),
      this.last,
    );
    if (held) this.last.focus();
  }

  stop() {
    this.last.disabled = true;
    this.runs.act(this.item, "cancel", `run ${this.item.id} is being stopped`);
  }

  /** Files are gone for good: ask first, over the row, with the harmless answer at hand. */
  confirm() {
    const { id } = this.item;
    const asked = `Delete run ${id} and its files?`;
    const back = () => { box.remove(); this.node.focus(); };
    const keep = button("Keep", back, { class: "dn-chip", title: "Keep this run" });
    const remove = button("Delete", () => this.runs.act(this.item, "delete", `run ${id} is deleted`), {
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

  /**
   * @override
   * @param {string} key
   */
  pressed(key) {
    if (key !== "Delete" || !this.item.final) return false;
    this.confirm();
    return true;
  }
}
