// What stands around the lines: legend, groups, titles. The kernel writes it, with drawings of the
// lines until plotly has drawn them; here it answers to the reader.

import { button, element, write } from "../dom.js";
import { drawn } from "../markup.js";
import { fits } from "./found.js";
import { HeatMap } from "./heat.js";

/** @import { Kept } from "./kept.js" */
/** @typedef {{left: number, top: number, width: number, height: number}} Box pixels */
/** @typedef {{node: HTMLElement, tag: string, area: HTMLElement, newest: Element | null}} Chart */

export class Sheet {
  /**
   * Calls `toggled` when the reader hides or shows a series, or all of many, `lit` for the series
   * whose name is pointed at, or none, and `chosen` for a rank of the heat map.
   * @param {HTMLElement} figure
   * @param {Kept} kept
   * @param {() => void} toggled
   * @param {(series: string | null) => void} lit
   * @param {(rank: number) => void} chosen
   */
  constructor(figure, kept, toggled, lit, chosen) {
    this.figure = figure;
    this.kept = kept;
    this.toggled = toggled;
    this.lit = lit;
    this.heat = new HeatMap(chosen);
    /** @type {HTMLDetailsElement | null} the names of many series, which are a band */
    this.many = null;
    this.all = false;  // whether each of many series has its line
    /** @type {string[]} in the order of the legend */
    this.series = [];
    /** @type {HTMLElement | undefined} where pinned charts stand */
    this.pinned = undefined;
    /** @type {Set<string>} series */
    this.hidden = new Set();
    /** @type {Set<string>} groups */
    this.folded = new Set();
    /** @type {string[]} metrics that have a place besides those of the kernel's sheet */
    this.found = [];
    this.words = "";
    this.markup = "";
    /** @type {Chart[]} */
    this.charts = [];
  }

  /** @param {string} markup */
  show(markup) {
    if (markup === this.markup) return;
    this.markup = markup;
    const sheet = drawn(markup);
    if (!sheet) return;
    this.heat.replace(sheet, () => {
      this.figure.querySelector(":scope > .dn-sheet")?.remove();
      this.figure.prepend(sheet);
    });
    this.charts = [.../** @type {NodeListOf<HTMLElement>} */ (sheet.querySelectorAll(".dn-chart"))].map(chartOf);
    for (const group of /** @type {NodeListOf<HTMLDetailsElement>} */ (sheet.querySelectorAll("details.dn-group"))) this.fold(group);
    const names = /** @type {NodeListOf<HTMLElement>} */ (sheet.querySelectorAll(".dn-series[data-series]"));
    this.series = [...names].map((name) => name.dataset.series ?? "");
    for (const name of names) this.answer(name);
    this.many = /** @type {HTMLDetailsElement | null} */ (sheet.querySelector("details.dn-many"));
    if (this.many) this.unfold(this.many);
    this.pinned = element("div", { class: "dn-grid", "data-most": 3 });
    sheet.querySelector(".dn-group")?.before(element("div", { class: "dn-group dn-pinned" }, this.pinned));
    for (const chart of this.charts) this.offerPin(chart);
    this.add(this.found);
  }

  /**
   * Pinned charts come first, in the order in which they were pinned.
   * @param {Chart} chart
   */
  offerPin({ node, tag }) {
    const pin = () => {
      this.kept.pin(tag);
      const { markup } = this;
      this.markup = "";
      this.show(markup);
      this.toggled();
      /** @type {HTMLElement | undefined} */ (this.charts.find((chart) => chart.tag === tag)?.node.querySelector(".dn-pin") ?? undefined)?.focus();
    };
    const isPinned = this.kept.isPinned(tag);
    node.querySelector(".dn-title")?.append(button("", pin, {
      class: "dn-pin", "aria-pressed": String(isPinned), "aria-label": `pin ${tag}`,
      title: isPinned ? "Unpin" : "Show first, in all runs",
    }));
  }

  /** Put the pinned charts into their place. */
  bringPinned() {
    const charts = this.kept.choice.pinned.flatMap((tag) => this.charts.find((chart) => chart.tag === tag)?.node ?? []);
    this.pinned?.append(...charts);
    // Fewer charts than columns would leave a hole, here and where the pinned ones stood.
    for (const grid of /** @type {NodeListOf<HTMLElement>} */ (this.figure.querySelectorAll(".dn-grid"))) {
      grid.dataset.most = String(Math.min(Number(grid.dataset.most), grid.childElementCount));
    }
  }

  /**
   * Have places for these metrics below the others, and for no more than these.
   * @param {string[]} tags
   */
  add(tags) {
    this.found = tags;
    this.figure.querySelector(".dn-found")?.remove();
    this.charts = this.charts.filter(({ node }) => this.figure.contains(node));
    if (tags.length && this.charts.length) {
      const made = tags.map((tag) => emptied(this.charts[0].node, tag));
      const grid = element("div", { class: "dn-grid", "data-most": tags.length > 4 ? 3 : Math.min(2, tags.length) }, ...made);
      [...this.figure.querySelectorAll(".dn-sheet > .dn-group")].at(-1)?.after(element("div", { class: "dn-group dn-found" }, grid));
      const added = made.map(chartOf);
      for (const chart of added) this.offerPin(chart);
      this.charts.push(...added);
    }
    this.bringPinned();
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

  /** @param {HTMLDetailsElement} many the names of all series, which have lines while it is open */
  unfold(many) {
    many.open = this.all;
    many.addEventListener("toggle", () => {
      if (this.all === many.open) return;
      this.all = many.open;
      this.toggled();
    });
  }

  /**
   * Name what is drawn of many series, as long as not all are.
   * @param {Set<string>} series
   */
  keep(series) {
    const place = /** @type {HTMLElement | null} */ (this.figure.querySelector(".dn-kept"));
    if (!place) return;
    place.hidden = this.all;
    const key = JSON.stringify([...series]);
    if (place.dataset.kept === key) return;
    place.dataset.kept = key;
    const inks = new Map([.../** @type {NodeListOf<HTMLElement>} */ (this.figure.querySelectorAll(".dn-many .dn-series"))]
      .map((name) => [name.dataset.series ?? "", [name.getAttribute("style") ?? "", name.textContent]]));
    const lines = [...series].flatMap((name) => { const ink = inks.get(name); return ink ? [ink] : []; });
    const band = [...place.children].slice(0, 2);
    place.replaceChildren(...band, ...lines.map(([style, text]) => element("span", { class: "dn-series", style }, text)));
  }

  /** @param {HTMLElement} name of a series, in the legend */
  answer(name) {
    const series = name.dataset.series ?? "";
    const isShown = () => String(!this.hidden.has(series));
    const made = button(name.textContent ?? "", () => {
      if (!this.hidden.delete(series)) this.hidden.add(series);
      made.setAttribute("aria-pressed", isShown());
      this.toggled();
    }, {
      class: "dn-series", style: name.getAttribute("style"), "aria-pressed": isShown(), "data-series": series,
      onpointerenter: () => this.lit(series), onpointerleave: () => this.lit(null),
      onfocus: () => this.lit(series), onblur: () => this.lit(null),
    });
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
    for (const { node, tag } of this.charts) node.hidden = !fits(tag, words);
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

/**
 * @param {HTMLElement} node
 * @returns {Chart}
 */
function chartOf(node) {
  const area = /** @type {HTMLElement} */ (node.querySelector(".dn-area"));
  return { node, tag: node.dataset.tag ?? "", area, newest: node.querySelector(".dn-newest") };
}

/**
 * The place of one metric, made from another's.
 * @param {HTMLElement} chart
 * @param {string} tag
 */
function emptied(chart, tag) {
  const made = /** @type {HTMLElement} */ (chart.cloneNode(true));
  made.querySelector(".dn-pin")?.remove();
  made.dataset.tag = tag;
  made.querySelector(".dn-title")?.setAttribute("title", tag);
  for (const [place, text] of [["b", tag], [".dn-newest", ""], [".dn-words", ""], [".dn-area", ""]]) {
    const node = made.querySelector(place);
    if (node) node.textContent = text;
  }
  return made;
}
