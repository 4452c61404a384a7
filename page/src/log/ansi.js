// Colours that programs print, and the places that a search has found, as spans of a line.
//
// escapes.py has the patterns, and saved/ansi.py does the same for what stays in a document; tests/ui/ansi.json has examples for both.

import { element } from "../dom.js";

/** @typedef {string | null} Colour one of `NAMES`, or `#rrggbb`; null is the page's own */
/** @typedef {{marks: string[], ink: Colour, under: Colour, inverse: boolean}} Style */
/** @typedef {{class?: string, style?: string}} Look as attributes */

const COLOUR = /\x1b\[([0-9;:]*)m/;
const CONTROLS = [
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]/, /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]*(?:\x07|\x1b\\|\x9c)/,
  /\x1b[ -/]*[0-~]/, /[\x00-\x08\x0b-\x1f\x7f-\x9f]/,
];
const ANSI = new RegExp([COLOUR, ...CONTROLS].map(({ source }) => source).join("|"), "g");
const HUES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const NAMES = [...HUES, ...HUES.map((hue) => `bright-${hue}`)];
const TERMINAL = [
  "#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5",
  "#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff",
];
const CUBE = [0, 95, 135, 175, 215, 255];
const LIGHT = "#c0c0c0";
const READABLE = 3;  // contrast
/** @type {Record<number, string>} */
const MARKS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "strike" };
/** @type {Record<number, string[]>} what a code ends */
const ENDS = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 29: ["strike"] };
/** @type {Style} */
const PLAIN = { marks: [], ink: null, under: null, inverse: false };

/**
 * @param {Style} style
 * @param {string} codes those of an escape sequence
 * @returns {Style}
 */
function styleAfter(style, codes) {
  const plain = codes.replace(/([34]8:2):\d*:(\d+:\d+:\d+)/g, "$1:$2").replace(/(^|;)4:[1-5]/g, "$14");
  const numbers = plain.split(/[;:]/).map(Number);
  while (numbers.length) {
    const code = numbers.shift() ?? 0;
    style = code === 38 || code === 48 || code === 58 ? extended(style, code, numbers) : simple(style, code);
  }
  return style;
}

/**
 * @param {Style} style
 * @param {number} code
 * @returns {Style}
 */
function simple(style, code) {
  const { marks } = style;
  if (code === 0) return PLAIN;
  if (code in MARKS) return { ...style, marks: [...new Set([...marks, MARKS[code]])] };
  if (code in ENDS) return { ...style, marks: marks.filter((mark) => !ENDS[code].includes(mark)) };
  if (code === 7 || code === 27) return { ...style, inverse: code === 7 };
  if (code === 39) return { ...style, ink: null };
  if (code === 49) return { ...style, under: null };
  const name = NAMES[code % 10 + (code >= 90 ? 8 : 0)];
  const tens = Math.floor(code / 10);
  if (code % 10 > 7) return style;
  if (tens === 3 || tens === 9) return { ...style, ink: name };
  return tens === 4 || tens === 10 ? { ...style, under: name } : style;
}

/**
 * One of 256 colours, or red, green and blue.
 * @param {Style} style
 * @param {number} code
 * @param {number[]} rest what follows: the colour is taken from it
 * @returns {Style}
 */
function extended(style, code, rest) {
  const kind = rest.shift();
  const parts = rest.splice(0, kind === 5 ? 1 : kind === 2 ? 3 : 0);
  if (!parts.length || parts.some((part) => part > 255) || code === 58) return style;
  const colour = kind === 5 ? indexed(parts[0]) : hex(parts);
  return code === 38 ? { ...style, ink: colour } : { ...style, under: colour };
}

/** @param {number} number */
function indexed(number) {
  if (number < 16) return NAMES[number];
  if (number >= 232) return hex(Array(3).fill(8 + 10 * (number - 232)));
  return hex([36, 6, 1].map((size) => CUBE[Math.floor((number - 16) / size) % 6]));
}

/** @param {number[]} parts */
function hex(parts) { return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`; }

/** @param {string} colour */
function asTerminal(colour) { return TERMINAL[NAMES.indexOf(colour)] ?? colour; }

/** @param {string} colour */
function luminance(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * @param {string} one
 * @param {string} other
 */
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/**
 * Both colours are as in a terminal where both are given; ink alone is what the theme can show.
 * @param {Style} style
 * @returns {Look}
 */
function lookOf({ marks, ink, under, inverse }) {
  if (inverse && !ink && !under) return { class: [...marks, "ansi-inverse"].join(" ") };
  if (inverse) [ink, under] = [under, ink ?? LIGHT];
  if (under) {
    const ground = asTerminal(under);
    const wanted = ink && asTerminal(ink);
    const plain = contrast("#000000", ground) > contrast("#ffffff", ground) ? "#000000" : "#ffffff";
    const shown = wanted && contrast(wanted, ground) >= READABLE ? wanted : plain;
    return { class: [...marks, "ansi-box"].join(" "), style: `--dn-ink:${shown};--dn-under:${ground}` };
  }
  if (ink?.startsWith("#")) return { class: [...marks, "ansi-ink"].join(" "), style: `--dn-ink:${ink}` };
  const names = [...marks, ...(ink ? [`ansi-${ink}`] : [])];
  return names.length ? { class: names.join(" ") } : {};
}

/**
 * Pieces of text with the look that each has.
 * @param {string} text
 * @returns {[part: string, look: Look][]}
 */
export function ansiPieces(text) {
  /** @type {[string, Look][]} */
  const pieces = [];
  let style = PLAIN;
  let at = 0;
  for (const escape of text.matchAll(ANSI)) {
    pieces.push([text.slice(at, escape.index), lookOf(style)]);
    at = escape.index + escape[0].length;
    if (escape[1] !== undefined) style = styleAfter(style, escape[1]);
  }
  pieces.push([text.slice(at), lookOf(style)]);
  return pieces.filter(([part]) => part);
}

/** @param {string} text */
export function plainText(text) { return text.replace(ANSI, ""); }

/**
 * @param {HTMLElement} parent
 * @param {string} text
 * @param {RegExp | null} wanted what to mark, also across colours
 */
export function appendText(parent, text, wanted) {
  const found = wanted ? [...plainText(text).matchAll(wanted)].filter((match) => match[0]) : [];
  const spans = found.map((match) => /** @type {const} */ ([match.index, match.index + match[0].length]));
  let begin = 0;
  for (const [part, look] of ansiPieces(text)) {
    const place = look.class ? element("span", { ...look }) : parent;
    appendMarked(place, part, begin, spans);
    if (place !== parent) parent.append(place);
    begin += part.length;
  }
}

/**
 * @param {HTMLElement} parent
 * @param {string} part
 * @param {number} begin where it stands in the line
 * @param {(readonly [from: number, to: number])[]} spans of the line
 */
function appendMarked(parent, part, begin, spans) {
  let at = 0;
  for (const [from, to] of spans) {
    const [first, last] = [Math.max(at, from - begin), Math.min(part.length, to - begin)];
    if (first >= last) continue;
    parent.append(part.slice(at, first), element("mark", {}, part.slice(first, last)));
    at = last;
  }
  parent.append(part.slice(at));
}
