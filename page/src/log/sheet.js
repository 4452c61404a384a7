// The rows that are in the page: those in sight and a few around.

import { button, element } from "../dom.js";
import { plural } from "../words.js";
import { isInCell, lineElement, lineText, ROW } from "./line.js";

/** @import { Line } from "../protocol.d.ts" */
/** @import { Log } from "./log.js" */
/** @typedef {{node: HTMLElement, line: Line | undefined, looks: string}} Painted */

export class Sheet {
  /** @param {Log} log */
  constructor(log) {
    this.log = log;
    /** @type {Map<number, Painted>} by their row */
    this.painted = new Map();
    this.first = 0;  // place that is painted
    this.node = element("div", { class: "dn-rows" });
  }

  /**
   * Paint these places. What is in the page already stays there, so that text can be selected while
   * lines come.
   * @param {number} from
   * @param {number} to
   */
  paint(from, to) {
    /** @type {Map<number, Painted>} */
    const painted = new Map();
    for (let place = from; place < to; place++) {
      const number = this.log.folds.rowAt(place);
      painted.set(number, this.row(number, this.painted.get(number)));
    }
    for (const [number, row] of this.painted) if (painted.get(number) !== row) row.node.remove();
    [...painted.values()].forEach(({ node }, place) => {
      const there = this.node.children[place];
      if (there !== node) this.node.insertBefore(node, there ?? null);
    });
    this.painted = painted;
    this.first = from;
  }

  /**
   * @param {(place: number) => number} below pixels from the top of what is in sight
   */
  arrange(below) {
    this.rows.forEach((row, number) => {
      row.style.top = `${this.log.placed + below(this.first + number)}px`;
    });
  }

  /** How high each painted row is, from the first place on. */
  get heights() { return this.rows.map((row) => row.offsetHeight); }

  /** @param {number} row */
  heightAt(row) { return this.painted.get(row)?.node.offsetHeight || ROW; }

  /**
   * @param {number} number
   * @param {Painted | undefined} painted as it was the last time
   * @returns {Painted}
   */
  row(number, painted) {
    const { rows, folds, looks, style, source } = this.log;
    const isCurrent = number === looks.current;
    const line = rows.lines.get(number);
    const before = rows.lines.get(number - 1);
    const cell = line && (isInCell(line.text) || (before?.process === line.process && isInCell(before.text)));
    const fold = folds.at(number);
    const look = [style, isCurrent, cell, fold?.open].join(" ");
    if (painted && painted.line === line && painted.looks === look) return painted;
    const node = line
      ? lineElement(line, source.summary, looks)
      : element("div", { class: "dn-line dn-gap" }, "…");
    node.dataset.row = String(number);
    if (isCurrent) node.classList.add("dn-current");
    if (cell) node.classList.add("dn-cell");
    if (line && fold) node.append(this.foldSign(number, fold));
    return { node, line, looks: look };
  }

  /**
   * @param {number} row
   * @param {{open: boolean, lines: number}} fold
   */
  foldSign(row, { open, lines }) {
    const { log } = this;
    return button(
      open ? "▾" : `▸ ${plural(lines, "line")}`,
      () => log.refold(() => log.folds.turn(row, !open)),
      {
        class: "dn-fold",
        title: open ? "Fold this traceback" : "Show the whole traceback",
        "aria-expanded": String(open),
      },
    );
  }

  // ---- Copy ------------------------------------------------------------------------------

  /** @param {ClipboardEvent} event */
  copied(event) {
    const selection = this.node.ownerDocument.getSelection();
    if (!selection || selection.isCollapsed) return;
    const rows = this.rows.filter((row) => selection.containsNode(row, true));
    if (rows.length < 2) return;
    event.clipboardData?.setData("text/plain", this.textOf(rows));
    event.preventDefault();
  }

  get rows() {
    return /** @type {HTMLElement[]} */ ([...this.node.children]);
  }

  /** @param {HTMLElement[]} rows */
  textOf(rows) {
    const lines = rows.map((row) => this.log.rows.lines.get(Number(row.dataset.row)));
    return lines.map((line) => (line ? lineText(line, this.log.source.summary) : "")).join("");
  }

  get rowsInSight() {
    return this.rows.filter((row) => {
      const top = parseFloat(row.style.top) - this.log.placed;
      return top > -row.offsetHeight && top < this.log.view.clientHeight;
    });
  }

  /** The lines in sight as text. */
  get textInSight() { return this.textOf(this.rowsInSight); }
}
