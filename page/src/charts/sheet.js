// What stands around the lines: legend, groups, titles. The kernel writes it, with drawings of the
// lines until plotly has drawn them; here it answers to the reader.

import { button, write } from "../dom.js";

/** @typedef {{left: number, top: number, width: number, height: number}} Box pixels */
/** @typedef {{node: HTMLElement, tag: string, area: HTMLElement, newest: Element | null}} Chart */

export class Sheet {
  /**
   * Calls `toggled` when the reader hides or shows a series.
   * @param {HTMLElement} figure
   * @param {() => void} toggled
   */
  constructor(figure, toggled) {
    this.figure = figure;
    this.toggled = toggled;
    /** @type {Set<string>} series */
    this.hidden = new Set();
    /** @type {Set<string>} groups */
    this.folded = new Set();
    this.words = "";
    this.markup = "";
    /** @type {Chart[]} */
    this.charts = [];
  }

  /** @param {string} markup */
  show(markup) {
    if (markup === this.markup) return;
    this.markup = markup;
    const place = document.createElement("template");
    place.innerHTML = markup;
    const sheet = place.content.firstElementChild;
    if (!sheet) return;
    this.figure.querySelector(":scope > .dn-sheet")?.remove();
    this.figure.prepend(sheet);
    this.charts = [.../** @type {NodeListOf<HTMLElement>} */ (sheet.querySelectorAll(".dn-chart"))].map((node) => ({
      node, tag: node.dataset.tag ?? "", newest: node.querySelector(".dn-newest"),
      area: /** @type {HTMLElement} */ (node.querySelector(".dn-area")),
    }));
    for (const group of /** @type {NodeListOf<HTMLDetailsElement>} */ (sheet.querySelectorAll("details"))) this.fold(group);
    for (const name of /** @type {NodeListOf<HTMLElement>} */ (sheet.querySelectorAll(".dn-series"))) this.answer(name);
    this.filter(this.words);
  }

  /** @param {HTMLDetailsElement} group */
  fold(group) {
    const name = group.dataset.group ?? "";
    group.open = !this.folded.has(name);
    group.addEventListener("toggle", () => {
      if (group.open) this.folded.delete(name);
      else this.folded.add(name);
    });
  }

  /** @param {HTMLElement} name of a series, in the legend */
  answer(name) {
    const series = name.dataset.series ?? "";
    const isShown = () => String(!this.hidden.has(series));
    const made = button(name.textContent ?? "", () => {
      if (!this.hidden.delete(series)) this.hidden.add(series);
      made.setAttribute("aria-pressed", isShown());
      this.toggled();
    }, { class: "dn-series", style: name.getAttribute("style"), "aria-pressed": isShown() });
    name.replaceWith(made);
  }

  /** @param {Record<string, string>} values of each metric, the newest */
  tell(values) {
    for (const { tag, newest } of this.charts) if (newest) write(newest, values[tag] ?? "");
  }

  /**
   * Show the metrics whose names have all these words.
   * @param {string} words
   */
  filter(words) {
    this.words = words;
    const wanted = words.toLowerCase().split(/\s+/);
    for (const { node, tag } of this.charts) node.hidden = !wanted.every((word) => tag.toLowerCase().includes(word));
    for (const group of /** @type {NodeListOf<HTMLElement>} */ (this.figure.querySelectorAll(".dn-group"))) {
      group.hidden = !group.querySelector(".dn-chart:not([hidden])");
    }
  }

  /** Where lines are drawn, of the metrics that are shown. */
  get boxes() {
    const origin = this.figure.getBoundingClientRect();
    /** @type {Map<string, Box>} */
    const boxes = new Map();
    for (const { tag, area } of this.charts) {
      if (area.closest(".dn-group:is(details:not([open]))")) continue;  // has a size all the same
      const { left, top, width, height } = area.getBoundingClientRect();
      if (width && height) boxes.set(tag, { left: left - origin.left, top: top - origin.top, width, height });
    }
    return boxes;
  }
}
