// Runs side by side, kept current: a column for each run, a row for each thing that they have.

import { button, element, fold, OWN_KEYS } from "../dom.js";
import { SIGNS } from "../run/head.js";
import { messageOf } from "../source.js";

/** @import { CompareAnswer, ComparedRow } from "../protocol.d.ts" */
/** @typedef {{name: string, down: boolean}} Order the row by which runs are put in order */

const LOOK_EVERY_MS = 2000;
/** @type {Record<string, string>} classes of a diff's lines */
const DIFFERS = { "+": "dn-added", "-": "dn-removed", "@": "dn-soft" };

export class Comparison {
  /**
   * @param {HTMLElement} root
   * @param {() => Promise<CompareAnswer>} ask
   */
  constructor(root, ask) {
    this.ask = ask;
    /** @type {CompareAnswer | null} */
    this.answer = null;
    /** @type {Order | null} null as they were given */
    this.order = null;
    this.shown = "";
    this.closed = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.table = element("table", { class: "dn-table dn-compared", "aria-label": "runs compared" });
    const { box, inside, summary } = fold("", "dn-equals");
    this.equal = box;
    this.equals = inside;
    this.equalTitle = summary;
    this.note = element("div", { class: "dn-note", role: "note", hidden: true });
    this.code = fold("How the code differs");
    this.diff = element("pre", { class: "dn-diff", role: "group", tabindex: "0", "aria-label": "how the code differs", ...OWN_KEYS });
    this.code.inside.append(this.diff);
    root.append(element("div", { class: "dn-runs", ...OWN_KEYS }, this.table), this.code.box, this.equal, this.note);
    this.look();
  }

  async look() {
    try {
      if (!document.hidden) this.answer = await this.ask();
      this.note.hidden = true;
    } catch (error) {
      this.note.hidden = false;
      this.note.textContent = messageOf(error);
    }
    if (this.closed) return;
    this.show();
    if (!this.answer?.runs.every((run) => run.final)) this.timer = setTimeout(() => this.look(), LOOK_EVERY_MS);
  }

  /** @param {ComparedRow} row */
  sort(row) {
    const down = this.order?.name === row.name ? !this.order.down : false;
    this.order = { name: row.name, down };
    this.show();
  }

  show() {
    if (!this.answer) return;
    const { titles, runs, rows } = this.answer;
    const shown = JSON.stringify([this.answer, this.order]);
    if (shown === this.shown) return;
    this.shown = shown;
    const places = inOrder(rows, titles.length, this.order);
    const [first, ...others] = rows;
    const body = [first, ...others.filter((row) => row.differs || row.name === "cause")];
    const held = this.table.contains(document.activeElement) ? document.activeElement?.textContent : null;
    const heads = places.map((place) => element("th", { scope: "col" }, titles[place]));
    const corner = element("th", { scope: "col" }, "what differs");
    this.table.replaceChildren(
      element("thead", {}, element("tr", {}, corner, ...heads)),
      element("tbody", {}, ...body.map((row) => this.line(row, places))),
    );
    for (const state of this.table.querySelectorAll("[data-place]")) {
      const { place = 0 } = /** @type {HTMLElement} */ (state).dataset;
      const run = runs[Number(place)];
      /** @type {HTMLElement} */ (state).dataset.state = run.state;
      state.prepend(`${SIGNS[run.state] ?? "◌"} `);
    }
    this.showDiff(this.answer.diff ?? "");
    this.showEquals(others.filter((row) => !row.differs && row.name !== "cause"));
    if (held) [...this.table.querySelectorAll("button")].find((each) => each.textContent === held)?.focus();
  }

  /**
   * @param {ComparedRow} row
   * @param {number[]} places
   */
  line(row, places) {
    const sorted = this.order?.name === row.name && (this.order.down ? "descending" : "ascending");
    const sort = button(row.name, () => this.sort(row), { class: "dn-sort", title: `Sort runs by ${row.name}` });
    const cells = places.map((place) => {
      const star = row.best.includes(place) ? element("span", { role: "img", "aria-label": "best" }, " ★") : null;
      const text = row.texts[place];
      const isState = row.name === "state";
      return element("td", {
        class: star ? "dn-top" : `dn-${row.name === "cause" ? "cause" : "value"}`,
        title: text.length > 40 && text, "data-place": isState && String(place),
      }, text, star);
    });
    return element("tr", {}, element("th", { scope: "row", "aria-sort": sorted }, sort), ...cells);
  }

  /** @param {string} diff unified, as `_diff_html` in ui/compare.py has it */
  showDiff(diff) {
    this.code.box.hidden = !diff;
    const lines = diff.split("\n").map((line) => element("span", { class: DIFFERS[line[0]] ?? "" }, `${line}\n`));
    this.diff.replaceChildren(...lines);
  }

  /** @param {ComparedRow[]} rows those that all runs have alike */
  showEquals(rows) {
    const known = rows.filter((row) => row.texts[0]);
    this.equal.hidden = !known.length;
    this.equalTitle.textContent = `Identical in all runs (${known.length})`;
    const lines = known.map(({ name, texts }) => (
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, texts[0]))
    ));
    this.equals.replaceChildren(element("table", { class: "dn-table", "aria-label": "identical in all runs" }, element("tbody", {}, ...lines)));
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }
}

/**
 * The places of the runs as they are ordered; what has no value comes last either way.
 * @param {ComparedRow[]} rows
 * @param {number} count
 * @param {Order | null} order
 */
export function inOrder(rows, count, order) {
  const places = Array.from({ length: count }, (_, place) => place);
  const row = rows.find(({ name }) => name === order?.name);
  if (!row || !order) return places;
  const has = (/** @type {number} */ place) => (row.numbers.length ? row.numbers[place] !== null : row.texts[place] !== "");
  const compared = (/** @type {number} */ a, /** @type {number} */ b) => (row.numbers.length
    ? Number(row.numbers[a]) - Number(row.numbers[b])
    : row.texts[a].localeCompare(row.texts[b], "en", { numeric: true }));
  return places.sort((a, b) => (
    Number(has(b)) - Number(has(a)) || (has(a) ? (order.down ? -1 : 1) * compared(a, b) : 0) || a - b
  ));
}
