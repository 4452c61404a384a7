// A run's note, and the report of a failure.

import { element } from "../dom.js";
import { isInCell, RAISED } from "../log/line.js";

/** @import { Stoppable } from "./stop.js" */

const PLACE = /^\s*(File "|Cell In\[|  File )/;

/**
 * @param {HTMLElement} root
 * @param {Stoppable} source
 */
export function report(root, source) {
  const note = element("div", { class: "dn-note", role: "note" });
  const error = element("div", { role: "alert" });
  root.append(note, error);
  let shown = "";
  const change = () => {
    note.textContent = source.summary.note ?? "";
    note.hidden = !note.textContent;
    const text = (source.summary.error ?? "").trim();
    if (text !== shown) error.replaceChildren(...(text ? [reportBox(text)] : []));
    shown = text;
  };
  source.listeners.push(change);
  change();
}

/**
 * The cause as a heading, below it the traceback with the notebook's own lines marked.
 * @param {string} text
 */
function reportBox(text) {
  const [cause, ...lines] = text.split("\n");
  const box = element("div", { class: "dn-error" }, element("div", { class: "dn-cause" }, cause));
  const body = element("pre");
  lines.forEach((line, number) => {
    const kind = kindOf(line, lines[number - 1] ?? "");
    body.append(kind ? element("span", { class: kind }, line) : line, "\n");
  });
  if (lines.length) box.append(body);
  return box;
}

/**
 * @param {string} line
 * @param {string} before
 */
export function kindOf(line, before) {
  if (isInCell(line)) return "dn-cell";
  if (PLACE.test(line)) return "dn-place";
  if (isInCell(before)) return "dn-cell";
  return RAISED.test(line) ? "dn-raised" : "";
}
