// The log: all rows can be scrolled to, those in sight and near it are in the page.

import { button, element } from "../dom.js";
import { Folds, OPEN_NEAR_END } from "./folds.js";
import { lineElement, ROW } from "./line.js";
import { Rows } from "./rows.js";
import { Sheet } from "./sheet.js";
import { paintWrapped } from "./wrapped.js";

/** @import { Batch, LogAnswer } from "../protocol.d.ts" */
/** @import { RunSource } from "../source.js" */
/** @import { Filter } from "./rows.js" */
/** @typedef {{times: boolean, wrap: boolean, wanted: RegExp | null, current: number | null}} Looks */
/** @typedef {{first: number, count: number}} Span rows that are asked for */

const TALLEST = 8_000_000;   // pixels that every browser can lay out
const BLOCK = 200;
const MARGIN = 6;
const FETCH_AFTER_MS = 40;
const BUSY = "The kernel is busy: missing lines appear when it is free. To see them at once, run "
  + "“jupyter server extension enable distrain_nb.server” and restart Jupyter.";

export class Log {
  /**
   * @param {HTMLElement} root
   * @param {RunSource} source
   */
  constructor(root, source) {
    this.source = source;
    this.rows = new Rows();
    this.folds = new Folds();
    this.top = 0;       // place in sight at the top, a fraction while between two
    this.placed = 0;    // where the scroll bar was put
    /** @type {ParentNode | null} what the log stood in then */
    this.place = null;
    this.follow = true;
    /** @type {Looks} `wanted` is a pattern to mark, `current` the row that was jumped to */
    this.looks = { times: false, wrap: false, wanted: null, current: null };
    this.wrapped = { lowest: 0, height: 0 };  // as the rows in sight make them
    this.style = 0;     // counts changes of how every row looks
    /** @type {(() => void)[]} */
    this.listeners = [];
    /** @type {number | null} the first row in sight that is not here */
    this.lacking = null;
    /** @type {"" | "begun" | "whole"} how far the log was read; a run that has ended may have said more */
    this.known = "";
    this.fetching = false;
    this.scheduled = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.soon = undefined;
    this.onSlash = () => {};
    this.sheet = new Sheet(this);
    this.view = element("div", {
      class: "dn-log", role: "log", tabindex: "0", "aria-live": "off",
      "aria-label": "log; arrow keys scroll, slash searches, End follows the latest lines",
    }, this.sheet.node);
    this.latest = button("↓ Latest", () => this.toEnd(), {
      class: "dn-latest", title: "Show new lines as they come", hidden: true,
    });
    this.frame = element("div", { class: "dn-frame" }, this.view, this.latest);
    this.bars = element("div", { class: "dn-bars", role: "group", "aria-label": "progress" });
    this.note = element("div", { class: "dn-note dn-hint", role: "note", hidden: true });
    this.root = root;
    root.append(this.frame, this.bars, this.note);
    this.view.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.view.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("copy", (event) => this.sheet.copied(event));
    this.resized = new ResizeObserver(() => this.draw());
    // An empty log has no size that would change when it is in the page again.
    for (const box of [this.view, this.frame]) this.resized.observe(box);
    this.relabel();
  }

  /** Show what the ranks are called now. */
  relabel() {
    const labels = Object.values(this.source.summary.labels ?? {});
    const longest = Math.max(4, ...labels.map((label) => label.length));
    this.root.style.setProperty("--dn-tags", `${Math.min(24, longest + 1)}ch`);
    this.rows.pools = this.source.summary.pools ?? {};
    this.restyle({});
  }

  /**
   * Change how rows look.
   * @param {Partial<Looks>} changes
   */
  restyle(changes) {
    Object.assign(this.looks, changes);
    this.root.toggleAttribute("data-wrap", this.looks.wrap);
    this.style += 1;
    this.draw();
  }

  // ---- Where in the log -----------------------------------------------------------------

  get places() { return this.folds.placeOf(this.rows.count); }
  get fits() { return this.view.clientHeight / ROW; }
  get lowest() { return this.looks.wrap ? this.wrapped.lowest : Math.max(0, this.places - this.fits); }
  get height() { return Math.min(TALLEST, this.looks.wrap ? this.wrapped.height : this.places * ROW); }

  /** Pixels of the scroll bar for each place: ROW, or less in a log too long for a browser. */
  get scale() {
    const room = this.height - this.view.clientHeight;
    return room > 0 && this.lowest > 0 ? room / this.lowest : ROW;
  }

  /** A log that was moved in the page is at its top, and what it was told before comes late. */
  scrolled() {
    if (!this.root.getClientRects().length || this.root.parentNode !== this.place) return;
    if (Math.abs(this.view.scrollTop - this.placed) < 1) return;
    this.placed = this.view.scrollTop;
    this.move(this.view.scrollTop / this.scale);
  }

  /**
   * Where pixels of the bar stand for lines, however high or many, the wheel still goes by pixels.
   * @param {WheelEvent} event
   */
  wheel(event) {
    const { wrap } = this.looks;
    if ((!wrap && this.scale >= ROW - 0.01) || !event.deltaY || event.ctrlKey) return;
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? ROW : 1);
    this.move(this.top + pixels / this.sheet.heightAt(this.folds.rowAt(Math.floor(this.top))));
  }

  /** @param {number} top */
  move(top) {
    this.top = Math.max(0, Math.min(this.lowest, top));
    this.follow = this.top >= this.lowest - 1;
    this.draw();
  }

  toEnd() {
    this.follow = true;
    this.draw();
    this.tell();
  }

  /**
   * Put the row in sight, and mark it.
   * @param {number} row
   */
  jump(row) {
    this.folds.reveal(row);
    this.looks.current = row;
    this.move(this.folds.placeOf(row) - (this.looks.wrap ? 1 : Math.floor(this.fits / 3)));
    this.follow = false;
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const page = Math.max(1, this.sheet.rowsInSight.length - 1);
    /** @type {Record<string, number>} */
    const moves = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.move(this.top + moves[event.key]);
    else if (event.key === "Home") this.move(0);
    else if (event.key === "End") this.toEnd();
    else if (event.key === "/") this.onSlash();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {Partial<Filter>} filter */
  filter(filter) {
    this.rows.choose(filter);
    this.folds.reset();
    this.looks.current = null;
    this.top = 0;
    this.follow = true;
    this.draw();
    this.tell();
    return this.refresh();
  }

  // ---- Lines -----------------------------------------------------------------------------

  /** Whether what is known of the log is all that the run can have said by what is known of its state. */
  get isRead() { return this.source.summary.final ? this.known === "whole" : this.known !== ""; }

  /** @param {Batch} batch */
  take(batch) {
    this.known = "whole";  // the kernel sends the lines that there are
    this.rows.takeBatch(batch);
    this.draw();
  }

  /** Get the newest lines, or how many there are while older ones are looked at; say whether anything is new. */
  async refresh() {
    return this.load(this.follow ? { first: -BLOCK, count: BLOCK } : { first: -1, count: 1 });
  }

  /**
   * Get these rows; say whether anything is new.
   * @param {Span} span
   */
  async load(span) {
    const { generation } = this.rows;
    /** @type {LogAnswer} */
    const answer = await this.source.ask("log", { ...this.rows.query, ...span });
    if (generation !== this.rows.generation) return true;
    const before = this.known;
    this.known = answer.end ? "whole" : "begun";
    const isNew = this.rows.takeAnswer(answer, this.source.served === true) || this.known !== before;
    if (isNew) this.draw();
    return isNew;
  }

  /** @param {number} row */
  async fetch(row) {
    if (this.fetching) return;
    const first = Math.floor(row / BLOCK) * BLOCK;
    const settled = first + BLOCK <= this.rows.count - OPEN_NEAR_END;
    const span = { first, count: settled ? BLOCK + OPEN_NEAR_END : BLOCK };
    this.fetching = true;
    try {
      await this.load(span);
      if (settled) await this.findFolds(span);
    } finally {
      this.fetching = false;
      this.draw();
    }
  }

  /** @param {Span} span */
  async findFolds(span) {
    const { generation } = this.rows;
    const { folds } = await this.source.ask("tracebacks", { ...this.rows.query, ...span });
    if (generation !== this.rows.generation || !folds.length) return;
    this.refold(() => this.folds.find(folds, this.rows));
  }

  /**
   * Change folds while the row at the top stays where it is.
   * @param {() => void} change
   */
  refold(change) {
    const [whole, part] = [Math.floor(this.top), this.top % 1];
    const row = this.folds.rowAt(whole);
    change();
    if (row !== this.looks.current) this.top = this.folds.placeOf(row) + part;
    this.draw();
  }

  // ---- On screen -------------------------------------------------------------------------

  draw() {
    if (this.scheduled) return;
    this.scheduled = requestAnimationFrame(() => { this.scheduled = 0; this.paint(); });
  }

  tell() { for (const listener of this.listeners) listener(); }

  /** Nothing is in sight where there is no box, as while JupyterLab changes its theme. */
  paint() {
    if (!this.root.getClientRects().length) return;
    this.view.style.display = this.rows.count ? "" : "none";
    const [from, to] = this.looks.wrap ? paintWrapped(this, MARGIN) : this.paintEven();
    const first = this.folds.rowAt(from);
    this.lacking = this.rows.missing(first, this.folds.rowAt(Math.max(from, to - 1)) + 1);
    this.fetchSoon(this.rows.exact ? this.lacking : first);
    this.rows.tidy(first);
    const bars = this.rows.bars.filter((line) => this.rows.passes(line));
    this.bars.replaceChildren(...bars.map((line) => lineElement(line, this.source.summary, this.looks)));
    this.latest.hidden = this.follow || !this.rows.count;
    this.note.hidden = !(this.source.kernelIsBusy && this.lacking !== null);
    this.note.textContent = BUSY;
    this.tell();
  }

  /**
   * Every row is as high as any other.
   * @returns {[from: number, to: number]} places that are painted
   */
  paintEven() {
    this.putBar();
    const from = Math.max(0, Math.floor(this.top) - MARGIN);
    const to = Math.min(this.places, Math.ceil(this.top + this.fits) + MARGIN);
    this.sheet.paint(from, to);
    this.sheet.arrange((place) => (place - this.top) * ROW);
    return [from, to];
  }

  /** Put the scroll bar where the top is. */
  putBar() {
    this.sheet.node.style.height = `${this.height}px`;
    this.top = this.follow ? this.lowest : Math.min(this.top, this.lowest);
    const scroll = this.top * this.scale;
    if (Math.abs(this.view.scrollTop - scroll) >= 1) this.view.scrollTop = scroll;
    this.placed = this.view.scrollTop;
    this.place = this.root.parentNode;
  }

  /** @param {number | null} row */
  fetchSoon(row) {
    clearTimeout(this.soon);
    if (row === null || !this.rows.count) return;
    this.soon = setTimeout(() => this.fetch(row).catch(() => {}), FETCH_AFTER_MS);
  }

  close() {
    cancelAnimationFrame(this.scheduled);
    clearTimeout(this.soon);
    this.resized.disconnect();
  }
}
