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
function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...OWN_KEYS, ...attributes }, label);
}
var mine = Math.random().toString(36).slice(2);
function write(node, text2) {
  if (node.textContent !== text2) node.textContent = text2;
}
function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
}
function keyed(parts, items, keyOf, make, update = () => {
}) {
  const keys = new Set(items.map(keyOf));
  for (const [key, part2] of parts) {
    if (keys.has(key)) continue;
    part2.gone?.();
    parts.delete(key);
  }
  return items.map((item) => {
    const key = keyOf(item);
    const part2 = parts.get(key) ?? make(item);
    parts.set(key, part2);
    update(part2, item);
    return part2.node;
  });
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

// src/words.js
function thousands(count2) {
  return count2.toLocaleString("en");
}

// src/displays.js
var AT_FIRST = 20;
var LOOK_EVERY_MS3 = 300;
var LINE_PX = 26;
var LOWEST_PX = 60;
var DRAWN_PX = 320;
var HIGHEST_PX = 480;
var FIGURE_PX = 450;
var MARGINS_PX = 24;
var POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:";
var STYLE = "html { background: #fff; } body { margin: 8px; font: 13px/1.5 system-ui, sans-serif; color: #1f2328; }";
var BREAKS = /<(?:tr|p|li|br|h[1-6])\b/gi;
var DRAWS = /<(?:svg|img)\b/i;
var Shown = class {
  /**
   * @param {DisplayRow} row
   * @param {Source<DisplaysState>} source
   * @param {() => Promise<DataView>} code of plotly
   */
  constructor(row, source, code) {
    this.row = row;
    this.source = source;
    this.code = code;
    this.node = element("div", { class: "dn-display dn-figure" });
    this.frame = void 0;
    this.sized = void 0;
    this.width = 0;
    this.clock = setInterval(() => {
      if (isNear(this.node)) this.ask();
    }, LOOK_EVERY_MS3);
  }
  async ask() {
    clearInterval(this.clock);
    const answer = await this.source.ask("display", { name: this.row.name }).catch((error) => ({ note: messageOf(error) }));
    const number2 = this.row.name.split("-")[3] ?? "";
    const label = `display ${number2} of rank ${this.row.rank}`;
    const { figure } = answer;
    if (figure) {
      this.sized = new ResizeObserver(() => this.draw(figure, label));
      this.sized.observe(this.node);
    } else this.node.replaceChildren(...this.parts(answer, label));
  }
  /**
   * @param {DisplayAnswer} answer
   * @param {string} label
   */
  parts({ image, table, page, text: text2, note, label: named2 }, label) {
    if (image) return [element("img", { alt: named2 || label, src: `data:${image.form};base64,${image.data}` })];
    if (table) {
      const rows = table.rows.map((row) => element("tr", {}, ...row.map(cellOf)));
      const scrolled = element("div", { class: "dn-scrolled", tabindex: 0, role: "group", "aria-label": label }, element("table", { class: "dn-table" }, ...rows));
      return [scrolled, table.note ? element("div", { class: "dn-chart-note" }, table.note) : ""];
    }
    if (page !== void 0) return [this.page(page, label)];
    if (text2) return [element("pre", { class: "dn-media-text", tabindex: 0 }, text2)];
    return [element("div", { class: "dn-chart-note" }, named2 ? `${named2}: ${note}` : note)];
  }
  /**
   * @param {string} page HTML of a run
   * @param {string} label
   */
  page(page, label) {
    const frame = element("iframe", { class: "dn-page", sandbox: "", title: label, tabindex: 0 });
    const lines = (page.match(BREAKS)?.length ?? 0) + 1;
    const least = DRAWS.test(page) ? DRAWN_PX : LOWEST_PX;
    frame.style.height = `${Math.min(HIGHEST_PX, Math.max(least, lines * LINE_PX))}px`;
    frame.srcdoc = framed(page);
    return frame;
  }
  /**
   * @param {{data: Record<string, any>[], layout: Record<string, any>}} figure of plotly
   * @param {string} label
   */
  draw({ data, layout }, label) {
    const height = Math.min(2 * HIGHEST_PX, Math.max(LOWEST_PX, Number(layout.height) || FIGURE_PX));
    const width = Math.min(Number(layout.width) || Infinity, this.node.clientWidth - MARGINS_PX);
    if (width === this.width || width <= 0) return;
    this.width = width;
    this.frame ??= new PlotFrame(this.node, label, this.code);
    this.frame.draw(data, { ...layout, width, height }, true);
  }
  gone() {
    clearInterval(this.clock);
    this.sized?.disconnect();
    this.frame?.close();
  }
};
function cellOf([text2, head, columns, rows]) {
  return element(head && text2 ? "th" : "td", { colspan: columns > 1 && columns, rowspan: rows > 1 && rows }, text2);
}
function framed(page) {
  return `<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="${POLICY}"><style>${STYLE}</style></head><body>${page}</body></html>`;
}
function openDisplays(model) {
  const list2 = element("div");
  const root = element("section", { class: `distrain-charts ${LITERAL}`, "aria-label": "shown by the run" });
  const source = new Source(model);
  const parts = /* @__PURE__ */ new Map();
  let all = false;
  const more = button("", () => {
    all = true;
    change();
  });
  const tools = element("div", { class: "dn-chart-tools" }, more);
  root.append(list2);
  const change = () => {
    const rows = model.get("rows");
    const shown = all ? rows : rows.slice(-AT_FIRST);
    if (shown.length === rows.length) tools.remove();
    else if (tools.parentElement !== root) root.prepend(tools);
    write(more, `Show ${thousands(rows.length - shown.length)} earlier`);
    arrange(list2, keyed(parts, shown, (row) => row.name, (row) => new Shown(row, source, () => plotlyCode(model))));
  };
  model.on("change:rows", change);
  change();
  const end = () => {
    model.off("change:rows", change);
    for (const part2 of parts.values()) part2.gone();
    source.close();
  };
  return { root, end };
}
var render = (widget) => stand(widget, openDisplays);
var displays_default = { initialize: standsWhereMarked(openDisplays), render };
export {
  displays_default as default,
  framed,
  openDisplays
};
