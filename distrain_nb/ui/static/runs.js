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
function fold(title, className2) {
  const summary = element("summary", { ...OWN_KEYS }, title);
  const inside = element("div", { class: className2 });
  const box = element("details", { class: "dn-folded" }, summary, inside);
  return { box, inside, summary };
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

// src/runs/source.js
var ListSource = class extends Source {
  /** @param {Model<Asking>} model */
  constructor(model) {
    super(model);
    this.listeners = [];
  }
  /**
   * @override
   * @param {string} path
   * @param {Query} [query]
   */
  address(path, query = {}) {
    return `distrain/${path}?${this.words(query)}`;
  }
  async refresh() {
    this.learn(await this.ask(this.opening));
  }
  tell() {
    for (const listener of this.listeners) listener();
  }
};
var RunsSource = class extends ListSource {
  /** @type {TableRun[] | null} null before anything is known */
  runs = null;
  /** @override */
  get opening() {
    return "runs";
  }
  /**
   * @override
   * @param {{runs?: TableRun[]}} answer
   */
  learn({ runs }) {
    if (!runs) return;
    this.runs = runs;
    this.tell();
  }
  /**
   * Cancel a run, or delete one that has ended. Raises Refused.
   * @param {number} run
   * @param {"cancel" | "delete"} action
   */
  async act(run, action) {
    const [method, path] = action === "delete" ? ["DELETE", `runs/${run}`] : ["POST", `runs/${run}/${action}`];
    if (!await this.order(method, path)) await this.askKernel(action, { run });
  }
  /**
   * Change note and tags of a run. Raises Refused.
   * @param {number} run
   * @param {Change} change
   */
  async annotate(run, change) {
    if (!await this.order("POST", `runs/${run}/annotate`, change)) await this.askKernel("annotate", { ...change, run });
    await this.refresh();
  }
};
function modelOf(model, run) {
  const state = {
    run,
    home: model.get("home"),
    key: `${model.get("key")}-${run}`,
    summary: {},
    batch: {},
    waiting: false,
    kernel: ""
  };
  return {
    get: (name) => state[name],
    set: () => {
    },
    save_changes: () => {
    },
    send: (message) => {
      model.send({ ...message, query: { ...message.query, run: String(run) } });
    },
    on: (event, listener) => {
      if (event === "msg:custom") model.on(event, listener);
    },
    off: (event, listener) => {
      if (event === "msg:custom") model.off(event, listener);
    },
    widget_manager: model.widget_manager
  };
}

// src/run/annotation.js
var LONGEST_NOTE = 2e3;
function annotationText({ annotation: annotation2 }) {
  return annotation2 ? [...annotation2.tags.map((tag) => `#${tag}`), annotation2.note].filter(Boolean).join(" ") : "";
}
function annotationForm(run, annotation2, save, done) {
  const own = { spellcheck: "false", autocomplete: "off", ...OWN_KEYS };
  const tags = element("input", { type: "text", placeholder: "baseline, good", value: annotation2?.tags.join(", ") ?? "", ...own });
  const note2 = element("textarea", { rows: 3, maxlength: LONGEST_NOTE, ...own, spellcheck: "true" });
  note2.value = annotation2?.note ?? "";
  const said = element("span", { class: "dn-soft", role: "status" });
  const keep = async () => {
    keeps.disabled = true;
    try {
      await save({ note: note2.value, tags: tags.value });
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
    element("label", {}, "Note ", note2),
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
function age(seconds) {
  const units = (
    /** @type {const} */
    [["d", 86400], ["h", 3600], ["min", 60]]
  );
  const [unit, long] = units.find(([, long2]) => seconds >= long2) ?? ["s", 1];
  return `${Math.max(0, Math.floor(seconds / long))} ${unit} ago`;
}
function clockTime(seconds) {
  const at = new Date(seconds * 1e3);
  const parts = [at.getHours(), at.getMinutes(), at.getSeconds()].map((n) => digits(n, 2));
  return `${parts.join(":")}.${digits(at.getMilliseconds(), 3)}`;
}
function size(bytes2) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes2)) / 10));
  const value = bytes2 / 1024 ** unit;
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
function brief(value) {
  const size2 = Math.abs(value);
  if (value === 0) return "0";
  return size2 >= 1e-4 && size2 < 1e7 ? String(Number(value.toPrecision(4))) : value.toExponential(3);
}
function digits(number2, count2) {
  return String(number2).padStart(count2, "0");
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
  const bytes2 = total ? `${size(done)} of ${size(total)}` : done ? size(done) : "";
  const time = since ? duration(now - since) : "";
  const known = [bytes2, time].filter(Boolean).join(", ");
  return known ? `${phase}: ${known}` : phase;
}
function counted(done, total, unit) {
  if (unit === "%") return `${done} %`;
  return total ? `${thousands(done)} of ${thousands(total)} ${unit}` : `${thousands(done)} ${unit} begun`;
}

// src/runs/columns.js
function stateText({ state, progress: progress2 }, now) {
  const waits = state === "queued" && progress2?.since;
  const words2 = waits ? ` for ${duration(now - progress2.since)}` : progress2 && !progress2.unit ? `: ${progress2.phase}` : "";
  return `${SIGNS[state] ?? "◌"} ${state}${words2}`;
}
function barOf({ progress: progress2 }) {
  return progress2?.unit ? progress2 : null;
}
function detailText(run) {
  const steps = barOf(run);
  return causeText(run) || (steps ? progressText(steps, 0) : "");
}
function causeText({ cause }) {
  return cause.replace(/^(.+?) failed first: ([^]+)$/, "$2 ($1)");
}
function plain(name) {
  return { name, value: (run) => run[name], text: (run) => run[name] };
}
function placeText({ place, size: size2 }) {
  return [place, size2].filter(Boolean).join(", ");
}
function costOf({ cost }) {
  const amount = Number.parseFloat(cost?.match(/\d[\d.,]*/)?.[0].replaceAll(",", "") ?? "");
  return Number.isNaN(amount) ? null : amount;
}
var COLUMNS = [
  { name: "run", value: (run) => run.id, text: (run) => String(run.id) },
  { ...plain("name"), detail: annotationText },
  { name: "state", value: (run) => run.state, text: stateText, detail: detailText, bar: barOf },
  { name: "where", value: placeText, text: placeText, detail: (run) => run.machines },
  {
    name: "best metric",
    value: (run) => run.best ? [run.best.tag, run.best.value] : null,
    text: (run) => run.best ? `${run.best.tag} ${brief(run.best.value)}` : ""
  },
  { name: "duration", value: (run, now) => (run.end ?? now) - run.begin, text: (run, now) => duration((run.end ?? now) - run.begin) },
  { name: "age", value: (run) => -run.begin, text: (run, now) => age(now - run.begin) },
  { name: "cost", value: costOf, text: (run) => run.cost ?? "", detail: (run) => run.cost && run.cost_note || "" },
  plain("experiment")
];
var BY_NAME = new Intl.Collator("en", { numeric: true });
function className({ name, kind: kind2 }) {
  return `dn-${kind2 ?? name.split(" ")[0]}`;
}
function compared(a, b) {
  if (Array.isArray(a) && Array.isArray(b)) return compared(a[0], b[0]) || compared(a[1], b[1]);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return BY_NAME.compare(String(a), String(b));
}
function sorted(items, { column, down }, now) {
  return [...items].sort((one2, other) => {
    const [a, b] = [column.value(one2, now), column.value(other, now)];
    if (a === null || b === null) return Number(a === null) - Number(b === null) || other.id - one2.id;
    return (down ? -1 : 1) * compared(a, b) || other.id - one2.id;
  });
}

// src/runs/filters.js
var CHOICES = [
  { label: "state", all: "all states", of: (run) => run.state },
  { label: "place", all: "all places", of: (run) => run.place },
  { label: "experiment", all: "all experiments", of: (run) => run.experiment }
];
var Filters = class {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.field = element("input", {
      class: "dn-search",
      type: "search",
      placeholder: "Filter",
      "aria-label": "filter runs by text",
      spellcheck: "false",
      autocomplete: "off",
      oninput: onChange,
      ...OWN_KEYS,
      onkeydown: (event) => this.key(event)
    });
    this.menus = CHOICES.map(({ label }) => choice(label, [], onChange));
    this.node = element("span", { class: "dn-filters", role: "group", "aria-label": "Filters" }, this.field, ...this.menus);
  }
  /** @param {KeyboardEvent} event */
  key(event) {
    event.stopPropagation();
    if (event.key !== "Escape") return;
    this.field.value = "";
    this.onChange();
  }
  /**
   * Offer what there is to choose from.
   * @param {TableRun[]} runs
   */
  offer(runs) {
    this.node.hidden = runs.length < 2;
    this.menus.forEach((menu, place) => {
      const { all, of } = CHOICES[place];
      const values = [.../* @__PURE__ */ new Set([...runs.map(of), menu.value])].filter(Boolean).sort();
      menu.hidden = values.length < 2;
      const key = values.join("\n");
      if (menu.dataset.values === key) return;
      const { value } = menu;
      menu.replaceChildren(new Option(all, ""), ...values.map((each) => new Option(each, each)));
      menu.value = value;
      menu.dataset.values = key;
    });
  }
  /** @param {TableRun} run */
  passes(run) {
    const chosen = CHOICES.every(({ of }, place) => !this.menus[place].value || this.menus[place].value === of(run));
    return chosen && hasWords(run, this.field.value);
  }
};
function hasWords(run, words2) {
  const parts = [`#${run.id}`, run.name, run.state, run.cause, run.place, run.size, run.machines, run.experiment, run.best?.tag, annotationText(run)];
  const text2 = parts.join("\n").toLowerCase();
  return words2.toLowerCase().split(/\s+/).every((word) => text2.includes(word));
}

// src/runs/overlay.js
var SETTLED_MS = 300;
var MOST = 50;
var Overlay = class {
  /**
   * @param {HTMLElement} root
   * @param {() => Panels} panels know how charts are drawn
   * @param {() => void} untick calls for no run to be ticked
   */
  constructor(root, panels, untick) {
    this.panels = panels;
    this.runs = [];
    this.drawn = "";
    this.ends = [];
    this.title = element("strong");
    this.body = element("div");
    const close = button("✕ Close", untick, { class: "dn-chip", title: "Untick all runs" });
    this.node = element(
      "section",
      { class: "dn-panel", hidden: true, "aria-label": "charts of the ticked runs" },
      element("div", { class: "dn-panel-head" }, this.title, close),
      this.body
    );
    root.append(this.node);
    this.later = debounce(SETTLED_MS, () => this.draw());
  }
  /** @param {number[]} runs those that are ticked */
  show(runs) {
    this.runs = runs.length < 2 ? [] : [...runs].sort((a, b) => a - b).slice(0, MOST);
    if (this.runs.join() !== this.drawn) this.later();
  }
  draw() {
    if (this.runs.join() === this.drawn) return;
    this.close();
    this.drawn = this.runs.join();
    this.node.hidden = !this.drawn;
    write(this.title, `Metrics of runs ${this.runs.join(", ")}`);
    if (!this.drawn) return;
    const body = element("div");
    this.body.append(body);
    this.panels().overlay(this.runs, { body, ends: this.ends });
  }
  close() {
    this.later.cancel();
    for (const end of this.ends.splice(0)) end();
    this.body.replaceChildren();
    this.drawn = "";
  }
};

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
var MOST2 = 12;
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
    const fitting = words2.trim() ? tags.filter((tag) => fits(tag, words2)).slice(0, MOST2) : [];
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
var SETTLED_MS2 = 150;
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
    const look2 = debounce(SETTLED_MS2, () => this.look());
    this.search.addEventListener("input", () => {
      this.sheet.filter(this.search.value);
      look2();
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
    this.settled = debounce(SETTLED_MS2, () => this.average());
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
var STYLE2 = "html { background: #fff; } body { margin: 8px; font: 13px/1.5 system-ui, sans-serif; color: #1f2328; }";
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
  parts({ image, table, page, text: text2, note: note2, label: named2 }, label) {
    if (image) return [element("img", { alt: named2 || label, src: `data:${image.form};base64,${image.data}` })];
    if (table) {
      const rows = table.rows.map((row) => element("tr", {}, ...row.map(cellOf)));
      const scrolled = element("div", { class: "dn-scrolled", tabindex: 0, role: "group", "aria-label": label }, element("table", { class: "dn-table" }, ...rows));
      return [scrolled, table.note ? element("div", { class: "dn-chart-note" }, table.note) : ""];
    }
    if (page !== void 0) return [this.page(page, label)];
    if (text2) return [element("pre", { class: "dn-media-text", tabindex: 0 }, text2)];
    return [element("div", { class: "dn-chart-note" }, named2 ? `${named2}: ${note2}` : note2)];
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
  return `<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="${POLICY}"><style>${STYLE2}</style></head><body>${page}</body></html>`;
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
var render2 = (widget) => stand(widget, openDisplays);
var displays_default = { initialize: standsWhereMarked(openDisplays), render: render2 };

// src/charts/ridges.js
var HILL = { old: 88, newest: 50 };
var TALLEST = 2.5;
var LABELS = 6;
function hillColour(age2) {
  return `hsl(217, 80%, ${Math.round(HILL.newest + (HILL.old - HILL.newest) * age2)}%)`;
}
function hill({ step, counts, values, base, scale: scale2, age: age2, ground }) {
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
    fillcolor: hillColour(age2),
    line: { color: ground, width: 1 },
    hovertemplate: `step ${thousands(step)}<br>value %{x:.4g}<br>%{customdata:.4g} values<extra></extra>`
  };
}
function ridges({ steps, edges: edges2, counts }, { width, text: text2, ground }) {
  const values = edges2.slice(1).map((edge, at) => (edge + edges2[at]) / 2);
  const rows = steps.length;
  const tallest = Math.max(TALLEST, rows / 5);
  const scale2 = tallest / Math.max(1e-12, ...counts.flat());
  const baseOf = (row) => rows - 1 - row;
  const hills = steps.map((step, row) => {
    const age2 = baseOf(row) / Math.max(1, rows - 1);
    return hill({ step, counts: counts[row], values, base: baseOf(row), scale: scale2, age: age2, ground });
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
var SETTLED_MS3 = 80;
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
    this.settled = debounce(SETTLED_MS3, () => this.show());
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
    notes.replaceChildren(...(index.notes ?? []).map((note2) => element("div", { class: "dn-chart-note" }, note2)));
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
var render3 = (widget) => stand(widget, openMedia);
var media_default = { initialize: standsWhereMarked(openMedia), render: render3 };

// src/lab/model.js
var UNREACHABLE = "Jupyter's server does not answer now; the page asks again.";
var PageModel = class {
  /**
   * @param {State} state
   * @param {() => Promise<DataView>} [code] the packed code of plotly
   */
  constructor(state, code) {
    this.state = state;
    this.listeners = /* @__PURE__ */ new Map();
    this.lacksKernel = true;
    this.widget_manager = { get_model: async () => ({ get: () => code?.() }) };
  }
  /**
   * @template {keyof State} Name
   * @param {Name} name
   */
  get(name) {
    return this.state[name];
  }
  /**
   * @template {keyof State} Name
   * @param {Name} name
   * @param {State[Name]} value
   */
  set(name, value) {
    this.state[name] = value;
    this.tell(`change:${String(name)}`);
  }
  save_changes() {
  }
  /**
   * Whoever asks is told that nobody answers.
   * @param {any} message
   */
  send({ kind: kind2, id: id2 }) {
    if (kind2 !== "ask") return;
    queueMicrotask(() => this.tell("msg:custom", { kind: "answer", id: id2, error: UNREACHABLE }));
  }
  /**
   * @param {string} event
   * @param {unknown} [message]
   */
  tell(event, message) {
    for (const listener of [...this.listeners.get(event) ?? []]) listener(message);
  }
  /**
   * @param {string} event
   * @param {(message: any) => void} listener
   */
  on(event, listener) {
    this.listeners.set(event, (this.listeners.get(event) ?? /* @__PURE__ */ new Set()).add(listener));
  }
  /**
   * @param {string} event
   * @param {(message: any) => void} listener
   */
  off(event, listener) {
    this.listeners.get(event)?.delete(listener);
  }
};

// src/lab/charts.js
var LOOK_EVERY_MS4 = 1e3;
var SHARE_OF_TIME = 0.2;
var TITLES = { metrics: "", times: "Where the time goes", resources: "Resources by rank" };
function bytes(text2) {
  return new DataView(Uint8Array.from(atob(text2), (letter) => letter.charCodeAt(0)).buffer);
}
function packed(line2) {
  const { step, value, seconds, low, high } = line2;
  return { ...line2, step: bytes(step), value: bytes(value), seconds: bytes(seconds), low: bytes(low), high: bytes(high) };
}
var ServedCharts = class {
  /**
   * @param {Model<Asking>} model of the run
   * @param {() => Promise<DataView>} code of plotly
   * @param {string} [runs] the numbers of several runs, as in `3,5`, instead of that one
   */
  constructor(model, code, runs = "") {
    this.model = model;
    this.code = code;
    this.runs = runs;
    this.source = runs ? new ComparedSource(new PageModel(
      /** @type {any} */
      { ...this.asking, runs }
    )) : new Source(model);
    this.places = { displays: element("div"), metrics: element("div"), media: element("div"), times: element("div"), resources: element("div") };
    this.root = element("div", {}, ...Object.values(this.places));
    this.shown = /* @__PURE__ */ new Map();
    this.seen = "";
    this.closed = false;
    this.timer = void 0;
    this.look();
  }
  /** Up to the end of the run, for a small part of the time. */
  async look() {
    const began = performance.now();
    const over = await this.refresh().catch(() => false);
    if (this.closed || over) return;
    const spent = performance.now() - began;
    this.timer = setTimeout(() => this.look(), Math.max(LOOK_EVERY_MS4, spent / SHARE_OF_TIME));
  }
  /** Says whether no more will come. */
  async refresh() {
    if (document.hidden || !this.root.isConnected || !isNear(this.root)) return false;
    const drawn2 = this.places.metrics.querySelector("[data-drawn]") ? "" : "1";
    const answer = await this.source.ask(this.runs ? "overlay" : "charts", { seen: this.seen, drawn: drawn2 });
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
  show(path, charts2) {
    if (!charts2) return;
    const { sheet, shape } = charts2;
    const lines = charts2.lines.map(packed);
    const there = this.shown.get(path)?.model;
    if (!there) {
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
  open(part2, state, open) {
    const model = new PageModel(state, this.code);
    const view = open(model);
    this.shown.set(part2, { model, view });
    this.places[part2].replaceChildren(view.root);
  }
  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source.close();
    for (const { view } of this.shown.values()) view.end();
  }
};
function plotlyAt(address) {
  let code;
  const fetched = async () => {
    const { body } = await fetch(address);
    if (!body) throw new Error(`${address} is empty`);
    return new DataView(await new Response(body.pipeThrough(new CompressionStream("gzip"))).arrayBuffer());
  };
  return () => code ??= fetched().catch((error) => {
    code = void 0;
    throw error;
  });
}

// src/log/ansi.js
var COLOUR2 = /\x1b\[([0-9;:]*)m/;
var CONTROLS = [
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]/,
  /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]*(?:\x07|\x1b\\|\x9c)/,
  /\x1b[ -/]*[0-~]/,
  /[\x00-\x08\x0b-\x1f\x7f-\x9f]/
];
var ANSI = new RegExp([COLOUR2, ...CONTROLS].map(({ source }) => source).join("|"), "g");
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
  const plain2 = codes.replace(/([34]8:2):\d*:(\d+:\d+:\d+)/g, "$1:$2").replace(/(^|;)4:[1-5]/g, "$14");
  const numbers2 = plain2.split(/[;:]/).map(Number);
  while (numbers2.length) {
    const code = numbers2.shift() ?? 0;
    style = code === 38 || code === 48 || code === 58 ? extended(style, code, numbers2) : simple(style, code);
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
    const plain2 = contrast("#000000", ground) > contrast("#ffffff", ground) ? "#000000" : "#ffffff";
    const shown = wanted && contrast(wanted, ground) >= READABLE ? wanted : plain2;
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
    for (const fold2 of folds) if (fold2[0] > (this.closed.at(-1)?.[1] ?? -1)) this.closed.push(fold2);
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
    answer.lines.map(asLine2).forEach((line2, place) => {
      if (isSame(this.lines.get(answer.first + place), line2)) return;
      this.lines.set(answer.first + place, line2);
      isNew = true;
    });
    if (again) this.feed(this.recent.filter((line2) => line2.number >= this.total));
    if (withBars) isNew = this.takeBars(answer.bars.map(asLine2)) || isNew;
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
function asLine2([number2, time, process, stream, , text2]) {
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
var Sheet2 = class {
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
    const cell2 = line2 && (isInCell(line2.text) || before?.process === line2.process && isInCell(before.text));
    const fold2 = folds.at(number2);
    const look2 = [style, isCurrent, cell2, fold2?.open].join(" ");
    if (painted && painted.line === line2 && painted.looks === look2) return painted;
    const node = line2 ? lineElement(line2, source.summary, looks) : element("div", { class: "dn-line dn-gap" }, "…");
    node.dataset.row = String(number2);
    if (isCurrent) node.classList.add("dn-current");
    if (cell2) node.classList.add("dn-cell");
    if (line2 && fold2) node.append(this.foldSign(number2, fold2));
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
var TALLEST2 = 8e6;
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
    this.sheet = new Sheet2(this);
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
    return Math.min(TALLEST2, this.looks.wrap ? this.wrapped.height : this.places * ROW);
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
      parts.push(answer.lines.map((line2) => lineText(asLine2(line2), this.source.summary)).join(""));
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
  const by = (fits2) => entries.find(([, label]) => fits2(label.toLowerCase()))?.[0];
  return by((label) => label === wanted) ?? by((label) => label.endsWith(` ${wanted}`));
}
function noOutput({ final, phase, state }, isRead = true) {
  if (!isRead) return "reading the log…";
  if (final) return "no output";
  const waits = phase && phase !== state ? `: ${phase}` : "";
  return `no output yet${waits}`;
}

// src/run/report.js
var NOTEBOOK = ".jp-Notebook";
var PLACE = /^\s*(File "|Cell In\[|  File )/;
function report(root, source) {
  const note2 = element("div", { class: "dn-note", role: "note" });
  const error = element("div", { role: "alert" });
  root.append(note2, error);
  let shown = "";
  const change = () => {
    write(note2, source.summary.note ?? "");
    note2.hidden = !note2.textContent;
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
  const cell2 = [...prompts].find(({ textContent }) => textContent.trim() === `[${count2}]:`)?.closest(".jp-Cell");
  const editor = cell2?.querySelector(".cm-content");
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
  const note2 = element("div", { class: "dn-note", role: "note", hidden: true });
  root.append(note2);
  let wait;
  const say = (why) => {
    write(note2, why);
    note2.hidden = false;
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
      note2.hidden = true;
    }
  };
  source.listeners.push(change);
  change();
  return [stop, () => clearTimeout(wait)];
}
function resumeButton(root, source) {
  const note2 = element("div", { class: "dn-note", role: "note", hidden: true });
  root.append(note2);
  const say = (text2) => {
    write(note2, text2);
    note2.hidden = false;
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

// src/runs/comparison.js
var LOOK_EVERY_MS5 = 2e3;
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
    if (!this.answer?.runs.every((run) => run.final)) this.timer = setTimeout(() => this.look(), LOOK_EVERY_MS5);
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
    const sorted2 = this.order?.name === row.name && (this.order.down ? "descending" : "ascending");
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
    return element("tr", {}, element("th", { scope: "row", "aria-sort": sorted2 }, sort), ...cells);
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
  const compared2 = (a, b) => row.numbers.length ? Number(row.numbers[a]) - Number(row.numbers[b]) : row.texts[a].localeCompare(row.texts[b], "en", { numeric: true });
  return places.sort((a, b) => Number(has(b)) - Number(has(a)) || (has(a) ? (order.down ? -1 : 1) * compared2(a, b) : 0) || a - b);
}

// src/runs/panels.js
var MOST_PANELS = 6;
var ANSWERED_WITHIN_MS2 = 1500;
var CHARTS_EVERY_MS = 2e3;
var PLOTLY = "lab/extensions/distrain-nb/static/plotly-basic.min.js";
var Panels = class {
  /**
   * @param {HTMLElement} root
   * @param {RunsSource | StudySource} source
   * @param {OpenRun} [openRun] where no kernel draws charts
   */
  constructor(root, source, openRun2) {
    this.source = source;
    this.openRun = openRun2;
    this.place = element("div", { class: "dn-panels" });
    this.panels = /* @__PURE__ */ new Map();
    root.append(this.place);
  }
  /**
   * A new panel with that title; null if there is one already, which gets the focus.
   * @param {string} title
   */
  open(title) {
    const there = this.panels.get(title);
    there?.node.focus();
    if (there) return null;
    const close = button("✕ Close", () => this.shut(title), { class: "dn-chip", title: `Close: ${title}` });
    const head = element("div", { class: "dn-panel-head" }, element("strong", {}, title), close);
    const body = element("div");
    const node = element("section", { class: "dn-panel", "aria-label": title, tabindex: "-1" }, head, body);
    const panel = { node, body, ends: [] };
    this.place.prepend(node);
    this.panels.set(title, panel);
    if (this.panels.size > MOST_PANELS) this.shut([...this.panels.keys()][0]);
    node.focus();
    return panel;
  }
  /** @param {string} title */
  shut(title) {
    const panel = this.panels.get(title);
    this.panels.delete(title);
    panel?.ends.forEach((end) => end());
    panel?.node.remove();
  }
  /** @param {Shown} run */
  attach(run) {
    const panel = this.watch(run, run.title ?? `run ${run.id}: log and charts`);
    if (!panel || this.openRun) return;
    this.runCharts(run, panel).catch((error) => note(panel, `The charts can't be shown: ${messageOf(error)}`));
  }
  /**
   * The server draws them where it can, whatever has become of the kernel.
   * @param {Shown} run
   * @param {Panel} panel
   */
  async runCharts({ id: id2 }, panel) {
    const code = await this.source.answersItself() && await servedPlotly();
    if (!code) return this.charts(String(id2), panel);
    const charts2 = new ServedCharts(modelOf(this.source.model, id2), code);
    panel.ends.push(() => charts2.close());
    panel.body.append(charts2.root);
    return void 0;
  }
  /**
   * @param {Shown} run
   * @param {string} title
   */
  watch(run, title) {
    const panel = this.open(title);
    if (!panel) return null;
    const { root, end } = this.openRun?.(run.id) ?? openRun(modelOf(this.source.model, run.id));
    panel.ends.push(end);
    panel.body.append(root);
    return panel;
  }
  /**
   * The kernel draws charts, and it may be busy.
   * @param {string} runs their numbers
   * @param {Pick<Panel, "body" | "ends">} panel
   */
  async charts(runs, panel) {
    const wait = setTimeout(() => note(panel, "The kernel is busy: the charts come when it is free."), ANSWERED_WITHIN_MS2);
    const charts2 = await this.drawn(runs, panel).finally(() => clearTimeout(wait));
    const manager = this.source.model.widget_manager;
    for (const id2 of charts2) {
      const view = await manager.create_view(await manager.get_model(id2));
      if (!panel.body.isConnected) return;
      panel.body.append(view.el);
      panel.ends.push(() => view.remove());
    }
  }
  /**
   * By which the charts are found, as soon as there are metrics: the kernel looks for them.
   * @param {string} runs
   * @param {Pick<Panel, "body" | "ends">} panel
   * @returns {Promise<string[]>}
   */
  async drawn(runs, panel) {
    for (; ; ) {
      const { charts: charts2 } = await this.source.askKernel("charts", { runs });
      const over = this.source.runs?.every((run) => run.final || !runs.split(",").includes(String(run.id)));
      const none = over ? "There are no metrics." : "There are no metrics yet: charts come with the first.";
      note(panel, charts2.length ? "" : none);
      if (charts2.length || over || !panel.body.isConnected) return charts2;
      await new Promise((next) => setTimeout(next, CHARTS_EVERY_MS));
    }
  }
  /**
   * Whether a comparison of these runs, with their charts, is open.
   * @param {number[]} runs
   */
  hasCompared(runs) {
    return this.panels.has(comparedTitle(runs));
  }
  /** @param {number[]} runs */
  async compare(runs) {
    const panel = this.open(comparedTitle(runs));
    if (!panel) return;
    const table = new Comparison(panel.body, () => this.source.ask("compare", { runs: runs.join(",") }));
    panel.ends.push(() => table.close());
    await this.overlay(runs, panel);
  }
  /**
   * The charts of several runs in one: the server's where it answers, else the kernel's.
   * @param {number[]} runs
   * @param {Pick<Panel, "body" | "ends">} panel
   */
  async overlay(runs, panel) {
    const numbers2 = runs.join(",");
    const code = await this.source.answersItself() && await servedPlotly();
    if (!panel.body.isConnected) return;
    if (code) {
      const charts2 = new ServedCharts(this.source.model, code, numbers2);
      panel.ends.push(() => charts2.close());
      panel.body.append(charts2.root);
      return;
    }
    const needKernel = `Their charts side by side need a kernel: %distrain compare ${runs.join(" ")}`;
    try {
      if (this.openRun) throw new Gone();
      await this.charts(numbers2, panel);
    } catch (error) {
      note(panel, error instanceof Gone ? needKernel : messageOf(error));
    }
  }
  close() {
    for (const title of [...this.panels.keys()]) this.shut(title);
  }
};
function comparedTitle(runs) {
  return `runs ${runs.join(" and ")} compared`;
}
async function servedPlotly() {
  const answer = await request(PLOTLY, { method: "HEAD" }).catch(() => null);
  return answer?.ok ? plotlyAt(new URL(serverAddress(PLOTLY), document.baseURI)) : null;
}
function note({ body }, text2) {
  body.querySelector(":scope > .dn-note")?.remove();
  if (text2) body.append(element("div", { class: "dn-note", role: "note" }, text2));
}

// src/runs/sorted.js
var PAGE_OF_ROWS = 50;
var SortedTable = class {
  /**
   * @param {string} what its rows are, in the plural
   * @param {Column<T>[]} columns
   * @param {Column<T>} first by which it is sorted
   * @param {Record<string, string>} [attributes] of the table
   */
  constructor(what, columns, first, attributes = {}) {
    this.columns = columns;
    this.rows = /* @__PURE__ */ new Map();
    this.current = void 0;
    this.order = { column: first, down: true };
    this.most = PAGE_OF_ROWS;
    this.items = [];
    this.ticks = /* @__PURE__ */ new Set();
    this.body = element("tbody");
    this.heads = columns.map((column) => this.head(column));
    const unseen = (text2, className2 = "") => element("th", { class: className2, scope: "col" }, element("span", { class: "dn-unseen" }, text2));
    const line2 = element("tr", {}, unseen("compare"), ...this.heads, unseen("actions", "dn-row-actions"));
    const label = `${what}; arrow keys go from row to row, Enter opens one`;
    const table = element("table", { class: "dn-table", "aria-label": label, ...attributes }, element("thead", {}, line2), this.body);
    this.rest = button("", () => this.showMore(), { class: "dn-chip dn-rest", hidden: true });
    this.frame = element("div", { class: "dn-runs", ...OWN_KEYS }, table, this.rest);
  }
  showMore() {
    this.most += PAGE_OF_ROWS;
    this.show();
    this.rowAt(this.most - PAGE_OF_ROWS)?.node.focus();
  }
  /**
   * The row of an item that passes, made if it is further down than rows are shown.
   * @param {number} id
   */
  reveal(id2) {
    const place = this.items.findIndex((item) => item.id === id2);
    if (place >= this.most) {
      this.most = place + 1;
      this.show();
    }
    return this.rows.get(id2);
  }
  /**
   * @param {number} id
   * @param {boolean} isTicked
   */
  tick(id2, isTicked) {
    if (isTicked) this.ticks.add(id2);
    else this.ticks.delete(id2);
    this.ticked();
  }
  untick() {
    this.ticks.clear();
    for (const row of this.rows.values()) row.tick.checked = false;
    this.ticked();
    this.current?.node.focus();
  }
  /** @param {Column<T>} column */
  head(column) {
    const sort = button(column.name, () => this.sort(column), { class: "dn-sort", title: `Sort by ${column.name}` });
    return element("th", { class: className(column), scope: "col" }, sort);
  }
  /** @param {Column<T>} column */
  sort(column) {
    const down = this.order.column === column ? !this.order.down : false;
    this.order = { column, down };
    this.show();
  }
  /** Bring it up to date. */
  show() {
  }
  /**
   * @param {T} _item
   * @returns {SortedRow<T>}
   */
  row(_item) {
    throw new Error("has no rows");
  }
  /** A box was ticked, or is there no more. */
  ticked() {
  }
  /**
   * What was asked for by Enter.
   * @param {T} _item
   */
  open(_item) {
  }
  /**
   * @param {T[]} items
   * @param {Column<T>[]} columns those that are shown
   * @param {number} now
   */
  fill(items, columns, now) {
    this.showHeads(columns);
    this.items = sorted(items, this.order, now);
    const shown = this.items.slice(0, this.most);
    const there = new Set(shown.map(({ id: id2 }) => id2));
    for (const [id2, row] of this.rows) if (!there.has(id2)) this.leave(id2, row);
    let next = this.body.firstElementChild;
    for (const item of shown) {
      const row = this.rows.get(item.id) ?? this.row(item);
      this.rows.set(item.id, row);
      row.show(item, now, columns);
      if (row.node === next) next = next.nextElementSibling;
      else this.put(row.node, next);
    }
    const more = items.length - shown.length;
    this.rest.hidden = !more;
    write(this.rest, `Show ${Math.min(more, PAGE_OF_ROWS)} more of ${more}`);
    if (!this.current || !this.rows.has(this.current.item.id)) this.visit(this.rowAt(0));
  }
  /** @param {Column<T>[]} columns those that are shown */
  showHeads(columns) {
    this.heads.forEach((head, place) => {
      const column = this.columns[place];
      head.hidden = !columns.includes(column);
      if (column !== this.order.column) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
    });
  }
  /**
   * What is moved loses the focus.
   * @param {HTMLElement} node
   * @param {Element | null} next
   */
  put(node, next) {
    const held = node.contains(document.activeElement) ? document.activeElement : null;
    this.body.insertBefore(node, next);
    if (held instanceof HTMLElement) held.focus({ preventScroll: true });
  }
  /**
   * @param {number} id
   * @param {SortedRow<T>} row
   */
  leave(id2, row) {
    const held = row.node.contains(document.activeElement);
    const next = row.node.nextElementSibling ?? row.node.previousElementSibling;
    row.node.remove();
    this.rows.delete(id2);
    if (held && next instanceof HTMLElement) next.focus();
  }
  /** @param {number} place */
  rowAt(place) {
    const node = this.body.children[place];
    return [...this.rows.values()].find((row) => row.node === node);
  }
  /** @param {SortedRow<T> | undefined} row */
  visit(row) {
    if (row === this.current) return;
    this.current?.reachable(false);
    this.current = row;
    row?.reachable(true);
  }
  /**
   * @param {SortedRow<T>} row
   * @param {number} by
   */
  move(row, by) {
    const last = this.body.children.length - 1;
    const place = [...this.body.children].indexOf(row.node) + by;
    this.rowAt(Math.max(0, Math.min(last, place)))?.node.focus();
  }
  /** The items whose boxes are ticked. */
  get tickedItems() {
    return this.items.filter(({ id: id2 }) => this.ticks.has(id2));
  }
};
var SortedRow = class {
  /**
   * @param {SortedTable<T>} table
   * @param {T} item
   * @param {string} what it is, in the singular
   */
  constructor(table, item, what) {
    this.table = table;
    this.item = item;
    this.what = what;
    this.tick = element("input", {
      type: "checkbox",
      "aria-label": `compare ${what} ${item.id}`,
      checked: table.ticks.has(item.id),
      onchange: () => table.tick(this.item.id, this.tick.checked)
    });
    this.cells = table.columns.map((column) => element("td", { class: className(column) }));
    this.texts = [];
    this.actions = element("td", { class: "dn-row-actions" });
    const parts = [element("td", {}, this.tick), ...this.cells, this.actions];
    this.node = element("tr", {
      tabindex: "-1",
      onkeydown: (event) => this.key(event),
      onfocusin: () => table.visit(this)
    }, ...parts);
  }
  /** What is said of it as a whole. */
  get label() {
    return `${this.what} ${this.item.id}, ${this.item.state}`;
  }
  /** Offer what can be done with it now. */
  buttons() {
  }
  /**
   * @param {T} item
   * @param {number} now
   * @param {Column<T>[]} columns those that are shown
   */
  show(item, now, columns) {
    const ended = item.final !== this.item.final;
    this.item = item;
    if (this.node.dataset.state !== item.state) this.node.dataset.state = item.state;
    if (this.node.getAttribute("aria-label") !== this.label) this.node.setAttribute("aria-label", this.label);
    this.table.columns.forEach((column, place) => {
      const cell2 = this.cells[place];
      const [text2, detail] = [column.text(item, now), column.detail?.(item) ?? ""];
      cell2.hidden = !columns.includes(column);
      if (this.texts[place] === text2 + detail) return;
      this.texts[place] = text2 + detail;
      cell2.replaceChildren(text2, detail ? element("div", { class: "dn-detail" }, meterOf(column.bar?.(item)), detail) : "");
      cell2.title = detail || (column.name === "name" ? text2 : "");
    });
    if (ended) this.buttons();
  }
  /**
   * @param {string} text
   * @param {string} title
   * @param {() => void} act
   */
  button(text2, title, act) {
    const tabindex = this.table.current === this ? 0 : -1;
    return button(text2, act, { class: "dn-chip", title, "aria-label": `${text2} ${this.what} ${this.item.id}`, tabindex });
  }
  /**
   * What a key does besides what all rows do; says whether it did something.
   * @param {string} _key
   */
  pressed(_key) {
    return false;
  }
  /** @param {KeyboardEvent} event */
  key(event) {
    const moves = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.table.move(this, moves[event.key]);
    else if (event.target !== this.node) return;
    else if (event.key === "Enter") this.table.open(this.item);
    else if (event.key === " ") this.tick.click();
    else if (!this.pressed(event.key)) return;
    event.preventDefault();
  }
  /**
   * Only the row that was visited last is on the way of the Tab key.
   * @param {boolean} yes
   */
  reachable(yes) {
    this.node.tabIndex = yes ? 0 : -1;
    for (
      const it of
      /** @type {NodeListOf<HTMLElement>} */
      this.node.querySelectorAll("button, input")
    ) {
      it.tabIndex = yes ? 0 : -1;
    }
  }
};
function meterOf(progress2) {
  if (!progress2) return null;
  const meter = element("progress", { "aria-label": "progress" });
  fill(meter, progress2);
  return meter;
}

// src/runs/row.js
var Row = class extends SortedRow {
  /**
   * @param {Table} table
   * @param {TableRun} run
   */
  constructor(table, run) {
    super(table, run, "run");
    this.runs = table;
    this.last = button("", () => {
    });
    this.buttons();
  }
  /** @override */
  get label() {
    return `run ${this.item.id}, ${this.item.name}, ${this.item.state}`;
  }
  /** @override */
  buttons() {
    const { item } = this;
    const held = this.actions.contains(document.activeElement);
    this.last = item.final ? this.button("Delete", "Forget this run and remove its files", () => this.confirm()) : this.button("Stop", "Stop this run", () => this.stop());
    const note2 = this.button("Note", "Change its note and tags", () => this.runs.annotate(this.item));
    note2.setAttribute("aria-label", `Note and tags of run ${item.id}`);
    this.actions.replaceChildren(
      note2,
      this.button("Open", "Show its state, log and charts below the table", () => this.table.open(item)),
      this.last
    );
    if (held) this.last.focus();
  }
  stop() {
    this.last.disabled = true;
    this.runs.act(this.item, "cancel", `run ${this.item.id} is being stopped`);
  }
  /** Files are gone for good: ask first, over the row, with the harmless answer at hand. */
  confirm() {
    const { id: id2 } = this.item;
    const asked = `Delete run ${id2} and its files?`;
    const back = () => {
      box.remove();
      this.node.focus();
    };
    const keep = button("Keep", back, { class: "dn-chip", title: "Keep this run" });
    const remove = button("Delete", () => this.runs.act(this.item, "delete", `run ${id2} is deleted`), {
      class: "dn-chip dn-danger",
      title: `Delete run ${id2} with its files`,
      "aria-label": `Yes, delete run ${id2}`
    });
    const box = element("div", {
      class: "dn-asked",
      role: "alertdialog",
      "aria-label": asked,
      onkeydown: (event) => {
        if (event.key === "Escape") back();
      }
    }, element("span", {}, asked), remove, keep);
    this.actions.querySelector(".dn-asked")?.remove();
    this.actions.append(box);
    keep.focus();
  }
  /**
   * @override
   * @param {string} key
   */
  pressed(key) {
    if (key !== "Delete" || !this.item.final) return false;
    this.confirm();
    return true;
  }
};

// src/runs/table.js
var RUNS_EVERY_MS = 2e3;
var AGES_EVERY_MS = 1e3;
var SAID_MS2 = 8e3;
var Table = class extends SortedTable {
  /**
   * @param {HTMLElement} root
   * @param {RunsSource} source
   */
  constructor(root, source) {
    super("runs", COLUMNS, COLUMNS[0], { "data-folds": "" });
    this.source = source;
    this.closed = false;
    this.timer = void 0;
    this.silence = void 0;
    this.count = element("strong");
    this.compare = button("Compare", () => {
      this.panels.compare(this.chosen);
      this.ticked();
    }, {
      class: "dn-chip",
      title: "Show what differs between the ticked runs"
    });
    this.status = element("span", { class: "dn-soft", role: "status" });
    this.filters = new Filters(() => this.show());
    const bar = element("div", { class: "dn-bar", role: "toolbar", "aria-label": "runs" });
    bar.append(this.count, this.filters.node, this.compare, this.status);
    root.append(bar, this.frame);
    this.overlay = new Overlay(root, () => this.panels, () => this.untick());
    this.panels = new Panels(root, source);
    this.ticked();
    source.listeners.push(() => this.show());
    this.clock = setInterval(() => this.show(), AGES_EVERY_MS);
    this.look();
  }
  look() {
    const again = async () => {
      if (!document.hidden) await this.source.refresh().catch(() => {
      });
      if (!this.closed) this.timer = setTimeout(again, RUNS_EVERY_MS);
    };
    this.source.probed.then(again);
  }
  /**
   * @override
   * @param {TableRun} run
   */
  row(run) {
    return new Row(this, run);
  }
  /**
   * @override
   * @param {TableRun} run
   */
  open(run) {
    this.panels.attach(run);
  }
  /** @override */
  show() {
    const { runs } = this.source;
    if (!runs) return;
    const columns = COLUMNS.filter(({ name }) => name !== "experiment" && name !== "cost" || runs.some((run) => run[name]));
    this.filters.offer(runs);
    const passing = runs.filter((run) => this.filters.passes(run));
    this.fill(passing, columns, Date.now() / 1e3);
    const running = runs.filter((run) => !run.final).length;
    const some = passing.length < runs.length ? `${passing.length} of ` : "";
    const words2 = `${some}${plural(runs.length, "run")}${running ? `, ${running} running` : ""}`;
    write(this.count, runs.length ? words2 : "no runs yet");
    this.frame.hidden = !runs.length;
    this.ticked();
  }
  // ---- Actions ---------------------------------------------------------------------------
  get chosen() {
    return this.tickedItems.map((run) => run.id);
  }
  /** @override */
  ticked() {
    const count2 = this.chosen.length;
    this.compare.disabled = count2 < 2;
    this.compare.textContent = count2 < 2 ? "Compare: select two" : `Compare ${count2}`;
    this.overlay?.show(this.panels?.hasCompared(this.chosen) ? [] : this.chosen);
  }
  /** @param {TableRun} run */
  annotate({ id: id2, annotation: annotation2 }) {
    const title = `run ${id2}: note and tags`;
    const panel = this.panels.open(title);
    if (!panel) return;
    const { form, focus } = annotationForm(id2, annotation2, (change) => this.source.annotate(id2, change), () => {
      this.panels.shut(title);
      this.rows.get(id2)?.node.focus();
    });
    panel.body.append(form);
    focus();
  }
  /**
   * @param {TableRun} run
   * @param {"cancel" | "delete"} action
   * @param {string} done what is said then
   */
  async act(run, action, done) {
    this.say(this.source.served ? "" : "asking the kernel…");
    try {
      await this.source.act(run.id, action);
      this.say(done);
    } catch (error) {
      this.say(messageOf(error));
    }
    await this.source.refresh().catch(() => {
    });
  }
  /** @param {string} text */
  say(text2) {
    this.status.textContent = text2;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      this.status.textContent = "";
    }, SAID_MS2);
  }
  close() {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    clearInterval(this.clock);
    this.overlay.close();
    this.panels.close();
  }
};

// src/runs.js
function openRuns(model) {
  const root = element("section", { class: `distrain distrain-runs ${LITERAL}`, role: "region", "aria-label": "runs" });
  const source = new RunsSource(model);
  const table = new Table(root, source);
  return { root, moved: keepFocus(root), end: () => {
    table.close();
    source.close();
  } };
}
var runs_default = { initialize: standsWhereMarked(openRuns) };
export {
  runs_default as default
};
