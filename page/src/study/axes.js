// What stands where on an axis of a study's charts; the kernel's half is study/charts/axes.py.

import { brief } from "../words.js";

/** @import { StudyAxis } from "../protocol.d.ts" */
/** @typedef {[low: number, high: number]} Span from 0 to 1, upwards */
/** @typedef {{trial: number, points: [x: number, y: number][]}} Mark a dot or a line, in shares of a chart's width and height */
/** @typedef {{x: number, y: number, width: number, height: number}} Place pixels from the upper left of a chart, and its size */

const ROOM = 0.04;  // of an axis, beyond its first and last number
const SIDE = 1000;  // of a drawing
const NEAR_DOT_PX = 14;
const NEAR_LINE_PX = 8;
const ABSENT = -0.07;  // where a line passes by a parameter that its trial hasn't

/**
 * What is written for a place on an axis.
 * @param {StudyAxis} axis
 * @param {number} share from 0 to 1
 */
export function textAt({ kind, low, high, values }, share) {
  if (kind === "listed") return values[Math.min(values.length - 1, Math.floor(share * values.length))] ?? "";
  const along = Math.min(1, Math.max(0, (share - ROOM) / (1 - 2 * ROOM)));
  if (kind === "linear") return brief(low + (high - low) * along);
  if (kind === "log") return brief(low * (high / low) ** along);
  return brief(low + high - low * (high / low) ** (1 - along));
}

/**
 * How far a key moves one end of a span: on an axis with listed values to the next one.
 * @param {StudyAxis} axis
 */
export function stepOf({ kind, values }) { return kind === "listed" ? 1 / values.length : 0.02; }

/**
 * The trials that stand within the spans of all axes that have one; null where none has.
 * @param {Record<string, (number | null)[]>} shares of each trial, axis by axis
 * @param {(Span | null)[]} spans
 */
export function within(shares, spans) {
  if (spans.every((span) => span === null)) return null;
  const passes = (/** @type {(number | null)[]} */ places) => spans.every((span, axis) => {
    const share = places[axis];
    return span === null || (share !== null && share >= span[0] && share <= span[1]);
  });
  return new Set(Object.keys(shares).filter((trial) => passes(shares[trial])).map(Number));
}

/**
 * What a path draws of a trial: a dot, or a line of one piece or several.
 * @param {number} trial
 * @param {string} path as the kernel writes it
 * @returns {Mark[]}
 */
export function marksOf(trial, path) {
  return path.split("M").slice(1).map((piece) => ({
    trial, points: [...piece.matchAll(/(?:^|L)([\d.-]+) ([\d.-]+)/g)].map(([, x, y]) => [Number(x) / SIDE, Number(y) / SIDE]),
  }));
}

/**
 * The trial whose dot or line is nearest to a place; null where none is near.
 * @param {Mark[]} marks
 * @param {Place} at
 */
export function nearestMark(marks, at) {
  /** @type {[number, number | null]} */
  let best = [Infinity, null];
  for (const { trial, points } of marks) {
    const far = distance(points, at);
    if (far < best[0] && far < (points.length > 1 ? NEAR_LINE_PX : NEAR_DOT_PX)) best = [far, trial];
  }
  return best[1];
}

/**
 * How many pixels a place is away from a dot or a line.
 * @param {Mark["points"]} points
 * @param {Place} at
 */
function distance(points, { x, y, width, height }) {
  let least = Infinity;
  let [left, top] = [NaN, NaN];
  points.forEach(([across, down], place) => {
    const [right, bottom] = [across * width - x, down * height - y];
    const [dx, dy] = place ? [right - left, bottom - top] : [0, 0];
    const along = Math.min(1, Math.max(0, (right * dx + bottom * dy) / (dx * dx + dy * dy || 1)));
    least = Math.min(least, Math.hypot(right - along * dx, bottom - along * dy));
    [left, top] = [right, bottom];
  });
  return least;
}

/**
 * The trial whose line is nearest to a point between parallel axes; null where none is near.
 * @param {Record<string, (number | null)[]>} shares
 * @param {Place} at
 */
export function nearestLine(shares, { x, y, width, height }) {
  const gaps = Math.max(1, (Object.values(shares)[0]?.length ?? 1) - 1);
  const place = Math.min(gaps - 1e-9, Math.max(0, (x / width) * gaps));
  const first = Math.floor(place);
  const at = (/** @type {number | null | undefined} */ share, /** @type {boolean} */ isLast) => (isLast ? share : share ?? ABSENT);
  /** @type {[number, number | null]} */
  let best = [NEAR_LINE_PX, null];
  for (const [trial, places] of Object.entries(shares)) {
    const [a, b] = [at(places[first], false), at(places[first + 1], first + 1 === gaps)];
    if (a === null || b === null || a === undefined || b === undefined) continue;
    const far = Math.abs((1 - (a + (b - a) * (place - first))) * height - y);
    if (far < best[0]) best = [far, Number(trial)];
  }
  return best[1];
}
