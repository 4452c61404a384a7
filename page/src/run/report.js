// A run's note, and the report of a failure.

import { button, element, write } from "../dom.js";
import { isInCell, RAISED } from "../log/line.js";

/** @import { Stoppable } from "./stop.js" */

const NOTEBOOK = ".jp-Notebook";
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
    write(note, source.summary.note ?? "");
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
    const [, indent = "", place = ""] = line.match(/^(\s*)(Cell In\[\d+\], line \d+)/) ?? [];
    const rest = line.slice(indent.length + place.length);
    if (place && document.querySelector(NOTEBOOK)) body.append(indent, link(place, body), rest, "\n");
    else body.append(kind ? element("span", { class: kind }, line) : line, "\n");
  });
  if (lines.length) box.append(body);
  return box;
}

/**
 * A place in a cell, which leads there.
 * @param {string} place
 * @param {HTMLElement} body that it stands in
 */
function link(place, body) {
  const [count, line] = (place.match(/\d+/g) ?? []).map(Number);
  const go = () => { if (!showCell(body, count, line)) made.title = "This notebook no longer has this cell"; };
  const made = button(place, go, { class: "dn-cell dn-to-cell", title: "Go to this line of the cell" });
  return made;
}

/**
 * Puts the cursor into a line of a cell. Says whether the notebook has the cell, by its number.
 * @param {HTMLElement} body
 * @param {number} count
 * @param {number} line
 */
function showCell(body, count, line) {
  const prompts = (body.closest(NOTEBOOK) ?? document).querySelectorAll(".jp-InputPrompt");
  const cell = [...prompts].find(({ textContent }) => textContent.trim() === `[${count}]:`)?.closest(".jp-Cell");
  const editor = cell?.querySelector(".cm-content");
  if (!(editor instanceof HTMLElement)) return false;
  const there = editor.querySelectorAll(".cm-line")[line - 1] ?? editor;
  editor.focus({ preventScroll: true });
  window.getSelection()?.collapse(there, 0);
  there.scrollIntoView({ block: "center" });
  return true;
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
