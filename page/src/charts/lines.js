// The numbers of a chart: from the kernel's bytes to what plotly draws. They stay in typed arrays,
// which go to the frame as they are: plain ones are taken apart and put together number by number.

/** @import { CurveAnswer, PackedLine, Shape } from "../protocol.d.ts" */
/** @import { Query } from "../source.js" */
/** @typedef {Float32Array | Float64Array | number[]} Numbers */
/**
 * From `low` to `high` are the values of all points around each: the value itself where none is left out.
 * @typedef {{step: Numbers, value: Numbers, wall: Numbers, low: Numbers, high: Numbers}} ChartLine
 */
/** @typedef {"step" | "relative" | "wall"} Mode what the x axis is */

const POINTS_AT_ONCE = 100000;

/**
 * @template {Float32Array | Float64Array} Kind
 * @param {DataView} view
 * @param {new (buffer: ArrayBufferLike) => Kind} Kind
 */
function numbers(view, Kind) {
  // A copy, since bytes that arrive together need not begin where such numbers may.
  return new Kind(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

/**
 * @param {PackedLine} line
 * @returns {ChartLine}
 */
export function unpacked(line) {
  const [value, seconds] = [numbers(line.value, Float32Array), numbers(line.seconds, Float32Array)];
  return {
    step: line.wide ? numbers(line.step, Float64Array) : numbers(line.step, Float32Array),
    value,
    low: line.low.byteLength ? numbers(line.low, Float32Array) : value,
    high: line.high.byteLength ? numbers(line.high, Float32Array) : value,
    wall: Float64Array.from(seconds, (passed) => line.began + passed),
  };
}

/**
 * Lines of an answer, by the number that their line has among these keys.
 * @param {CurveAnswer[]} lines
 * @param {Shape["keys"]} keys
 * @returns {Map<number, ChartLine>}
 */
export function byNumber(lines, keys) {
  return new Map(lines.map((line) => [
    keys.findIndex(([run, tag]) => run === line.run && tag === line.tag),
    asLine(line),
  ]));
}

/**
 * @param {CurveAnswer} answer
 * @returns {ChartLine}
 */
export function asLine({ step, value: values, wall_time, low, high }) {
  const value = values.map(orNaN);
  return { step, value, wall: wall_time.map(orNaN), low: low?.map(orNaN) ?? value, high: high?.map(orNaN) ?? value };
}

/**
 * Whether points are left out.
 * @param {ChartLine} line
 */
export function isThinned({ value, low }) { return low !== value; }

/** @param {number | null} value */
function orNaN(value) { return value ?? NaN; }

/**
 * Exponential moving average without the pull towards zero at the start, as TensorBoard's; what is
 * no finite number stays as it is and counts for nothing. What is constant stays so to the last bit.
 * @param {Numbers} values
 * @param {number} weight from 0 to 1, of what was before
 */
export function smoothed(values, weight) {
  let average = 0;
  let share = 1;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    share *= weight;
    average += (value - average) * ((1 - weight) / (1 - share));
    return average;
  });
}

/**
 * The edges of a band on an axis of this scale. A logarithmic one has no place for zero and less: there
 * the band begins at its least positive value.
 * @param {Pick<ChartLine, "low" | "high">} line
 * @param {string} scale
 */
export function edges({ low, high }, scale) {
  if (scale !== "log") return { low, high };
  let least = Infinity;
  for (const edge of [low, high]) for (const value of edge) if (value > 0 && value < least) least = value;
  const raised = (/** @type {number} */ value, /** @type {number} */ at) => (high[at] > 0 ? Math.max(value, least) : NaN);
  return { low: low.map(raised), high: high.map(raised) };
}

/**
 * The points between two steps in full, the others as they were.
 * @param {ChartLine} coarse
 * @param {ChartLine} fine
 * @returns {ChartLine}
 */
export function refined(coarse, fine) {
  const from = fine.step[0];
  const to = fine.step[fine.step.length - 1];
  const joined = (/** @type {keyof ChartLine} */ name) => [
    ...coarse[name].filter((_, at) => coarse.step[at] < from),
    ...fine[name],
    ...coarse[name].filter((_, at) => coarse.step[at] > to),
  ];
  const value = joined("value");
  const [low, high] = isThinned(coarse) || isThinned(fine) ? [joined("low"), joined("high")] : [value, value];
  return { step: joined("step"), wall: joined("wall"), value, low, high };
}

/**
 * Where the points are on the x axis.
 * @param {ChartLine} line
 * @param {Mode} mode
 * @param {number} start seconds since 1970
 * @returns {Numbers | (string | null)[]}
 */
export function across(line, mode, start) {
  if (mode === "step") return line.step;
  if (mode === "relative") return line.wall.map((seconds) => seconds - start);
  return Array.from(line.wall, localTime);
}

/**
 * Plotly takes a date as it is written, in no time zone: the reader's is meant.
 * @param {number} seconds
 */
function localTime(seconds) {
  const at = new Date(seconds * 1000);
  if (Number.isNaN(at.getTime())) return null; // no time at all, or none that a date can be
  return new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, -1);
}

/**
 * The steps that a stretch of the x axis stands for, by the points that lie in it.
 * @param {ChartLine[]} lines
 * @param {Mode} mode
 * @param {number} start
 * @param {[from: number | string, to: number | string]} stretch
 * @returns {[number, number] | null}
 */
export function stepsWithin(lines, mode, start, stretch) {
  const number = (/** @type {number | string | null} */ at) => (mode === "wall" ? timeOf(at) : Number(at));
  let low = Infinity;
  let high = -Infinity;
  const [begin, end] = stretch.map(number);
  for (const line of lines) {
    const places = Array.from(across(line, mode, start), number);
    const first = places.findIndex((at) => at >= begin);
    const next = places.findIndex((at) => at > end);
    if (first < 0) continue;
    const last = next < 0 ? places.length - 1 : next;
    low = Math.min(low, line.step[Math.max(0, first - 1)]);
    high = Math.max(high, line.step[last]);
  }
  return low <= high ? [Math.floor(low), Math.ceil(high)] : null;
}

/** @param {number | string | null} at */
function timeOf(at) { return new Date(at ?? 0).getTime(); }

/**
 * The lines as a table, a row for each point.
 * @param {CurveAnswer[]} lines
 */
export function csv(lines) {
  const rows = ["run,tag,step,wall_time,value"];
  for (const line of lines) {
    const head = `${cell(line.run)},${cell(line.tag)}`;
    line.step.forEach((step, at) => rows.push(`${head},${step},${line.wall_time[at] ?? "nan"},${line.value[at] ?? "nan"}`));
  }
  return `${rows.join("\n")}\n`;
}

/** @param {string} text */
function cell(text) { return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; }

/**
 * Every point between two steps. A line that is as long as an answer may be has been thinned: then
 * it is asked for in halves.
 * @param {(query: Query) => Promise<{lines: CurveAnswer[]} | null>} ask
 * @param {number} from
 * @param {number} to
 * @returns {Promise<CurveAnswer[] | null>}
 */
export async function wholeLines(ask, from, to) {
  const answer = await ask({ from, to, points: POINTS_AT_ONCE });
  if (!answer) return null;
  if (from >= to || answer.lines.every((line) => line.step.length < POINTS_AT_ONCE)) return answer.lines;
  const middle = Math.floor((from + to) / 2);
  const [low, high] = [await wholeLines(ask, from, middle), await wholeLines(ask, middle + 1, to)];
  return low && high && [...low, ...high];
}
