// Made from page/src by `make page`: edit that.

// src/dom.js
var LITERAL = "mathjax_ignore tex2jax_ignore";
var OWN_KEYS = { "data-lm-suppress-shortcuts": "true" };
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      made.addEventListener(
        name.slice(2),
        /** @type {EventListener} */
        value
      );
    } else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== void 0 && value !== null) made.setAttribute(name, String(value));
  }
  if (made.tabIndex >= 0 || "tabindex" in attributes) made.setAttribute("data-lm-suppress-shortcuts", "true");
  made.append(...children.filter((child) => child !== null && child !== void 0));
  return made;
}
function choice(label, entries, onChange) {
  const menu = element("select", { "aria-label": label, ...OWN_KEYS });
  menu.append(...entries.map(([value, name]) => new Option(name, value)));
  menu.addEventListener("change", () => onChange(menu.value));
  return menu;
}
function fold(title, className) {
  const summary = element("summary", { ...OWN_KEYS }, title);
  const inside = element("div", { class: className });
  const box = element("details", { class: "dn-folded" }, summary, inside);
  return { box, inside, summary };
}
var mine = Math.random().toString(36).slice(2);
function debounce(milliseconds, act) {
  let timer;
  const cancel = () => clearTimeout(timer);
  const later = () => {
    cancel();
    timer = setTimeout(act, milliseconds);
  };
  return Object.assign(later, { cancel });
}

// src/charts/frame.js
var FRAME = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Charts</title>
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
var NEAR_PX = 1500;
var LOOK_EVERY_MS = 300;
var RESTS = 2;
var LONGEST_REST_MS = 1e3;
var OPENS_WITHIN_MS = 5e3;
async function plotlyCode(model) {
  const carrier = await model.widget_manager.get_model(model.get("plotly"));
  return carrier.get("code");
}
function isOpen(place) {
  return place.clientWidth > 0 && !place.closest("details:not([open])");
}
function isNear(place) {
  const { top, bottom } = place.getBoundingClientRect();
  return isOpen(place) && top < window.innerHeight + NEAR_PX && bottom > -NEAR_PX;
}
var PlotFrame = class {
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
  constructor(place, title, code, { near, changed = () => {
  }, rested = () => {
  }, missing = () => {
  } } = {}) {
    this.place = place;
    this.code = code;
    this.acts = { changed, rested, missing };
    this.opening = void 0;
    this.rests = void 0;
    this.ready = false;
    this.busy = false;
    this.stale = false;
    this.anew = false;
    this.began = 0;
    this.figure = null;
    this.ranges = {};
    this.zoomed = {};
    this.whenDrawn = () => {
    };
    this.seen = new ResizeObserver(() => {
      if (place.clientWidth) this.flush();
    });
    this.observe();
    place.closest("details")?.addEventListener("toggle", () => this.flush());
    this.frame = element("iframe", { class: "dn-plot", sandbox: "allow-scripts allow-downloads", title });
    this.receiving = ({ source, data }) => {
      if (source && source === this.frame.contentWindow) this.receive(data);
    };
    window.addEventListener("message", this.receiving);
    this.clock = void 0;
    if (near) this.clock = setInterval(() => {
      if (isNear(near)) this.start();
    }, LOOK_EVERY_MS);
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
  tell(kind2, body) {
    this.frame.contentWindow?.postMessage({ kind: kind2, body }, "*");
  }
  /** @param {Plain} message */
  receive({ kind: kind2, change, ranges }) {
    if (ranges) this.ranges = ranges;
    if (kind2 === "open") this.begin();
    if (kind2 === "ready") this.ready = true;
    if (kind2 === "changed") this.keep(change);
    if (kind2 === "drawn") this.drawn();
    this.flush();
  }
  /** @param {Plain} change */
  keep(change) {
    for (const name of Object.keys(change)) {
      const [axis2] = name.match(/^[xy]axis\d*/) ?? [];
      if (!axis2) continue;
      if (/autorange$/.test(name)) delete this.zoomed[`${axis2}.range`];
      else this.zoomed[`${axis2}.range`] = this.ranges[axis2];
    }
    this.acts.changed(change);
  }
  get isDrawn() {
    return "drawn" in this.place.dataset;
  }
  get isResting() {
    return this.busy || this.rests !== void 0;
  }
  /** @param {number} spent milliseconds on the last drawing */
  rest(spent) {
    clearTimeout(this.rests);
    const rested = () => {
      this.rests = void 0;
      this.acts.rested();
    };
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
  light(name) {
    if (this.ready) this.tell("light", name);
  }
  get isZoomed() {
    return Object.keys(this.zoomed).length > 0;
  }
  unzoom() {
    this.tell("zoom", Object.fromEntries(
      Object.keys(this.zoomed).map((name) => [name.replace("range", "autorange"), true])
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
};

// src/address.js
var NUMBER = "[1-9][0-9]{0,15}";
var SESSION = "[A-Za-z](?:[\\w.-]|%[89A-F][0-9A-F])*";
var OWN = new RegExp(
  `^(?:distrain/(?:version|runs|studies|sessions|compare|curves|overlay)|distrain/(?:runs|studies)/${NUMBER}(?:/[a-z-]+)?|distrain/sessions/${SESSION}/stop|lab/extensions/distrain-nb/static/plotly-basic\\.min\\.js|api/kernels/[0-9A-Za-z-]+/interrupt)(?:\\?[\\w.~*%+=&-]*)?$`
);
function isNumber(value) {
  return Number.isSafeInteger(value) && Number(value) > 0;
}
function ownPath(path) {
  if (!OWN.test(path)) throw new Error(`${JSON.stringify(path)} is no address of distrain-nb`);
  return path;
}

// src/shapes.js
var Misshapen = class extends Error {
};
function one(is, what) {
  return (value) => {
    if (is(value)) return (
      /** @type {T} */
      value
    );
    throw new Misshapen(`${String(JSON.stringify(value)).slice(0, 60)} instead of ${what}`);
  };
}
var text = one((value) => typeof value === "string", "a text");
var number = one(Number.isFinite, "a number");
var count = one((value) => Number.isSafeInteger(value) && value >= 0, "a count");
var id = one(isNumber, "a whole number from 1");
var flag = one((value) => typeof value === "boolean", "true or false");
var words = one((value) => ["string", "number", "boolean"].includes(typeof value), "a text or a number");
var object = one((value) => typeof value === "object" && value !== null && !Array.isArray(value), "an object");
var array = one(Array.isArray, "a list");
function maybe(shape) {
  return (value) => value === null ? null : shape(value);
}
function absent(shape) {
  return (value) => value === void 0 ? void 0 : shape(value);
}
function list(shape) {
  return (value) => (
    /** @type {unknown[]} */
    array(value).map((each) => shape(each))
  );
}
function byName(shape) {
  return (value) => {
    const entries = Object.entries(
      /** @type {object} */
      object(value)
    );
    return Object.fromEntries(entries.map(([name, each]) => [name, shape(each)]));
  };
}
function tuple(...shapes) {
  const has = one((value) => Array.isArray(value) && value.length === shapes.length, `a list of ${shapes.length}`);
  return (value) => (
    /** @type {any} */
    shapes.map((shape, place) => shape(
      /** @type {any} */
      has(value)[place]
    ))
  );
}
function record(fields) {
  const shapes = (
    /** @type {[keyof T & string, Shape<unknown>][]} */
    Object.entries(fields)
  );
  return (value) => {
    const given = (
      /** @type {any} */
      object(value)
    );
    const known = {};
    for (const [name, shape] of shapes) {
      try {
        known[name] = shape(given[name]);
      } catch (error) {
        throw new Misshapen(`${name}: ${/** @type {Error} */
        error.message}`);
      }
    }
    return known;
  };
}
var progress = record({
  phase: text,
  total: number,
  done: number,
  since: number,
  unit: absent(text),
  left: absent(text)
});
var annotation = record({ note: text, tags: list(text) });
var SUMMARY = {
  id,
  name: text,
  state: text,
  phase: text,
  final: flag,
  where: text,
  size: text,
  begin: number,
  end: maybe(number),
  now: number,
  steps: list(record({ label: text, begin: maybe(number), end: maybe(number) })),
  labels: byName(text),
  pools: byName(text),
  progress: maybe(progress),
  note: text,
  error: text,
  hang: absent(text),
  resumable: absent(flag),
  cost: absent(text),
  cost_note: absent(text),
  annotation: absent(annotation)
};
var line = tuple(count, number, number, text, flag, text);
var tableRun = record({
  id,
  name: text,
  state: text,
  final: flag,
  place: text,
  size: text,
  machines: text,
  experiment: text,
  study: text,
  cause: text,
  begin: number,
  end: maybe(number),
  best: maybe(record({ tag: text, value: number })),
  progress: maybe(progress),
  alarm: absent(text),
  cost: absent(text),
  cost_note: absent(text),
  annotation: absent(annotation)
});
var studyRow = record({
  id,
  key: text,
  name: text,
  state: text,
  final: flag,
  progress: text,
  running: count,
  best: text,
  cause: text,
  begin: number,
  end: maybe(number),
  cost: absent(text),
  cost_note: absent(text)
});
var sessionRow = record({
  name: text,
  ranks: text,
  state: text,
  place: text,
  last: text,
  final: flag,
  idle: text,
  limit: text,
  memory: text
});
var trial = record({
  id,
  state: text,
  final: flag,
  parameters: byName(words),
  goals: byName(maybe(number)),
  steps: count,
  begin: number,
  end: maybe(number),
  run: maybe(id),
  why: text
});
var studySummary = record({
  ...SUMMARY,
  labels: () => ({}),
  pools: () => ({}),
  ended: count,
  wanted: count,
  adds_trials: flag,
  stops_trials: flag,
  left: text,
  best: text,
  front: list(id),
  names: list(text),
  goals: list(text),
  trials: maybe(list(trial))
});
var scale = one((value) => ["linear", "log", "reverse-log", "listed"].includes(value), "a scale");
var studyCharts = record({
  sheet: text,
  axes: list(record({ name: text, kind: scale, low: number, high: number, values: list(text) })),
  shares: byName(list(maybe(number)))
});
var curve = record({
  run: text,
  tag: text,
  step: list(number),
  value: list(maybe(number)),
  wall_time: list(maybe(number)),
  low: maybe(list(maybe(number))),
  high: maybe(list(maybe(number)))
});
var curves = record({ lines: list(curve), notes: list(text) });
var kind = one((value) => ["histogram", "image", "text"].includes(value), "histogram, image or text");
var media = record({
  rows: list(record({ kind, run: text, tag: text, count, last: number })),
  hparams: byName(byName(maybe(words))),
  notes: list(text)
});
var base64 = one((value) => typeof value === "string" && /^[A-Za-z0-9+/]*=*$/.test(value), "bytes in base64");
var displayRow = record({ name: text, rank: count, time: number });
var imageForm = one((value) => /^image\/(?:png|jpeg|gif)$/.test(value), "PNG, JPEG or GIF");
var display = record({
  label: absent(text),
  note: absent(text),
  text: absent(text),
  page: absent(text),
  image: absent(record({ form: imageForm, data: base64 })),
  figure: absent(record({ data: list(one((value) => ["scatter", "bar", "pie"].includes(value?.type), "a trace")), layout: object })),
  table: absent(record({ rows: list(list(tuple(text, flag, count, count))), note: text }))
});
var axis = (letter) => one((value) => typeof value === "string" && new RegExp(`^${letter}[0-9]*$`).test(value), `an axis ${letter}`);
var colour = one((value) => typeof value === "string" && /^#[0-9a-f]{3,8}$/i.test(value), "a colour");
var drawnCharts = record({
  sheet: text,
  shape: record({
    keys: list(tuple(text, text)),
    traces: list(record({
      type: one((value) => value === "scatter", "scatter"),
      name: text,
      xaxis: axis("x"),
      yaxis: axis("y"),
      line: record({ color: colour, width: number }),
      marker: record({ size: number }),
      stackgroup: absent(axis("y"))
    })),
    newest: byName(text),
    dots: number,
    thinned: flag
  }),
  lines: list(record({ step: text, wide: flag, value: text, seconds: text, began: number, low: text, high: text }))
});
var medium = record({
  step: absent(number),
  note: absent(text),
  text: absent(text),
  data: absent(text),
  form: absent(one((value) => /^image\/[\w.+-]+$/.test(value), "the MIME type of an image")),
  steps: absent(list(number)),
  edges: absent(list(number)),
  counts: absent(list(list(number))),
  notes: absent(list(text))
});
var charts = record({
  seen: text,
  end: flag,
  metrics: maybe(drawnCharts),
  times: maybe(drawnCharts),
  resources: maybe(drawnCharts),
  media: maybe(media),
  displays: absent(maybe(list(displayRow)))
});
var ANSWERS = {
  summary: record(SUMMARY),
  log: record({ lines: list(line), bars: list(line), first: count, rows: count, total: count, end: flag }),
  search: record({ total: count, searched: number, done: flag, row: maybe(count), place: number }),
  "first-error": record({ row: maybe(count) }),
  tracebacks: record({ folds: list(tuple(count, count)) }),
  metrics: curves,
  times: curves,
  resources: curves,
  curves,
  charts,
  overlay: charts,
  media: (value) => "rows" in object(value) ? media(value) : medium(value),
  display,
  runs: record({ runs: list(tableRun) }),
  studies: record({ studies: list(studyRow) }),
  sessions: record({ sessions: list(sessionRow) }),
  study: record({ seen: text, end: absent(flag), summary: studySummary, charts: maybe(studyCharts) }),
  ending: record({ final: flag, text, html: absent(text) }),
  row: studyRow,
  compare: record({
    titles: list(text),
    runs: list(tableRun),
    rows: list(record({ name: text, texts: list(text), numbers: list(maybe(number)), best: list(count), differs: flag })),
    diff: absent(text)
  })
};
function taken(path, answer) {
  const shape = ANSWERS[path];
  if (!shape) throw new Misshapen(`no answer is called ${path}`);
  return shape(answer);
}
var home = one((value) => typeof value === "string" && /^[0-9a-f]{0,12}$/.test(value), "the start of a hash");
var part = one((value) => value === "run" || value === "charts", "run or charts");
var runReference = record({ run: id, home, created: number, part, final: absent(flag) });
var studyReference = record({ study: id, home, created: number, final: absent(flag) });
function named(shape) {
  return (value) => {
    try {
      return shape(value);
    } catch {
      return null;
    }
  };
}
var namedRun = named(runReference);
var namedStudy = named(studyReference);

// src/source.js
var PROBE_AGAIN_MS = 5e3;
var KERNEL_IS_BUSY_AFTER_MS = 1e3;
var ANSWERS_WITHIN_MS = 6e4;
function pageConfig() {
  const config = document.querySelector("script#jupyter-config-data");
  return config ? JSON.parse(config.textContent) : null;
}
function serverAddress(path) {
  const { baseUrl } = pageConfig();
  return `${baseUrl.endsWith("/") ? baseUrl : `${baseUrl}/`}${ownPath(path)}`;
}
var NoServer = class extends Error {
};
async function request(path, options = {}) {
  const config = pageConfig();
  if (!config) throw new NoServer("this page has no Jupyter server");
  const cookie = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/);
  const headers = {};
  if (cookie) headers["X-XSRFToken"] = cookie[1];
  if (config.token) headers.Authorization = `token ${config.token}`;
  const signal = AbortSignal.timeout(ANSWERS_WITHIN_MS);
  const answer = await fetch(serverAddress(path), { ...options, headers, signal });
  if (answer.status >= 500) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer;
}
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
var Refused = class extends Error {
};
var Gone = class extends Error {
  constructor() {
    super("The kernel of this output has ended or restarted, and Jupyter's server does not answer either. Run its cell again.");
  }
};
var Source = class {
  /** @param {Model<State>} model */
  constructor(model) {
    this.model = model;
    this.served = null;
    this.waiting = /* @__PURE__ */ new Map();
    this.name = Math.random().toString(36).slice(2);
    this.number = 0;
    this.waitingSince = null;
    this.closed = false;
    this.again = void 0;
    this.receiving = (message) => this.receive(message);
    model.on("msg:custom", this.receiving);
    this.probed = this.probe();
  }
  /**
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    return `distrain/runs/${this.model.get("run")}/${path}?${this.words(query)}`;
  }
  /** @param {Query} query */
  words(query) {
    return new URLSearchParams({ ...asText(query), home: this.model.get("home") });
  }
  /** What is asked first, to see whether the server answers. */
  get opening() {
    return "summary";
  }
  /**
   * Take the answer to the opening.
   * @param {object} _answer
   */
  learn(_answer) {
  }
  async probe() {
    try {
      const answer = await request(this.address(this.opening));
      this.served = answer.ok;
      if (answer.ok) this.learn(taken(this.opening, await answer.json()));
    } catch (error) {
      this.served = false;
      if (!(error instanceof NoServer)) this.lost();
    }
    return this.served;
  }
  /** Whether the server answers now. */
  async answersItself() {
    return this.served ?? this.probed;
  }
  /**
   * The answer. Raises Refused for a question that makes no sense.
   * @param {string} path
   * @param {Query} [query]
   * @returns {Promise<any>}
   */
  async ask(path, query = {}) {
    if (this.served ?? await this.probed) {
      try {
        const answer = await request(this.address(path, query));
        const body = await answer.json();
        if (answer.ok) return taken(path, body);
        if (answer.status === 400) throw new Refused(body.message);
      } catch (error) {
        if (error instanceof Refused) throw error;
      }
      this.lost();
    }
    return taken(path, await this.askKernel(path, query));
  }
  /**
   * Have the server do something; says whether it has. Raises Refused.
   * @param {string} method
   * @param {string} path
   * @param {Query} [query]
   */
  async order(method, path, query = {}) {
    if (!(this.served ?? await this.probed)) return false;
    const answer = await request(this.address(path, query), { method }).catch(() => null);
    if (answer && [400, 409].includes(answer.status)) throw new Refused((await answer.json()).message);
    if (!answer?.ok) this.lost();
    return answer?.ok ?? false;
  }
  /** The server is not there now, or doesn't know the run any more: look again every now and then. */
  lost() {
    this.served = false;
    clearTimeout(this.again);
    if (!this.closed) this.again = setTimeout(() => this.probeAgain(), PROBE_AGAIN_MS);
  }
  async probeAgain() {
    this.probed = this.probe();
    if (!await this.probed) this.lost();
  }
  /**
   * @param {string} path
   * @param {Query} query
   * @returns {Promise<any>}
   */
  askKernel(path, query) {
    const id2 = `${this.name}-${++this.number}`;
    const since = this.waitingSince ?? Date.now();
    const answer = new Promise((resolve, reject) => this.waiting.set(id2, { resolve, reject }));
    if (this.toKernel({ kind: "ask", id: id2, path, query: asText(query) })) {
      this.waitingSince = since;
      return answer;
    }
    this.waiting.delete(id2);
    return Promise.reject(new Gone());
  }
  /**
   * Tell the kernel something; says whether there is one.
   * @param {object} message
   */
  toKernel(message) {
    try {
      this.model.send(message);
      return true;
    } catch {
      return false;
    }
  }
  /** @param {{kind: string, id: string, body?: any, error?: string}} message */
  receive(message) {
    const waiting = message.kind === "answer" ? this.waiting.get(message.id) : void 0;
    if (!waiting) return;
    this.waiting.delete(message.id);
    this.waitingSince = this.waiting.size ? Date.now() : null;
    if (message.error === void 0) waiting.resolve(message.body);
    else waiting.reject(new Refused(message.error));
  }
  /** Whether the kernel has owed an answer for a while: it is busy with something else. */
  get kernelIsBusy() {
    return this.waitingSince !== null && Date.now() - this.waitingSince > KERNEL_IS_BUSY_AFTER_MS;
  }
  close() {
    this.closed = true;
    clearTimeout(this.again);
    this.model.off("msg:custom", this.receiving);
  }
};
function asText(query) {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
}

// src/words.js
function thousands(count2) {
  return count2.toLocaleString("en");
}

// src/charts/colours.js
function themeColours(place) {
  const style = getComputedStyle(place);
  const colour2 = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  return {
    text: style.color,
    font: style.fontFamily,
    ground: colour2("--jp-layout-color0", "#fff"),
    raised: colour2("--jp-layout-color1", "#fff")
  };
}
var THEMED = ["data-jp-theme-name", "data-jp-theme-light"];
function whenThemed(place, act) {
  const later = () => requestAnimationFrame(act);
  const hear = ({ target }) => {
    if (target === place) later();
  };
  for (const ended of ["transitionend", "transitioncancel"]) place.addEventListener(ended, hear);
  const told = new MutationObserver(later);
  told.observe(document.body, { attributes: true, attributeFilter: THEMED });
  document.head.addEventListener("load", later, true);
  return () => {
    told.disconnect();
    document.head.removeEventListener("load", later, true);
  };
}

// src/charts/ridges.js
var HILL = { old: 88, newest: 50 };
var TALLEST = 2.5;
var LABELS = 6;
function hillColour(age) {
  return `hsl(217, 80%, ${Math.round(HILL.newest + (HILL.old - HILL.newest) * age)}%)`;
}
function hill({ step, counts, values, base, scale: scale2, age, ground }) {
  const [first, last] = [values[0], values[values.length - 1]];
  return {
    type: "scatter",
    mode: "lines",
    fill: "toself",
    hoveron: "points",
    showlegend: false,
    x: [first, ...values, last],
    y: [base, ...counts.map((count2) => base + count2 * scale2), base],
    customdata: [0, ...counts, 0],
    fillcolor: hillColour(age),
    line: { color: ground, width: 1 },
    hovertemplate: `step ${thousands(step)}<br>value %{x:.4g}<br>%{customdata:.4g} values<extra></extra>`
  };
}
function ridges({ steps, edges, counts }, { width, text: text2, ground }) {
  const values = edges.slice(1).map((edge, at) => (edge + edges[at]) / 2);
  const rows = steps.length;
  const tallest = Math.max(TALLEST, rows / 5);
  const scale2 = tallest / Math.max(1e-12, ...counts.flat());
  const baseOf = (row) => rows - 1 - row;
  const hills = steps.map((step, row) => {
    const age = baseOf(row) / Math.max(1, rows - 1);
    return hill({ step, counts: counts[row], values, base: baseOf(row), scale: scale2, age, ground });
  });
  const every = Math.max(1, Math.ceil(rows / LABELS));
  const labelled = steps.map((_, row) => row).filter((row) => baseOf(row) % every === 0);
  const axis2 = { zeroline: false, gridcolor: "rgba(128,128,128,.25)" };
  const layout = {
    width,
    height: 300,
    margin: { l: 64, r: 16, t: 10, b: 40 },
    hovermode: "closest",
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: text2, size: 11 },
    xaxis: { ...axis2, type: "linear", title: { text: "value" } },
    yaxis: {
      ...axis2,
      type: "linear",
      title: { text: "step" },
      range: [-0.5, rows - 1 + tallest * 1.05],
      tickvals: labelled.map(baseOf),
      ticktext: labelled.map((row) => thousands(steps[row]))
    }
  };
  return [hills, layout];
}

// src/charts/media.js
var SETTLED_MS = 80;
function nameOf({ run, tag }) {
  return run ? `${run} · ${tag}` : tag;
}
var MediaFold = class {
  /**
   * @param {MediaRow["kind"]} kind
   * @param {string} title
   * @param {Source<MediaState>} source
   * @param {(place: HTMLElement, title: string) => PlotFrame} plot
   */
  constructor(kind2, title, source, plot) {
    this.kind = kind2;
    this.title = title;
    this.source = source;
    this.plot = plot;
    this.rows = [];
    this.row = void 0;
    this.following = true;
    this.asked = 0;
    this.frame = void 0;
    this.figure = element("div", { class: "dn-figure" });
    const { box, inside, summary } = fold(title, "dn-media");
    this.box = box;
    this.summary = summary;
    this.menu = choice(title, [], (name) => this.choose(name));
    this.slider = element("input", { type: "range", min: 0, step: 1, "aria-label": `Step of ${title}`, ...OWN_KEYS });
    this.label = element("output");
    this.place = element("div", { class: "dn-media-place" });
    const slider = kind2 === "histogram" ? null : this.slider;
    inside.append(element("div", { class: "dn-chart-tools" }, this.menu, slider, this.label), this.place);
    this.settled = debounce(SETTLED_MS, () => this.show());
    this.slider.addEventListener("input", () => {
      this.following = this.slider.value === this.slider.max;
      this.settled();
    });
    this.box.addEventListener("toggle", () => this.show());
    this.histograms = void 0;
    this.unthemed = whenThemed(this.figure, () => {
      if (this.histograms) this.histogram(this.histograms);
    });
  }
  /** @param {MediaRow[]} rows of all kinds */
  update(rows) {
    this.rows = rows.filter((row) => row.kind === this.kind);
    this.box.hidden = !this.rows.length;
    this.summary.textContent = `${this.title} (${thousands(this.rows.length)})`;
    if (!this.rows.length) return;
    const names = this.rows.map(nameOf);
    if (names.length !== this.menu.options.length) {
      const chosen = this.row ? nameOf(this.row) : names[0];
      this.menu.replaceChildren(...names.map((name) => new Option(name, name)));
      this.menu.value = chosen;
    }
    const before = this.row?.last;
    this.row = this.rows[names.indexOf(this.menu.value)] ?? this.rows[0];
    this.slider.max = String(this.row.count - 1);
    if (this.following) this.slider.value = this.slider.max;
    if (this.following && this.row.last !== before) this.show();
  }
  /** @param {string} name */
  choose(name) {
    this.row = this.rows.find((row) => nameOf(row) === name);
    this.following = true;
    this.slider.max = this.slider.value = String((this.row?.count ?? 1) - 1);
    this.show();
  }
  async show() {
    if (!this.box.open || !this.row) return;
    const { kind: kind2, run, tag } = this.row;
    const query = { kind: kind2, run, tag };
    if (kind2 !== "histogram") query.at = Number(this.slider.value);
    const number2 = ++this.asked;
    const answer = await this.source.ask("media", query).catch((error) => ({ note: messageOf(error) }));
    if (this.asked !== number2) return;
    this.label.textContent = answer.step === void 0 ? "" : `step ${thousands(answer.step)}`;
    if (answer.note) this.place.replaceChildren(element("span", { class: "dn-chart-note" }, answer.note));
    else this[kind2](answer);
  }
  /** @param {{form: string, data: string}} answer a MIME type and bytes in base64 */
  image({ form, data }) {
    const source = `data:${form};base64,${data}`;
    this.place.replaceChildren(element("img", { class: "dn-media-image", src: source, alt: this.menu.value }));
  }
  /** @param {{text: string}} answer */
  text({ text: text2 }) {
    this.place.replaceChildren(element("pre", { class: "dn-media-text" }, text2));
  }
  /** @param {Histograms} answer */
  histogram(answer) {
    this.histograms = answer;
    this.label.textContent = answer.notes.join("; ");
    if (this.figure.parentElement !== this.place) this.place.replaceChildren(this.figure);
    this.frame ??= this.plot(this.figure, this.title);
    const { text: text2, ground } = themeColours(this.figure);
    const [hills, layout] = ridges(answer, { width: this.place.clientWidth, text: text2, ground });
    this.frame.draw(hills, layout);
  }
  close() {
    this.unthemed();
    this.settled.cancel();
    this.frame?.close();
  }
};

// src/standing.js
var LOOK_EVERY_MS2 = 250;
var PARKED_MS = 5e3;
var STANDING = /* @__PURE__ */ new Map();
var PARKED = /* @__PURE__ */ new Map();
var MODELS = /* @__PURE__ */ new Map();
function stand({ model, el }, open) {
  const key = model.get("key");
  const view = unpark(key) ?? open(lastingModel(model));
  const standing = { view };
  el.append(view.root);
  view.moved?.();
  STANDING.set(key, standing);
  return () => {
    if (STANDING.get(key) === standing) STANDING.delete(key);
    if (standing.view) park(key, view);
  };
}
function taken2(key) {
  const standing = STANDING.get(key);
  if (!standing) return void 0;
  STANDING.delete(key);
  const { view } = standing;
  standing.view = null;
  return view;
}
function park(key, view) {
  const timer = setTimeout(() => {
    if (PARKED.get(key)?.view === view) PARKED.delete(key);
    view.end();
  }, PARKED_MS);
  PARKED.set(key, { view, timer });
}
function unpark(key) {
  const parked = PARKED.get(key);
  clearTimeout(parked?.timer);
  PARKED.delete(key);
  return parked?.view;
}
function lastingModel(model) {
  return MODELS.get(model.get("key")) ?? model;
}
function moveAfter(place, moved) {
  const parent = (
    /** @type {Element & {moveBefore?: (node: Node, before: Node | null) => void}} */
    place.parentElement
  );
  const kept = moved.isConnected && parent.moveBefore !== void 0;
  if (kept) parent.moveBefore?.(moved, place.nextSibling);
  else place.after(moved);
  return kept;
}
function revive(place, model, open, own) {
  const still = [...place.parentElement?.querySelectorAll(":scope > :is(.distrain, .distrain-charts)") ?? []];
  const key = model.get("key");
  const view = own ?? unpark(key) ?? taken2(key) ?? open(model);
  const kept = moveAfter(place, view.root);
  Promise.resolve(view.ready?.(kept)).then(() => {
    for (const part2 of still) part2.remove();
  });
  view.moved?.();
  return { view, end: () => {
    view.end();
    view.root.replaceWith(...still);
  } };
}
function whenever(selector, found) {
  const observer = new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        if (node.matches(selector)) found(node);
        for (const inside of node.querySelectorAll(selector)) found(inside);
      }
    }
  });
  observer.observe(document.body, { childList: true, subtree: true });
  for (const there of document.querySelectorAll(selector)) found(there);
  return observer;
}
function standsWhereMarked(open) {
  return ({ model }) => {
    const key = model.get("key");
    const revived = /* @__PURE__ */ new Map();
    MODELS.set(key, model);
    const left = () => {
      const [gone, { view }] = [...revived].find(([place]) => !place.isConnected) ?? [null, {}];
      if (gone) revived.delete(gone);
      return view;
    };
    const observer = whenever(`[data-distrain-live="${key}"]`, (place) => {
      if (place.isConnected && !revived.has(place)) revived.set(place, revive(place, model, open, left()));
    });
    const clock = setInterval(() => {
      for (const [place, { end }] of revived) {
        if (place.isConnected) continue;
        end();
        revived.delete(place);
      }
    }, LOOK_EVERY_MS2);
    return () => {
      observer.disconnect();
      clearInterval(clock);
      MODELS.delete(key);
      unpark(key)?.end();
      for (const { end } of revived.values()) end();
    };
  };
}

// src/media.js
var KINDS = [["histogram", "Histograms"], ["image", "Images"], ["text", "Texts"]];
function hparamsTable(values) {
  const runs = Object.keys(values);
  const names = [...new Set(runs.flatMap((run) => Object.keys(values[run])))];
  const table = element("table", { class: "dn-hparams" });
  if (runs.length > 1 || runs[0]) {
    const heads = runs.map((run) => element("th", { scope: "col" }, run || "run"));
    table.append(element("tr", {}, element("td"), ...heads));
  }
  for (const name of names) {
    const cells = runs.map((run) => element("td", {}, String(values[run][name] ?? "")));
    table.append(element("tr", {}, element("th", { scope: "row" }, name), ...cells));
  }
  return table;
}
function openMedia(model) {
  const root = element("div", { class: `distrain-charts ${LITERAL}` });
  const source = new Source(model);
  const plot = (place, title) => new PlotFrame(place, title, () => plotlyCode(model));
  const folds = KINDS.map(([kind2, title]) => new MediaFold(kind2, title, source, plot));
  const hparams = fold("Hyperparameters", "dn-media");
  const notes = element("div", { class: "dn-media-notes" });
  root.append(...folds.map((each) => each.box), hparams.box, notes);
  const change = () => {
    const index = model.get("index");
    for (const each of folds) each.update(index.rows ?? []);
    const values = index.hparams ?? {};
    hparams.box.hidden = !Object.keys(values).length;
    hparams.inside.replaceChildren(hparamsTable(values));
    notes.replaceChildren(...(index.notes ?? []).map((note) => element("div", { class: "dn-chart-note" }, note)));
  };
  model.on("change:index", change);
  change();
  const end = () => {
    model.off("change:index", change);
    for (const each of folds) each.close();
    source.close();
  };
  return { root, end };
}
var render = (widget) => stand(widget, openMedia);
var media_default = { initialize: standsWhereMarked(openMedia), render };
export {
  media_default as default,
  openMedia
};
