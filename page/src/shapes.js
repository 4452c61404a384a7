// What the server and the kernel answer, taken in by its shape before anything is made of it: fields
// that the page doesn't know are dropped, and an answer of another shape is none.

import { isNumber } from "./address.js";

/** @import * as protocol from "./protocol.d.ts" */
/**
 * Gives the value as far as it is known. Throws Misshapen.
 * @template T
 * @typedef {(value: unknown) => T} Shape
 */

/** An answer that has another shape than it should have. */
export class Misshapen extends Error {}

/**
 * @template T
 * @param {(value: any) => boolean} is
 * @param {string} what
 * @returns {Shape<T>}
 */
function one(is, what) {
  return (value) => {
    if (is(value)) return /** @type {T} */ (value);
    throw new Misshapen(`${String(JSON.stringify(value)).slice(0, 60)} instead of ${what}`);
  };
}

/** @type {Shape<string>} */
const text = one((value) => typeof value === "string", "a text");
/** @type {Shape<number>} */
const number = one(Number.isFinite, "a number");
/** @type {Shape<number>} */
const count = one((value) => Number.isSafeInteger(value) && value >= 0, "a count");
/** @type {Shape<number>} */
const id = one(isNumber, "a whole number from 1");
/** @type {Shape<boolean>} */
const flag = one((value) => typeof value === "boolean", "true or false");
/** @type {Shape<any>} */
const words = one((value) => ["string", "number", "boolean"].includes(typeof value), "a text or a number");
const object = one((value) => typeof value === "object" && value !== null && !Array.isArray(value), "an object");
const array = one(Array.isArray, "a list");

/**
 * @template T
 * @param {Shape<T>} shape
 * @returns {Shape<T | null>}
 */
function maybe(shape) { return (value) => (value === null ? null : shape(value)); }

/**
 * @template T
 * @param {Shape<T>} shape
 * @returns {Shape<T | undefined>}
 */
function absent(shape) { return (value) => (value === undefined ? undefined : shape(value)); }

/**
 * @template T
 * @param {Shape<T>} shape
 * @returns {Shape<T[]>}
 */
function list(shape) { return (value) => /** @type {unknown[]} */ (array(value)).map((each) => shape(each)); }

/**
 * @template T
 * @param {Shape<T>} shape
 * @returns {Shape<Record<string, T>>}
 */
function byName(shape) {
  return (value) => {
    const entries = Object.entries(/** @type {object} */ (object(value)));
    return Object.fromEntries(entries.map(([name, each]) => [name, shape(each)]));
  };
}

/**
 * @template {unknown[]} T
 * @param {{[Place in keyof T]: Shape<T[Place]>}} shapes
 * @returns {Shape<T>}
 */
function tuple(...shapes) {
  const has = one((value) => Array.isArray(value) && value.length === shapes.length, `a list of ${shapes.length}`);
  return (value) => /** @type {any} */ (shapes.map((shape, place) => shape(/** @type {any} */ (has(value))[place])));
}

/**
 * @template T
 * @param {{[Name in keyof T]-?: Shape<T[Name]>}} fields
 * @returns {Shape<T>}
 */
function record(fields) {
  const shapes = /** @type {[keyof T & string, Shape<unknown>][]} */ (Object.entries(fields));
  return (value) => {
    const given = /** @type {any} */ (object(value));
    /** @type {any} */
    const known = {};
    for (const [name, shape] of shapes) {
      try {
        known[name] = shape(given[name]);
      } catch (error) {
        throw new Misshapen(`${name}: ${/** @type {Error} */ (error).message}`);
      }
    }
    return known;
  };
}

/** @type {Shape<protocol.Progress>} */
const progress = record({
  phase: text, total: number, done: number, since: number, unit: absent(text), left: absent(text),
});

/** @type {Shape<protocol.Annotation>} */
const annotation = record({ note: text, tags: list(text) });

/** @type {{[Name in keyof protocol.RunSummary]-?: Shape<protocol.RunSummary[Name]>}} */
const SUMMARY = {
  id, name: text, state: text, phase: text, final: flag, where: text, size: text, begin: number, end: maybe(number),
  now: number, steps: list(record({ label: text, begin: maybe(number), end: maybe(number) })),
  labels: byName(text), pools: byName(text), progress: maybe(progress), note: text, error: text,
  hang: absent(text), resumable: absent(flag), cost: absent(text), cost_note: absent(text), annotation: absent(annotation),
};

/** @type {Shape<protocol.LineRow>} */
const line = tuple(count, number, number, text, flag, text);
// Every field by its name: the page drops what isn't listed, also where it may be absent.
/** @type {{[Name in keyof protocol.TableRun]-?: Shape<protocol.TableRun[Name]>}} */
const TABLE_RUN = {
  id, name: text, state: text, final: flag, place: text, size: text, machines: text, experiment: text, study: text,
  cause: text, begin: number, end: maybe(number), best: maybe(record({ tag: text, value: number })), progress: maybe(progress),
  alarm: absent(text), cost: absent(text), cost_note: absent(text), annotation: absent(annotation),
};
const tableRun = record(TABLE_RUN);
/** @type {{[Name in keyof protocol.StudyRow]-?: Shape<protocol.StudyRow[Name]>}} */
const STUDY_ROW = {
  id, key: text, name: text, state: text, final: flag, progress: text, running: count, best: text, cause: text,
  begin: number, end: maybe(number), cost: absent(text), cost_note: absent(text),
};
const studyRow = record(STUDY_ROW);
/** @type {{[Name in keyof protocol.SessionRow]-?: Shape<protocol.SessionRow[Name]>}} */
const SESSION_ROW = {
  name: text, ranks: text, state: text, place: text, last: text, final: flag, idle: text, limit: text, memory: text,
};
const sessionRow = record(SESSION_ROW);
/** @type {Shape<protocol.Trial>} */
const trial = record({
  id, state: text, final: flag, parameters: byName(words), goals: byName(maybe(number)), steps: count, begin: number,
  end: maybe(number), run: maybe(id), why: text,
});
/** @type {Shape<protocol.StudyAnswer["summary"]>} */
const studySummary = record({
  ...SUMMARY, labels: () => ({}), pools: () => ({}), ended: count, wanted: count,
  adds_trials: flag, stops_trials: flag, left: text, best: text, front: list(id), names: list(text), goals: list(text),
  trials: maybe(list(trial)),
});
/** @type {Shape<protocol.StudyAxis["kind"]>} */
const scale = one((value) => ["linear", "log", "reverse-log", "listed"].includes(value), "a scale");
/** @type {Shape<protocol.StudyCharts>} */
const studyCharts = record({
  sheet: text, axes: list(record({ name: text, kind: scale, low: number, high: number, values: list(text) })),
  shares: byName(list(maybe(number))),
});
/** @type {Shape<protocol.CurveAnswer>} */
const curve = record({
  run: text, tag: text, step: list(number), value: list(maybe(number)), wall_time: list(maybe(number)),
  low: maybe(list(maybe(number))), high: maybe(list(maybe(number))),
});
const curves = record({ lines: list(curve), notes: list(text) });
/** @type {Shape<protocol.MediaRow["kind"]>} */
const kind = one((value) => ["histogram", "image", "text"].includes(value), "histogram, image or text");
/** @type {Shape<protocol.MediaState["index"]>} */
const media = record({
  rows: list(record({ kind, run: text, tag: text, count, last: number })),
  hparams: byName(byName(maybe(words))), notes: list(text),
});
const base64 = one((value) => typeof value === "string" && /^[A-Za-z0-9+/]*=*$/.test(value), "bytes in base64");
/** @type {Shape<protocol.DisplayRow>} */
const displayRow = record({ name: text, rank: count, time: number });
/** @type {Shape<string>} */
const imageForm = one((value) => /^image\/(?:png|jpeg|gif)$/.test(value), "PNG, JPEG or GIF");
/** @type {Shape<protocol.DisplayAnswer>} */
const display = record({
  label: absent(text), note: absent(text), text: absent(text), page: absent(text),
  image: absent(record({ form: imageForm, data: base64 })),
  figure: absent(record({ data: list(one((value) => ["scatter", "bar", "pie"].includes(value?.type), "a trace")), layout: object })),
  table: absent(record({ rows: list(list(tuple(text, flag, count, count))), note: text })),
});
const axis = (/** @type {string} */ letter) => one((value) => typeof value === "string" && new RegExp(`^${letter}[0-9]*$`).test(value), `an axis ${letter}`);
/** @type {Shape<string>} */
const colour = one((value) => typeof value === "string" && /^#[0-9a-f]{3,8}$/i.test(value), "a colour");
/** @type {Shape<protocol.DrawnCharts>} */
const drawnCharts = record({
  sheet: text,
  shape: record({
    keys: list(tuple(text, text)),
    traces: list(record({
      type: one((value) => value === "scatter", "scatter"), name: text, xaxis: axis("x"), yaxis: axis("y"),
      line: record({ color: colour, width: number }), marker: record({ size: number }), stackgroup: absent(axis("y")),
    })),
    newest: byName(text), dots: number, thinned: flag,
  }),
  lines: list(record({ step: text, wide: flag, value: text, seconds: text, began: number, low: text, high: text })),
});
// Of one image, text or histogram, what its kind has.
const medium = record({
  step: absent(number), note: absent(text), text: absent(text), data: absent(text),
  form: absent(one((value) => /^image\/[\w.+-]+$/.test(value), "the MIME type of an image")),
  steps: absent(list(number)), edges: absent(list(number)), counts: absent(list(list(number))), notes: absent(list(text)),
});

const charts = record({
  seen: text, end: flag, metrics: maybe(drawnCharts), times: maybe(drawnCharts), resources: maybe(drawnCharts), media: maybe(media),
  displays: absent(maybe(list(displayRow))),
});

/** @type {Record<string, Shape<any>>} by what is asked */
const ANSWERS = {
  summary: record(SUMMARY),
  log: record({ lines: list(line), bars: list(line), first: count, rows: count, total: count, end: flag }),
  search: record({ total: count, searched: number, done: flag, row: maybe(count), place: number }),
  "first-error": record({ row: maybe(count) }),
  tracebacks: record({ folds: list(tuple(count, count)) }),
  metrics: curves,
  times: curves,
  resources: curves,
  curves,
  charts,
  overlay: charts,
  media: (value) => ("rows" in object(value) ? media(value) : medium(value)),
  display,
  runs: record({ runs: list(tableRun) }),
  studies: record({ studies: list(studyRow) }),
  sessions: record({ sessions: list(sessionRow) }),
  study: record({ seen: text, end: absent(flag), summary: studySummary, charts: maybe(studyCharts) }),
  ending: record({ final: flag, text, html: absent(text) }),
  row: studyRow,
  compare: record({
    titles: list(text), runs: list(tableRun),
    rows: list(record({ name: text, texts: list(text), numbers: list(maybe(number)), best: list(count), differs: flag })),
    diff: absent(text),
  }),
};

/**
 * An answer to what was asked, as far as it is known. Throws Misshapen.
 * @param {string} path
 * @param {unknown} answer
 */
export function taken(path, answer) {
  const shape = ANSWERS[path];
  if (!shape) throw new Misshapen(`no answer is called ${path}`);
  return shape(answer);
}

/** @type {Shape<string>} */
const home = one((value) => typeof value === "string" && /^[0-9a-f]{0,12}$/.test(value), "the start of a hash");
/** @type {Shape<protocol.RunReference["part"]>} */
const part = one((value) => value === "run" || value === "charts", "run or charts");
/** @type {Shape<protocol.RunReference>} */
const runReference = record({ run: id, home, created: number, part, final: absent(flag) });
/** @type {Shape<protocol.StudyReference>} */
const studyReference = record({ study: id, home, created: number, final: absent(flag) });

/**
 * What an output of a document names, or null where it names nothing.
 * @template T
 * @param {Shape<T>} shape
 * @returns {(value: unknown) => T | null}
 */
function named(shape) {
  return (value) => {
    try {
      return shape(value);
    } catch {
      return null;
    }
  };
}

export const namedRun = named(runReference);
export const namedStudy = named(studyReference);
