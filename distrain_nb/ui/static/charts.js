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
function write(node, text2) {
  if (node.textContent !== text2) node.textContent = text2;
}
function debounce(milliseconds, act) {
  let timer;
  const cancel = () => clearTimeout(timer);
  const later = () => {
    cancel();
    timer = setTimeout(act, milliseconds);
  };
  return Object.assign(later, { cancel });
}
function download(name, address) {
  element("a", { href: address, download: name }).click();
}
function saveAs(name, parts, type) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  download(name, address);
  setTimeout(() => URL.revokeObjectURL(address), 6e4);
}

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

// src/charts/band.js
var MANY = 8;
var MOST_APART = 3;
var APART = 4;
function along(step, value, steps) {
  const at = new Float64Array(steps.length).fill(NaN);
  let next = 0;
  for (let place = 0; place < steps.length; place++) {
    while (next < step.length && (step[next] < steps[place] || !Number.isFinite(value[next]))) next++;
    if (next === step.length) break;
    const [right, last] = [step[next], step[next - 1]];
    if (right === steps[place]) at[place] = value[next];
    else if (next > 0) at[place] = value[next - 1] + (value[next] - value[next - 1]) * (steps[place] - last) / (right - last);
  }
  return at;
}
function median(values) {
  const ordered = values.filter(Number.isFinite).sort((a, b) => a - b);
  return ordered[Math.floor(ordered.length / 2)] ?? NaN;
}
function bandOf(lines) {
  const longest = lines.reduce((a, b) => b.step.length > a.step.length ? b : a);
  const [values, lows, highs] = (
    /** @type {const} */
    ["value", "low", "high"].map((name) => lines.map((line2) => along(line2.step, line2[name], longest.step)))
  );
  const [low, mean, high] = [0, 1, 2].map(() => new Float64Array(longest.step.length).fill(NaN));
  const far = lines.map(() => 0);
  for (let place = 0; place < longest.step.length; place++) {
    const here = values.map((value) => value[place]);
    const finite = here.filter(Number.isFinite);
    if (!finite.length) continue;
    low[place] = Math.min(...lows.map((value) => value[place]).filter(Number.isFinite));
    high[place] = Math.max(...highs.map((value) => value[place]).filter(Number.isFinite));
    mean[place] = finite.reduce((a, b) => a + b) / finite.length;
    const middle = median(finite);
    here.forEach((value, line2) => {
      if (Number.isFinite(value)) far[line2] += Math.abs(value - middle) / longest.step.length;
    });
  }
  const as = (value) => ({ ...longest, value });
  return { low: as(low), mean: as(mean), high: as(high), far };
}
function apart(far) {
  const usual = median(far);
  return far.map((_, place) => place).filter((place) => far[place] > APART * usual).sort((a, b) => far[b] - far[a]).slice(0, MOST_APART);
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

// src/charts/lines.js
var POINTS_AT_ONCE = 1e5;
function numbers(view, Kind) {
  return new Kind(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}
function unpacked(line2) {
  const [value, seconds] = [numbers(line2.value, Float32Array), numbers(line2.seconds, Float32Array)];
  return {
    step: line2.wide ? numbers(line2.step, Float64Array) : numbers(line2.step, Float32Array),
    value,
    low: line2.low.byteLength ? numbers(line2.low, Float32Array) : value,
    high: line2.high.byteLength ? numbers(line2.high, Float32Array) : value,
    wall: Float64Array.from(seconds, (passed) => line2.began + passed)
  };
}
function byNumber(lines, keys) {
  return new Map(lines.map((line2) => [
    keys.findIndex(([run, tag]) => run === line2.run && tag === line2.tag),
    asLine(line2)
  ]));
}
function asLine({ step, value: values, wall_time, low, high }) {
  const value = values.map(orNaN);
  return { step, value, wall: wall_time.map(orNaN), low: low?.map(orNaN) ?? value, high: high?.map(orNaN) ?? value };
}
function isThinned({ value, low }) {
  return low !== value;
}
function orNaN(value) {
  return value ?? NaN;
}
function smoothed(values, weight) {
  let average = 0;
  let share = 1;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    share *= weight;
    average += (value - average) * ((1 - weight) / (1 - share));
    return average;
  });
}
function edges({ low, high }, scale2) {
  if (scale2 !== "log") return { low, high };
  let least = Infinity;
  for (const edge of [low, high]) for (const value of edge) if (value > 0 && value < least) least = value;
  const raised = (value, at) => high[at] > 0 ? Math.max(value, least) : NaN;
  return { low: low.map(raised), high: high.map(raised) };
}
function refined(coarse, fine) {
  const from = fine.step[0];
  const to = fine.step[fine.step.length - 1];
  const joined = (name) => [
    ...coarse[name].filter((_, at) => coarse.step[at] < from),
    ...fine[name],
    ...coarse[name].filter((_, at) => coarse.step[at] > to)
  ];
  const value = joined("value");
  const [low, high] = isThinned(coarse) || isThinned(fine) ? [joined("low"), joined("high")] : [value, value];
  return { step: joined("step"), wall: joined("wall"), value, low, high };
}
function across(line2, mode, start) {
  if (mode === "step") return line2.step;
  if (mode === "relative") return line2.wall.map((seconds) => seconds - start);
  return Array.from(line2.wall, localTime);
}
function localTime(seconds) {
  const at = new Date(seconds * 1e3);
  if (Number.isNaN(at.getTime())) return null;
  return new Date(at.getTime() - at.getTimezoneOffset() * 6e4).toISOString().slice(0, -1);
}
function stepsWithin(lines, mode, start, stretch) {
  const number2 = (at) => mode === "wall" ? timeOf(at) : Number(at);
  let low = Infinity;
  let high = -Infinity;
  const [begin, end] = stretch.map(number2);
  for (const line2 of lines) {
    const places = Array.from(across(line2, mode, start), number2);
    const first = places.findIndex((at) => at >= begin);
    const next = places.findIndex((at) => at > end);
    if (first < 0) continue;
    const last = next < 0 ? places.length - 1 : next;
    low = Math.min(low, line2.step[Math.max(0, first - 1)]);
    high = Math.max(high, line2.step[last]);
  }
  return low <= high ? [Math.floor(low), Math.ceil(high)] : null;
}
function timeOf(at) {
  return new Date(at ?? 0).getTime();
}
function csv(lines) {
  const rows = ["run,tag,step,wall_time,value"];
  for (const line2 of lines) {
    const head = `${cell(line2.run)},${cell(line2.tag)}`;
    line2.step.forEach((step, at) => rows.push(`${head},${step},${line2.wall_time[at] ?? "nan"},${line2.value[at] ?? "nan"}`));
  }
  return `${rows.join("\n")}
`;
}
function cell(text2) {
  return /[",\n\r]/.test(text2) ? `"${text2.replaceAll('"', '""')}"` : text2;
}
async function wholeLines(ask, from, to) {
  const answer = await ask({ from, to, points: POINTS_AT_ONCE });
  if (!answer) return null;
  if (from >= to || answer.lines.every((line2) => line2.step.length < POINTS_AT_ONCE)) return answer.lines;
  const middle = Math.floor((from + to) / 2);
  const [low, high] = [await wholeLines(ask, from, middle), await wholeLines(ask, middle + 1, to)];
  return low && high && [...low, ...high];
}

// src/charts/found.js
var MOST = 12;
var POINTS = 1e3;
function fits(tag, words2) {
  return words2.toLowerCase().split(/\s+/).every((word) => tag.toLowerCase().includes(word));
}
var Found = class {
  /**
   * @param {(query: Query) => Promise<{lines: CurveAnswer[]} | null>} ask
   * @param {() => void} changed
   */
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
    this.tags = [];
    this.keys = [];
    this.lines = [];
  }
  /**
   * Get the pinned ones of these metrics, and the first that have all the words; without words, none.
   * @param {string} words
   * @param {string[]} tags
   * @param {Kept} kept
   */
  async look(words2, tags, kept) {
    const fitting = words2.trim() ? tags.filter((tag) => fits(tag, words2)).slice(0, MOST) : [];
    const wanted = [.../* @__PURE__ */ new Set([...tags.filter((tag) => kept.isPinned(tag)), ...fitting])];
    if (!wanted.length && !this.tags.length) return;
    this.tags = wanted;
    const answers = await Promise.all(wanted.map((tag) => this.ask({ tag, points: POINTS })));
    if (this.tags !== wanted) return;
    const curves2 = answers.flatMap((answer) => answer?.lines ?? []);
    this.keys = curves2.map(({ run, tag }) => [run, tag]);
    this.lines = curves2.map(asLine);
    this.changed();
  }
};
function traceLike({ keys, traces }, series, axis2) {
  const like = traces[keys.findIndex(([other]) => other === series)];
  const own = like ?? { ...traces[0], name: series || "run", line: { ...traces[0].line, color: "#808080" } };
  const stack = own.stackgroup ? { stackgroup: `y${axis2}` } : {};
  return { ...own, xaxis: `x${axis2}`, yaxis: `y${axis2}`, ...stack };
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

// src/charts/kept.js
var MOST_PINNED = 24;
var FIRST = { pinned: [], mode: "step", scale: "linear", smoothing: 0 };
var Kept = class {
  /** @param {string} path which charts, as in `metrics` */
  constructor(path) {
    this.key = `distrain-charts-${path}`;
    this.choice = choiceOf(read(this.key));
  }
  /** @param {Partial<Choice>} change */
  change(change) {
    this.choice = { ...this.choice, ...change };
    try {
      localStorage.setItem(this.key, JSON.stringify(this.choice));
    } catch {
    }
  }
  /** @param {string} tag a metric, pinned or no longer */
  pin(tag) {
    const { pinned } = this.choice;
    const others = pinned.filter((other) => other !== tag);
    this.change({ pinned: others.length < pinned.length ? others : [...pinned, tag].slice(-MOST_PINNED) });
  }
  /** @param {string} tag */
  isPinned(tag) {
    return this.choice.pinned.includes(tag);
  }
};
function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}");
  } catch {
    return {};
  }
}
function choiceOf(value) {
  const { pinned, mode, scale: scale2, smoothing } = value ?? {};
  return {
    pinned: Array.isArray(pinned) ? pinned.filter((tag) => typeof tag === "string").slice(0, MOST_PINNED) : FIRST.pinned,
    mode: ["step", "relative", "wall"].includes(mode) ? mode : FIRST.mode,
    scale: ["linear", "log"].includes(scale2) ? scale2 : FIRST.scale,
    smoothing: typeof smoothing === "number" && smoothing >= 0 && smoothing < 1 ? smoothing : FIRST.smoothing
  };
}

// src/charts/layout.js
var TOLD_TOGETHER = 8;
var GREY = "#808080";
var GRID = "rgba(128,128,128,.25)";
var AXIS = { zeroline: false, automargin: false, tickangle: 0, tickfont: { size: 11 }, ticklabeloverflow: "allow", gridcolor: GRID };
var X_AXIS = { ...AXIS, hoverformat: ",.10~g", nticks: 6, showgrid: false, showline: true, linecolor: GREY };
var Y_AXIS = { ...AXIS, nticks: 5, exponentformat: "e", minexponent: 4 };
function axisNumber(place) {
  return place ? String(place + 1) : "";
}
function hoverMode(data) {
  return new Set(data.map(({ name }) => name)).size > TOLD_TOGETHER ? "closest" : "x unified";
}
function layoutFor(tags, boxes, { figure, mode, scale: scale2 }) {
  const { clientWidth: width, clientHeight: height } = figure;
  const { text: text2, raised, font } = themeColours(figure);
  const layout = {
    width,
    height,
    margin: { l: 0, r: 0, t: 0, b: 0 },
    template: {},
    showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: text2, size: 12, family: font },
    hoverlabel: { font: { size: 11, color: text2 }, bgcolor: raised, bordercolor: GREY },
    uirevision: "the reader's"
    // zoom stays when points come
  };
  if (!boxes.size) Object.assign(layout, { xaxis: { visible: false }, yaxis: { visible: false } });
  tags.forEach((tag, place) => {
    const box = boxes.get(tag);
    if (!box) return;
    const number2 = axisNumber(place);
    const x = [box.left / width, (box.left + box.width) / width];
    const y = [1 - (box.top + box.height) / height, 1 - box.top / height];
    layout[`xaxis${number2}`] = { ...X_AXIS, ...mode === "wall" ? { hoverformat: "" } : {}, domain: within(x), anchor: `y${number2}`, uirevision: mode, type: mode === "wall" ? "date" : "linear" };
    layout[`yaxis${number2}`] = { ...Y_AXIS, domain: within(y), anchor: `x${number2}`, uirevision: scale2, type: scale2 };
  });
  return layout;
}
function within(shares) {
  return shares.map((share) => Math.min(1, Math.max(0, share)));
}
function asPicture([data, layout], boxes, ground) {
  const annotations = [...boxes].map(([tag, { left, top }]) => ({
    text: `<b>${tag.replaceAll("<", "&lt;")}</b>`,
    xref: "paper",
    yref: "paper",
    x: left / layout.width,
    y: 1 - top / layout.height,
    xanchor: "left",
    yanchor: "bottom",
    showarrow: false,
    font: { size: 12 }
  }));
  const named2 = /* @__PURE__ */ new Set();
  const lines = data.map((line2) => {
    const showlegend2 = line2.hoverinfo !== "skip" && line2.visible && !named2.has(line2.name);
    if (showlegend2) named2.add(line2.name);
    return { ...line2, showlegend: showlegend2 };
  });
  const legend = { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "top", itemwidth: 30, bgcolor: "rgba(0,0,0,0)" };
  const showlegend = new Set(data.map((line2) => line2.name)).size > 1;
  return [lines, { ...layout, annotations, legend, showlegend, paper_bgcolor: ground }];
}

// src/markup.js
var SVG = "http://www.w3.org/2000/svg";
var HTML = "http://www.w3.org/1999/xhtml";
var TAGS = {
  [HTML]: /* @__PURE__ */ new Set(["b", "details", "div", "i", "span", "summary", "table", "tbody", "td", "th", "tr"]),
  [SVG]: /* @__PURE__ */ new Set(["g", "path", "rect", "svg", "text", "tspan"])
};
var ATTRIBUTES = /* @__PURE__ */ new Set([
  "aria-label",
  "d",
  "data-group",
  "data-most",
  "data-series",
  "data-tag",
  "data-trial",
  "dx",
  "fill",
  "height",
  "open",
  "preserveAspectRatio",
  "role",
  "rx",
  "scope",
  "stroke",
  "title",
  "viewBox",
  "width",
  "x",
  "y"
]);
var PAINTS = /* @__PURE__ */ new Set(["fill", "stroke"]);
var COLOUR = /^#[0-9a-f]{3,8}$/i;
var STYLE = /^(?:left|top|width|--dn-[a-z]+)$/;
var VALUE = /^(?:-?[0-9.]+(?:px|%)?|#[0-9a-f]{3,8}|var\(--dn-[a-z]+\))$/i;
function drawn(markup) {
  const first = parsed(markup);
  const made = first && built(first);
  return made instanceof Element ? made : null;
}
function parsed(markup) {
  return new DOMParser().parseFromString(markup, "text/html").body.firstElementChild;
}
function built(node) {
  if (node instanceof Text) return document.createTextNode(node.data);
  if (!(node instanceof Element) || !TAGS[node.namespaceURI ?? ""]?.has(node.localName)) return null;
  const made = (
    /** @type {HTMLElement | SVGElement} */
    document.createElementNS(node.namespaceURI, node.localName)
  );
  const names = [...node.classList].filter((name) => name.startsWith("dn-"));
  if (names.length) made.setAttribute("class", names.join(" "));
  for (const { name, value } of node.attributes) {
    if (ATTRIBUTES.has(name) && (!PAINTS.has(name) || COLOUR.test(value))) made.setAttribute(name, value);
  }
  dress(
    made.style,
    /** @type {HTMLElement | SVGElement} */
    node.style
  );
  made.append(...[...node.childNodes].map(built).filter((child) => child !== null));
  return made;
}
function dress(made, given) {
  for (const name of given) {
    const value = given.getPropertyValue(name).trim();
    if (STYLE.test(name) && VALUE.test(value)) made.setProperty(name, value);
  }
}

// src/charts/sheet.js
var Sheet = class {
  /**
   * Calls `toggled` when the reader hides or shows a series, or all of many, and `lit` for the series
   * whose name is pointed at, or none.
   * @param {HTMLElement} figure
   * @param {Kept} kept
   * @param {() => void} toggled
   * @param {(series: string | null) => void} lit
   */
  constructor(figure, kept, toggled, lit) {
    this.figure = figure;
    this.kept = kept;
    this.toggled = toggled;
    this.lit = lit;
    this.many = null;
    this.all = false;
    this.series = [];
    this.pinned = void 0;
    this.hidden = /* @__PURE__ */ new Set();
    this.folded = /* @__PURE__ */ new Set();
    this.found = [];
    this.words = "";
    this.markup = "";
    this.charts = [];
  }
  /** @param {string} markup */
  show(markup) {
    if (markup === this.markup) return;
    this.markup = markup;
    const sheet = drawn(markup);
    if (!sheet) return;
    this.figure.querySelector(":scope > .dn-sheet")?.remove();
    this.figure.prepend(sheet);
    this.charts = [.../** @type {NodeListOf<HTMLElement>} */
    sheet.querySelectorAll(".dn-chart")].map(chartOf);
    for (
      const group of
      /** @type {NodeListOf<HTMLDetailsElement>} */
      sheet.querySelectorAll("details.dn-group")
    ) this.fold(group);
    const names = (
      /** @type {NodeListOf<HTMLElement>} */
      sheet.querySelectorAll(".dn-series[data-series]")
    );
    this.series = [...names].map((name) => name.dataset.series ?? "");
    for (const name of names) this.answer(name);
    this.many = /** @type {HTMLDetailsElement | null} */
    sheet.querySelector("details.dn-many");
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
      (this.charts.find((chart) => chart.tag === tag)?.node.querySelector(".dn-pin") ?? void 0)?.focus();
    };
    const isPinned = this.kept.isPinned(tag);
    node.querySelector(".dn-title")?.append(button("", pin, {
      class: "dn-pin",
      "aria-pressed": String(isPinned),
      "aria-label": `pin ${tag}`,
      title: isPinned ? "Unpin" : "Show first, in all runs"
    }));
  }
  /** Put the pinned charts into their place. */
  bringPinned() {
    const charts2 = this.kept.choice.pinned.flatMap((tag) => this.charts.find((chart) => chart.tag === tag)?.node ?? []);
    this.pinned?.append(...charts2);
    for (
      const grid of
      /** @type {NodeListOf<HTMLElement>} */
      this.figure.querySelectorAll(".dn-grid")
    ) {
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
    const place = (
      /** @type {HTMLElement | null} */
      this.figure.querySelector(".dn-kept")
    );
    if (!place) return;
    place.hidden = this.all;
    const key = JSON.stringify([...series]);
    if (place.dataset.kept === key) return;
    place.dataset.kept = key;
    const inks = new Map([.../** @type {NodeListOf<HTMLElement>} */
    this.figure.querySelectorAll(".dn-many .dn-series")].map((name) => [name.dataset.series ?? "", [name.getAttribute("style") ?? "", name.textContent]]));
    const lines = [...series].flatMap((name) => {
      const ink = inks.get(name);
      return ink ? [ink] : [];
    });
    const band = [...place.children].slice(0, 2);
    place.replaceChildren(...band, ...lines.map(([style, text2]) => element("span", { class: "dn-series", style }, text2)));
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
      class: "dn-series",
      style: name.getAttribute("style"),
      "aria-pressed": isShown(),
      "data-series": series,
      onpointerenter: () => this.lit(series),
      onpointerleave: () => this.lit(null),
      onfocus: () => this.lit(series),
      onblur: () => this.lit(null)
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
  filter(words2) {
    this.words = words2;
    for (const { node, tag } of this.charts) node.hidden = !fits(tag, words2);
    for (
      const group of
      /** @type {NodeListOf<HTMLElement>} */
      this.figure.querySelectorAll(".dn-group")
    ) {
      group.hidden = !group.querySelector(".dn-chart:not([hidden])");
    }
  }
  /** Where lines are drawn, of the metrics that are shown. */
  get boxes() {
    const origin = this.figure.getBoundingClientRect();
    const boxes = /* @__PURE__ */ new Map();
    for (const { tag, area } of this.charts) {
      if (area.closest(".dn-group:is(details:not([open]))")) continue;
      const { left, top, width, height } = area.getBoundingClientRect();
      if (width && height) boxes.set(tag, { left: left - origin.left, top: top - origin.top, width, height });
    }
    return boxes;
  }
};
function chartOf(node) {
  const area = (
    /** @type {HTMLElement} */
    node.querySelector(".dn-area")
  );
  return { node, tag: node.dataset.tag ?? "", area, newest: node.querySelector(".dn-newest") };
}
function emptied(chart, tag) {
  const made = (
    /** @type {HTMLElement} */
    chart.cloneNode(true)
  );
  made.querySelector(".dn-pin")?.remove();
  made.dataset.tag = tag;
  made.querySelector(".dn-title")?.setAttribute("title", tag);
  for (const [place, text2] of [["b", tag], [".dn-newest", ""], [".dn-words", ""], [".dn-area", ""]]) {
    const node = made.querySelector(place);
    if (node) node.textContent = text2;
  }
  return made;
}

// src/charts/charts.js
var FINE_POINTS = 1e3;
var SMOOTH_POINTS = 500;
var AGAIN_MS = 2e3;
var SETTLED_MS = 150;
var FILTERED_FROM = 7;
var X_AXES = [["step", "x: step"], ["relative", "x: seconds since the start"], ["wall", "x: time of day"]];
var X_OF_SAMPLES = [["step", "x: seconds since the start"], ["wall", "x: time of day"]];
var Y_AXES = [["linear", "y: linear"], ["log", "y: logarithmic"]];
var Charts = class {
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
    this.fine = /* @__PURE__ */ new Map();
    this.smooth = null;
    this.averagedAt = 0;
    this.shown = [];
    this.start = 0;
    this.isNewer = false;
    this.note = element("span", { class: "dn-chart-note", role: "status" });
    this.figure = element("div", { class: "dn-figure" });
    this.sheet = new Sheet(this.figure, this.kept, () => this.draw(), (series) => this.plot.light(series === "" ? "run" : series));
    this.reset = button("Reset zoom", () => this.plot.unzoom(), { disabled: true });
    this.search = element("input", { type: "search", placeholder: "filter", "aria-label": "Filter metrics", hidden: true, ...OWN_KEYS });
    this.found = new Found((query) => this.ask(query), () => {
      this.sheet.add(this.found.tags);
      this.draw();
    });
    this.foundAt = 0;
    const look = debounce(SETTLED_MS, () => this.look());
    this.search.addEventListener("input", () => {
      this.sheet.filter(this.search.value);
      look();
    });
    const tools = this.tools();
    root.append(tools, this.figure);
    this.plot = new PlotFrame(this.figure, `Charts of ${this.subject}`, code, {
      near: tools,
      changed: (change) => this.zoomed(change),
      rested: () => {
        if (this.isNewer) this.update();
      },
      missing: () => source.toKernel({ kind: "undrawn" })
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
      choice("X axis", this.isSampled ? X_OF_SAMPLES : X_AXES, (mode) => {
        this.mode = /** @type {Mode} */
        mode;
        this.kept.change({ mode: this.mode });
        this.fine.clear();
        this.draw();
      }),
      choice("Y axis", Y_AXES, (scale2) => {
        this.scale = scale2;
        this.kept.change({ scale: scale2 });
        this.draw();
      })
    ];
    [x.value, y.value] = [this.mode, this.scale];
    return element(
      "div",
      { class: "dn-chart-tools", role: "group", "aria-label": "Chart tools" },
      element("label", {}, "Smoothing ", slider, shown),
      x,
      y,
      this.reset,
      this.search,
      button("PNG", () => this.savePicture(), { title: "Save the charts as a picture" }),
      button("CSV", () => this.saveTable(), { title: "Save all points as a table" }),
      this.note
    );
  }
  get shape() {
    return (
      /** @type {Shape} */
      this.model.get("shape")
    );
  }
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
    const count2 = Object.keys(newest).length;
    this.search.hidden = count2 < FILTERED_FROM;
    if (!this.foundAt && this.kept.choice.pinned.length) this.look();
    this.search.placeholder = count2 > this.tags.length ? `filter all ${count2}` : "filter";
    this.start = Math.min(...lines.map(({ wall }) => wall.find((seconds) => Number.isFinite(seconds)) ?? Infinity));
    this.shown = lines.map((line2, number2) => this.closer(line2, number2));
    const { boxes } = this.sheet;
    const charts2 = new Map([...boxes.keys()].map((tag) => [tag, []]));
    keys.forEach(([, tag], number2) => charts2.get(tag)?.push(number2));
    const kept = new Set(this.sheet.series.slice(0, 1));
    const all = [...charts2];
    const bands = all.filter(([, numbers2]) => this.sheet.many && !this.sheet.all && numbers2.length > MANY);
    const single = all.filter((chart) => !bands.includes(chart)).flatMap(([, numbers2]) => numbers2).sort((a, b) => a - b);
    const alone = all.filter(([, numbers2]) => numbers2.length <= MANY).flatMap(([, numbers2]) => numbers2);
    const data = [
      ...alone.flatMap((number2) => this.spread(number2)),
      ...single.flatMap((number2) => this.traces(number2, dots)),
      ...bands.flatMap(([tag, numbers2]) => this.band(tag, numbers2, dots, kept))
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
  band(tag, numbers2, dots, kept) {
    const [series, lines] = [numbers2.map((number2) => this.keys[number2][0]), numbers2.map((number2) => this.shown[number2])];
    const { low: least, mean, high: greatest, far } = bandOf(lines);
    const { low, high } = edges({ low: least.value, high: greatest.value }, this.scale);
    const own = new Set([...kept].slice(0, 1));
    for (const place of apart(far)) own.add(series[place]);
    for (const name of own) kept.add(name);
    const like = this.trace(numbers2[0]);
    const made = (name, y, more) => ({
      ...like,
      name,
      uid: `${tag} ${name}`,
      x: across(mean, this.mode, this.start),
      y,
      mode: "lines",
      ...more
    });
    const smooth = this.smoothing ? smoothed(mean.value, this.smoothing) : mean.value;
    return [
      made("min", low, { line: { width: 0 } }),
      made("max", high, { line: { width: 0 }, fill: "tonexty", fillcolor: "rgba(128,128,128,.25)" }),
      made("mean", smooth, { line: { width: 2, color: "#808080" } }),
      ...numbers2.filter((_, place) => own.has(series[place])).flatMap((number2) => this.traces(number2, dots))
    ];
  }
  /**
   * The traces of a line's band, which has the points that are left out.
   * @param {number} number of a line
   */
  spread(number2) {
    const [trace, line2] = [this.trace(number2), this.shown[number2]];
    if (trace.stackgroup || !isThinned(line2)) return [];
    const visible = !this.sheet.hidden.has(this.keys[number2][0]);
    const edge = { ...trace, visible, x: across(line2, this.mode, this.start), mode: "lines", line: { width: 0 }, hoverinfo: "skip", connectgaps: true };
    const { low, high } = edges(line2, this.scale);
    return [
      { ...edge, uid: `${number2} low`, y: low },
      { ...edge, uid: `${number2} high`, y: high, fill: "tonexty", fillcolor: `${trace.line.color}33` }
    ];
  }
  /** @param {number} number of a line */
  trace(number2) {
    const [series, tag] = this.keys[number2];
    return this.shape.traces[number2] ?? traceLike(this.shape, series, axisNumber(this.tags.indexOf(tag)));
  }
  get keys() {
    return [...this.shape.keys, ...this.found.keys];
  }
  get lines() {
    return [...this.model.get("lines").map(unpacked), ...this.found.lines];
  }
  get tags() {
    return [...new Set(this.keys.map(([, tag]) => tag))];
  }
  /** Of the metrics that are not drawn, get those that the filter fits. */
  look() {
    this.foundAt = Date.now();
    const drawn2 = new Set(this.shape.keys.map(([, tag]) => tag));
    this.found.look(this.search.value, Object.keys(this.shape.newest).filter((tag) => !drawn2.has(tag)), this.kept);
  }
  /**
   * The line with the finer points that there are of it.
   * @param {ChartLine} line
   * @param {number} number
   */
  closer(line2, number2) {
    for (const range of this.fine.values()) {
      const fine = range.lines?.get(number2);
      if (fine?.step.length) return refined(line2, fine);
    }
    return line2;
  }
  /**
   * @param {number} number of a line
   * @param {number} dots up to how many points are marked
   */
  traces(number2, dots) {
    const [trace, line2, [series]] = [this.trace(number2), this.shown[number2], this.keys[number2]];
    const x = across(line2, this.mode, this.start);
    const mode = x.length <= dots ? "lines+markers" : "lines";
    const visible = !this.sheet.hidden.has(series);
    const shown = { ...trace, visible, uid: `${number2}`, x, y: line2.value, mode };
    if (!this.smoothing || trace.stackgroup) return [shown];
    const smooth = this.averaged(line2, number2);
    return [
      { ...shown, uid: `${number2} raw`, opacity: 0.25, hoverinfo: "skip" },
      { ...shown, x: across(smooth, this.mode, this.start), y: smooth.value, mode: "lines" }
    ];
  }
  // ---- Smoothing ---------------------------------------------------------------------------
  /**
   * The line averaged over all points: as asked for, or here, where all are at hand or until then.
   * @param {ChartLine} line
   * @param {number} number
   * @returns {ChartLine}
   */
  averaged(line2, number2) {
    const whole = this.smooth?.weight === this.smoothing ? this.smooth.lines.get(number2) : null;
    if (!whole) return { ...line2, value: smoothed(line2.value, this.smoothing) };
    for (const range of this.fine.values()) {
      const fine = range.weight === this.smoothing ? range.smooth?.get(number2) : null;
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
      const [, number2, what] = name.match(/^xaxis(\d*)\.(autorange|range)/) ?? [];
      if (!what) continue;
      const place = Number(number2 || 1) - 1;
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
    const coarse = this.lines.filter((_, number2) => keys[number2][1] === tags[place]);
    const steps = stepsWithin(coarse, this.mode, this.start, seen);
    if (!steps) return;
    const weight = this.smoothing;
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
      format: "png",
      scale: 2,
      width,
      height,
      filename: this.fileName
    });
  }
  async saveTable() {
    this.note.textContent = "loading all points…";
    const steps = this.shown.flatMap((line2) => [...line2.step]);
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

// src/charts.js
var ComparedSource = class extends /** @type {typeof Source<any>} */
Source {
  /** @override */
  get opening() {
    return "curves";
  }
  /**
   * @override
   * @param {Query} query
   */
  words(query) {
    return super.words({ ...query, runs: this.model.get("runs") });
  }
  /**
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    return `distrain/${path}?${this.words(query)}`;
  }
};
function openCharts(model) {
  const root = element("div", { class: `distrain-charts ${LITERAL}` });
  const source = model.get("runs") ? new ComparedSource(model) : new Source(model);
  const folded = model.get("title") ? fold(model.get("title")) : null;
  if (folded) root.append(folded.box);
  const charts2 = new Charts(model, folded?.inside ?? root, source, () => plotlyCode(model));
  const ready = async (kept) => {
    if (folded || kept && charts2.plot.isDrawn) return;
    root.dataset.coming = "";
    await new Promise((resolve) => {
      charts2.plot.whenDrawn = () => resolve(null);
    });
    delete root.dataset.coming;
  };
  return { root, ready, end: () => {
    charts2.close();
    source.close();
  } };
}
var render = (widget) => stand(widget, openCharts);
var charts_default = { initialize: standsWhereMarked(openCharts), render };
export {
  ComparedSource,
  charts_default as default,
  openCharts
};
