// Tracebacks shown by their first and last lines until they are opened.
//
// A place in the view counts the rows that are not hidden.

/** @import { Rows } from "./rows.js" */
/** @typedef {[first: number, last: number]} Fold */

export const OPEN_NEAR_END = 60;  // rows

export class Folds {
  constructor() {
    /** @type {Fold[]} in order, none over another */
    this.closed = [];
    /** @type {Map<number, number>} first row → last row, of all that were found */
    this.known = new Map();
    /** @type {Set<number>} */
    this.opened = new Set();
  }

  reset() {
    this.closed = [];
    this.known.clear();
    this.opened.clear();
  }

  /**
   * Fold these tracebacks, but for those that are short, near the end or mixed with other lines.
   * @param {Fold[]} folds
   * @param {Rows} rows
   */
  find(folds, rows) {
    for (const [first, last] of folds) {
      if (last - first < 3 || last >= rows.count - OPEN_NEAR_END || !isAlone(first, last, rows)) continue;
      this.known.set(first, last);
    }
    this.sort();
  }

  sort() {
    const folds = [...this.known].filter(([first]) => !this.opened.has(first)).sort((a, b) => a[0] - b[0]);
    this.closed = [];
    for (const fold of folds) if (fold[0] > (this.closed.at(-1)?.[1] ?? -1)) this.closed.push(fold);
  }

  /**
   * @param {number} first
   * @param {boolean} open
   */
  turn(first, open) {
    if (open) this.opened.add(first); else this.opened.delete(first);
    this.sort();
  }

  /**
   * Open what hides the row.
   * @param {number} row
   */
  reveal(row) {
    const hiding = this.closed.find(([first, last]) => first < row && row < last);
    if (hiding) this.turn(hiding[0], true);
  }

  /** @param {number} row */
  hiddenBefore(row) {
    let hidden = 0;
    for (const [first, last] of this.closed) {
      if (first >= row) break;
      hidden += Math.min(last - 1, row - 1) - first;
    }
    return hidden;
  }

  /** @param {number} row */
  placeOf(row) { return row - this.hiddenBefore(row); }

  /** @param {number} place */
  rowAt(place) {
    let row = place;
    for (const [first, last] of this.closed) {
      if (first >= row) break;
      row += last - 1 - first;
    }
    return row;
  }

  /**
   * How many rows the fold that begins there hides or would hide; null where none begins.
   * @param {number} row
   */
  at(row) {
    const last = this.known.get(row);
    return last === undefined ? null : { open: this.opened.has(row), lines: last - row - 1 };
  }
}

/**
 * Whether nobody else has written in between.
 * @param {number} first
 * @param {number} last
 * @param {Rows} rows
 */
function isAlone(first, last, rows) {
  const writer = rows.lines.get(first);
  for (let row = first; row <= last; row++) {
    const line = rows.lines.get(row);
    if (!writer || !line || line.process !== writer.process) return false;
  }
  return true;
}
