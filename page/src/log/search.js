// Search over the whole log on disk.

import { button, debounce, element, isPressed, toggle } from "../dom.js";
import { messageOf } from "../source.js";
import { thousands } from "../words.js";

/** @import { Query } from "../source.js" */
/** @import { Log } from "./log.js" */

const HITS_AT_ONCE = 1000;
const MOST_HITS = 20000;
const CONTINUE_EVERY_MS = 2000;
const TYPED_MS = 200;

export class Search {
  /** @param {Log} log */
  constructor(log) {
    this.log = log;
    this.turn = 0;        // counts searches: what comes for one before counts for nothing
    this.text = "";
    /** @type {number[]} rows */
    this.hits = [];
    this.place = -1;      // among the hits
    this.searched = -1;   // the last row that has been searched
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
    this.back = button("↑", () => this.step(-1), { class: "dn-chip", title: "Previous match (Shift+Enter)" });
    this.next = button("↓", () => this.step(1), { class: "dn-chip", title: "Next match (Enter)" });
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
    this.hits = [];
    this.place = -1;
    this.searched = -1;
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
    const row = this.log.folds.rowAt(Math.floor(this.log.top));
    await this.continue();
    if (!this.hits.length) return;
    this.place = this.hits.findIndex((hit) => hit >= row) - 1;
    if (this.place === -2) this.place = this.hits.length - 2;
    this.step(1);
  }

  /** Look through what has not been searched yet. */
  async continue() {
    if (!this.text || this.busy || this.failure || !this.log.view.isConnected) return;
    if (this.searched >= 0 && this.searched >= this.log.rows.count - 1) return;
    const { turn } = this;
    this.busy = true;
    this.show();
    try {
      while (turn === this.turn && !(await this.more(turn)) && this.hits.length < MOST_HITS);
    } catch (error) {
      if (turn === this.turn) this.failure = messageOf(error);
    }
    if (turn !== this.turn) return;
    this.busy = false;
    this.show();
  }

  /**
   * Ask for more matches; says whether there are no others.
   * @param {number} turn
   * @returns {Promise<boolean>}
   */
  async more(turn) {
    /** @type {Query} */
    const query = { ...this.log.rows.query, text: this.text, after: this.searched, limit: HITS_AT_ONCE };
    if (isPressed(this.regex)) query.regex = 1;
    if (isPressed(this.letters)) query.case = 1;
    const answer = await this.log.source.ask("search", query);
    if (turn !== this.turn) return true;
    this.hits.push(...answer.rows);
    const stuck = answer.searched <= this.searched;
    this.searched = answer.searched;
    this.show();
    return answer.done || stuck;
  }

  /** @param {1 | -1} direction */
  step(direction) {
    if (!this.hits.length) return;
    this.place = (this.place + direction + this.hits.length) % this.hits.length;
    this.log.jump(this.hits[this.place]);
    this.log.tell();
    this.show();
  }

  show() {
    this.status.textContent = this.failure || (this.text ? this.found : "");
    this.status.classList.toggle("dn-bad", Boolean(this.failure));
    this.field.setAttribute("aria-invalid", String(Boolean(this.failure)));
    this.back.disabled = this.next.disabled = !this.hits.length;
  }

  get found() {
    if (!this.hits.length) return this.busy ? "searching…" : "no match";
    const all = thousands(this.hits.length) + (this.hits.length >= MOST_HITS ? "+" : "");
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
