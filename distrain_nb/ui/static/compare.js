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
function fold(title, className) {
  const summary = element("summary", { ...OWN_KEYS }, title);
  const inside = element("div", { class: className });
  const box = element("details", { class: "dn-folded" }, summary, inside);
  return { box, inside, summary };
}
var mine = Math.random().toString(36).slice(2);

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

// src/runs/comparison.js
var LOOK_EVERY_MS = 2e3;
var DIFFERS = { "+": "dn-added", "-": "dn-removed", "@": "dn-soft" };
var Comparison = class {
  /**
   * @param {HTMLElement} root
   * @param {() => Promise<CompareAnswer>} ask
   */
  constructor(root, ask) {
    this.ask = ask;
    this.answer = null;
    this.order = null;
    this.shown = "";
    this.closed = false;
    this.timer = void 0;
    this.table = element("table", { class: "dn-table dn-compared", "aria-label": "runs compared" });
    const { box, inside, summary } = fold("", "dn-equals");
    this.equal = box;
    this.equals = inside;
    this.equalTitle = summary;
    this.note = element("div", { class: "dn-note", role: "note", hidden: true });
    this.code = fold("How the code differs");
    this.diff = element("pre", { class: "dn-diff", role: "group", tabindex: "0", "aria-label": "how the code differs", ...OWN_KEYS });
    this.code.inside.append(this.diff);
    root.append(element("div", { class: "dn-runs", ...OWN_KEYS }, this.table), this.code.box, this.equal, this.note);
    this.look();
  }
  async look() {
    try {
      if (!document.hidden) this.answer = await this.ask();
      this.note.hidden = true;
    } catch (error) {
      this.note.hidden = false;
      this.note.textContent = messageOf(error);
    }
    if (this.closed) return;
    this.show();
    if (!this.answer?.runs.every((run) => run.final)) this.timer = setTimeout(() => this.look(), LOOK_EVERY_MS);
  }
  /** @param {ComparedRow} row */
  sort(row) {
    const down = this.order?.name === row.name ? !this.order.down : false;
    this.order = { name: row.name, down };
    this.show();
  }
  show() {
    if (!this.answer) return;
    const { titles, runs, rows } = this.answer;
    const shown = JSON.stringify([this.answer, this.order]);
    if (shown === this.shown) return;
    this.shown = shown;
    const places = inOrder(rows, titles.length, this.order);
    const [first, ...others] = rows;
    const body = [first, ...others.filter((row) => row.differs || row.name === "cause")];
    const held = this.table.contains(document.activeElement) ? document.activeElement?.textContent : null;
    const heads = places.map((place) => element("th", { scope: "col" }, titles[place]));
    const corner = element("th", { scope: "col" }, "what differs");
    this.table.replaceChildren(
      element("thead", {}, element("tr", {}, corner, ...heads)),
      element("tbody", {}, ...body.map((row) => this.line(row, places)))
    );
    for (const state of this.table.querySelectorAll("[data-place]")) {
      const { place = 0 } = (
        /** @type {HTMLElement} */
        state.dataset
      );
      const run = runs[Number(place)];
      state.dataset.state = run.state;
      state.prepend(`${SIGNS[run.state] ?? "◌"} `);
    }
    this.showDiff(this.answer.diff ?? "");
    this.showEquals(others.filter((row) => !row.differs && row.name !== "cause"));
    if (held) [...this.table.querySelectorAll("button")].find((each) => each.textContent === held)?.focus();
  }
  /**
   * @param {ComparedRow} row
   * @param {number[]} places
   */
  line(row, places) {
    const sorted = this.order?.name === row.name && (this.order.down ? "descending" : "ascending");
    const sort = button(row.name, () => this.sort(row), { class: "dn-sort", title: `Sort runs by ${row.name}` });
    const cells = places.map((place) => {
      const star = row.best.includes(place) ? element("span", { role: "img", "aria-label": "best" }, " ★") : null;
      const text2 = row.texts[place];
      const isState = row.name === "state";
      return element("td", {
        class: star ? "dn-top" : `dn-${row.name === "cause" ? "cause" : "value"}`,
        title: text2.length > 40 && text2,
        "data-place": isState && String(place)
      }, text2, star);
    });
    return element("tr", {}, element("th", { scope: "row", "aria-sort": sorted }, sort), ...cells);
  }
  /** @param {string} diff unified, as `_diff_html` in ui/compare.py has it */
  showDiff(diff) {
    this.code.box.hidden = !diff;
    const lines = diff.split("\n").map((line2) => element("span", { class: DIFFERS[line2[0]] ?? "" }, `${line2}
`));
    this.diff.replaceChildren(...lines);
  }
  /** @param {ComparedRow[]} rows those that all runs have alike */
  showEquals(rows) {
    const known = rows.filter((row) => row.texts[0]);
    this.equal.hidden = !known.length;
    this.equalTitle.textContent = `Identical in all runs (${known.length})`;
    const lines = known.map(({ name, texts }) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, texts[0])));
    this.equals.replaceChildren(element("table", { class: "dn-table", "aria-label": "identical in all runs" }, element("tbody", {}, ...lines)));
  }
  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }
};
function inOrder(rows, count2, order) {
  const places = Array.from({ length: count2 }, (_, place) => place);
  const row = rows.find(({ name }) => name === order?.name);
  if (!row || !order) return places;
  const has = (place) => row.numbers.length ? row.numbers[place] !== null : row.texts[place] !== "";
  const compared = (a, b) => row.numbers.length ? Number(row.numbers[a]) - Number(row.numbers[b]) : row.texts[a].localeCompare(row.texts[b], "en", { numeric: true });
  return places.sort((a, b) => Number(has(b)) - Number(has(a)) || (has(a) ? (order.down ? -1 : 1) * compared(a, b) : 0) || a - b);
}

// src/standing.js
var LOOK_EVERY_MS2 = 250;
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
function taken2(key) {
  const standing = STANDING.get(key);
  if (!standing) return void 0;
  STANDING.delete(key);
  const { view } = standing;
  standing.view = null;
  return view;
}
function unpark(key) {
  const parked = PARKED.get(key);
  clearTimeout(parked?.timer);
  PARKED.delete(key);
  return parked?.view;
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

// src/compare.js
var CompareSource = class extends /** @type {typeof Source<CompareState>} */
Source {
  /** @override */
  get opening() {
    return "compare";
  }
  /**
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    return `distrain/${path}?${this.words({ ...query, runs: this.model.get("runs") })}`;
  }
};
function openComparison(model) {
  const root = element("section", { class: `distrain distrain-runs ${LITERAL}`, role: "region", "aria-label": "comparison" });
  const source = new CompareSource(model);
  const table = new Comparison(root, () => source.ask("compare"));
  return { root, moved: keepFocus(root), end: () => {
    table.close();
    source.close();
  } };
}
var compare_default = { initialize: standsWhereMarked(openComparison) };
export {
  compare_default as default
};
