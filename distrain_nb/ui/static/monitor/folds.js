// Tracebacks shown by their first and last lines until they are opened.
//
// A place in the view counts the rows that are not hidden.

const OPEN_NEAR_END = 60;

class Folds {
  constructor() { this.reset(); }

  reset() {
    this.closed = [];        // [first, last], in order, none over another
    this.known = new Map();  // first row → last row, of all that were found
    this.opened = new Set();
  }

  find(folds, rows) {
    for (const [first, last] of folds) {
      if (last - first < 3 || last >= rows.count - OPEN_NEAR_END || !this.alone(first, last, rows)) continue;
      this.known.set(first, last);
    }
    this.sort();
  }

  // Whether nobody else has written in between.
  alone(first, last, rows) {
    const writer = rows.lines.get(first);
    for (let row = first; row <= last; row++) {
      const line = rows.lines.get(row);
      if (!writer || !line || line.process !== writer.process) return false;
    }
    return true;
  }

  sort() {
    const folds = [...this.known].filter(([first]) => !this.opened.has(first)).sort((a, b) => a[0] - b[0]);
    this.closed = [];
    for (const fold of folds) if (fold[0] > (this.closed.at(-1)?.[1] ?? -1)) this.closed.push(fold);
  }

  turn(first, open) {
    if (open) this.opened.add(first); else this.opened.delete(first);
    this.sort();
  }

  // Open what hides the row.
  reveal(row) {
    const hiding = this.closed.find(([first, last]) => first < row && row < last);
    if (hiding) this.turn(hiding[0], true);
  }

  hiddenBefore(row) {
    let hidden = 0;
    for (const [first, last] of this.closed) {
      if (first >= row) break;
      hidden += Math.min(last - 1, row - 1) - first;
    }
    return hidden;
  }

  places(count) { return count - this.hiddenBefore(count); }

  placeOf(row) { return row - this.hiddenBefore(row); }

  rowAt(place) {
    let row = place;
    for (const [first, last] of this.closed) {
      if (first >= row) break;
      row += last - 1 - first;
    }
    return row;
  }

  // How many rows the fold that begins there hides or would hide; null where none begins.
  at(row) {
    const last = this.known.get(row);
    return last === undefined ? null : { open: this.opened.has(row), lines: last - row - 1 };
  }
}
