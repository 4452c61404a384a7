// The heat map of slow ranks, which Python draws: here it says what a cell stands for, to the mouse
// and to the keys, and leads to the chart of its rank.

import { element, OWN_KEYS, write } from "../dom.js";
import { thousands } from "../words.js";

/** @typedef {[row: number, column: number, rank: number, kind: number, ms: number]} Cell */
/**
 * What is told of cells: rows have ranks, columns begin and end with steps, `high` are the pixels of
 * the first row, of all ranks together, and of others, which begin at `first`.
 * @typedef {{
 *   first: number, high: [number, number], ranks: [number, number][], edges: number[], ended: number[],
 *   step: number[], kinds: string[], cells: Cell[],
 * }} Told
 */

const ALL = -1;
/** @type {Record<string, [rows: number, columns: number]>} */
const MOVES = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  PageUp: [-8, 0], PageDown: [8, 0], Home: [0, -Infinity], End: [0, Infinity],
};

export class HeatMap {
  /** @param {(rank: number) => void} chosen */
  constructor(chosen) {
    this.chosen = chosen;
    /** @type {HTMLElement | null} */
    this.map = null;
    /** @type {Told | null} */
    this.told = null;
    /** @type {Map<string, Cell>} */
    this.cells = new Map();
    this.row = ALL;
    this.column = 0;
    this.summary = "";
    this.isPointed = false;
    this.mark = element("div", { class: "dn-here", hidden: true });
  }

  /**
   * Put a newer sheet into the place of the last one. Who has the keys there keeps them.
   * @param {Element} sheet
   * @param {() => void} put
   */
  replace(sheet, put) {
    const hadFocus = this.map !== null && document.activeElement === this.map;
    const wasPointed = this.isPointed;
    put();
    const heat = /** @type {HTMLElement | null} */ (sheet.querySelector(".dn-heat"));
    this.map = heat?.querySelector(".dn-map") ?? null;
    this.told = heat && parsed(heat.dataset.heat ?? "");
    if (!heat || !this.map || !this.told) return;
    this.cells = new Map(this.told.cells.map((cell) => [`${cell[0]} ${cell[1]}`, cell]));
    this.said = /** @type {HTMLElement} */ (heat.querySelector(".dn-told"));
    this.summary = this.said.textContent ?? "";
    this.said.setAttribute("role", "status");
    this.listen(this.map);
    this.map.append(this.mark);
    if (hadFocus) this.map.focus({ preventScroll: true });
    else if (wasPointed) this.show();
  }

  /** @param {HTMLElement} map */
  listen(map) {
    for (const [name, value] of Object.entries({ tabindex: "0", role: "application", "aria-label": "Slow ranks: arrows tell of a cell, Enter shows its rank", ...OWN_KEYS })) map.setAttribute(name, value);
    map.addEventListener("pointermove", (event) => { this.point(map, event); });
    map.addEventListener("pointerleave", () => { this.isPointed = false; if (document.activeElement !== map) this.hide(); });
    map.addEventListener("focus", () => { if (!this.isPointed) this.show(); });
    map.addEventListener("blur", () => this.hide());
    map.addEventListener("click", () => this.choose());
    map.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.choose();
      else if (!this.move(event.key)) return;
      event.preventDefault();
    });
  }

  /**
   * @param {HTMLElement} map
   * @param {PointerEvent} event
   */
  point(map, event) {
    if (!this.told) return;
    const { left, top, width } = map.getBoundingClientRect();
    const { first, high, ranks, ended } = this.told;
    const [across, down] = [(event.clientX - left) / width, event.clientY - top];
    this.column = within(Math.floor(across * ended.length), 0, ended.length - 1);
    this.row = down < first ? ALL : within(Math.floor((down - first) / high[1]), 0, ranks.length - 1);
    this.isPointed = true;
    this.show();
  }

  /**
   * Move by a key. Whether it is one that moves.
   * @param {string} key
   */
  move(key) {
    if (!this.told || !(key in MOVES)) return false;
    const [down, right] = MOVES[key];
    this.row = within(this.row + down, ALL, this.told.ranks.length - 1);
    this.column = within(this.column + right, 0, this.told.ended.length - 1);
    this.show();
    return true;
  }

  show() {
    if (!this.told || !this.said) return;
    const { first, high, ranks, ended } = this.told;
    this.row = within(this.row, ALL, ranks.length - 1);
    this.column = within(this.column, 0, ended.length - 1);
    const [top, tall] = this.row === ALL ? [0, high[0]] : [first + this.row * high[1], high[1]];
    Object.assign(this.mark.style, {
      left: `${(100 * this.column) / ended.length}%`, width: `${100 / ended.length}%`, top: `${top}px`, height: `${tall}px`,
    });
    this.mark.hidden = false;
    write(this.said, this.words(this.told));
  }

  hide() {
    this.mark.hidden = true;
    if (this.said) write(this.said, this.summary);
  }

  get cell() { return this.cells.get(`${this.row} ${this.column}`); }

  choose() {
    const rank = this.cell?.[2] ?? this.told?.ranks[this.row]?.[0];
    if (this.row !== ALL && rank !== undefined) this.chosen(rank);
  }

  /** @param {Told} told */
  words({ ranks, edges, ended, step, kinds }) {
    const { row, column, cell } = this;
    const [from, to] = [edges[column] + 1, Math.max(edges[column] + 1, edges[column + 1])];
    const steps = from === to ? `step ${thousands(to)}` : `steps ${thousands(from)} to ${thousands(to)}`;
    const where = `${steps}, ${new Date(1000 * ended[column]).toLocaleTimeString()}`;
    const usual = `${number(step[column])} ms`;
    if (row === ALL) {
      return `all ranks, ${where}: ${usual} a step${cell ? `, ${number(cell[4])} ms longer than usual, ${kinds[cell[3]]}` : ""}`;
    }
    const [low, high] = ranks[row];
    if (!cell) return `${low === high ? `rank ${low}` : `ranks ${low} to ${high}`}, ${where}: no longer than the others (${usual} a step)`;
    const among = low === high ? "" : ` (slowest of ${low} to ${high})`;
    return `rank ${cell[2]}${among}, ${where}: ${number(cell[4])} ms a step longer than the others, ${kinds[cell[3]]}`;
  }
}

/** @param {number} ms */
function number(ms) { return ms >= 100 ? thousands(Math.round(ms)) : String(Number(ms.toPrecision(3))); }

/**
 * @param {number} value
 * @param {number} least
 * @param {number} most
 */
function within(value, least, most) { return Math.min(most, Math.max(least, value)); }

/**
 * @param {string} text
 * @returns {Told | null}
 */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
