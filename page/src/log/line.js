// One line of the log as an element and as text.

import { element } from "../dom.js";
import { clockTime } from "../words.js";
import { appendText, plainText } from "./ansi.js";

/** @import { Bar, RunSummary } from "../protocol.d.ts" */

export const ROW = 18;  // pixels
const COLOURS = 8;

export const RAISED = /^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b/;

/** @param {number | string} process */
export function colourOf(process) { return `dn-p${Number(process) % COLOURS}`; }

/** @param {string} text */
export function isInCell(text) { return text.includes("Cell In["); }

/**
 * @param {Partial<RunSummary>} summary
 * @param {number} process
 */
function labelOf(summary, process) { return summary.labels?.[process] ?? String(process); }

/**
 * @param {Bar} line
 * @param {Partial<RunSummary>} summary
 * @param {{times: boolean, wanted: RegExp | null}} looks
 */
export function lineElement(line, summary, { times, wanted }) {
  const label = labelOf(summary, line.process);
  const title = line.stream === "e" ? `${label}, stderr` : label;
  const text = element("span", { class: RAISED.test(line.text) ? "dn-raised" : "" });
  appendText(text, line.text, wanted);
  return element(
    "div",
    { class: `dn-line dn-${line.stream} ${colourOf(line.process)}` },
    element("span", { class: "dn-tag", title }, label),
    times && line.time ? element("time", { class: "dn-when" }, clockTime(line.time)) : null,
    text,
  );
}

/**
 * The line as it is copied and saved.
 * @param {Bar} line
 * @param {Partial<RunSummary>} summary
 */
export function lineText(line, summary) {
  return `[${labelOf(summary, line.process)}] ${plainText(line.text)}\n`;
}
