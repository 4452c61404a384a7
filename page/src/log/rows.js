// The lines of the log that pass a filter, by their row: only those near to what is looked at.
//
// They come as answers, which know rows, and as batches from the kernel, which know the numbers of
// lines in the whole log. Without a filter a line's row is its number.

/** @import { Bar, Batch, Line, LineRow, LogAnswer } from "../protocol.d.ts" */
/** @typedef {{process: string, role: string, stream: string}} Filter what is empty lets all pass */

const RECENT = 10000;
const HELD = 12000;
const NEAR = 4000;

export class Rows {
  constructor() {
    /** @type {Line[]} the last lines that batches brought, all of them, in order */
    this.recent = [];
    /** @type {Filter} */
    this.filter = { process: "", role: "", stream: "" };
    /** @type {Record<string, string>} */
    this.pools = {};
    /** @type {Bar[]} */
    this.bars = [];
    this.generation = 0;
    /** @type {Map<number, Line>} */
    this.lines = new Map();
    this.count = 0;      // rows that there are
    this.total = 0;      // lines in the whole log, of which `count` pass
    this.exact = true;
  }

  reset() {
    this.generation += 1;
    this.lines = new Map();
    this.count = 0;
    this.total = 0;
    this.exact = !this.filtered;
  }

  get filtered() {
    return Boolean(this.filter.process || this.filter.role || this.filter.stream);
  }

  get query() {
    return Object.fromEntries(Object.entries(this.filter).filter(([, value]) => value));
  }

  /** @param {Partial<Filter>} filter */
  choose(filter) {
    Object.assign(this.filter, filter);
    const total = this.total;
    this.reset();
    if (this.recent.length) this.feed(this.recent);
    else if (!this.filtered) this.count = this.total = total;
  }

  /** @param {Bar} line */
  passes(line) {
    const { process, role, stream } = this.filter;
    if (process && String(line.process) !== process) return false;
    if (role && this.pools[line.process] !== role) return false;
    return !stream || line.stream === stream;
  }

  /** @param {Batch} batch */
  takeBatch(batch) {
    const lines = parseBatch(batch);
    const known = (this.recent.at(-1)?.number ?? -1) + 1;
    if (batch.whole && batch.total < known) this.recent = [];  // another log than before
    else if (batch.first <= known) lines.splice(0, known - batch.first);
    else this.recent = [];
    this.recent.push(...lines);
    if (this.recent.length > RECENT + 1000) this.recent.splice(0, this.recent.length - RECENT);
    this.bars = batch.bars;
    this.feed(lines);
  }

  /** @param {Line[]} lines */
  feed(lines) {
    for (const line of lines) {
      if (line.number < this.total) {
        if (!this.filtered) this.lines.set(line.number, line);
        continue;
      }
      if (line.number > this.total) this.skipTo(line.number);
      this.total = line.number + 1;
      if (this.passes(line)) this.lines.set(this.count++, line);
    }
  }

  /**
   * Nobody has said what is between: with a filter, how many rows that makes has to be asked.
   * @param {number} number
   */
  skipTo(number) {
    if (this.filtered) this.exact = false;
    else this.count = number;
    this.total = number;
  }

  /**
   * Say whether anything in it is new. A line that comes again stays as it is: it may be in the page.
   * @param {LogAnswer} answer
   * @param {boolean} [withBars] whether its bars are the newest, too
   */
  takeAnswer(answer, withBars = false) {
    const before = [this.count, this.total, this.exact].join();
    const again = !this.exact || answer.total > this.total || answer.end;
    if (!this.exact) this.lines.clear();
    if (again) {
      this.count = answer.rows;
      this.total = answer.total;
    }
    this.exact = true;
    let isNew = false;
    answer.lines.map(asLine).forEach((line, place) => {
      if (isSame(this.lines.get(answer.first + place), line)) return;
      this.lines.set(answer.first + place, line);
      isNew = true;
    });
    if (again) this.feed(this.recent.filter((line) => line.number >= this.total));
    if (withBars) isNew = this.takeBars(answer.bars.map(asLine)) || isNew;
    return isNew || before !== [this.count, this.total, this.exact].join();
  }

  /** @param {Bar[]} bars */
  takeBars(bars) {
    const isNew = bars.length !== this.bars.length || !bars.every((bar, place) => isSame(this.bars[place], bar));
    if (isNew) this.bars = bars;
    return isNew;
  }

  /**
   * The first row that is not here; null if all are.
   * @param {number} from
   * @param {number} to
   */
  missing(from, to) {
    for (let row = Math.max(0, from); row < Math.min(this.count, to); row++) {
      if (!this.lines.has(row)) return row;
    }
    return null;
  }

  /**
   * Forget what is far from the row and from the end.
   * @param {number} row
   */
  tidy(row) {
    if (this.lines.size <= HELD) return;
    for (const held of this.lines.keys()) {
      if (Math.abs(held - row) > NEAR && held < this.count - NEAR) this.lines.delete(held);
    }
  }
}

/**
 * @param {Bar | undefined} held
 * @param {Bar} line
 */
function isSame(held, line) {
  return held !== undefined && held.number === line.number && held.text === line.text
    && held.time === line.time && held.process === line.process && held.stream === line.stream;
}

/**
 * @param {LineRow} row
 * @returns {Line}
 */
export function asLine([number, time, process, stream, , text]) {
  return { number, time, process, stream, text };
}

/**
 * @param {Batch} batch
 * @returns {Line[]}
 */
function parseBatch(batch) {
  const records = new TextDecoder().decode(batch.lines).split("\n").slice(0, -1);
  return records.map((record, place) => {
    const [process, stream, time, ...rest] = record.split("\t");
    return { number: batch.first + place, time: Number(time), process: Number(process), stream, text: rest.join("\t") };
  });
}
