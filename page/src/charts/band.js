// What many lines of one chart have in common: least, mean and greatest value, and which stand out.

/** @import { ChartLine } from "./lines.js" */

export const MANY = 8;   // lines of one chart; more are a band, until the reader wants all
const MOST_APART = 3;
const APART = 4;         // times as far from the middle as half of the lines

/**
 * Where a line is at these steps; NaN before its first and after its last point.
 * @param {ChartLine["step"]} step
 * @param {ChartLine["value"]} value
 * @param {ArrayLike<number>} steps
 */
function along(step, value, steps) {
  const at = new Float64Array(steps.length).fill(NaN);
  let next = 0;
  for (let place = 0; place < steps.length; place++) {
    while (next < step.length && (step[next] < steps[place] || !Number.isFinite(value[next]))) next++;
    if (next === step.length) break;
    const [right, last] = [step[next], step[next - 1]];
    if (right === steps[place]) at[place] = value[next];
    else if (next > 0) at[place] = value[next - 1] + ((value[next] - value[next - 1]) * (steps[place] - last)) / (right - last);
  }
  return at;
}

/** @param {number[]} values */
function median(values) {
  const ordered = values.filter(Number.isFinite).sort((a, b) => a - b);
  return ordered[Math.floor(ordered.length / 2)] ?? NaN;
}

/**
 * The band of some lines, at the steps of that with the most points; and how far each line is from
 * their middle, in the mean.
 * @param {ChartLine[]} lines
 * @returns {{low: ChartLine, mean: ChartLine, high: ChartLine, far: number[]}}
 */
export function bandOf(lines) {
  const longest = lines.reduce((a, b) => (b.step.length > a.step.length ? b : a));
  const [values, lows, highs] = /** @type {const} */ (["value", "low", "high"])
    .map((name) => lines.map((line) => along(line.step, line[name], longest.step)));
  const [low, mean, high] = [0, 1, 2].map(() => new Float64Array(longest.step.length).fill(NaN));
  const far = lines.map(() => 0);
  for (let place = 0; place < longest.step.length; place++) {
    const here = values.map((value) => value[place]);
    const finite = here.filter(Number.isFinite);
    if (!finite.length) continue;
    low[place] = Math.min(...lows.map((value) => value[place]).filter(Number.isFinite));
    high[place] = Math.max(...highs.map((value) => value[place]).filter(Number.isFinite));
    mean[place] = finite.reduce((a, b) => a + b) / finite.length;
    const middle = median(finite);
    here.forEach((value, line) => { if (Number.isFinite(value)) far[line] += Math.abs(value - middle) / longest.step.length; });
  }
  const as = (/** @type {Float64Array} */ value) => ({ ...longest, value });
  return { low: as(low), mean: as(mean), high: as(high), far };
}

/**
 * The places of the lines that stand out, the furthest first.
 * @param {number[]} far
 */
export function apart(far) {
  const usual = median(far);
  return far.map((_, place) => place)
    .filter((place) => far[place] > APART * usual)
    .sort((a, b) => far[b] - far[a])
    .slice(0, MOST_APART);
}
