// Plotly in a frame of its own. A sandboxed document has no origin, so a browser can give it its own
// process: compiling 5 MB of code, and drawing, then hold up neither the log nor the page.

import { element } from "../dom.js";

/** @import { Model } from "../protocol.d.ts" */
/** @typedef {Record<string, any>} Plain what is plotly's */
/** @typedef {"code" | "figure" | "zoom" | "picture" | "light"} Act */

// Where the mouse is on one subplot is marked on the others too, with the values of their lines.
const FRAME = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Charts</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:">
<style>
html, body { margin: 0; overflow: hidden; background: transparent; }
.dim { opacity: .12 !important; }
#beside { position: absolute; inset: 0; pointer-events: none; }
#beside i { position: absolute; width: 0; border-left: 1px solid #808080; }
#beside span { position: absolute; padding: 0 4px; font-size: 11px; line-height: 15px; border-radius: 3px; opacity: .92; white-space: nowrap; overflow: hidden; }
</style><div id="plot"></div><div id="beside"></div>
<script>
const [plot, beside] = ["plot", "beside"].map((id) => document.getElementById(id));
const say = (kind, body = {}) => parent.postMessage({ kind, ...body }, "*");
const ranges = () => Object.fromEntries(
  Object.entries(plot._fullLayout).filter(([name]) => /^[xy]axis/.test(name)).map(([name, axis]) => [name, axis.range]),
);
function put(tag, style, text = "") {
  const made = beside.appendChild(document.createElement(tag));
  Object.entries(style).forEach(([name, value]) => { made.style[name] = typeof value === "number" ? value + "px" : value; });
  made.innerText = text;
}
const light = (name) => {
  for (const line of plot.querySelectorAll(".scatterlayer > .trace")) {
    line.classList.toggle("dim", name !== null && line.__data__[0].trace.name !== name);
  }
};
const isCrowded = () => plot._fullLayout.hovermode === "closest";
const nearest = (axis, { x, y }, at) => {
  const far = (place) => Math.abs(axis.d2c(x[place]) - at);
  let best = 0;
  for (let place = 1; place < x.length; place++) if (far(place) < far(best)) best = place;
  return y[best];
};
function mark({ x, xaxis }) {
  const { font, hoverlabel } = plot._fullLayout;
  const at = xaxis.d2c(x);
  beside.replaceChildren();
  for (const { xaxis: across, yaxis: up } of Object.values(plot._fullLayout._plots)) {
    const left = across.c2p(at);
    if (across._id === xaxis._id || !(left >= 0 && left <= across._length)) continue;
    put("i", { left: across._offset + left, top: up._offset, height: up._length });
    const texts = plot._fullData
      .filter((line) => line.xaxis === across._id && line.visible === true && line.hoverinfo !== "skip" && line.x.length)
      .map((line) => line.name + ": " + nearest(across, line, at).toPrecision(4));
    if (texts.length > 8) texts.splice(7, Infinity, "… " + (texts.length - 7) + " more");
    const side = left > across._length / 2 ? { right: document.body.clientWidth - across._offset - left + 3 } : { left: across._offset + left + 3 };
    put("span", { ...side, top: up._offset + 2, maxHeight: up._length - 4, color: font.color, fontFamily: font.family, background: hoverlabel.bgcolor }, texts.join("\\n"));
  }
}
const acts = {
  async code(packed) {
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.src = URL.createObjectURL(new Blob([await new Response(unpacked).blob()], { type: "text/javascript" }));
    script.onload = () => { URL.revokeObjectURL(script.src); say("ready"); };
    document.head.append(script);
  },
  async figure([data, layout, strange]) {
    const first = !plot.on;
    await Plotly.react(plot, data, layout, { displayModeBar: false });
    if (first && !strange) {
      plot.on("plotly_relayout", (change) => say("changed", { change, ranges: ranges() }));
      plot.on("plotly_hover", ({ points }) => { mark(points[0]); if (isCrowded()) light(points[0].data.name); });
      plot.on("plotly_unhover", () => { beside.replaceChildren(); light(null); });
    }
    say("drawn", { ranges: ranges() });
  },
  light(name) { light(name); },
  zoom(axes) { Plotly.relayout(plot, axes); },
  picture([data, layout, options]) { Plotly.downloadImage({ data, layout }, options); },
};
addEventListener("message", ({ source, data }) => { if (source === parent) acts[data.kind](data.body); });
say("open");
<\/script></html>`;
const NEAR_PX = 1500;   // to what is in sight
const LOOK_EVERY_MS = 300;
const RESTS = 2;             // times as long as the last drawing took
const LONGEST_REST_MS = 1000;
const OPENS_WITHIN_MS = 5000;  // unless the page's Content-Security-Policy forbids its script

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
export function isNear(place) {
  const { top, bottom } = place.getBoundingClientRect();
  return isOpen(place) && top < window.innerHeight + NEAR_PX && bottom > -NEAR_PX;
}

export class PlotFrame {
  /**
   * Draws once `near` comes near to being seen; without it at once. `code` gives the packed code of
   * plotly. Calls `changed` with what the reader has changed of the axes, and `rested` a while after
   * a drawing: who draws whatever comes should wait for it, since the machine has other things to do.
   * Calls `missing` when the frame has not opened in time.
   * @param {HTMLElement} place
   * @param {string} title
   * @param {() => Promise<DataView>} code
   * @param {{
   *   near?: Element,
   *   changed?: (change: Plain) => void,
   *   rested?: () => void,
   *   missing?: () => void,
   * }} [options]
   */
  constructor(place, title, code, { near, changed = () => {}, rested = () => {}, missing = () => {} } = {}) {
    this.place = place;
    this.code = code;
    this.acts = { changed, rested, missing };
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.opening = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} the clock of a rest */
    this.rests = undefined;
    this.ready = false;
    this.busy = false;   // one drawing at a time: of what comes meanwhile only the newest counts
    this.stale = false;
    this.anew = false;   // whether the frame has lost what it had drawn
    this.began = 0;
    /** @type {[Plain[], Plain, boolean] | null} data, layout, whether it is none of our charts */
    this.figure = null;
    /** @type {Record<string, [any, any]>} of the axes as they are drawn, by name */
    this.ranges = {};
    /** @type {Plain} what the reader has set of them */
    this.zoomed = {};
    this.whenDrawn = () => {};
    this.seen = new ResizeObserver(() => { if (place.clientWidth) this.flush(); });
    this.observe();
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

  observe() {
    this.seen.unobserve(this.place);
    this.seen.observe(this.place);
  }

  start() {
    clearInterval(this.clock);
    this.frame.srcdoc = FRAME;
    this.place.append(this.frame);
    this.opening = setTimeout(() => this.acts.missing(), OPENS_WITHIN_MS);
  }

  /**
   * @param {Act} kind
   * @param {unknown} body
   */
  tell(kind, body) {
    this.frame.contentWindow?.postMessage({ kind, body }, "*");
  }

  /** @param {Plain} message */
  receive({ kind, change, ranges }) {
    if (ranges) this.ranges = ranges;
    if (kind === "open") this.begin();
    if (kind === "ready") this.ready = true;
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
    if (this.anew && this.isZoomed) this.tell("zoom", this.zoomed);
    this.anew = false;
  }

  /** A frame that is moved within the page begins anew. */
  async begin() {
    clearTimeout(this.opening);
    this.ready = this.busy = false;
    this.anew = true;
    delete this.place.dataset.drawn;
    this.stale = Boolean(this.figure);
    this.tell("code", await this.code());
  }

  /**
   * @param {Plain[]} data
   * @param {Plain} layout it says how wide
   * @param {boolean} [strange] whether it is none of our charts, and has no marks beside the mouse
   */
  draw(data, layout, strange = false) {
    this.figure = [data, layout, strange];
    this.stale = true;
    this.frame.style.height = `${layout.height}px`;
    this.flush();
  }

  /**
   * Waits while the place has no size: plotly would measure the legend's names as nothing wide.
   * JupyterLab takes the size away for part of a frame, which no observer sees. One that observes
   * anew calls as soon as there is a size.
   */
  flush() {
    if (!this.ready || this.busy || !this.stale) return;
    if (!this.place.clientWidth) this.observe();
    if (!isOpen(this.place)) return;
    this.busy = true;
    this.stale = false;
    this.began = performance.now();
    this.tell("figure", this.figure);
  }

  /** @param {string | null} name of the lines that stand out; null for none */
  light(name) { if (this.ready) this.tell("light", name); }

  get isZoomed() { return Object.keys(this.zoomed).length > 0; }

  unzoom() {
    this.tell("zoom", Object.fromEntries(
      Object.keys(this.zoomed).map((name) => [name.replace("range", "autorange"), true]),
    ));
  }

  /**
   * @param {(figure: [Plain[], Plain]) => [Plain[], Plain]} change of data and layout for a picture
   * @param {Plain} options of plotly's `downloadImage`
   */
  savePicture(change, options) {
    if (this.figure) this.tell("picture", [...change([this.figure[0], this.figure[1]]), options]);
  }

  close() {
    clearInterval(this.clock);
    clearTimeout(this.rests);
    clearTimeout(this.opening);
    this.seen.disconnect();
    window.removeEventListener("message", this.receiving);
    this.frame.remove();
  }
}
