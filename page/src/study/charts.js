// The charts of a study: the kernel's drawings, on which trials answer to the reader.

import { themeColours } from "../charts/colours.js";
import { arrange, button, element, write } from "../dom.js";
import { built, parsed } from "../markup.js";
import { marksOf, nearestLine, nearestMark, within } from "./axes.js";
import { Brushes } from "./brushes.js";
import { savePicture } from "./picture.js";

/** @import { StudyCharts as Drawn } from "../protocol.d.ts" */
/** @import { Mark, Place } from "./axes.js" */

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
    /** @type {[chart: HTMLElement, drawn: HTMLElement][]} those whose new drawings wait for a frame */
    this.waiting = [];
    /** @type {Set<HTMLElement | null>} charts, and null for the table, that do not show yet what the brushes let pass */
    this.unmarked = new Set();
    this.due = 0;
    /** @type {WeakMap<Element, Mark[]>} of a chart's drawing */
    this.marks = new WeakMap();
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

  /** @param {Drawn} drawn */
  show(drawn) {
    if (drawn.sheet === this.drawn.sheet) return;
    const fresh = parsed(drawn.sheet);
    const sheet = this.figure.querySelector(":scope > .dn-sheet");
    this.drawn = drawn;
    this.root.hidden = !drawn.sheet;
    if (!fresh) return;
    const charts = sheet && sameCharts(sheet, fresh);
    if (charts) {
      this.wait(charts);
    } else {
      this.waiting = [];
      sheet?.remove();
      const made = /** @type {Element} */ (built(fresh));
      this.figure.prepend(made);
      made.querySelector(`.dn-chart[data-tag="${PARALLEL}"] .dn-area`)?.append(this.brushes.node);
    }
    this.brushes.show(drawn.axes);
    this.choose();
    this.mark(this.figure);
  }

  /**
   * One chart a frame; those that wait from before come first.
   * @param {[chart: HTMLElement, drawn: HTMLElement][]} charts
   */
  wait(charts) {
    const before = new Set(this.waiting.map(([chart]) => chart));
    this.waiting = charts.sort(([a], [b]) => Number(before.has(b)) - Number(before.has(a)));
    this.schedule();
  }

  schedule() {
    cancelAnimationFrame(this.due);
    this.due = requestAnimationFrame(() => this.turn());
  }

  /** Draw or mark one chart: painting them all takes longer than a frame. */
  turn() {
    const [next] = this.waiting;
    const [first] = this.unmarked;
    if (next) {
      this.waiting.shift();
      renewed(...next);
      this.marks = new WeakMap();
      this.mark(next[0]);
    } else if (first === null) this.acts.picked();
    else if (first) this.mark(first);
    if (!next) this.unmarked.delete(first);
    if (this.waiting.length || this.unmarked.size) this.schedule();
  }

  // ---- Brushes -----------------------------------------------------------------------------

  brushed() {
    this.choose();
    for (const chart of /** @type {NodeListOf<HTMLElement>} */ (this.figure.querySelectorAll(".dn-chart"))) this.unmarked.add(chart);
    this.unmarked.add(null);
    this.schedule();
  }

  choose() {
    const { shares } = this.drawn;
    this.passing = within(shares, this.brushes.spans);
    this.clear.disabled = this.passing === null;
    write(this.note, this.passing ? `${this.passing.size} of ${Object.keys(shares).length} trials` : "");
  }

  /** @param {Element} within where trials are drawn */
  mark(within) {
    for (const mark of within.querySelectorAll("[data-trial]")) {
      mark.classList.toggle("dn-out", this.passing?.has(trialOf(mark)) === false);
    }
    this.lift(within);
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
      ? nearestLine(this.shown, at)
      : this.nearest(area, at);
    this.light(trial);
    if (trial !== null) this.put(clientX, clientY);
  }

  /** Where the trials stand that are not brushed away. */
  get shown() {
    const { passing, drawn: { shares } } = this;
    return passing ? Object.fromEntries(Object.entries(shares).filter(([trial]) => passing.has(Number(trial)))) : shares;
  }

  /**
   * The trial of what is drawn next to a place, and not brushed away.
   * @param {Element} area
   * @param {Place} at
   */
  nearest(area, at) {
    const drawing = area.firstElementChild ?? area;
    const drawn = [...drawing.querySelectorAll("[data-trial]")];
    const marks = this.marks.get(drawing) ?? drawn.flatMap((mark) => marksOf(trialOf(mark), mark.getAttribute("d") ?? ""));
    this.marks.set(drawing, marks);
    const { passing } = this;
    return nearestMark(passing ? marks.filter(({ trial }) => passing.has(trial)) : marks, at);
  }

  /** @param {number | null} trial */
  light(trial) {
    if (trial === this.hot) return;
    this.hot = trial;
    this.hint.hidden = trial === null;
    this.lift(this.figure);
    if (trial !== null) write(this.hint, this.acts.told(trial));
  }

  /**
   * Draw the trial at the mouse once more, in a drawing of its own above the others: to paint those
   * anew takes 50 ms where there are 200.
   * @param {Element} within where trials are drawn
   */
  lift(within) {
    for (const above of within.querySelectorAll(".dn-above")) above.remove();
    if (this.hot === null) return;
    for (const drawing of /** @type {NodeListOf<SVGSVGElement>} */ (within.querySelectorAll(".dn-area > svg"))) {
      const marks = drawing.querySelectorAll(`[data-trial="${this.hot}"]`);
      if (!marks.length) continue;
      const above = /** @type {SVGSVGElement} */ (drawing.cloneNode());
      above.classList.add("dn-above");
      above.setAttribute("aria-hidden", "true");
      above.append(...[...marks].map((mark) => mark.cloneNode()));
      drawing.after(above);
    }
  }

  /**
   * @param {number} clientX
   * @param {number} clientY
   */
  put(clientX, clientY) {
    const { left, top, width } = this.figure.getBoundingClientRect();
    const x = clientX - left;
    const across = x < width / 2 ? `${x + 12}px` : `calc(${x - 12}px - 100%)`;
    this.hint.style.transform = `translate(${across}, ${clientY - top + 14}px)`;
  }
}

/** @param {Element} mark */
function trialOf(mark) { return Number(mark.getAttribute("data-trial")); }

/**
 * The charts of a sheet with their new drawings; null where they are other charts. What stands
 * around them is as the new sheet has it.
 * @param {Element} there
 * @param {Element} fresh
 * @returns {[HTMLElement, HTMLElement][] | null}
 */
function sameCharts(there, fresh) {
  const [old, now] = [there, fresh].map((sheet) => (
    [.../** @type {NodeListOf<HTMLElement>} */ (sheet.querySelectorAll(".dn-chart"))]
  ));
  if (old.length !== now.length || old.some((chart, place) => chart.dataset.tag !== now[place].dataset.tag)) return null;
  const [empty, legend] = [/** @type {Element} */ (fresh.cloneNode()), fresh.querySelector(".dn-legend")];
  there.setAttribute("style", /** @type {Element} */ (built(empty)).getAttribute("style") ?? "");
  there.querySelector(".dn-legend")?.replaceWith(legend && built(legend) || "");
  return old.map((chart, place) => [chart, now[place]]);
}

const serializer = new XMLSerializer();
/** @type {WeakMap<Element, string>} what elements were built of */
const sources = new WeakMap();

/**
 * The elements of a drawing; those that are among the children of its place already, as they are.
 * To lay out and paint 200 new marks takes longer than a frame.
 * @param {Element} place
 * @param {Element[]} drawn
 * @returns {Element[]}
 */
function kept(place, drawn) {
  /** @type {Map<string, Element[]>} */
  const there = new Map();
  for (const child of place.children) {
    const source = sources.get(child);
    if (source !== undefined) there.set(source, [...there.get(source) ?? [], child]);
  }
  return drawn.flatMap((one) => {
    const source = serializer.serializeToString(one);
    const made = there.get(source)?.shift() ?? built(one);
    if (!(made instanceof Element)) return [];
    sources.set(made, source);
    return [made];
  });
}

/**
 * Put a new drawing into the place of the same chart, so that what the reader holds stays.
 * @param {HTMLElement} chart
 * @param {HTMLElement} fresh
 */
function renewed(chart, fresh) {
  const [area, drawn] = [chart, fresh].map((one) => one.querySelector(".dn-area"));
  if (!area || !drawn) return;
  const [svg, marks] = [area, drawn].map((one) => one.querySelector(":scope > svg"));
  const brushes = area.querySelector(":scope > .dn-brushes");
  if (svg && marks) {
    arrange(svg, kept(svg, [...marks.children]));
    svg.setAttribute("aria-label", marks.getAttribute("aria-label") ?? "");
  }
  const others = kept(area, [...drawn.children].filter((one) => !svg || one !== marks));
  arrange(area, [svg && marks ? svg : null, ...others, brushes].filter((one) => one !== null));
  write(/** @type {Element} */ (chart.querySelector(".dn-newest")), fresh.querySelector(".dn-newest")?.textContent ?? "");
}
