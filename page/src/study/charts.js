// The charts of a study: the kernel's drawings, on which trials answer to the reader.

import { themeColours } from "../charts/colours.js";
import { button, element, write } from "../dom.js";
import { drawn as built } from "../markup.js";
import { nearestLine, within } from "./axes.js";
import { Brushes } from "./brushes.js";
import { savePicture } from "./picture.js";

/** @import { StudyCharts as Drawn } from "../protocol.d.ts" */
/** @typedef {{trial: number, x: number, y: number}} Dot shares of a chart's width and height */

const SIDE = 1000;     // of a drawing
const NEAR_DOT_PX = 14;
const NEAR_LINE_PX = 8;
const PARALLEL = "parallel coordinates";

export class StudyCharts {
  /**
   * Calls `picked` when the reader has chosen other trials by brushes, `pointed` for the trial that
   * the mouse is at, `chosen` for one that is clicked. `told` gives what is said of a trial.
   * @param {{picked: () => void, chosen: (trial: number) => void, told: (trial: number) => string, name: () => string, table: () => void}} acts
   */
  constructor(acts) {
    this.acts = acts;
    /** @type {Drawn} */
    this.drawn = { sheet: "", axes: [], shares: {} };
    /** @type {Set<number> | null} those that the brushes let pass; null for all */
    this.passing = null;
    /** @type {number | null} */
    this.hot = null;
    /** @type {WeakMap<Element, Dot[]>} of a chart's place */
    this.dots = new WeakMap();
    this.brushes = new Brushes(() => this.brushed());
    this.clear = button("Clear brushes", () => this.brushes.clear(), { disabled: true });
    this.note = element("span", { class: "dn-chart-note", role: "status" });
    this.hint = element("div", { class: "dn-trial-hint", role: "tooltip", hidden: true });
    this.figure = element("div", { class: "dn-figure" }, this.hint);
    const picture = () => savePicture(this.figure, this.acts.name(), themeColours(this.figure).raised);
    this.tools = element(
      "div", { class: "dn-chart-tools", role: "group", "aria-label": "Chart tools" },
      this.clear,
      button("PNG", picture, { title: "Save the charts as a picture" }),
      button("CSV", () => this.acts.table(), { title: "Save all trials as a table" }),
      this.note,
    );
    this.root = element("div", { class: "distrain-charts", hidden: true }, this.tools, this.figure);
    let due = 0;
    this.figure.addEventListener("pointermove", (event) => {
      cancelAnimationFrame(due);
      due = requestAnimationFrame(() => this.point(event));
    });
    this.figure.addEventListener("pointerleave", () => { cancelAnimationFrame(due); this.light(null); });
    this.figure.addEventListener("click", ({ target }) => {
      const brush = target instanceof Element && target.closest(".dn-brush");
      if (this.hot !== null && !brush) this.acts.chosen(this.hot);
    });
  }

  /**
   * Says whether there was anything new.
   * @param {Drawn} drawn
   */
  show(drawn) {
    if (drawn.sheet === this.drawn.sheet) return false;
    this.drawn = drawn;
    this.root.hidden = !drawn.sheet;
    const fresh = built(drawn.sheet);
    if (!fresh) return false;
    const there = this.figure.querySelector(":scope > .dn-sheet");
    if (!there || !renewed(there, fresh)) {
      there?.remove();
      this.figure.prepend(fresh);
      fresh.querySelector(`.dn-chart[data-tag="${PARALLEL}"] .dn-area`)?.append(this.brushes.node);
    }
    this.dots = new WeakMap();
    this.brushes.show(drawn.axes);
    this.brushed();
    this.light(this.hot);
    return true;
  }

  // ---- Brushes -----------------------------------------------------------------------------

  brushed() {
    const { shares } = this.drawn;
    this.passing = within(shares, this.brushes.spans);
    this.clear.disabled = this.passing === null;
    write(this.note, this.passing ? `${this.passing.size} of ${Object.keys(shares).length} trials` : "");
    for (const mark of this.figure.querySelectorAll("[data-trial]")) {
      mark.classList.toggle("dn-out", this.passing?.has(trialOf(mark)) === false);
    }
    this.acts.picked();
  }

  // ---- The trial at the mouse --------------------------------------------------------------

  /** @param {PointerEvent} event */
  point({ target, clientX, clientY }) {
    const area = target instanceof Element ? target.closest(".dn-area") : null;
    if (!area || !this.figure.isConnected) return this.light(null);
    const box = area.getBoundingClientRect();
    const at = { x: clientX - box.left, y: clientY - box.top, width: box.width, height: box.height };
    const chart = /** @type {HTMLElement | null} */ (area.closest(".dn-chart"));
    const trial = chart?.dataset.tag === PARALLEL
      ? nearestLine(this.shown, at, NEAR_LINE_PX)
      : this.nearestDot(area, at);
    this.light(trial);
    if (trial !== null) this.put(clientX, clientY);
  }

  /** Where the trials stand that are not brushed away. */
  get shown() {
    const { passing, drawn: { shares } } = this;
    return passing ? Object.fromEntries(Object.entries(shares).filter(([trial]) => passing.has(Number(trial)))) : shares;
  }

  /**
   * @param {Element} area
   * @param {{x: number, y: number, width: number, height: number}} at
   */
  nearestDot(area, { x, y, width, height }) {
    const dots = this.dots.get(area) ?? dotsOf(area);
    this.dots.set(area, dots);
    /** @type {[number, number | null]} */
    let best = [NEAR_DOT_PX, null];
    for (const dot of dots) {
      if (this.passing?.has(dot.trial) === false) continue;
      const far = Math.hypot(dot.x * width - x, dot.y * height - y);
      if (far < best[0]) best = [far, dot.trial];
    }
    return best[1];
  }

  /** @param {number | null} trial */
  light(trial) {
    this.hot = trial;
    for (const mark of this.figure.querySelectorAll(".dn-hot")) mark.classList.remove("dn-hot");
    this.hint.hidden = trial === null;
    if (trial === null) return;
    for (const mark of this.figure.querySelectorAll(`[data-trial="${trial}"]`)) mark.classList.add("dn-hot");
    write(this.hint, this.acts.told(trial));
  }

  /**
   * @param {number} clientX
   * @param {number} clientY
   */
  put(clientX, clientY) {
    const { left, top, width } = this.figure.getBoundingClientRect();
    const x = clientX - left;
    const { style } = this.hint;
    style.top = `${clientY - top + 14}px`;
    style.left = x < width / 2 ? `${x + 12}px` : "auto";
    style.right = x < width / 2 ? "auto" : `${width - x + 12}px`;
  }
}

/** @param {Element} mark */
function trialOf(mark) { return Number(mark.getAttribute("data-trial")); }

/**
 * @param {Element} area
 * @returns {Dot[]}
 */
function dotsOf(area) {
  return [...area.querySelectorAll("[data-trial]")].map((mark) => {
    const [, x, y] = mark.getAttribute("d")?.match(/^M(\S+) ([^hv]+)[hv]/) ?? [];
    return { trial: trialOf(mark), x: Number(x) / SIDE, y: Number(y) / SIDE };
  });
}

/**
 * Put new drawings into the places of the same charts, so that what the reader holds stays; says
 * whether they are the same charts.
 * @param {Element} there
 * @param {Element} fresh
 */
function renewed(there, fresh) {
  const [old, now] = [there, fresh].map((sheet) => (
    [.../** @type {NodeListOf<HTMLElement>} */ (sheet.querySelectorAll(".dn-chart"))]
  ));
  if (old.length !== now.length || old.some((chart, place) => chart.dataset.tag !== now[place].dataset.tag)) return false;
  there.setAttribute("style", fresh.getAttribute("style") ?? "");
  for (const part of [".dn-legend"]) there.querySelector(part)?.replaceWith(fresh.querySelector(part) ?? "");
  old.forEach((chart, place) => {
    const [area, drawn] = [chart, now[place]].map((each) => each.querySelector(".dn-area"));
    if (!area || !drawn) return;
    for (const child of [...area.children]) if (!child.classList.contains("dn-brushes")) child.remove();
    area.prepend(...drawn.childNodes);
    write(/** @type {Element} */ (chart.querySelector(".dn-newest")), now[place].querySelector(".dn-newest")?.textContent ?? "");
  });
  return true;
}
