// Charts of a run: one figure for all metrics, and the tools above it.

import { button, choice, debounce, element, OWN_KEYS, saveAs } from "../dom.js";
import { messageOf } from "../source.js";
import { apart, bandOf, MANY } from "./band.js";
import { themeColours, whenThemed } from "./colours.js";
import { Found, traceLike } from "./found.js";
import { PlotFrame } from "./frame.js";
import { Kept } from "./kept.js";
import { asPicture, axisNumber, hoverMode, layoutFor } from "./layout.js";
import { across, byNumber, csv, edges, isThinned, refined, smoothed, stepsWithin, unpacked, wholeLines } from "./lines.js";
import { Sheet } from "./sheet.js";

/** @import { ChartsState, CurveAnswer, Model, Shape } from "../protocol.d.ts" */
/** @import { Query, Source } from "../source.js" */
/** @import { ChartLine, Mode, Numbers } from "./lines.js" */
/**
 * Finer points of one subplot, by the numbers of its lines, as they are and averaged.
 * @typedef {{lines?: Map<number, ChartLine>, smooth?: Map<number, ChartLine> | null, weight: number, at: number}} Range
 */

const FINE_POINTS = 1000;
const SMOOTH_POINTS = 500;
const AGAIN_MS = 2000;
const SETTLED_MS = 150;
const FILTERED_FROM = 7;  // metrics
/** @type {[Mode, string][]} */
const X_AXES = [["step", "x: step"], ["relative", "x: seconds since the start"], ["wall", "x: time of day"]];
/** @type {[Mode, string][]} of samples, which are numbered by their seconds */
const X_OF_SAMPLES = [["step", "x: seconds since the start"], ["wall", "x: time of day"]];
/** @type {[string, string][]} */
const Y_AXES = [["linear", "y: linear"], ["log", "y: logarithmic"]];

export class Charts {
  /**
   * @param {Model<ChartsState>} model
   * @param {HTMLElement} root
   * @param {Source<ChartsState>} source
   * @param {() => Promise<DataView>} code of plotly
   */
  constructor(model, root, source, code) {
    this.model = model;
    this.source = source;
    this.kept = new Kept(model.get("path") === "curves" ? "metrics" : model.get("path"));
    this.smoothing = this.kept.choice.smoothing;
    this.isSampled = model.get("path") === "resources";
    this.mode = this.isSampled && this.kept.choice.mode === "relative" ? "step" : this.kept.choice.mode;
    this.scale = this.kept.choice.scale;
    /** @type {Map<number, Range>} by the number of a subplot */
    this.fine = new Map();
    /** @type {{weight: number, lines: Map<number, ChartLine>} | null} averaged over all points */
    this.smooth = null;
    this.averagedAt = 0;
    /** @type {ChartLine[]} as they are drawn */
    this.shown = [];
    this.start = 0;        // seconds since 1970
    this.isNewer = false;  // whether there is more than was drawn
    this.note = element("span", { class: "dn-chart-note", role: "status" });
    this.figure = element("div", { class: "dn-figure" });
    this.sheet = new Sheet(this.figure, this.kept, () => this.draw(), (series) => this.plot.light(series === "" ? "run" : series), (rank) => this.showRank(rank));
    this.reset = button("Reset zoom", () => this.plot.unzoom(), { disabled: true });
    this.search = element("input", { type: "search", placeholder: "filter", "aria-label": "Filter metrics", hidden: true, ...OWN_KEYS });
    this.found = new Found((query) => this.ask(query), () => { this.sheet.add(this.found.tags); this.draw(); });
    this.foundAt = 0;
    const look = debounce(SETTLED_MS, () => this.look());
    this.search.addEventListener("input", () => { this.sheet.filter(this.search.value); look(); });
    const tools = this.tools();
    root.append(tools, this.figure);
    this.plot = new PlotFrame(this.figure, `Charts of ${this.subject}`, code, {
      near: tools,
      changed: (change) => this.zoomed(change),
      rested: () => { if (this.isNewer) this.update(); },
      missing: () => source.toKernel({ kind: "undrawn" }),
    });
    this.settled = debounce(SETTLED_MS, () => this.average());
    this.updating = () => this.update();
    this.surround = () => this.sheet.show(model.get("sheet"));
    model.on("change:lines", this.updating);
    model.on("change:sheet", this.surround);
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.figure);
    this.unthemed = whenThemed(this.figure, () => this.draw());
    this.surround();
    this.draw();
  }

  /** @param {number} rank whose chart alone is shown, or all again */
  showRank(rank) {
    const words = `rank ${rank}`;
    this.search.value = this.search.value === words ? "" : words;
    this.search.dispatchEvent(new Event("input"));
    this.draw();
  }

  tools() {
    const slider = element("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: this.smoothing, ...OWN_KEYS });
    const shown = element("output", {}, this.smoothing.toFixed(2));
    slider.addEventListener("input", () => {
      this.smoothing = Number(slider.value);
      this.kept.change({ smoothing: this.smoothing });
      shown.textContent = this.smoothing.toFixed(2);
      this.draw();
      this.settled();
    });
    const [x, y] = [
      choice("X axis", this.isSampled ? X_OF_SAMPLES : X_AXES, (mode) => { this.mode = /** @type {Mode} */ (mode); this.kept.change({ mode: this.mode }); this.fine.clear(); this.draw(); }),
      choice("Y axis", Y_AXES, (scale) => { this.scale = scale; this.kept.change({ scale }); this.draw(); }),
    ];
    [x.value, y.value] = [this.mode, this.scale];
    return element(
      "div", { class: "dn-chart-tools", role: "group", "aria-label": "Chart tools" },
      element("label", {}, "Smoothing ", slider, shown),
      x,
      y,
      this.reset,
      this.search,
      button("PNG", () => this.savePicture(), { title: "Save the charts as a picture" }),
      button("CSV", () => this.saveTable(), { title: "Save all points as a table" }),
      this.note,
    );
  }

  get shape() { return /** @type {Shape} */ (this.model.get("shape")); }

  // ---- Drawing -----------------------------------------------------------------------------

  /** Draw what has come, as soon as the machine has had a rest. */
  update() {
    this.isNewer = this.plot.isResting;
    if (this.isNewer) return;
    this.draw();
    const now = Date.now();
    for (const [place, range] of this.fine) if (now - range.at > AGAIN_MS) this.refine(place);
    if (this.smoothing && now - this.averagedAt > AGAIN_MS) this.average();
    if (this.found.tags.length && now - this.foundAt > AGAIN_MS) this.look();
  }

  draw() {
    const { traces, newest, dots } = this.shape;
    if (!traces || this.model.get("lines").length !== traces.length || !this.figure.clientWidth) return;
    const { lines, keys } = this;
    this.sheet.tell(newest);
    const count = Object.keys(newest).length;
    this.search.hidden = count < FILTERED_FROM;
    if (!this.foundAt && this.kept.choice.pinned.length) this.look();
    this.search.placeholder = count > this.tags.length ? `filter all ${count}` : "filter";
    this.start = Math.min(...lines.map(({ wall }) => wall.find((seconds) => Number.isFinite(seconds)) ?? Infinity));
    this.shown = lines.map((line, number) => this.closer(line, number));
    const { boxes } = this.sheet;
    /** @type {Map<string, number[]>} the numbers of the lines of each chart in sight */
    const charts = new Map([...boxes.keys()].map((tag) => [tag, []]));
    keys.forEach(([, tag], number) => charts.get(tag)?.push(number));
    const kept = new Set(this.sheet.series.slice(0, 1));
    const all = [...charts];
    const bands = all.filter(([, numbers]) => this.sheet.many && !this.sheet.all && numbers.length > MANY);
    const single = all.filter((chart) => !bands.includes(chart)).flatMap(([, numbers]) => numbers).sort((a, b) => a - b);
    const alone = all.filter(([, numbers]) => numbers.length <= MANY).flatMap(([, numbers]) => numbers);
    const data = [
      ...alone.flatMap((number) => this.spread(number)),
      ...single.flatMap((number) => this.traces(number, dots)),
      ...bands.flatMap(([tag, numbers]) => this.band(tag, numbers, dots, kept)),
    ];
    this.sheet.keep(kept);
    this.plot.draw(data, { ...layoutFor(this.tags, boxes, this), hovermode: hoverMode(data) });
  }

  /**
   * The traces of a chart of many lines: least, mean and greatest value, and the first series with those
   * that stand out, which are added to `kept`.
   * @param {string} tag
   * @param {number[]} numbers
   * @param {number} dots
   * @param {Set<string>} kept
   */
  band(tag, numbers, dots, kept) {
    const [series, lines] = [numbers.map((number) => this.keys[number][0]), numbers.map((number) => this.shown[number])];
    const { low: least, mean, high: greatest, far } = bandOf(lines);
    const { low, high } = edges({ low: least.value, high: greatest.value }, this.scale);
    const own = new Set([...kept].slice(0, 1));
    for (const place of apart(far)) own.add(series[place]);
    for (const name of own) kept.add(name);
    const like = this.trace(numbers[0]);
    const made = (/** @type {string} */ name, /** @type {Numbers} */ y, /** @type {object} */ more) => ({
      ...like, name, uid: `${tag} ${name}`, x: across(mean, this.mode, this.start), y, mode: "lines", ...more,
    });
    const smooth = this.smoothing ? smoothed(mean.value, this.smoothing) : mean.value;
    return [
      made("min", low, { line: { width: 0 } }),
      made("max", high, { line: { width: 0 }, fill: "tonexty", fillcolor: "rgba(128,128,128,.25)" }),
      made("mean", smooth, { line: { width: 2, color: "#808080" } }),
      ...numbers.filter((_, place) => own.has(series[place])).flatMap((number) => this.traces(number, dots)),
    ];
  }

  /**
   * The traces of a line's band, which has the points that are left out.
   * @param {number} number of a line
   */
  spread(number) {
    const [trace, line] = [this.trace(number), this.shown[number]];
    if (trace.stackgroup || !isThinned(line)) return [];
    const visible = !this.sheet.hidden.has(this.keys[number][0]);
    const edge = { ...trace, visible, x: across(line, this.mode, this.start), mode: "lines", line: { width: 0 }, hoverinfo: "skip", connectgaps: true };
    const { low, high } = edges(line, this.scale);
    return [
      { ...edge, uid: `${number} low`, y: low },
      { ...edge, uid: `${number} high`, y: high, fill: "tonexty", fillcolor: `${trace.line.color}33` },
    ];
  }

  /** @param {number} number of a line */
  trace(number) {
    const [series, tag] = this.keys[number];
    return this.shape.traces[number] ?? traceLike(this.shape, series, axisNumber(this.tags.indexOf(tag)));
  }

  get keys() { return [...this.shape.keys, ...this.found.keys]; }

  get lines() { return [...this.model.get("lines").map(unpacked), ...this.found.lines]; }

  get tags() { return [...new Set(this.keys.map(([, tag]) => tag))]; }

  /** Of the metrics that are not drawn, get those that the filter fits. */
  look() {
    this.foundAt = Date.now();
    const drawn = new Set(this.shape.keys.map(([, tag]) => tag));
    this.found.look(this.search.value, Object.keys(this.shape.newest).filter((tag) => !drawn.has(tag)), this.kept);
  }

  /**
   * The line with the finer points that there are of it.
   * @param {ChartLine} line
   * @param {number} number
   */
  closer(line, number) {
    for (const range of this.fine.values()) {
      const fine = range.lines?.get(number);
      if (fine?.step.length) return refined(line, fine);
    }
    return line;
  }

  /**
   * @param {number} number of a line
   * @param {number} dots up to how many points are marked
   */
  traces(number, dots) {
    const [trace, line, [series]] = [this.trace(number), this.shown[number], this.keys[number]];
    const x = across(line, this.mode, this.start);
    const mode = x.length <= dots ? "lines+markers" : "lines";
    const visible = !this.sheet.hidden.has(series);
    const shown = { ...trace, visible, uid: `${number}`, x, y: line.value, mode };
    if (!this.smoothing || trace.stackgroup) return [shown];
    const smooth = this.averaged(line, number);
    return [
      { ...shown, uid: `${number} raw`, opacity: 0.25, hoverinfo: "skip" },
      { ...shown, x: across(smooth, this.mode, this.start), y: smooth.value, mode: "lines" },
    ];
  }

  // ---- Smoothing ---------------------------------------------------------------------------

  /**
   * The line averaged over all points: as asked for, or here, where all are at hand or until then.
   * @param {ChartLine} line
   * @param {number} number
   * @returns {ChartLine}
   */
  averaged(line, number) {
    const whole = this.smooth?.weight === this.smoothing ? this.smooth.lines.get(number) : null;
    if (!whole) return { ...line, value: smoothed(line.value, this.smoothing) };
    for (const range of this.fine.values()) {
      const fine = range.weight === this.smoothing ? range.smooth?.get(number) : null;
      if (fine?.step.length) return refined(whole, fine);
    }
    return whole;
  }

  async average() {
    const weight = this.smoothing;
    const { keys, shape: { thinned } } = this;
    if (!weight || !(thinned || this.found.keys.length)) return;
    this.averagedAt = Date.now();
    const answer = await this.ask({ points: SMOOTH_POINTS, smoothing: weight });
    if (!answer || this.smoothing !== weight) return;
    this.smooth = { weight, lines: byNumber(answer.lines, keys) };
    for (const [place, range] of this.fine) if (range.weight !== weight) this.refine(place);
    this.draw();
  }

  // ---- Zoom --------------------------------------------------------------------------------

  /** @param {Record<string, unknown>} change of the layout, as plotly tells it */
  zoomed(change) {
    this.reset.disabled = !this.plot.isZoomed;
    for (const [name, value] of Object.entries(change)) {
      const [, number, what] = name.match(/^xaxis(\d*)\.(autorange|range)/) ?? [];
      if (!what) continue;
      const place = Number(number || 1) - 1;
      if (what === "range") this.refine(place);
      else if (value && this.fine.delete(place)) this.draw();
    }
  }

  /**
   * Get the points of what is seen of one subplot, as many as of the whole line before.
   * @param {number} place
   */
  async refine(place) {
    const seen = this.plot.ranges[`xaxis${axisNumber(place)}`];
    const { tags, keys } = this;
    if (!seen) return;
    const coarse = this.lines.filter((_, number) => keys[number][1] === tags[place]);
    const steps = stepsWithin(coarse, this.mode, this.start, seen);
    if (!steps) return;
    const weight = this.smoothing;
    /** @type {Range} */
    const range = { ...this.fine.get(place), weight, at: Date.now() };
    this.fine.set(place, range);
    const query = { tag: tags[place], from: steps[0], to: steps[1], points: FINE_POINTS };
    const answer = await this.ask(query);
    const smooth = weight ? await this.ask({ ...query, smoothing: weight }) : null;
    if (!answer || this.fine.get(place) !== range) return;
    range.lines = byNumber(answer.lines, keys);
    range.smooth = smooth && byNumber(smooth.lines, keys);
    this.draw();
  }

  /**
   * @param {Query} query
   * @returns {Promise<{lines: CurveAnswer[]} | null>}
   */
  async ask(query) {
    try {
      return await this.source.ask(this.model.get("path"), query);
    } catch (error) {
      this.note.textContent = messageOf(error);
      return null;
    }
  }

  // ---- Saving ------------------------------------------------------------------------------

  get subject() {
    const runs = this.model.get("runs");
    return runs ? `runs ${runs.replaceAll(",", ", ")}` : `run ${this.model.get("run")}`;
  }

  get fileName() {
    return `${this.subject} ${this.model.get("path")}`.replace(/[ ,]+/g, "-");
  }

  savePicture() {
    const { clientWidth: width, clientHeight: height } = this.figure;
    const ground = themeColours(this.figure).raised;
    this.plot.savePicture((figure) => asPicture(figure, this.sheet.boxes, ground), {
      format: "png", scale: 2, width, height, filename: this.fileName,
    });
  }

  async saveTable() {
    this.note.textContent = "loading all points…";
    const steps = this.shown.flatMap((line) => [...line.step]);
    const ends = [Math.min, Math.max].map((end) => steps.reduce((a, b) => end(a, b)));
    const lines = await wholeLines((query) => this.ask(query), ends[0], ends[1]);
    if (!lines) return;
    this.note.textContent = "";
    saveAs(`${this.fileName}.csv`, [csv(lines)], "text/csv");
  }

  close() {
    this.settled.cancel();
    this.model.off("change:lines", this.updating);
    this.model.off("change:sheet", this.surround);
    this.resized.disconnect();
    this.unthemed();
    this.plot.close();
  }
}
