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
function toggle(label, title, onChange) {
  const change = () => {
    made.setAttribute("aria-pressed", String(!isPressed(made)));
    onChange(isPressed(made));
  };
  const made = button(label, change, {
    class: "dn-chip dn-toggle",
    title,
    "aria-pressed": "false"
  });
  return made;
}
function isPressed(toggle2) {
  return toggle2.getAttribute("aria-pressed") === "true";
}
function choice(label, entries, onChange) {
  const menu = element("select", { "aria-label": label, ...OWN_KEYS });
  menu.append(...entries.map(([value, name]) => new Option(name, value)));
  menu.addEventListener("change", () => onChange(menu.value));
  return menu;
}
var mine = Math.random().toString(36).slice(2);
var ids = 0;
function uid(what) {
  ids += 1;
  return `dn-${what}-${mine}-${ids}`;
}
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
var RunSource = class extends /** @type {typeof Source<RunState>} */
Source {
  /** @param {Model<RunState>} model */
  constructor(model) {
    super(model);
    this.summary = {};
    this.listeners = [];
    this.learning = () => this.learn(model.get("summary"));
    model.on("change:summary", this.learning);
    this.learning();
  }
  /**
   * @override
   * @param {Partial<RunSummary>} summary
   */
  learn(summary) {
    if (summary.state === void 0 || (this.summary.now ?? 0) > (summary.now ?? 0)) return;
    this.summary = summary;
    for (const listener of this.listeners) listener();
  }
  /** @override */
  close() {
    super.close();
    this.model.off("change:summary", this.learning);
  }
};
function asText(query) {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
}

// src/words.js
function plural(count2, noun) {
  const ending = /(s|x|z|ch|sh)$/.test(noun) ? "es" : "s";
  const several = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}${ending}`;
  return `${thousands(count2)} ${count2 === 1 ? noun : several}`;
}
function thousands(count2) {
  return count2.toLocaleString("en");
}
function duration(seconds) {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${digits(whole % 60, 2)} s`;
  return `${Math.floor(whole / 3600)} h ${digits(Math.floor(whole % 3600 / 60), 2)} min`;
}
function clockTime(seconds) {
  const at = new Date(seconds * 1e3);
  const parts = [at.getHours(), at.getMinutes(), at.getSeconds()].map((n) => digits(n, 2));
  return `${parts.join(":")}.${digits(at.getMilliseconds(), 3)}`;
}
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** unit;
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
function digits(number2, count2) {
  return String(number2).padStart(count2, "0");
}

// src/log/ansi.js
var COLOUR = /\x1b\[([0-9;:]*)m/;
var CONTROLS = [
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]/,
  /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]*(?:\x07|\x1b\\|\x9c)/,
  /\x1b[ -/]*[0-~]/,
  /[\x00-\x08\x0b-\x1f\x7f-\x9f]/
];
var ANSI = new RegExp([COLOUR, ...CONTROLS].map(({ source }) => source).join("|"), "g");
var HUES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
var NAMES = [...HUES, ...HUES.map((hue) => `bright-${hue}`)];
var TERMINAL = [
  "#000000",
  "#cd0000",
  "#00cd00",
  "#cdcd00",
  "#0000ee",
  "#cd00cd",
  "#00cdcd",
  "#e5e5e5",
  "#7f7f7f",
  "#ff0000",
  "#00ff00",
  "#ffff00",
  "#5c5cff",
  "#ff00ff",
  "#00ffff",
  "#ffffff"
];
var CUBE = [0, 95, 135, 175, 215, 255];
var LIGHT = "#c0c0c0";
var READABLE = 3;
var MARKS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "strike" };
var ENDS = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 29: ["strike"] };
var PLAIN = { marks: [], ink: null, under: null, inverse: false };
function styleAfter(style, codes) {
  const plain = codes.replace(/([34]8:2):\d*:(\d+:\d+:\d+)/g, "$1:$2").replace(/(^|;)4:[1-5]/g, "$14");
  const numbers = plain.split(/[;:]/).map(Number);
  while (numbers.length) {
    const code = numbers.shift() ?? 0;
    style = code === 38 || code === 48 || code === 58 ? extended(style, code, numbers) : simple(style, code);
  }
  return style;
}
function simple(style, code) {
  const { marks } = style;
  if (code === 0) return PLAIN;
  if (code in MARKS) return { ...style, marks: [.../* @__PURE__ */ new Set([...marks, MARKS[code]])] };
  if (code in ENDS) return { ...style, marks: marks.filter((mark) => !ENDS[code].includes(mark)) };
  if (code === 7 || code === 27) return { ...style, inverse: code === 7 };
  if (code === 39) return { ...style, ink: null };
  if (code === 49) return { ...style, under: null };
  const name = NAMES[code % 10 + (code >= 90 ? 8 : 0)];
  const tens = Math.floor(code / 10);
  if (code % 10 > 7) return style;
  if (tens === 3 || tens === 9) return { ...style, ink: name };
  return tens === 4 || tens === 10 ? { ...style, under: name } : style;
}
function extended(style, code, rest) {
  const kind2 = rest.shift();
  const parts = rest.splice(0, kind2 === 5 ? 1 : kind2 === 2 ? 3 : 0);
  if (!parts.length || parts.some((part2) => part2 > 255) || code === 58) return style;
  const colour2 = kind2 === 5 ? indexed(parts[0]) : hex(parts);
  return code === 38 ? { ...style, ink: colour2 } : { ...style, under: colour2 };
}
function indexed(number2) {
  if (number2 < 16) return NAMES[number2];
  if (number2 >= 232) return hex(Array(3).fill(8 + 10 * (number2 - 232)));
  return hex([36, 6, 1].map((size2) => CUBE[Math.floor((number2 - 16) / size2) % 6]));
}
function hex(parts) {
  return `#${parts.map((part2) => part2.toString(16).padStart(2, "0")).join("")}`;
}
function asTerminal(colour2) {
  return TERMINAL[NAMES.indexOf(colour2)] ?? colour2;
}
function luminance(colour2) {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(colour2.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
function contrast(one2, other) {
  const [low, high] = [luminance(one2), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
function lookOf({ marks, ink, under, inverse }) {
  if (inverse && !ink && !under) return { class: [...marks, "ansi-inverse"].join(" ") };
  if (inverse) [ink, under] = [under, ink ?? LIGHT];
  if (under) {
    const ground = asTerminal(under);
    const wanted = ink && asTerminal(ink);
    const plain = contrast("#000000", ground) > contrast("#ffffff", ground) ? "#000000" : "#ffffff";
    const shown = wanted && contrast(wanted, ground) >= READABLE ? wanted : plain;
    return { class: [...marks, "ansi-box"].join(" "), style: `--dn-ink:${shown};--dn-under:${ground}` };
  }
  if (ink?.startsWith("#")) return { class: [...marks, "ansi-ink"].join(" "), style: `--dn-ink:${ink}` };
  const names = [...marks, ...ink ? [`ansi-${ink}`] : []];
  return names.length ? { class: names.join(" ") } : {};
}
function ansiPieces(text2) {
  const pieces = [];
  let style = PLAIN;
  let at = 0;
  for (const escape of text2.matchAll(ANSI)) {
    pieces.push([text2.slice(at, escape.index), lookOf(style)]);
    at = escape.index + escape[0].length;
    if (escape[1] !== void 0) style = styleAfter(style, escape[1]);
  }
  pieces.push([text2.slice(at), lookOf(style)]);
  return pieces.filter(([part2]) => part2);
}
function plainText(text2) {
  return text2.replace(ANSI, "");
}
function appendText(parent, text2, wanted) {
  const found = wanted ? [...plainText(text2).matchAll(wanted)].filter((match) => match[0]) : [];
  const spans = found.map((match) => (
    /** @type {const} */
    [match.index, match.index + match[0].length]
  ));
  let begin = 0;
  for (const [part2, look2] of ansiPieces(text2)) {
    const place = look2.class ? element("span", { ...look2 }) : parent;
    appendMarked(place, part2, begin, spans);
    if (place !== parent) parent.append(place);
    begin += part2.length;
  }
}
function appendMarked(parent, part2, begin, spans) {
  let at = 0;
  for (const [from, to] of spans) {
    const [first, last] = [Math.max(at, from - begin), Math.min(part2.length, to - begin)];
    if (first >= last) continue;
    parent.append(part2.slice(at, first), element("mark", {}, part2.slice(first, last)));
    at = last;
  }
  parent.append(part2.slice(at));
}

// src/log/line.js
var ROW = 18;
var COLOURS = 8;
var RAISED = /^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b/;
function colourOf(process) {
  return `dn-p${Number(process) % COLOURS}`;
}
function isInCell(text2) {
  return text2.includes("Cell In[");
}
function labelOf(summary, process) {
  return summary.labels?.[process] ?? String(process);
}
function lineElement(line2, summary, { times, wanted }) {
  const label = labelOf(summary, line2.process);
  const title = line2.stream === "e" ? `${label}, stderr` : label;
  const text2 = element("span", { class: RAISED.test(line2.text) ? "dn-raised" : "" });
  appendText(text2, line2.text, wanted);
  return element(
    "div",
    { class: `dn-line dn-${line2.stream} ${colourOf(line2.process)}` },
    element("span", { class: "dn-tag", title }, label),
    times && line2.time ? element("time", { class: "dn-when" }, clockTime(line2.time)) : null,
    text2
  );
}
function lineText(line2, summary) {
  return `[${labelOf(summary, line2.process)}] ${plainText(line2.text)}
`;
}

// src/log/folds.js
var OPEN_NEAR_END = 60;
var Folds = class {
  constructor() {
    this.closed = [];
    this.known = /* @__PURE__ */ new Map();
    this.opened = /* @__PURE__ */ new Set();
  }
  reset() {
    this.closed = [];
    this.known.clear();
    this.opened.clear();
  }
  /**
   * Fold these tracebacks, but for those that are short, near the end or mixed with other lines.
   * @param {Fold[]} folds
   * @param {Rows} rows
   */
  find(folds, rows) {
    for (const [first, last] of folds) {
      if (last - first < 3 || last >= rows.count - OPEN_NEAR_END || !isAlone(first, last, rows)) continue;
      this.known.set(first, last);
    }
    this.sort();
  }
  sort() {
    const folds = [...this.known].filter(([first]) => !this.opened.has(first)).sort((a, b) => a[0] - b[0]);
    this.closed = [];
    for (const fold of folds) if (fold[0] > (this.closed.at(-1)?.[1] ?? -1)) this.closed.push(fold);
  }
  /**
   * @param {number} first
   * @param {boolean} open
   */
  turn(first, open) {
    if (open) this.opened.add(first);
    else this.opened.delete(first);
    this.sort();
  }
  /**
   * Open what hides the row.
   * @param {number} row
   */
  reveal(row) {
    const hiding = this.closed.find(([first, last]) => first < row && row < last);
    if (hiding) this.turn(hiding[0], true);
  }
  /** @param {number} row */
  hiddenBefore(row) {
    let hidden = 0;
    for (const [first, last] of this.closed) {
      if (first >= row) break;
      hidden += Math.min(last - 1, row - 1) - first;
    }
    return hidden;
  }
  /** @param {number} row */
  placeOf(row) {
    return row - this.hiddenBefore(row);
  }
  /** @param {number} place */
  rowAt(place) {
    let row = place;
    for (const [first, last] of this.closed) {
      if (first >= row) break;
      row += last - 1 - first;
    }
    return row;
  }
  /**
   * How many rows the fold that begins there hides or would hide; null where none begins.
   * @param {number} row
   */
  at(row) {
    const last = this.known.get(row);
    return last === void 0 ? null : { open: this.opened.has(row), lines: last - row - 1 };
  }
};
function isAlone(first, last, rows) {
  const writer = rows.lines.get(first);
  for (let row = first; row <= last; row++) {
    const line2 = rows.lines.get(row);
    if (!writer || !line2 || line2.process !== writer.process) return false;
  }
  return true;
}

// src/log/rows.js
var RECENT = 1e4;
var HELD = 12e3;
var NEAR = 4e3;
var Rows = class {
  constructor() {
    this.recent = [];
    this.filter = { process: "", role: "", stream: "" };
    this.pools = {};
    this.bars = [];
    this.generation = 0;
    this.lines = /* @__PURE__ */ new Map();
    this.count = 0;
    this.total = 0;
    this.exact = true;
  }
  reset() {
    this.generation += 1;
    this.lines = /* @__PURE__ */ new Map();
    this.count = 0;
    this.total = 0;
    this.exact = !this.filtered;
  }
  get filtered() {
    return Boolean(this.filter.process || this.filter.role || this.filter.stream);
  }
  get query() {
    return Object.fromEntries(Object.entries(this.filter).filter(([, value]) => value));
  }
  /** @param {Partial<Filter>} filter */
  choose(filter) {
    Object.assign(this.filter, filter);
    const total = this.total;
    this.reset();
    if (this.recent.length) this.feed(this.recent);
    else if (!this.filtered) this.count = this.total = total;
  }
  /** @param {Bar} line */
  passes(line2) {
    const { process, role, stream } = this.filter;
    if (process && String(line2.process) !== process) return false;
    if (role && this.pools[line2.process] !== role) return false;
    return !stream || line2.stream === stream;
  }
  /** @param {Batch} batch */
  takeBatch(batch) {
    const lines = parseBatch(batch);
    const known = (this.recent.at(-1)?.number ?? -1) + 1;
    if (batch.whole && batch.total < known) this.recent = [];
    else if (batch.first <= known) lines.splice(0, known - batch.first);
    else this.recent = [];
    this.recent.push(...lines);
    if (this.recent.length > RECENT + 1e3) this.recent.splice(0, this.recent.length - RECENT);
    this.bars = batch.bars;
    this.feed(lines);
  }
  /** @param {Line[]} lines */
  feed(lines) {
    for (const line2 of lines) {
      if (line2.number < this.total) {
        if (!this.filtered) this.lines.set(line2.number, line2);
        continue;
      }
      if (line2.number > this.total) this.skipTo(line2.number);
      this.total = line2.number + 1;
      if (this.passes(line2)) this.lines.set(this.count++, line2);
    }
  }
  /**
   * Nobody has said what is between: with a filter, how many rows that makes has to be asked.
   * @param {number} number
   */
  skipTo(number2) {
    if (this.filtered) this.exact = false;
    else this.count = number2;
    this.total = number2;
  }
  /**
   * Say whether anything in it is new. A line that comes again stays as it is: it may be in the page.
   * @param {LogAnswer} answer
   * @param {boolean} [withBars] whether its bars are the newest, too
   */
  takeAnswer(answer, withBars = false) {
    const before = [this.count, this.total, this.exact].join();
    const again = !this.exact || answer.total > this.total || answer.end;
    if (!this.exact) this.lines.clear();
    if (again) {
      this.count = answer.rows;
      this.total = answer.total;
    }
    this.exact = true;
    let isNew = false;
    answer.lines.map(asLine).forEach((line2, place) => {
      if (isSame(this.lines.get(answer.first + place), line2)) return;
      this.lines.set(answer.first + place, line2);
      isNew = true;
    });
    if (again) this.feed(this.recent.filter((line2) => line2.number >= this.total));
    if (withBars) isNew = this.takeBars(answer.bars.map(asLine)) || isNew;
    return isNew || before !== [this.count, this.total, this.exact].join();
  }
  /** @param {Bar[]} bars */
  takeBars(bars) {
    const isNew = bars.length !== this.bars.length || !bars.every((bar, place) => isSame(this.bars[place], bar));
    if (isNew) this.bars = bars;
    return isNew;
  }
  /**
   * The first row that is not here; null if all are.
   * @param {number} from
   * @param {number} to
   */
  missing(from, to) {
    for (let row = Math.max(0, from); row < Math.min(this.count, to); row++) {
      if (!this.lines.has(row)) return row;
    }
    return null;
  }
  /**
   * Forget what is far from the row and from the end.
   * @param {number} row
   */
  tidy(row) {
    if (this.lines.size <= HELD) return;
    for (const held of this.lines.keys()) {
      if (Math.abs(held - row) > NEAR && held < this.count - NEAR) this.lines.delete(held);
    }
  }
};
function isSame(held, line2) {
  return held !== void 0 && held.number === line2.number && held.text === line2.text && held.time === line2.time && held.process === line2.process && held.stream === line2.stream;
}
function asLine([number2, time, process, stream, , text2]) {
  return { number: number2, time, process, stream, text: text2 };
}
function parseBatch(batch) {
  const records = new TextDecoder().decode(batch.lines).split("\n").slice(0, -1);
  return records.map((record2, place) => {
    const [process, stream, time, ...rest] = record2.split("	");
    return { number: batch.first + place, time: Number(time), process: Number(process), stream, text: rest.join("	") };
  });
}

// src/log/sheet.js
var Sheet = class {
  /** @param {Log} log */
  constructor(log) {
    this.log = log;
    this.painted = /* @__PURE__ */ new Map();
    this.first = 0;
    this.node = element("div", { class: "dn-rows" });
  }
  /**
   * Paint these places. What is in the page already stays there, so that text can be selected while
   * lines come.
   * @param {number} from
   * @param {number} to
   */
  paint(from, to) {
    const painted = /* @__PURE__ */ new Map();
    for (let place = from; place < to; place++) {
      const number2 = this.log.folds.rowAt(place);
      painted.set(number2, this.row(number2, this.painted.get(number2)));
    }
    for (const [number2, row] of this.painted) if (painted.get(number2) !== row) row.node.remove();
    [...painted.values()].forEach(({ node }, place) => {
      const there = this.node.children[place];
      if (there !== node) this.node.insertBefore(node, there ?? null);
    });
    this.painted = painted;
    this.first = from;
  }
  /**
   * @param {(place: number) => number} below pixels from the top of what is in sight
   */
  arrange(below) {
    this.rows.forEach((row, number2) => {
      row.style.top = `${this.log.placed + below(this.first + number2)}px`;
    });
  }
  /** How high each painted row is, from the first place on. */
  get heights() {
    return this.rows.map((row) => row.offsetHeight);
  }
  /** @param {number} row */
  heightAt(row) {
    return this.painted.get(row)?.node.offsetHeight || ROW;
  }
  /**
   * @param {number} number
   * @param {Painted | undefined} painted as it was the last time
   * @returns {Painted}
   */
  row(number2, painted) {
    const { rows, folds, looks, style, source } = this.log;
    const isCurrent = number2 === looks.current;
    const line2 = rows.lines.get(number2);
    const before = rows.lines.get(number2 - 1);
    const cell = line2 && (isInCell(line2.text) || before?.process === line2.process && isInCell(before.text));
    const fold = folds.at(number2);
    const look2 = [style, isCurrent, cell, fold?.open].join(" ");
    if (painted && painted.line === line2 && painted.looks === look2) return painted;
    const node = line2 ? lineElement(line2, source.summary, looks) : element("div", { class: "dn-line dn-gap" }, "…");
    node.dataset.row = String(number2);
    if (isCurrent) node.classList.add("dn-current");
    if (cell) node.classList.add("dn-cell");
    if (line2 && fold) node.append(this.foldSign(number2, fold));
    return { node, line: line2, looks: look2 };
  }
  /**
   * @param {number} row
   * @param {{open: boolean, lines: number}} fold
   */
  foldSign(row, { open, lines }) {
    const { log } = this;
    return button(
      open ? "▾" : `▸ ${plural(lines, "line")}`,
      () => log.refold(() => log.folds.turn(row, !open)),
      {
        class: "dn-fold",
        title: open ? "Fold this traceback" : "Show the whole traceback",
        "aria-expanded": String(open)
      }
    );
  }
  // ---- Copy ------------------------------------------------------------------------------
  /** @param {ClipboardEvent} event */
  copied(event) {
    const selection = this.node.ownerDocument.getSelection();
    if (!selection || selection.isCollapsed) return;
    const rows = this.rows.filter((row) => selection.containsNode(row, true));
    if (rows.length < 2) return;
    event.clipboardData?.setData("text/plain", this.textOf(rows));
    event.preventDefault();
  }
  get rows() {
    return (
      /** @type {HTMLElement[]} */
      [...this.node.children]
    );
  }
  /** @param {HTMLElement[]} rows */
  textOf(rows) {
    const lines = rows.map((row) => this.log.rows.lines.get(Number(row.dataset.row)));
    return lines.map((line2) => line2 ? lineText(line2, this.log.source.summary) : "").join("");
  }
  get rowsInSight() {
    return this.rows.filter((row) => {
      const top = parseFloat(row.style.top) - this.log.placed;
      return top > -row.offsetHeight && top < this.log.view.clientHeight;
    });
  }
  /** The lines in sight as text. */
  get textInSight() {
    return this.textOf(this.rowsInSight);
  }
};

// src/log/wrapped.js
function paintWrapped(log, margin) {
  const { sheet, view, places } = log;
  const most = Math.ceil(parseFloat(getComputedStyle(view).maxHeight) / ROW) + margin;
  const nearEnd = log.follow || log.top > places - most;
  const from = Math.max(0, nearEnd ? places - most : Math.floor(log.top) - margin);
  const to = nearEnd ? places : Math.min(places, from + most + margin);
  sheet.paint(from, to);
  const heights = sheet.heights;
  const total = heights.reduce((sum, height) => sum + height, 0);
  const isWhole = from === 0 && to === places;
  if (isWhole) sheet.node.style.height = `${total}px`;
  const lowest = nearEnd ? from + lowestOf(heights, view.clientHeight) : Math.max(log.wrapped.lowest, places - most);
  log.wrapped = { lowest, height: isWhole && !lowest ? total : view.clientHeight + lowest * ROW };
  log.putBar();
  const tops = topsOf(heights, log.top - from);
  sheet.arrange((place) => tops[place - from]);
  return [from, to];
}
function lowestOf(heights, pixels) {
  for (let row = heights.length - 1; row >= 0; row--) {
    pixels -= heights[row];
    if (pixels <= 0) return row - pixels / heights[row];
  }
  return 0;
}
function topsOf(heights, top) {
  const whole = Math.min(heights.length - 1, Math.floor(top));
  const above = heights.slice(0, whole).reduce((sum, height) => sum + height, 0);
  let next = -above - (heights[whole] ?? 0) * (top - whole);
  return heights.map((height) => {
    const here = next;
    next += height;
    return here;
  });
}

// src/log/log.js
var TALLEST = 8e6;
var BLOCK = 200;
var MARGIN = 6;
var FETCH_AFTER_MS = 40;
var BUSY = "The kernel is busy: missing lines appear when it is free. To see them at once, run “jupyter server extension enable distrain_nb.server” and restart Jupyter.";
var Log = class {
  /**
   * @param {HTMLElement} root
   * @param {RunSource} source
   */
  constructor(root, source) {
    this.source = source;
    this.rows = new Rows();
    this.folds = new Folds();
    this.top = 0;
    this.placed = 0;
    this.place = null;
    this.follow = true;
    this.looks = { times: false, wrap: false, wanted: null, current: null };
    this.wrapped = { lowest: 0, height: 0 };
    this.style = 0;
    this.listeners = [];
    this.lacking = null;
    this.known = "";
    this.fetching = false;
    this.scheduled = 0;
    this.soon = void 0;
    this.onSlash = () => {
    };
    this.sheet = new Sheet(this);
    this.view = element("div", {
      class: "dn-log",
      role: "log",
      tabindex: "0",
      "aria-live": "off",
      "aria-label": "log; arrow keys scroll, slash searches, End follows the latest lines"
    }, this.sheet.node);
    this.latest = button("↓ Latest", () => this.toEnd(), {
      class: "dn-latest",
      title: "Show new lines as they come",
      hidden: true
    });
    this.frame = element("div", { class: "dn-frame" }, this.view, this.latest);
    this.bars = element("div", { class: "dn-bars", role: "group", "aria-label": "progress" });
    this.note = element("div", { class: "dn-note dn-hint", role: "note", hidden: true });
    this.root = root;
    root.append(this.frame, this.bars, this.note);
    this.view.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.view.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("copy", (event) => this.sheet.copied(event));
    this.resized = new ResizeObserver(() => this.draw());
    for (const box of [this.view, this.frame]) this.resized.observe(box);
    this.relabel();
  }
  /** Show what the ranks are called now. */
  relabel() {
    const labels = Object.values(this.source.summary.labels ?? {});
    const longest = Math.max(4, ...labels.map((label) => label.length));
    this.root.style.setProperty("--dn-tags", `${Math.min(24, longest + 1)}ch`);
    this.rows.pools = this.source.summary.pools ?? {};
    this.restyle({});
  }
  /**
   * Change how rows look.
   * @param {Partial<Looks>} changes
   */
  restyle(changes) {
    Object.assign(this.looks, changes);
    this.root.toggleAttribute("data-wrap", this.looks.wrap);
    this.style += 1;
    this.draw();
  }
  // ---- Where in the log -----------------------------------------------------------------
  get places() {
    return this.folds.placeOf(this.rows.count);
  }
  get fits() {
    return this.view.clientHeight / ROW;
  }
  get lowest() {
    return this.looks.wrap ? this.wrapped.lowest : Math.max(0, this.places - this.fits);
  }
  get height() {
    return Math.min(TALLEST, this.looks.wrap ? this.wrapped.height : this.places * ROW);
  }
  /** Pixels of the scroll bar for each place: ROW, or less in a log too long for a browser. */
  get scale() {
    const room = this.height - this.view.clientHeight;
    return room > 0 && this.lowest > 0 ? room / this.lowest : ROW;
  }
  /** A log that was moved in the page is at its top, and what it was told before comes late. */
  scrolled() {
    if (!this.root.getClientRects().length || this.root.parentNode !== this.place) return;
    if (Math.abs(this.view.scrollTop - this.placed) < 1) return;
    this.placed = this.view.scrollTop;
    this.move(this.view.scrollTop / this.scale);
  }
  /**
   * Where pixels of the bar stand for lines, however high or many, the wheel still goes by pixels.
   * @param {WheelEvent} event
   */
  wheel(event) {
    const { wrap } = this.looks;
    if (!wrap && this.scale >= ROW - 0.01 || !event.deltaY || event.ctrlKey) return;
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? ROW : 1);
    this.move(this.top + pixels / this.sheet.heightAt(this.folds.rowAt(Math.floor(this.top))));
  }
  /** @param {number} top */
  move(top) {
    this.top = Math.max(0, Math.min(this.lowest, top));
    this.follow = this.top >= this.lowest - 1;
    this.draw();
  }
  toEnd() {
    this.follow = true;
    this.draw();
    this.tell();
  }
  /**
   * Put the row in sight, and mark it.
   * @param {number} row
   */
  jump(row) {
    this.folds.reveal(row);
    this.looks.current = row;
    this.move(this.folds.placeOf(row) - (this.looks.wrap ? 1 : Math.floor(this.fits / 3)));
    this.follow = false;
    this.draw();
  }
  /** @param {KeyboardEvent} event */
  key(event) {
    const page = Math.max(1, this.sheet.rowsInSight.length - 1);
    const moves = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.move(this.top + moves[event.key]);
    else if (event.key === "Home") this.move(0);
    else if (event.key === "End") this.toEnd();
    else if (event.key === "/") this.onSlash();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  /** @param {Partial<Filter>} filter */
  filter(filter) {
    this.rows.choose(filter);
    this.folds.reset();
    this.looks.current = null;
    this.top = 0;
    this.follow = true;
    this.draw();
    this.tell();
    return this.refresh();
  }
  // ---- Lines -----------------------------------------------------------------------------
  /** Whether what is known of the log is all that the run can have said by what is known of its state. */
  get isRead() {
    return this.source.summary.final ? this.known === "whole" : this.known !== "";
  }
  /** @param {Batch} batch */
  take(batch) {
    this.known = "whole";
    this.rows.takeBatch(batch);
    this.draw();
  }
  /** Get the newest lines, or how many there are while older ones are looked at; say whether anything is new. */
  async refresh() {
    return this.load(this.follow ? { first: -BLOCK, count: BLOCK } : { first: -1, count: 1 });
  }
  /**
   * Get these rows; say whether anything is new.
   * @param {Span} span
   */
  async load(span) {
    const { generation } = this.rows;
    const answer = await this.source.ask("log", { ...this.rows.query, ...span });
    if (generation !== this.rows.generation) return true;
    const before = this.known;
    this.known = answer.end ? "whole" : "begun";
    const isNew = this.rows.takeAnswer(answer, this.source.served === true) || this.known !== before;
    if (isNew) this.draw();
    return isNew;
  }
  /** @param {number} row */
  async fetch(row) {
    if (this.fetching) return;
    const first = Math.floor(row / BLOCK) * BLOCK;
    const settled = first + BLOCK <= this.rows.count - OPEN_NEAR_END;
    const span = { first, count: settled ? BLOCK + OPEN_NEAR_END : BLOCK };
    this.fetching = true;
    try {
      await this.load(span);
      if (settled) await this.findFolds(span);
    } finally {
      this.fetching = false;
      this.draw();
    }
  }
  /** @param {Span} span */
  async findFolds(span) {
    const { generation } = this.rows;
    const { folds } = await this.source.ask("tracebacks", { ...this.rows.query, ...span });
    if (generation !== this.rows.generation || !folds.length) return;
    this.refold(() => this.folds.find(folds, this.rows));
  }
  /**
   * Change folds while the row at the top stays where it is.
   * @param {() => void} change
   */
  refold(change) {
    const [whole, part2] = [Math.floor(this.top), this.top % 1];
    const row = this.folds.rowAt(whole);
    change();
    if (row !== this.looks.current) this.top = this.folds.placeOf(row) + part2;
    this.draw();
  }
  // ---- On screen -------------------------------------------------------------------------
  draw() {
    if (this.scheduled) return;
    this.scheduled = requestAnimationFrame(() => {
      this.scheduled = 0;
      this.paint();
    });
  }
  tell() {
    for (const listener of this.listeners) listener();
  }
  /** Nothing is in sight where there is no box, as while JupyterLab changes its theme. */
  paint() {
    if (!this.root.getClientRects().length) return;
    this.view.style.display = this.rows.count ? "" : "none";
    const [from, to] = this.looks.wrap ? paintWrapped(this, MARGIN) : this.paintEven();
    const first = this.folds.rowAt(from);
    this.lacking = this.rows.missing(first, this.folds.rowAt(Math.max(from, to - 1)) + 1);
    this.fetchSoon(this.rows.exact ? this.lacking : first);
    this.rows.tidy(first);
    const bars = this.rows.bars.filter((line2) => this.rows.passes(line2));
    this.bars.replaceChildren(...bars.map((line2) => lineElement(line2, this.source.summary, this.looks)));
    this.latest.hidden = this.follow || !this.rows.count;
    this.note.hidden = !(this.source.kernelIsBusy && this.lacking !== null);
    this.note.textContent = BUSY;
    this.tell();
  }
  /**
   * Every row is as high as any other.
   * @returns {[from: number, to: number]} places that are painted
   */
  paintEven() {
    this.putBar();
    const from = Math.max(0, Math.floor(this.top) - MARGIN);
    const to = Math.min(this.places, Math.ceil(this.top + this.fits) + MARGIN);
    this.sheet.paint(from, to);
    this.sheet.arrange((place) => (place - this.top) * ROW);
    return [from, to];
  }
  /** Put the scroll bar where the top is. */
  putBar() {
    this.sheet.node.style.height = `${this.height}px`;
    this.top = this.follow ? this.lowest : Math.min(this.top, this.lowest);
    const scroll = this.top * this.scale;
    if (Math.abs(this.view.scrollTop - scroll) >= 1) this.view.scrollTop = scroll;
    this.placed = this.view.scrollTop;
    this.place = this.root.parentNode;
  }
  /** @param {number | null} row */
  fetchSoon(row) {
    clearTimeout(this.soon);
    if (row === null || !this.rows.count) return;
    this.soon = setTimeout(() => this.fetch(row).catch(() => {
    }), FETCH_AFTER_MS);
  }
  close() {
    cancelAnimationFrame(this.scheduled);
    clearTimeout(this.soon);
    this.resized.disconnect();
  }
};

// src/log/search.js
var CONTINUE_EVERY_MS = 2e3;
var TYPED_MS = 200;
var Search = class {
  /** @param {Log} log */
  constructor(log) {
    this.log = log;
    this.turn = 0;
    this.text = "";
    this.total = 0;
    this.row = -1;
    this.place = -1;
    this.near = 0;
    this.count = -1;
    this.busy = false;
    this.failure = "";
    const typed = debounce(TYPED_MS, () => this.start());
    this.field = element("input", {
      class: "dn-search",
      type: "search",
      placeholder: "Search",
      "aria-label": "search the whole log",
      spellcheck: "false",
      autocomplete: "off",
      oninput: typed,
      onkeydown: (event) => this.key(event)
    });
    this.regex = toggle(".*", "Regular expression", () => this.start());
    this.letters = toggle("Aa", "Match upper and lower case", () => this.start());
    this.back = button("↑", () => this.step(-1), { class: "dn-chip", title: "Previous match (Shift+Enter)", "aria-label": "Previous match" });
    this.next = button("↓", () => this.step(1), { class: "dn-chip", title: "Next match (Enter)", "aria-label": "Next match" });
    for (const sign of [this.regex, this.letters, this.back, this.next]) {
      sign.dataset.sign = sign.textContent ?? "";
      sign.textContent = "";
      if (!sign.hasAttribute("aria-label")) sign.setAttribute("aria-label", sign.title);
    }
    this.status = element("span", { class: "dn-soft dn-hits", role: "status" });
    this.box = element(
      "span",
      { class: "dn-searchbox", role: "group", "aria-label": "Search in the log" },
      this.field,
      this.regex,
      this.letters,
      this.back,
      this.next,
      this.status
    );
    this.log.onSlash = () => {
      this.field.focus();
      this.field.select();
    };
    this.clear();
    this.clock = setInterval(() => this.continue(), CONTINUE_EVERY_MS);
  }
  /** @param {KeyboardEvent} event */
  key(event) {
    event.stopPropagation();
    if (event.key === "Enter") this.enter(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      this.field.value = "";
      this.start();
      this.log.view.focus();
    } else return;
    event.preventDefault();
  }
  /** @param {1 | -1} direction */
  enter(direction) {
    if (this.field.value !== this.text) this.start();
    else this.step(direction);
  }
  clear() {
    this.turn += 1;
    this.text = this.field.value;
    this.total = 0;
    this.row = this.place = this.count = -1;
    this.busy = false;
    this.failure = "";
    this.log.restyle({ wanted: this.pattern(), current: null });
    this.show();
  }
  /** The same pattern for the eyes; what JavaScript can't say is found but not marked. */
  pattern() {
    return this.text ? patternOf(this.text, isPressed(this.regex), isPressed(this.letters)) : null;
  }
  /** Search anew, and go to the first match from what is in sight. */
  async start() {
    this.clear();
    this.near = this.log.folds.rowAt(Math.floor(this.log.top));
    await this.continue();
  }
  /** Look through what has not been searched yet. */
  async continue() {
    if (!this.text || this.busy || this.failure || !this.log.view.isConnected) return;
    const { turn } = this;
    const { count: count2 } = this.log.rows;
    if (this.count >= 0 && this.count >= count2) return;
    this.busy = true;
    this.show();
    await this.ask(turn, async () => {
      while (turn === this.turn && !(await this.more()).done) ;
      this.count = count2;
    });
    if (turn !== this.turn) return;
    this.busy = false;
    this.show();
  }
  /** Have the search go on for a moment, and go to the first match once it is known. */
  async more() {
    const { turn } = this;
    const answer = await this.answer(this.row < 0 ? this.near : this.row, 0);
    if (turn !== this.turn) return answer;
    const isFirst = this.row < 0 && answer.row !== null;
    this.take(answer);
    if (isFirst) this.log.jump(this.row);
    this.show();
    return answer;
  }
  /** @param {1 | -1} direction */
  async step(direction) {
    if (!this.total) return;
    const { turn } = this;
    await this.ask(turn, async () => {
      const answer = await this.answer(this.row, direction);
      if (turn !== this.turn) return;
      this.take(answer);
      this.log.jump(this.row);
      this.log.tell();
    });
    if (turn === this.turn) this.show();
  }
  /**
   * Ask where the search is, and for a match: at or after a row, or the next before or behind it.
   * @param {number} near
   * @param {0 | 1 | -1} step
   * @returns {Promise<SearchAnswer>}
   */
  answer(near, step) {
    const query = { ...this.log.rows.query, text: this.text, near, step };
    if (isPressed(this.regex)) query.regex = 1;
    if (isPressed(this.letters)) query.case = 1;
    return this.log.source.ask("search", query);
  }
  /** @param {SearchAnswer} answer */
  take(answer) {
    this.total = answer.total;
    if (answer.row === null) return;
    this.row = answer.row;
    this.place = answer.place;
  }
  /**
   * @param {number} turn
   * @param {() => Promise<void>} work
   */
  async ask(turn, work) {
    try {
      await work();
    } catch (error) {
      if (turn === this.turn) this.failure = messageOf(error);
    }
  }
  show() {
    this.status.textContent = this.failure || (this.text ? this.found : "");
    this.status.classList.toggle("dn-bad", Boolean(this.failure));
    this.field.setAttribute("aria-invalid", String(Boolean(this.failure)));
    this.back.disabled = this.next.disabled = !this.total;
  }
  get found() {
    if (!this.total) return this.busy ? "searching…" : "no match";
    const all = thousands(this.total) + (this.busy ? "…" : "");
    return this.place >= 0 ? `${thousands(this.place + 1)} of ${all}` : all;
  }
  close() {
    clearInterval(this.clock);
    this.turn += 1;
  }
};
function patternOf(text2, isExpression, isExact) {
  const [, flags = ""] = isExpression && text2.match(/^\(\?([aimsu]+)\)/) || [];
  const source = isExpression ? text2.slice(flags ? flags.length + 3 : 0).replace(/\(\?P</g, "(?<").replace(/\(\?P=(\w+)\)/g, "\\k<$1>").replace(/\\A/g, "^").replace(/\\[zZ]/g, "$") : text2.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const given = `g${flags.includes("i") || !isExact ? "i" : ""}${flags.replace(/[^ms]/g, "")}`;
  for (const each of [`${given}u`, given]) {
    try {
      return new RegExp(source, each);
    } catch {
    }
  }
  return null;
}

// src/log/toolbar.js
var MOST_CHIPS = 8;
var DOWNLOAD_AT_ONCE = 2e3;
var SAID_MS = 4e3;
var Toolbar = class {
  /**
   * @param {HTMLElement} root
   * @param {RunSource} source
   */
  constructor(root, source) {
    this.source = source;
    this.shown = "";
    this.silence = void 0;
    this.bar = element("div", { class: "dn-bar", role: "toolbar", "aria-label": "log" });
    root.append(this.bar);
    this.log = new Log(root, source);
    this.search = new Search(this.log);
    this.filters = element("span", { class: "dn-filters" });
    this.count = element("span", { class: "dn-soft dn-count", title: "lines" });
    this.status = element("span", { class: "dn-soft", role: "status" });
    this.bar.append(
      element("span", { class: "dn-tools" }, this.filters, this.status, this.count),
      element("span", { class: "dn-tools" }, this.search.box, this.actions())
    );
    this.empty = element("div", { class: "dn-empty dn-soft", hidden: true });
    this.bar.after(this.empty);
    this.log.listeners.push(() => this.showCount());
    this.relabel();
  }
  actions() {
    return element(
      "span",
      { class: "dn-actions" },
      button("First error", () => this.firstError(), { class: "dn-chip", title: "Go to the first traceback or error" }),
      this.lineField(),
      toggle("Wrap", "Break long lines", (wrap) => this.log.restyle({ wrap })),
      toggle("Time", "Show the time of each line", (times) => this.log.restyle({ times })),
      button("Copy", () => this.copy(), { class: "dn-chip", title: "Copy the lines in sight, or the selected text" }),
      button("Download", () => this.download(), { class: "dn-chip", title: "Save the whole log as a text file" })
    );
  }
  lineField() {
    const go = (event) => {
      event.stopPropagation();
      const row = Number(field.value.replace(/\D/g, "")) - 1;
      if (event.key === "Enter" && row >= 0) this.log.jump(Math.min(row, this.log.rows.count - 1));
    };
    const field = element("input", {
      class: "dn-goto",
      type: "text",
      inputmode: "numeric",
      placeholder: "Line",
      "aria-label": "go to line number",
      size: "6",
      onkeydown: go
    });
    return field;
  }
  // ---- Filters -----------------------------------------------------------------------------
  /** Show what the ranks and pools are called now. */
  relabel() {
    const { labels = {}, pools = {} } = this.source.summary;
    const key = JSON.stringify([labels, pools]);
    if (key === this.shown) return;
    this.shown = key;
    const processes = Object.entries(labels);
    const parts = processes.length < 2 ? [element("span", {}, "log")] : this.processes(processes);
    const names = [...new Set(Object.values(pools))];
    if (names.length > 1) parts.push(this.menu("worker pool", "role", [["", "all pools"], ...pairs(names)]));
    parts.push(this.menu("stream", "stream", [["", "both streams"], ["o", "stdout"], ["e", "stderr"]]));
    this.filters.replaceChildren(...parts);
    this.log.relabel();
  }
  /**
   * @param {[process: string, label: string][]} entries
   * @returns {HTMLElement[]}
   */
  processes(entries) {
    if (entries.length > MOST_CHIPS) return this.finder(entries);
    const all = [["", "all"], ...entries];
    const chips = all.map(([process, label]) => {
      const choose = () => {
        for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
        this.choose({ process });
      };
      const chip = button(label, choose, {
        class: process === "" ? "dn-chip" : `dn-chip ${colourOf(process)}`,
        title: `Show the lines of ${label}`,
        "aria-label": label,
        "aria-pressed": String(process === this.log.rows.filter.process)
      });
      return chip;
    });
    return chips;
  }
  /**
   * A field that finds one of a thousand ranks by its name or its number alone.
   * @param {[process: string, label: string][]} entries
   */
  finder(entries) {
    const chosen = entries.find(([process]) => process === this.log.rows.filter.process)?.[1] ?? "";
    const choose = () => {
      const process = processNamed(entries, field.value);
      if (process === void 0) this.say(`no process is called ${field.value}`);
      else if (process !== this.log.rows.filter.process) this.choose({ process });
    };
    const list2 = element("datalist", { id: uid("processes") }, ...entries.map(([, label]) => new Option(label)));
    const field = element("input", {
      class: "dn-process",
      type: "search",
      list: list2.id,
      placeholder: `all ${entries.length}`,
      value: chosen,
      autocomplete: "off",
      spellcheck: "false",
      size: "10",
      "aria-label": "show the lines of",
      title: "Show the lines of one process: rank 7, or 7",
      onkeydown: (event) => event.stopPropagation(),
      onchange: choose,
      // What was picked from the list counts at once, what is typed when it is complete.
      oninput: ({ inputType }) => {
        if (!field.value || !inputType || inputType === "insertReplacementText") choose();
      }
    });
    return [field, list2];
  }
  /**
   * @param {string} label
   * @param {keyof Filter} name
   * @param {[value: string, name: string][]} entries
   */
  menu(label, name, entries) {
    const menu = choice(label, entries, (value) => this.choose({ [name]: value }));
    menu.value = this.log.rows.filter[name];
    return menu;
  }
  /** @param {Partial<Filter>} filter */
  choose(filter) {
    this.log.filter(filter).catch(() => {
    });
    this.search.start();
  }
  showCount() {
    const { total, count: count2, filtered, exact, bars } = this.log.rows;
    const moving = bars.filter((line2) => this.log.rows.passes(line2)).length;
    const some = filtered && exact ? `${thousands(count2 + moving)} of ` : "";
    write(this.count, `${some}${plural(total + bars.length, "line")}`);
    this.bar.hidden = !total && !bars.length;
    this.empty.hidden = !this.bar.hidden;
    write(this.empty, noOutput(this.source.summary, this.log.isRead));
  }
  // ---- Actions -------------------------------------------------------------------------------
  /** @param {string} text */
  say(text2) {
    this.status.textContent = text2;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      this.status.textContent = "";
    }, SAID_MS);
  }
  async firstError() {
    const { row } = await this.source.ask("first-error", this.log.rows.query);
    if (row === null) this.say("no error in the log");
    else this.log.jump(row);
  }
  async copy() {
    const selection = document.getSelection();
    const selected = this.log.sheet.node.contains(selection?.anchorNode ?? null) && String(selection);
    await navigator.clipboard.writeText(selected || this.log.sheet.textInSight);
    this.say("copied");
  }
  async download() {
    const name = `run-${this.source.summary.id}.log`;
    if (this.source.served) download(name, serverAddress(this.source.address("download")));
    else saveAs(name, await this.wholeLog(), "text/plain");
  }
  async wholeLog() {
    const parts = [];
    for (let first = 0, rows = 1; first < rows; first += DOWNLOAD_AT_ONCE) {
      const answer = await this.source.ask("log", { first, count: DOWNLOAD_AT_ONCE });
      rows = answer.rows;
      parts.push(answer.lines.map((line2) => lineText(asLine(line2), this.source.summary)).join(""));
      this.say(`${Math.round(100 * Math.min(1, (first + DOWNLOAD_AT_ONCE) / rows))} %`);
    }
    return parts;
  }
  close() {
    clearTimeout(this.silence);
    this.search.close();
    this.log.close();
  }
};
function pairs(names) {
  return names.map((name) => [name, name]);
}
function processNamed(entries, text2) {
  const wanted = text2.trim().toLowerCase();
  if (!wanted) return "";
  const by = (fits) => entries.find(([, label]) => fits(label.toLowerCase()))?.[0];
  return by((label) => label === wanted) ?? by((label) => label.endsWith(` ${wanted}`));
}
function noOutput({ final, phase, state }, isRead = true) {
  if (!isRead) return "reading the log…";
  if (final) return "no output";
  const waits = phase && phase !== state ? `: ${phase}` : "";
  return `no output yet${waits}`;
}

// src/standing.js
var LOOK_EVERY_MS = 250;
var PARKED_MS = 5e3;
var STANDING = /* @__PURE__ */ new Map();
var PARKED = /* @__PURE__ */ new Map();
var MODELS = /* @__PURE__ */ new Map();
function keepFocus(root) {
  let kept = null;
  root.addEventListener("focusin", ({ target }) => {
    kept = /** @type {HTMLElement} */
    target;
  });
  root.addEventListener("focusout", () => setTimeout(() => {
    if (root.isConnected && !root.contains(document.activeElement)) kept = null;
  }));
  return () => {
    const now = document.activeElement;
    if (kept && (now === document.body || now?.contains(root))) focusAgain(kept);
  };
}
function focusAgain(node) {
  const { selectionStart: from, selectionEnd: to } = (
    /** @type {HTMLInputElement} */
    node
  );
  node.focus({ preventScroll: true });
  if (typeof from === "number") node.setSelectionRange(from, to);
}
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
      const [gone2, { view }] = [...revived].find(([place]) => !place.isConnected) ?? [null, {}];
      if (gone2) revived.delete(gone2);
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
    }, LOOK_EVERY_MS);
    return () => {
      observer.disconnect();
      clearInterval(clock);
      MODELS.delete(key);
      unpark(key)?.end();
      for (const { end } of revived.values()) end();
    };
  };
}

// src/run/annotation.js
var LONGEST_NOTE = 2e3;
function annotationForm(run, annotation2, save, done) {
  const own = { spellcheck: "false", autocomplete: "off", ...OWN_KEYS };
  const tags = element("input", { type: "text", placeholder: "baseline, good", value: annotation2?.tags.join(", ") ?? "", ...own });
  const note = element("textarea", { rows: 3, maxlength: LONGEST_NOTE, ...own, spellcheck: "true" });
  note.value = annotation2?.note ?? "";
  const said = element("span", { class: "dn-soft", role: "status" });
  const keep = async () => {
    keeps.disabled = true;
    try {
      await save({ note: note.value, tags: tags.value });
      done();
    } catch (error) {
      said.textContent = messageOf(error);
      keeps.disabled = false;
    }
  };
  const keeps = button("Save", keep, { class: "dn-chip dn-save", title: "Keep note and tags" });
  const form = element(
    "div",
    {
      class: "dn-annotate",
      role: "group",
      "aria-label": `note and tags of run ${run}`,
      onkeydown: (event) => {
        event.stopPropagation();
        if (event.key === "Escape") done();
        if (event.key === "Enter" && (event.target === tags || event.ctrlKey || event.metaKey)) keep();
      }
    },
    element("label", {}, "Tags ", tags),
    element("label", {}, "Note ", note),
    element("div", {}, keeps, button("Cancel", done, { class: "dn-chip", title: "Change nothing" }), said)
  );
  return { form, focus: () => tags.focus() };
}
function annotationLine(root, source) {
  const words2 = element("div", { class: "dn-about", hidden: true });
  const place = element("div");
  root.append(words2, place);
  const save = async (change2) => {
    if (!await source.order("POST", "annotate", change2)) await source.askKernel("annotate", change2);
    source.learn(await source.ask("summary"));
  };
  const done = () => {
    place.replaceChildren();
    edit.hidden = false;
    edit.focus();
  };
  const edit = button("Note", () => {
    const { id: id2 = 0, annotation: annotation2 } = source.summary;
    const { form, focus } = annotationForm(id2, annotation2, save, done);
    place.replaceChildren(form);
    edit.hidden = true;
    focus();
  }, { class: "dn-chip dn-save", title: "Change note and tags", "aria-label": "Note and tags" });
  let shown = "";
  const change = () => {
    const { annotation: annotation2 } = source.summary;
    edit.hidden = source.summary.state === void 0 || place.childElementCount > 0;
    const text2 = JSON.stringify(annotation2 ?? {});
    if (text2 === shown) return;
    shown = text2;
    words2.hidden = !annotation2 || !(annotation2.note || annotation2.tags.length);
    words2.replaceChildren(
      ...(annotation2?.tags ?? []).map((tag) => element("span", { class: "dn-label" }, tag)),
      annotation2?.note ? element("span", {}, annotation2.note) : ""
    );
  };
  source.listeners.push(change);
  change();
  return edit;
}

// src/run/head.js
var SIGNS = {
  queued: "◌",
  starting: "◐",
  running: "●",
  stopping: "◑",
  succeeded: "✓",
  failed: "✕",
  cancelled: "■",
  unreadable: "?"
};
function costText({ cost, cost_note }) {
  return cost && cost_note ? `${cost} (${cost_note})` : cost ?? "";
}
var TICK_MS = 100;
var CLOCKS_AGREE_S = 2;
var StateLine = class {
  /**
   * @param {HTMLElement} root
   * @param {Stoppable} source
   * @param {HTMLElement} stop
   * @param {string} what it is the state of
   */
  constructor(root, source, stop, what = "run") {
    this.root = root;
    this.what = what;
    this.source = source;
    this.skew = 0;
    this.sign = element("span", { class: "dn-sign", "aria-hidden": "true" });
    this.word = element("span");
    this.time = element("span", { class: "dn-time", role: "timer", "aria-label": "elapsed" });
    this.name = element("span", { class: "dn-name" });
    this.where = element("span", { class: "dn-soft" });
    this.steps = element("span", { class: "dn-steps", role: "group", "aria-label": "phases" });
    this.spoken = element("span", { class: "dn-unseen", "aria-live": "polite" });
    const badge = element("span", { class: "dn-badge" }, this.sign, this.word);
    const parts = [badge, this.time, this.name, this.where, this.steps, stop];
    this.node = element("div", { class: "dn-head", role: "status", "aria-live": "off" }, ...parts);
    root.prepend(this.node);
    root.append(this.spoken);
    source.listeners.push(() => this.change());
    this.change();
    this.clock = setInterval(() => {
      if (!source.summary.final) this.tick();
    }, TICK_MS);
  }
  /** What is known of the run; null before anything is. */
  get summary() {
    return this.source.summary.state === void 0 ? null : (
      /** @type {RunSummary} */
      this.source.summary
    );
  }
  tick() {
    const { summary, steps } = this;
    if (!summary) return;
    const now = Date.now() / 1e3 - this.skew;
    write(this.time, duration((summary.end ?? now) - summary.begin));
    this.sign.classList.toggle("dn-dim", !summary.final && Math.floor(now - summary.begin) % 2 === 1);
    summary.steps.forEach((step, place) => {
      const last = place === summary.steps.length - 1;
      const span = steps.children[place] ?? steps.appendChild(element("span"));
      const seconds = step.begin === null || step.begin === step.end ? "" : ` ${duration((step.end ?? now) - step.begin)}`;
      write(span, `${step.label}${seconds}`);
      if (last === span.hasAttribute("aria-current")) return;
      span.className = last ? "dn-now" : "";
      if (last) span.setAttribute("aria-current", "step");
      else span.removeAttribute("aria-current");
    });
    steps.hidden = !summary.steps.length;
    while (steps.children.length > summary.steps.length) steps.lastChild?.remove();
  }
  change() {
    const { summary, root } = this;
    if (!summary) return;
    this.skew = Date.now() / 1e3 - summary.now;
    if (Math.abs(this.skew) < CLOCKS_AGREE_S) this.skew = 0;
    root.dataset.state = summary.state;
    root.setAttribute("aria-label", `${this.what} ${summary.id}`);
    const phase = summary.phase && summary.phase !== summary.state ? ` · ${summary.phase}` : "";
    const words2 = summary.state + phase;
    write(this.sign, SIGNS[summary.state]);
    if (this.word.textContent !== words2) this.spoken.textContent = `${this.what} ${summary.id}: ${summary.state}`;
    write(this.word, words2);
    write(this.name, `${summary.name} #${summary.id}`);
    write(this.where, [summary.where, summary.size, costText(summary)].filter(Boolean).join(" · "));
    this.tick();
  }
  close() {
    clearInterval(this.clock);
  }
};
function progressBar(root, source) {
  const meter = element("progress", { "aria-label": "progress" });
  const words2 = element("span");
  const line2 = element("div", { class: "dn-progress" }, meter, words2);
  root.append(line2);
  const change = () => {
    const { progress: progress2, now = 0 } = source.summary;
    line2.hidden = !progress2;
    if (!progress2) return;
    fill(meter, progress2);
    write(words2, progressText(progress2, now));
  };
  source.listeners.push(change);
  change();
}
function fill(meter, { total, done }) {
  if (total) Object.assign(meter, { max: total, value: done });
  else meter.removeAttribute("value");
}
function progressText({ phase, total, done, since, unit, left }, now) {
  if (unit) return [phase, [counted(done, total, unit), left].filter(Boolean).join(", ")].filter(Boolean).join(": ");
  const bytes = total ? `${size(done)} of ${size(total)}` : done ? size(done) : "";
  const time = since ? duration(now - since) : "";
  const known = [bytes, time].filter(Boolean).join(", ");
  return known ? `${phase}: ${known}` : phase;
}
function counted(done, total, unit) {
  if (unit === "%") return `${done} %`;
  return total ? `${thousands(done)} of ${thousands(total)} ${unit}` : `${thousands(done)} ${unit} begun`;
}

// src/run/report.js
var NOTEBOOK = ".jp-Notebook";
var PLACE = /^\s*(File "|Cell In\[|  File )/;
function report(root, source) {
  const note = element("div", { class: "dn-note", role: "note" });
  const error = element("div", { role: "alert" });
  root.append(note, error);
  let shown = "";
  const change = () => {
    write(note, source.summary.note ?? "");
    note.hidden = !note.textContent;
    const text2 = (source.summary.error ?? "").trim();
    if (text2 !== shown) error.replaceChildren(...text2 ? [reportBox(text2)] : []);
    shown = text2;
  };
  source.listeners.push(change);
  change();
}
function reportBox(text2) {
  const [cause, ...lines] = text2.split("\n");
  const box = element("div", { class: "dn-error" }, element("div", { class: "dn-cause" }, cause));
  const body = element("pre");
  lines.forEach((line2, number2) => {
    const kind2 = kindOf(line2, lines[number2 - 1] ?? "");
    const [, indent = "", place = ""] = line2.match(/^(\s*)(Cell In\[\d+\], line \d+)/) ?? [];
    const rest = line2.slice(indent.length + place.length);
    if (place && document.querySelector(NOTEBOOK)) body.append(indent, link(place, body), rest, "\n");
    else body.append(kind2 ? element("span", { class: kind2 }, line2) : line2, "\n");
  });
  if (lines.length) box.append(body);
  return box;
}
function link(place, body) {
  const [count2, line2] = (place.match(/\d+/g) ?? []).map(Number);
  const go = () => {
    if (!showCell(body, count2, line2)) made.title = "This notebook no longer has this cell";
  };
  const made = button(place, go, { class: "dn-cell dn-to-cell", title: "Go to this line of the cell" });
  return made;
}
function showCell(body, count2, line2) {
  const prompts = (body.closest(NOTEBOOK) ?? document).querySelectorAll(".jp-InputPrompt");
  const cell = [...prompts].find(({ textContent }) => textContent.trim() === `[${count2}]:`)?.closest(".jp-Cell");
  const editor = cell?.querySelector(".cm-content");
  if (!(editor instanceof HTMLElement)) return false;
  const there = editor.querySelectorAll(".cm-line")[line2 - 1] ?? editor;
  editor.focus({ preventScroll: true });
  window.getSelection()?.collapse(there, 0);
  there.scrollIntoView({ block: "center" });
  return true;
}
function kindOf(line2, before) {
  if (isInCell(line2)) return "dn-cell";
  if (PLACE.test(line2)) return "dn-place";
  if (isInCell(before)) return "dn-cell";
  return RAISED.test(line2) ? "dn-raised" : "";
}

// src/run/stop.js
var ANSWERED_WITHIN_MS = 1500;
var busy = (what) => `The kernel is busy with another cell, and stops this ${what} when that is done. To stop at once: “jupyter server extension enable distrain_nb.server”, then restart Jupyter.`;
var gone = (what, number2) => `The kernel has ended or restarted, and Jupyter's server does not answer either: the ${what} goes on. To stop it, run: ${what === "study" ? `%distrain tune ${number2} --stop` : `%distrain cancel ${number2}`}`;
var unreachable = (what) => `Jupyter's server does not answer: the ${what} goes on. Try again when it is back.`;
async function askToStop(source, what) {
  if (source.served && await source.order("POST", "cancel")) return;
  if (source.model.lacksKernel) throw new Refused(unreachable(what));
  const model = (
    /** @type {Model} */
    source.model
  );
  const answer = source.askKernel("cancel", {});
  if (model.get("waiting") && model.get("kernel")) {
    await Promise.race([answer, null]);
    await request(`api/kernels/${model.get("kernel")}/interrupt`, { method: "POST" });
  }
  await answer;
}
function stopButton(root, source, what = "run") {
  const note = element("div", { class: "dn-note", role: "note", hidden: true });
  root.append(note);
  let wait;
  const say = (why) => {
    write(note, why);
    note.hidden = false;
  };
  const click = () => {
    stop.disabled = true;
    stop.textContent = "Stopping…";
    if (!source.served) wait = setTimeout(() => say(busy(what)), ANSWERED_WITHIN_MS);
    askToStop(source, what).catch((error) => {
      if (!(error instanceof Gone || error instanceof Refused)) return;
      clearTimeout(wait);
      say(error instanceof Gone ? gone(what, source.summary.id ?? 0) : error.message);
      Object.assign(stop, { disabled: false, textContent: "Stop" });
    });
  };
  const stop = button("Stop", click, { class: "dn-stop", title: `Stop this ${what}` });
  const change = () => {
    stop.hidden = source.summary.final !== false;
    if (stop.hidden) Object.assign(stop, { disabled: false, textContent: "Stop" });
    if (stop.hidden || source.summary.state === "stopping") {
      clearTimeout(wait);
      note.hidden = true;
    }
  };
  source.listeners.push(change);
  change();
  return [stop, () => clearTimeout(wait)];
}
function resumeButton(root, source) {
  const note = element("div", { class: "dn-note", role: "note", hidden: true });
  root.append(note);
  const say = (text2) => {
    write(note, text2);
    note.hidden = false;
  };
  const click = async () => {
    resume.disabled = true;
    try {
      const { id: id2, name } = await source.askKernel("resume", {});
      say(`Run ${id2} (${name}) goes on from what this run has saved. To see it, run: %distrain attach ${id2}`);
    } catch (error) {
      resume.disabled = false;
      const why = error instanceof Gone ? "The kernel has ended or restarted." : (
        /** @type {Error} */
        error.message
      );
      say(error instanceof Gone ? `${why} To resume this run, run: %distrain resume ${source.summary.id}` : why);
    }
  };
  const resume = button("Resume", click, { class: "dn-resume", title: "Start this run again from what it has saved" });
  const change = () => {
    resume.hidden = !source.summary.resumable;
  };
  source.listeners.push(change);
  change();
  return resume;
}

// src/run/view.js
var SHORTEST_PAUSE_MS = 200;
var LONGEST_PAUSE_MS = 1e3;
var LONGER = 1.5;
var SUMMARY_EVERY_MS = 400;
function receiveBatches(log, source) {
  const { model } = source;
  let next = null;
  const receive = () => {
    const batch = model.get("batch");
    if (source.served || batch.seq === void 0 || batch.seq + 1 === next) return;
    if (!batch.whole && batch.seq !== next) {
      source.toKernel({ kind: "resync" });
      return;
    }
    next = batch.seq + 1;
    log.take(
      /** @type {Batch} */
      batch
    );
  };
  model.on("change:batch", receive);
  source.probed.then((served) => {
    receive();
    if (!served && next === null) source.toKernel({ kind: "resync" });
  });
  return () => model.off("change:batch", receive);
}
function look(root, log, source) {
  let summarized = 0;
  let pause = SHORTEST_PAUSE_MS;
  let closed = false;
  let waits = false;
  let timer;
  const isOver = (before = source.summary) => Boolean(before.final) && log.isRead;
  async function once() {
    if (!source.served || document.hidden) return isOver();
    const before = source.summary;
    if (Date.now() - summarized >= SUMMARY_EVERY_MS) {
      summarized = Date.now();
      source.learn(await source.ask("summary", { watching: 1 }));
    }
    const isNew = await log.refresh() || stateOf(source.summary) !== stateOf(before);
    pause = isNew ? SHORTEST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, pause * LONGER);
    return isOver(before);
  }
  async function again() {
    waits = false;
    const over = await once().catch(() => false);
    waits = !closed && !over;
    if (waits) timer = setTimeout(again, pause);
  }
  function soon() {
    pause = SHORTEST_PAUSE_MS;
    if (!waits) return;
    clearTimeout(timer);
    timer = setTimeout(again, pause);
  }
  root.addEventListener("click", soon);
  source.probed.then(async () => {
    await log.refresh().catch(() => {
    });
    if (!isOver()) again();
  });
  return () => {
    clearTimeout(timer);
    closed = true;
    waits = false;
  };
}
function stateOf({ state, phase, progress: progress2 }) {
  return JSON.stringify([state, phase, progress2]);
}
function openRun(model) {
  const root = element("section", { class: `distrain ${LITERAL}`, role: "region", "aria-label": "run" });
  const source = new RunSource(model);
  const [stop, endStop] = stopButton(root, source);
  const head = new StateLine(root, source, stop);
  head.node.append(resumeButton(root, source), annotationLine(root, source));
  progressBar(root, source);
  report(root, source);
  const toolbar = new Toolbar(root, source);
  source.listeners.push(() => toolbar.relabel());
  const ends = [
    receiveBatches(toolbar.log, source),
    look(root, toolbar.log, source),
    endStop,
    () => head.close(),
    () => toolbar.close(),
    () => source.close()
  ];
  const refocus = keepFocus(root);
  const moved = () => {
    toolbar.log.draw();
    refocus();
  };
  const end = () => {
    for (const each of ends) each();
  };
  source.toKernel({ kind: "shown" });
  return { root, moved, end };
}

// src/run.js
var render = (widget) => stand(widget, openRun);
var run_default = { initialize: standsWhereMarked(openRun), render };
export {
  run_default as default
};
