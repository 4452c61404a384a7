// What the table says of a run, column by column.

import { annotationText } from "../run/annotation.js";
import { progressText, SIGNS } from "../run/head.js";
import { age, brief, duration } from "../words.js";

/** @import { Progress, TableRun } from "../protocol.d.ts" */
/** @typedef {string | number | null | [string, number]} Value pairs by their first part that differs */
/**
 * `value` is what is sorted by, `detail` a second line, `kind` the column's class where that is not
 * its name.
 * @template {{id: number}} T
 * @typedef {{
 *   name: string,
 *   kind?: string,
 *   value: (item: T, now: number) => Value,
 *   text: (item: T, now: number) => string,
 *   detail?: (item: T) => string,
 *   bar?: (item: T) => Progress | null,
 * }} Column
 */

/**
 * @param {TableRun} run
 * @param {number} now
 */
export function stateText({ state, progress }, now) {
  const waits = state === "queued" && progress?.since;
  const words = waits ? ` for ${duration(now - progress.since)}` : progress && !progress.unit ? `: ${progress.phase}` : "";
  return `${SIGNS[state] ?? "◌"} ${state}${words}`;
}

/**
 * How far its ranks are, which a bar shows.
 * @param {TableRun} run
 */
export function barOf({ progress }) { return progress?.unit ? progress : null; }

/**
 * Why it failed, or how far it is.
 * @param {TableRun} run
 */
function detailText(run) {
  const steps = barOf(run);
  return causeText(run) || (steps ? progressText(steps, 0) : "");
}

/**
 * The error comes first, as a narrow cell cuts the end.
 * @param {{cause: string}} run
 */
export function causeText({ cause }) { return cause.replace(/^(.+?) failed first: ([^]+)$/, "$2 ($1)"); }

/**
 * @param {"name" | "experiment"} name
 * @returns {Column<TableRun>}
 */
function plain(name) {
  return { name, value: (run) => run[name], text: (run) => run[name] };
}

/** @param {TableRun} run */
function placeText({ place, size }) { return [place, size].filter(Boolean).join(", "); }

/**
 * The first number of `at least 0.42 USD` is what the run has cost.
 * @param {TableRun} run
 */
function costOf({ cost }) {
  const amount = Number.parseFloat(cost?.match(/\d[\d.,]*/)?.[0].replaceAll(",", "") ?? "");
  return Number.isNaN(amount) ? null : amount;
}

/** @type {Column<TableRun>[]} */
export const COLUMNS = [
  { name: "run", value: (run) => run.id, text: (run) => String(run.id) },
  { ...plain("name"), detail: annotationText },
  { name: "state", value: (run) => run.state, text: stateText, detail: detailText, bar: barOf },
  { name: "where", value: placeText, text: placeText, detail: (run) => run.machines },
  {
    name: "best metric",
    value: (run) => (run.best ? [run.best.tag, run.best.value] : null),
    text: (run) => (run.best ? `${run.best.tag} ${brief(run.best.value)}` : ""),
  },
  { name: "duration", value: (run, now) => (run.end ?? now) - run.begin, text: (run, now) => duration((run.end ?? now) - run.begin) },
  { name: "age", value: (run) => -run.begin, text: (run, now) => age(now - run.begin) },
  { name: "cost", value: costOf, text: (run) => run.cost ?? "", detail: (run) => (run.cost && run.cost_note) || "" },
  plain("experiment"),
];

const BY_NAME = new Intl.Collator("en", { numeric: true });  // one for all: each takes as long as a sort

/** @param {{name: string, kind?: string}} column */
export function className({ name, kind }) { return `dn-${kind ?? name.split(" ")[0]}`; }

/**
 * @param {Exclude<Value, null>} a
 * @param {Exclude<Value, null>} b
 * @returns {number}
 */
function compared(a, b) {
  if (Array.isArray(a) && Array.isArray(b)) return compared(a[0], b[0]) || compared(a[1], b[1]);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return BY_NAME.compare(String(a), String(b));
}

/**
 * The items in the order of a column; those that have no value come last either way.
 * @template {{id: number}} T
 * @param {T[]} items
 * @param {{column: Column<T>, down: boolean}} order
 * @param {number} now
 */
export function sorted(items, { column, down }, now) {
  return [...items].sort((one, other) => {
    const [a, b] = [column.value(one, now), column.value(other, now)];
    if (a === null || b === null) return Number(a === null) - Number(b === null) || other.id - one.id;
    return (down ? -1 : 1) * compared(a, b) || other.id - one.id;
  });
}
