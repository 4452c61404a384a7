// What a reader has chosen for charts, kept in the browser from run to run: pinned metrics, axes,
// smoothing. A page that may keep nothing begins anew each time.

/** @import { Mode } from "./lines.js" */
/** @typedef {{pinned: string[], mode: Mode, scale: string, smoothing: number}} Choice */

const MOST_PINNED = 24;
/** @type {Choice} */
const FIRST = { pinned: [], mode: "step", scale: "linear", smoothing: 0 };

export class Kept {
  /** @param {string} path which charts, as in `metrics` */
  constructor(path) {
    this.key = `distrain-charts-${path}`;
    this.choice = choiceOf(read(this.key));
  }

  /** @param {Partial<Choice>} change */
  change(change) {
    this.choice = { ...this.choice, ...change };
    try {
      localStorage.setItem(this.key, JSON.stringify(this.choice));
    } catch { /* it is chosen for this page alone */ }
  }

  /** @param {string} tag a metric, pinned or no longer */
  pin(tag) {
    const { pinned } = this.choice;
    const others = pinned.filter((other) => other !== tag);
    this.change({ pinned: others.length < pinned.length ? others : [...pinned, tag].slice(-MOST_PINNED) });
  }

  /** @param {string} tag */
  isPinned(tag) { return this.choice.pinned.includes(tag); }
}

/** @param {string} key */
function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}");
  } catch {
    return {};
  }
}

/**
 * What can be used of a text that any page of this server may have written.
 * @param {any} value
 * @returns {Choice}
 */
export function choiceOf(value) {
  const { pinned, mode, scale, smoothing } = value ?? {};
  return {
    pinned: Array.isArray(pinned) ? pinned.filter((tag) => typeof tag === "string").slice(0, MOST_PINNED) : FIRST.pinned,
    mode: ["step", "relative", "wall"].includes(mode) ? mode : FIRST.mode,
    scale: ["linear", "log"].includes(scale) ? scale : FIRST.scale,
    smoothing: typeof smoothing === "number" && smoothing >= 0 && smoothing < 1 ? smoothing : FIRST.smoothing,
  };
}
