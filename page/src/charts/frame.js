// Plotly in a frame of its own. A sandboxed document has no origin, so a browser can give it its own
// process: compiling 5 MB of code, and drawing, then hold up neither the log nor the page.

import { element } from "../dom.js";

/** @import { Model } from "../protocol.d.ts" */
/** @typedef {Record<string, any>} Plain what is plotly's */
/** @typedef {"code" | "figure" | "zoom" | "picture"} Act */

const FRAME = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Charts</title>
<style>html, body { margin: 0; overflow: hidden; background: transparent; }</style><div id="plot"></div>
<script>
const plot = document.getElementById("plot");
const say = (kind, body = {}) => parent.postMessage({ kind, ...body }, "*");
const ranges = () => Object.fromEntries(
  Object.entries(plot._fullLayout).filter(([name]) => /^[xy]axis/.test(name)).map(([name, axis]) => [name, axis.range]),
);
const hidden = () => [...new Set(plot._fullData.filter((trace) => trace.visible === "legendonly").map((trace) => trace.legendgroup))];
const acts = {
  async code(packed) {
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.src = URL.createObjectURL(new Blob([await new Response(unpacked).blob()], { type: "text/javascript" }));
    script.onload = () => { URL.revokeObjectURL(script.src); say("ready"); };
    document.head.append(script);
  },
  async figure([data, layout, config]) {
    const first = !plot.on;
    await Plotly.react(plot, data, layout, config);
    if (first) plot.on("plotly_relayout", (change) => say("changed", { change, ranges: ranges() }));
    if (first) plot.on("plotly_restyle", () => say("toggled", { hidden: hidden() }));
    say("drawn", { ranges: ranges() });
  },
  zoom(axes) { Plotly.relayout(plot, axes); },
  picture(options) { Plotly.downloadImage(plot, options); },
};
addEventListener("message", ({ source, data }) => { if (source === parent) acts[data.kind](data.body); });
say("open");
<\/script></html>`;
const NEAR_PX = 1500;   // to what is in sight
const LOOK_EVERY_MS = 300;
const RESTS = 2;             // times as long as the last drawing took
const LONGEST_REST_MS = 1000;

/**
 * The packed code of plotly, which all charts of a kernel share, from a widget of its own.
 * @param {Model<{plotly: string}>} model
 * @returns {Promise<DataView>}
 */
export async function plotlyCode(model) {
  const carrier = await model.widget_manager.get_model(model.get("plotly"));
  return carrier.get("code");
}

/**
 * What is folded away may have a size, though nobody sees it.
 * @param {Element} place
 */
function isOpen(place) {
  return place.clientWidth > 0 && !place.closest("details:not([open])");
}

/**
 * An IntersectionObserver's margin ends at the first box that scrolls, which a notebook is.
 * @param {Element} place
 */
function isNear(place) {
  const { top, bottom } = place.getBoundingClientRect();
  return isOpen(place) && top < window.innerHeight + NEAR_PX && bottom > -NEAR_PX;
}

export class PlotFrame {
  /**
   * Draws once `near` comes near to being seen; without it at once. `code` gives the packed code of
   * plotly. Calls `changed` with what the reader has changed of the axes, `toggled` with the groups
   * of the legend that are hidden, and `rested` a while after a drawing: who draws whatever comes
   * should wait for it, since the machine has other things to do.
   * @param {HTMLElement} place
   * @param {string} title
   * @param {() => Promise<DataView>} code
   * @param {{
   *   near?: Element,
   *   changed?: (change: Plain) => void,
   *   toggled?: (hidden: string[]) => void,
   *   rested?: () => void,
   * }} [options]
   */
  constructor(place, title, code, { near, changed = () => {}, toggled = () => {}, rested = () => {} } = {}) {
    this.place = place;
    this.code = code;
    this.acts = { changed, toggled, rested };
    /** @type {ReturnType<typeof setTimeout> | undefined} the clock of a rest */
    this.rests = undefined;
    this.ready = false;
    this.busy = false;   // one drawing at a time: of what comes meanwhile only the newest counts
    this.stale = false;
    this.anew = false;   // whether the frame has lost what it had drawn
    this.began = 0;
    /** @type {[Plain[], Plain, Plain] | null} data, layout, config */
    this.figure = null;
    /** @type {Record<string, [any, any]>} of the axes as they are drawn, by name */
    this.ranges = {};
    /** @type {Plain} what the reader has set of them */
    this.zoomed = {};
    this.whenDrawn = () => {};
    this.seen = new ResizeObserver(() => this.flush());
    this.seen.observe(place);
    place.closest("details")?.addEventListener("toggle", () => this.flush());
    this.frame = element("iframe", { class: "dn-plot", sandbox: "allow-scripts allow-downloads", title });
    this.receiving = (/** @type {MessageEvent} */ { source, data }) => {
      if (source && source === this.frame.contentWindow) this.receive(data);
    };
    window.addEventListener("message", this.receiving);
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.clock = undefined;
    // Each frame takes some 50 MB.
    if (near) this.clock = setInterval(() => { if (isNear(near)) this.start(); }, LOOK_EVERY_MS);
    else this.start();
  }

  start() {
    clearInterval(this.clock);
    this.frame.srcdoc = FRAME;
    this.place.append(this.frame);
  }

  /**
   * @param {Act} kind
   * @param {unknown} body
   */
  tell(kind, body) {
    this.frame.contentWindow?.postMessage({ kind, body }, "*");
  }

  /** @param {Plain} message */
  receive({ kind, change, ranges, hidden }) {
    if (ranges) this.ranges = ranges;
    if (kind === "open") this.begin();
    if (kind === "ready") this.ready = true;
    if (kind === "toggled") this.acts.toggled(hidden);
    if (kind === "changed") this.keep(change);
    if (kind === "drawn") this.drawn();
    this.flush();
  }

  /** @param {Plain} change */
  keep(change) {
    for (const name of Object.keys(change)) {
      const [axis] = name.match(/^[xy]axis\d*/) ?? [];
      if (!axis) continue;
      if (/autorange$/.test(name)) delete this.zoomed[`${axis}.range`];
      else this.zoomed[`${axis}.range`] = this.ranges[axis];
    }
    this.acts.changed(change);
  }

  get isDrawn() { return "drawn" in this.place.dataset; }

  get isResting() { return this.busy || this.rests !== undefined; }

  /** @param {number} spent milliseconds on the last drawing */
  rest(spent) {
    clearTimeout(this.rests);
    const rested = () => { this.rests = undefined; this.acts.rested(); };
    this.rests = setTimeout(rested, Math.min(LONGEST_REST_MS, RESTS * spent));
  }

  drawn() {
    this.busy = false;
    this.rest(performance.now() - this.began);
    this.place.dataset.drawn = "";
    this.whenDrawn();
    if (this.anew && Object.keys(this.zoomed).length) this.tell("zoom", this.zoomed);
    this.anew = false;
  }

  /** A frame that is moved within the page begins anew. */
  async begin() {
    this.ready = this.busy = false;
    this.anew = true;
    delete this.place.dataset.drawn;
    this.stale = Boolean(this.figure);
    this.tell("code", await this.code());
  }

  /**
   * @param {Plain[]} data
   * @param {Plain} layout it says how wide
   * @param {Plain} config
   */
  draw(data, layout, config) {
    this.figure = [data, layout, { ...config, responsive: false }];
    this.stale = true;
    this.frame.style.height = `${layout.height}px`;
    this.flush();
  }

  /** What has no size waits: plotly would take names of the legend for nothing wide. */
  flush() {
    if (!this.ready || this.busy || !this.stale || !isOpen(this.place)) return;
    this.busy = true;
    this.stale = false;
    this.began = performance.now();
    this.tell("figure", this.figure);
  }

  /** @param {Plain} options of plotly's `downloadImage` */
  savePicture(options) {
    this.tell("picture", options);
  }

  close() {
    clearInterval(this.clock);
    clearTimeout(this.rests);
    this.seen.disconnect();
    window.removeEventListener("message", this.receiving);
    this.frame.remove();
  }
}
