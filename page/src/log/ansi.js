// Colours that programs print, and the places that a search has found, as spans of a line.

import { element } from "../dom.js";

const ANSI = /\x1b\[([0-9;]*)m|\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g;
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const MARKS = ["bold", "dim", "italic", "underline"];

/**
 * @param {string[]} style class names
 * @param {string} codes those of an escape sequence
 */
function styleAfter(style, codes) {
  const numbers = codes.split(";").map((code) => Number(code || 0));
  if (numbers[0] === 38 || numbers[0] === 48) return style;
  for (const code of numbers) {
    if (code === 0) style = [];
    else if (code <= 4) style = [...style, MARKS[code - 1]];
    else if (code === 22) style = style.filter((name) => name !== "bold" && name !== "dim");
    else if (code === 23 || code === 24) style = style.filter((name) => name !== MARKS[code - 21]);
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97) || code === 39) {
      style = style.filter((name) => !name.startsWith("ansi-"));
      if (code !== 39) style.push(`ansi-${COLOURS[code % 10]}`);
    }
  }
  return style;
}

/**
 * Pieces of text with the classes that each has.
 * @param {string} text
 * @returns {[part: string, style: string][]}
 */
export function ansiPieces(text) {
  if (!text.includes("\x1b")) return [[text, ""]];
  /** @type {[string, string][]} */
  const pieces = [];
  /** @type {string[]} */
  let style = [];
  let at = 0;
  for (const escape of text.matchAll(ANSI)) {
    pieces.push([text.slice(at, escape.index), style.join(" ")]);
    at = escape.index + escape[0].length;
    if (escape[1] !== undefined) style = styleAfter(style, escape[1]);
  }
  pieces.push([text.slice(at), style.join(" ")]);
  return pieces.filter(([part]) => part);
}

/** @param {string} text */
export function plainText(text) {
  return text.includes("\x1b") ? text.replace(ANSI, "") : text;
}

/**
 * @param {HTMLElement} parent
 * @param {string} text
 * @param {RegExp | null} wanted what to mark
 */
export function appendText(parent, text, wanted) {
  for (const [part, style] of ansiPieces(text)) {
    const place = style ? element("span", { class: style }) : parent;
    appendMarked(place, part, wanted);
    if (style) parent.append(place);
  }
}

/**
 * @param {HTMLElement} parent
 * @param {string} text
 * @param {RegExp | null} wanted
 */
function appendMarked(parent, text, wanted) {
  let at = 0;
  for (const found of wanted ? text.matchAll(wanted) : []) {
    if (!found[0]) continue;
    parent.append(text.slice(at, found.index), element("mark", {}, found[0]));
    at = found.index + found[0].length;
  }
  parent.append(text.slice(at));
}
