// Metrics that are not drawn, since no page holds thousands: the filter asks for those that it fits.

import { asLine } from "./lines.js";

/** @import { CurveAnswer, Shape } from "../protocol.d.ts" */
/** @import { Query } from "../source.js" */
/** @import { Kept } from "./kept.js" */
/** @import { ChartLine } from "./lines.js" */

const MOST = 12;
const POINTS = 1000;

/**
 * Whether a metric's name has all these words.
 * @param {string} tag
 * @param {string} words
 */
export function fits(tag, words) {
  return words.toLowerCase().split(/\s+/).every((word) => tag.toLowerCase().includes(word));
}

export class Found {
  /**
   * @param {(query: Query) => Promise<{lines: CurveAnswer[]} | null>} ask
   * @param {() => void} changed
   */
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
    /** @type {string[]} */
    this.tags = [];
    /** @type {Shape["keys"]} */
    this.keys = [];
    /** @type {ChartLine[]} */
    this.lines = [];
  }

  /**
   * Get the pinned ones of these metrics, and the first that have all the words; without words, none.
   * @param {string} words
   * @param {string[]} tags
   * @param {Kept} kept
   */
  async look(words, tags, kept) {
    const fitting = words.trim() ? tags.filter((tag) => fits(tag, words)).slice(0, MOST) : [];
    const wanted = [...new Set([...tags.filter((tag) => kept.isPinned(tag)), ...fitting])];
    if (!wanted.length && !this.tags.length) return;
    this.tags = wanted;
    const answers = await Promise.all(wanted.map((tag) => this.ask({ tag, points: POINTS })));
    if (this.tags !== wanted) return;
    const curves = answers.flatMap((answer) => answer?.lines ?? []);
    this.keys = curves.map(({ run, tag }) => [run, tag]);
    this.lines = curves.map(asLine);
    this.changed();
  }
}

/**
 * Plotly's trace for a line that was found, in the colour that its series has elsewhere.
 * @param {Shape} shape
 * @param {string} series
 * @param {string} axis number of its subplot's axes
 */
export function traceLike({ keys, traces }, series, axis) {
  const like = traces[keys.findIndex(([other]) => other === series)];
  const own = like ?? { ...traces[0], name: series || "run", line: { ...traces[0].line, color: "#808080" } };
  const stack = own.stackgroup ? { stackgroup: `y${axis}` } : {};
  return { ...own, xaxis: `x${axis}`, yaxis: `y${axis}`, ...stack };
}
