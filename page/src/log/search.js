// Search over the whole log on disk.

import { button, debounce, element, isPressed, toggle } from "../dom.js";
import { messageOf } from "../source.js";
import { thousands } from "../words.js";

/** @import { Query } from "../source.js" */
/** @import { Log } from "./log.js" */
/** @typedef {{total: number, searched: number, done: boolean, row: number | null, place: number}} SearchAnswer */

const CONTINUE_EVERY_MS = 2000;
const TYPED_MS = 200;

export class Search {
  /** @param {Log} log */
  constructor(log) {
    this.log = log;
    this.turn = 0;        // counts searches: what comes for one before counts for nothing
    this.text = "";
    this.total = 0;       // rows that match, as far as the log has been searched
    this.row = -1;        // the match that is shown
    this.place = -1;      // among the matches
    this.near = 0;        // the row from which the search began
    this.count = -1;      // rows of the log when all of it had been searched
    this.busy = false;
    this.failure = "";
    const typed = debounce(TYPED_MS, () => this.start());
    this.field = element("input", {
      class: "dn-search", type: "search", placeholder: "Search", "aria-label": "search the whole log",
      spellcheck: "false", autocomplete: "off", oninput: typed,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.regex = toggle(".*", "Regular expression", () => this.start());
    this.letters = toggle("Aa", "Match upper and lower case", () => this.start());
    this.back = button("↑", () => this.step(-1), { class: "dn-chip", title: "Previous match (Shift+Enter)", "aria-label": "Previous match" });
    this.next = button("↓", () => this.step(1), { class: "dn-chip", title: "Next match (Enter)", "aria-label": "Next match" });
    // Signs are no names: a screen reader would say "dot star". So they are drawn, and named.
    for (const sign of [this.regex, this.letters, this.back, this.next]) {
      sign.dataset.sign = sign.textContent ?? "";
      sign.textContent = "";
      if (!sign.hasAttribute("aria-label")) sign.setAttribute("aria-label", sign.title);
    }
    this.status = element("span", { class: "dn-soft dn-hits", role: "status" });
    this.box = element(
      "span", { class: "dn-searchbox", role: "group", "aria-label": "Search in the log" },
      this.field, this.regex, this.letters, this.back, this.next, this.status,
    );
    this.log.onSlash = () => { this.field.focus(); this.field.select(); };
    this.clear();
    this.clock = setInterval(() => this.continue(), CONTINUE_EVERY_MS);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    event.stopPropagation();
    if (event.key === "Enter") this.enter(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") { this.field.value = ""; this.start(); this.log.view.focus(); }
    else return;
    event.preventDefault();
  }

  /** @param {1 | -1} direction */
  enter(direction) {
    if (this.field.value !== this.text) this.start(); else this.step(direction);
  }

  clear() {
    this.turn += 1;
    this.text = this.field.value;
    this.total = 0;
    this.row = this.place = this.count = -1;
    this.busy = false;
    this.failure = "";
    this.log.restyle({ wanted: this.pattern(), current: null });
    this.show();
  }

  /** The same pattern for the eyes; what JavaScript can't say is found but not marked. */
  pattern() {
    return this.text ? patternOf(this.text, isPressed(this.regex), isPressed(this.letters)) : null;
  }

  /** Search anew, and go to the first match from what is in sight. */
  async start() {
    this.clear();
    this.near = this.log.folds.rowAt(Math.floor(this.log.top));
    await this.continue();
  }

  /** Look through what has not been searched yet. */
  async continue() {
    if (!this.text || this.busy || this.failure || !this.log.view.isConnected) return;
    const { turn } = this;
    const { count } = this.log.rows;
    if (this.count >= 0 && this.count >= count) return;
    this.busy = true;
    this.show();
    await this.ask(turn, async () => {
      while (turn === this.turn && !(await this.more()).done);
      this.count = count;
    });
    if (turn !== this.turn) return;
    this.busy = false;
    this.show();
  }

  /** Have the search go on for a moment, and go to the first match once it is known. */
  async more() {
    const { turn } = this;
    const answer = await this.answer(this.row < 0 ? this.near : this.row, 0);
    if (turn !== this.turn) return answer;
    const isFirst = this.row < 0 && answer.row !== null;
    this.take(answer);
    if (isFirst) this.log.jump(this.row);
    this.show();
    return answer;
  }

  /** @param {1 | -1} direction */
  async step(direction) {
    if (!this.total) return;
    const { turn } = this;
    await this.ask(turn, async () => {
      const answer = await this.answer(this.row, direction);
      if (turn !== this.turn) return;
      this.take(answer);
      this.log.jump(this.row);
      this.log.tell();
    });
    if (turn === this.turn) this.show();
  }

  /**
   * Ask where the search is, and for a match: at or after a row, or the next before or behind it.
   * @param {number} near
   * @param {0 | 1 | -1} step
   * @returns {Promise<SearchAnswer>}
   */
  answer(near, step) {
    /** @type {Query} */
    const query = { ...this.log.rows.query, text: this.text, near, step };
    if (isPressed(this.regex)) query.regex = 1;
    if (isPressed(this.letters)) query.case = 1;
    return this.log.source.ask("search", query);
  }

  /** @param {SearchAnswer} answer */
  take(answer) {
    this.total = answer.total;
    if (answer.row === null) return;
    this.row = answer.row;
    this.place = answer.place;
  }

  /**
   * @param {number} turn
   * @param {() => Promise<void>} work
   */
  async ask(turn, work) {
    try { await work(); } catch (error) {
      if (turn === this.turn) this.failure = messageOf(error);
    }
  }

  show() {
    this.status.textContent = this.failure || (this.text ? this.found : "");
    this.status.classList.toggle("dn-bad", Boolean(this.failure));
    this.field.setAttribute("aria-invalid", String(Boolean(this.failure)));
    this.back.disabled = this.next.disabled = !this.total;
  }

  get found() {
    if (!this.total) return this.busy ? "searching…" : "no match";
    const all = thousands(this.total) + (this.busy ? "…" : "");
    return this.place >= 0 ? `${thousands(this.place + 1)} of ${all}` : all;
  }

  close() { clearInterval(this.clock); this.turn += 1; }
}

/**
 * What Python's expressions say, as far as JavaScript can.
 * @param {string} text
 * @param {boolean} isExpression
 * @param {boolean} isExact about upper and lower case
 */
export function patternOf(text, isExpression, isExact) {
  const [, flags = ""] = (isExpression && text.match(/^\(\?([aimsu]+)\)/)) || [];
  const source = isExpression
    ? text.slice(flags ? flags.length + 3 : 0).replace(/\(\?P</g, "(?<").replace(/\(\?P=(\w+)\)/g, "\\k<$1>")
      .replace(/\\A/g, "^").replace(/\\[zZ]/g, "$")
    : text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const given = `g${flags.includes("i") || !isExact ? "i" : ""}${flags.replace(/[^ms]/g, "")}`;
  for (const each of [`${given}u`, given]) {
    try { return new RegExp(source, each); } catch { /* `\-` is for those without u only */ }
  }
  return null;
}
