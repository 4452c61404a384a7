// The charts of a run, or of several in one, drawn by the server.

import { ComparedSource, openCharts } from "../charts.js";
import { isNear } from "../charts/frame.js";
import { openDisplays } from "../displays.js";
import { element } from "../dom.js";
import { openMedia } from "../media.js";
import { Source } from "../source.js";
import { PageModel } from "./model.js";

/** @import { Asking, ChartsAnswer, ChartsState, DisplayRow, DisplaysState, DrawnCharts, MediaState, Model, PackedLine, View, WrittenLine } from "../protocol.d.ts" */

const LOOK_EVERY_MS = 1000;
const SHARE_OF_TIME = 0.2;
const TITLES = { metrics: "", times: "Where the time goes", resources: "Resources by rank" };

/** @param {string} text in base64 */
function bytes(text) {
  return new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

/**
 * @param {WrittenLine} line
 * @returns {PackedLine}
 */
function packed(line) {
  const { step, value, seconds, low, high } = line;
  return { ...line, step: bytes(step), value: bytes(value), seconds: bytes(seconds), low: bytes(low), high: bytes(high) };
}

export class ServedCharts {
  /**
   * @param {Model<Asking>} model of the run
   * @param {() => Promise<DataView>} code of plotly
   * @param {string} [runs] the numbers of several runs, as in `3,5`, instead of that one
   */
  constructor(model, code, runs = "") {
    this.model = model;
    this.code = code;
    this.runs = runs;
    this.source = runs ? new ComparedSource(new PageModel(/** @type {any} */ ({ ...this.asking, runs }))) : new Source(model);
    this.places = { displays: element("div"), metrics: element("div"), media: element("div"), times: element("div"), resources: element("div") };
    this.root = element("div", {}, ...Object.values(this.places));
    /** @type {Map<string, {model: PageModel<any>, view: View}>} what is shown, by its part */
    this.shown = new Map();
    this.seen = "";
    this.closed = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.look();
  }

  /** Up to the end of the run, for a small part of the time. */
  async look() {
    const began = performance.now();
    const over = await this.refresh().catch(() => false);
    if (this.closed || over) return;
    const spent = performance.now() - began;
    this.timer = setTimeout(() => this.look(), Math.max(LOOK_EVERY_MS, spent / SHARE_OF_TIME));
  }

  /** Says whether no more will come. */
  async refresh() {
    if (document.hidden || !this.root.isConnected || !isNear(this.root)) return false;
    const drawn = this.places.metrics.querySelector("[data-drawn]") ? "" : "1";
    /** @type {ChartsAnswer} */
    const answer = await this.source.ask(this.runs ? "overlay" : "charts", { seen: this.seen, drawn });
    if (this.closed) return true;
    if (this.runs && !answer.metrics && !this.seen) this.places.metrics.textContent = "These runs have no metrics yet.";
    this.show("metrics", answer.metrics);
    this.show("times", answer.times);
    this.show("resources", answer.resources);
    this.list(answer.media);
    this.shows(answer.displays ?? []);
    this.seen = answer.seen;
    return answer.end;
  }

  /**
   * @param {"metrics" | "times" | "resources"} path
   * @param {DrawnCharts | null} charts
   */
  show(path, charts) {
    if (!charts) return;
    const { sheet, shape } = charts;
    const lines = charts.lines.map(packed);
    const there = this.shown.get(path)?.model;
    if (!there) {
      /** @type {ChartsState} */
      const state = { ...this.asking, runs: this.runs, path: this.runs ? "curves" : path, title: TITLES[path], plotly: "", sheet, shape, lines };
      this.open(path, state, openCharts);
      return;
    }
    there.set("sheet", sheet);
    there.set("shape", shape);
    there.set("lines", lines);
  }

  /** @param {MediaState["index"] | null} index */
  list(index) {
    const some = index?.rows?.length || index?.notes?.length || Object.keys(index?.hparams ?? {}).length;
    if (!index || !some) return;
    const there = this.shown.get("media")?.model;
    if (there) there.set("index", index);
    else this.open("media", { ...this.asking, plotly: "", index }, openMedia);
  }

  /** @param {DisplayRow[]} rows what the ranks have shown */
  shows(rows) {
    const there = this.shown.get("displays")?.model;
    if (!rows.length) return;
    if (there) there.set("rows", rows);
    else this.open("displays", { ...this.asking, plotly: "", rows }, openDisplays);
  }

  get asking() {
    return { run: this.model.get("run"), home: this.model.get("home"), key: "" };
  }

  /**
   * @param {"displays" | "metrics" | "media" | "times" | "resources"} part
   * @param {ChartsState | DisplaysState | MediaState} state
   * @param {(model: any) => View} open
   */
  open(part, state, open) {
    const model = new PageModel(state, this.code);
    const view = open(model);
    this.shown.set(part, { model, view });
    this.places[part].replaceChildren(view.root);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source.close();
    for (const { view } of this.shown.values()) view.end();
  }
}

/**
 * The packed code of plotly, fetched once; frames take it packed as kernels send it.
 * @param {URL} address
 */
export function plotlyAt(address) {
  /** @type {Promise<DataView> | undefined} */
  let code;
  const fetched = async () => {
    const { body } = await fetch(address);
    if (!body) throw new Error(`${address} is empty`);
    return new DataView(await new Response(body.pipeThrough(new CompressionStream("gzip"))).arrayBuffer());
  };
  return () => (code ??= fetched().catch((error) => { code = undefined; throw error; }));
}
