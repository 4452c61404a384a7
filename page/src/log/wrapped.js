// Long lines broken into several: rows have the heights that they turn out to have, and the scroll
// bar counts lines.

import { ROW } from "./line.js";

/** @import { Log } from "./log.js" */

/**
 * Paint what is in sight: measured first, then put where it belongs.
 * @param {Log} log
 * @param {number} margin rows around it
 * @returns {[from: number, to: number]} places that are painted
 */
export function paintWrapped(log, margin) {
  const { sheet, view, places } = log;
  const most = Math.ceil(parseFloat(getComputedStyle(view).maxHeight) / ROW) + margin;
  const nearEnd = log.follow || log.top > places - most;
  const from = Math.max(0, nearEnd ? places - most : Math.floor(log.top) - margin);
  const to = nearEnd ? places : Math.min(places, from + most + margin);
  sheet.paint(from, to);
  const heights = sheet.heights;
  const total = heights.reduce((sum, height) => sum + height, 0);
  const isWhole = from === 0 && to === places;
  if (isWhole) sheet.node.style.height = `${total}px`;
  const lowest = nearEnd ? from + lowestOf(heights, view.clientHeight) : Math.max(log.wrapped.lowest, places - most);
  log.wrapped = { lowest, height: isWhole && !lowest ? total : view.clientHeight + lowest * ROW };
  log.putBar();
  const tops = topsOf(heights, log.top - from);
  sheet.arrange((place) => tops[place - from]);
  return [from, to];
}

/**
 * The row, with a fraction, from which on the rows fill so many pixels.
 * @param {number[]} heights
 * @param {number} pixels
 */
export function lowestOf(heights, pixels) {
  for (let row = heights.length - 1; row >= 0; row--) {
    pixels -= heights[row];
    if (pixels <= 0) return row - pixels / heights[row];
  }
  return 0;
}

/**
 * Where each row begins, in pixels from a row, with a fraction.
 * @param {number[]} heights
 * @param {number} top
 */
export function topsOf(heights, top) {
  const whole = Math.min(heights.length - 1, Math.floor(top));
  const above = heights.slice(0, whole).reduce((sum, height) => sum + height, 0);
  let next = -above - (heights[whole] ?? 0) * (top - whole);
  return heights.map((height) => { const here = next; next += height; return here; });
}
