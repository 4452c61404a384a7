// What stands where on an axis of a study's charts; the kernel's half is study/charts/axes.py.

import { brief } from "../words.js";

/** @import { StudyAxis } from "../protocol.d.ts" */
/** @typedef {[low: number, high: number]} Span from 0 to 1, upwards */

const ROOM = 0.04;  // of an axis, beyond its first and last number
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
 * The trial whose line is nearest to a point between parallel axes; null where none is near.
 * @param {Record<string, (number | null)[]>} shares
 * @param {{x: number, y: number, width: number, height: number}} at pixels from the upper left
 * @param {number} near pixels
 */
export function nearestLine(shares, { x, y, width, height }, near) {
  const gaps = Math.max(1, (Object.values(shares)[0]?.length ?? 1) - 1);
  const place = Math.min(gaps - 1e-9, Math.max(0, (x / width) * gaps));
  const first = Math.floor(place);
  const at = (/** @type {number | null | undefined} */ share, /** @type {boolean} */ isLast) => (isLast ? share : share ?? ABSENT);
  /** @type {[number, number | null]} */
  let best = [near, null];
  for (const [trial, places] of Object.entries(shares)) {
    const [a, b] = [at(places[first], false), at(places[first + 1], first + 1 === gaps)];
    if (a === null || b === null || a === undefined || b === undefined) continue;
    const far = Math.abs((1 - (a + (b - a) * (place - first))) * height - y);
    if (far < best[0]) best = [far, Number(trial)];
  }
  return best[1];
}
