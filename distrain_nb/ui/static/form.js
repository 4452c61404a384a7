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
var ids = 0;
function uid(what) {
  ids += 1;
  return `dn-${what}-${mine}-${ids}`;
}
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
}
function keyed(parts, items, keyOf2, make, update = () => {
}) {
  const keys = new Set(items.map(keyOf2));
  for (const [key, part] of parts) {
    if (keys.has(key)) continue;
    part.gone?.();
    parts.delete(key);
  }
  return items.map((item) => {
    const key = keyOf2(item);
    const part = parts.get(key) ?? make(item);
    parts.set(key, part);
    update(part, item);
    return part.node;
  });
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { style: "position:fixed;opacity:0" });
    const focused = document.activeElement;
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return done;
  }
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

// src/form/notes.js
var Notes = class {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.parts = /* @__PURE__ */ new Map();
    this.way = new WayBack(form);
    this.node = element("div", { class: "dn-notes" });
  }
  /**
   * A finding about several groups stands beside the first.
   * @param {FormView} view
   * @param {Field[]} fields
   * @param {(path: string) => boolean} isHere whether a path is one of this group
   */
  update(view, fields, isHere) {
    const findings = view.findings.filter(({ places }) => places.some(([path]) => isHere(path)));
    const own = findings.filter(({ places }) => isHere(places[0][0]));
    const { label = "", beside = "" } = view.repaired;
    const notes = keyed(this.parts, own, keyOf, (finding) => ({ node: this.#note(finding) }));
    arrange(this.node, label && isHere(beside) ? [this.way.update(label), ...notes] : notes);
    for (const field of fields) {
      const about = findings.filter(({ places }) => places.some(([path]) => path === field.path));
      field.mark(about.map((finding) => this.#idOf(finding)), about[0]?.severity);
    }
  }
  /** @param {Finding} finding */
  #note(finding) {
    const { message, places, fixes, severity } = finding;
    const text = places.length > 1 ? `${placesOf(finding)}: ${message}` : message;
    const sentence = element("span", { id: this.#idOf(finding), class: "dn-sentence" }, text);
    const buttons = fixes.slice(0, 2).map((label) => repairButton(this.form, finding, label));
    return element("div", { class: "dn-note", "data-severity": severity }, sentence, ...buttons);
  }
  /** @param {Finding} finding */
  #idOf({ code, places }) {
    return `dn-note-${this.form.outbox.page}-${code}-${places[0][0]}`.replaceAll(/[^\w-]/g, "-");
  }
};
var WayBack = class {
  /** @param {Form} form */
  constructor(form) {
    this.sentence = element("span", { class: "dn-sentence" });
    this.undo = button("Undo", () => form.back("undo"), { class: "dn-button dn-repair" });
    this.node = element("div", { class: "dn-note dn-repaired" }, this.sentence, this.undo);
  }
  /** @param {string} label of the repair */
  update(label) {
    this.sentence.textContent = `✓ ${label}`;
    this.undo.setAttribute("aria-label", `Undo: ${label}`);
    return this.node;
  }
};
function keyOf(finding) {
  return JSON.stringify(finding);
}
function placesOf({ places }) {
  return places.map(([, label]) => label).join(" · ");
}
function repairButton(form, finding, label) {
  const where = finding.places[0]?.[0] ?? "";
  const repair = () => {
    form.focusSoon(where);
    form.send("repair", { code: finding.code, where, label });
  };
  const saves = finding.saves?.[finding.fixes.indexOf(label)];
  return button(saves ? `${label} (${saves})` : label, repair, { class: "dn-button dn-repair" });
}

// src/form/verdict.js
var MARKS = { error: "✕", warning: "!", info: "i" };
var PAUSE_MS = 700;
var NOT_CHECKED = "Not checked yet";
var Totals = class {
  constructor() {
    this.shown = "";
    this.node = element("dl", { class: "dn-totals", "aria-label": "In total" });
  }
  /** @param {FormView} view */
  update({ totals }) {
    const key = JSON.stringify(totals);
    if (key === this.shown) return;
    this.shown = key;
    this.node.replaceChildren(...pairs(totals));
  }
};
function pairs(figures) {
  return figures.map(([figure, what]) => element("div", {}, element("dt", {}, what), element("dd", {}, figure)));
}
var Picture = class {
  constructor() {
    this.shown = "";
    this.node = element("div", { class: "dn-picture" });
  }
  /** @param {FormView} view */
  update({ picture }) {
    if (picture === this.shown) return;
    this.shown = picture;
    this.node.replaceChildren(drawn(picture) ?? "");
  }
};
var Verdict = class {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.parts = /* @__PURE__ */ new Map();
    this.pause = void 0;
    this.announced = void 0;
    this.head = element("div", { class: "dn-verdict" });
    this.way = new WayBack(form);
    this.list = element("ul", { class: "dn-findings", "aria-label": "Findings" });
    this.spoken = element("div", { class: "dn-unseen", "aria-live": "polite", role: "status" });
    this.node = element("div", { class: "dn-check" });
  }
  /** @param {FormView} view */
  update(view) {
    this.head.dataset.severity = view.verdict === NOT_CHECKED ? "pending" : view.findings[0]?.severity ?? "";
    write(this.head, view.verdict);
    const { label = "", beside } = view.repaired;
    const way = label && !beside ? [this.way.update(label)] : [];
    arrange(this.node, [this.head, ...way, this.list, this.spoken]);
    arrange(this.list, keyed(this.parts, view.findings, keyOf, (finding) => ({ node: this.#row(finding) })));
    this.#announce(view);
  }
  /**
   * Once the typing has paused, so that nobody hears a verdict on half a word.
   * @param {FormView} view
   */
  #announce(view) {
    clearTimeout(this.pause);
    const text = [view.verdict, ...view.findings.slice(0, 3).map((one) => `${placesOf(one)}: ${one.message}`)].join(". ");
    this.announced ??= text;
    if (text === this.announced || view.verdict === NOT_CHECKED) return;
    this.pause = setTimeout(() => {
      this.announced = text;
      write(this.spoken, text);
    }, PAUSE_MS);
  }
  /** @param {Finding} finding */
  #row(finding) {
    const { severity, code, message, fixes, places } = finding;
    const links = places.map(([path, label]) => button(label, () => this.form.focus(path), { class: "dn-link" }));
    const repairs = fixes.map((fix) => repairButton(this.form, finding, fix));
    return element(
      "li",
      { "data-severity": severity, "data-code": code },
      element("span", { class: "dn-mark", "aria-label": severity, role: "img" }, MARKS[severity]),
      element(
        "div",
        {},
        element("div", { class: "dn-place" }, ...links, element("code", {}, code)),
        element("div", {}, message),
        repairs.length ? element("div", { class: "dn-repairs" }, ...repairs) : null
      )
    );
  }
};
var Traffic = class {
  /** @param {Form} form */
  constructor(form) {
    this.shown = "";
    this.gradient = this.asked(form, "gradient");
    this.step = this.asked(form, "step");
    this.rows = element("tbody");
    this.gain = element("div", { role: "status" });
    const heads = ["all-reduce", "sent per worker", "latency", "about"].map((head) => element("th", { scope: "col" }, head));
    this.node = element(
      "div",
      { class: "dn-traffic" },
      element(
        "div",
        { class: "dn-asked" },
        element("label", { for: this.gradient.id }, "Exchanging gradients of"),
        element("span", { class: "dn-box" }, this.gradient),
        element("label", { for: this.step.id }, "in steps of"),
        element("span", { class: "dn-box" }, this.step)
      ),
      element("table", {}, element("thead", {}, element("tr", {}, ...heads)), this.rows),
      this.gain
    );
  }
  /**
   * @param {Form} form
   * @param {"gradient" | "step"} what
   */
  asked(form, what) {
    const input = element("input", {
      id: uid(what),
      type: "text",
      autocomplete: "off",
      "data-own-undo": true,
      oninput: () => form.send(what, { text: input.value }),
      onblur: () => this.update(form.view),
      ...OWN_KEYS
    });
    return input;
  }
  /** @param {FormView} view */
  update({ traffic, gradient, step, gain }) {
    this.node.hidden = !traffic.length;
    if (document.activeElement !== this.gradient) this.gradient.value = gradient;
    if (document.activeElement !== this.step) this.step.value = step;
    this.gain.textContent = gain;
    const key = JSON.stringify(traffic);
    if (key === this.shown) return;
    this.shown = key;
    const rows2 = traffic.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
    this.rows.replaceChildren(...rows2);
  }
};

// src/form/cost.js
var Cost = class {
  /** @param {Form} form */
  constructor(form) {
    this.shown = "";
    this.sums = element("dl", { class: "dn-totals", "aria-label": "Cost" });
    this.note = element("p", { class: "dn-cost-note", role: "status" });
    this.ask = button("Compare regions", () => form.send("regions", {}), { class: "dn-button dn-plain" });
    this.rows = element("tbody");
    const heads = ["region", "per hour"].map((head) => element("th", { scope: "col" }, head));
    this.table = element(
      "table",
      { "aria-label": "Prices by region" },
      element("thead", {}, element("tr", {}, ...heads)),
      this.rows
    );
    this.scrolled = element("div", { class: "dn-regions", tabindex: "0", role: "region", "aria-label": "Prices by region" }, this.table);
    this.node = element("div", { class: "dn-cost" }, this.sums, this.note, this.ask, this.scrolled);
  }
  /** @param {FormView} view */
  update({ cost }) {
    this.node.hidden = !cost;
    const key = JSON.stringify(cost);
    if (!cost || key === this.shown) return;
    this.shown = key;
    this.sums.replaceChildren(...pairs(cost.sums));
    write(this.note, cost.note);
    this.note.hidden = !cost.note;
    this.ask.hidden = !cost.asks;
    this.scrolled.hidden = !cost.regions;
    const rows2 = (cost.regions ?? []).map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
    this.rows.replaceChildren(...rows2);
  }
};

// src/form/ended.js
var SAID_MS = 1500;
var Ended = class {
  constructor() {
    this.code = element("code", { class: "dn-again" });
    this.copy = button("Copy", () => this.#copied(), { class: "dn-button" });
    this.node = element(
      "div",
      { class: "dn-part dn-ended", role: "status", hidden: true },
      element("p", {}, "The kernel of this form has ended or restarted, so this form takes no more changes. To continue from here, run:"),
      this.code,
      this.copy
    );
  }
  /**
   * @param {boolean} isEnded
   * @param {string} again the code that opens a form like this one
   */
  show(isEnded, again) {
    write(this.code, again);
    this.node.hidden = !isEnded;
  }
  async #copied() {
    const done = await copy(this.code.textContent ?? "");
    write(this.copy, done ? "Copied ✓" : "Not allowed here");
    setTimeout(() => write(this.copy, "Copy"), SAID_MS);
  }
};

// src/form/combobox.js
var LONGEST = 250;
function normal(text) {
  return text.toLowerCase().replace(/(\d),(?=\d{3})/g, "$1").replace(/\b(\d+)\s*[x×*]\s*/g, "$1gpu ").replace(/\b(\d+)\s*(gpu|tpu|gb|vcpu)s?\b/g, "$1$2").replace(/\b(\d+)\s*gib\b/g, "$1gb");
}
function matching(options, text) {
  const words = normal(text).split(/\s+/).filter(Boolean);
  const ranked = options.flatMap((option) => {
    const [value, detail, fits, has = "", takes = ""] = option;
    const own = has.split(" ");
    const said = normal(`${value} ${detail} ${has} ${takes}`);
    const terms = new Set(said.split(/[\s,()]+/));
    const isFound = (word) => /^\d+[a-z]+$/.test(word) ? terms.has(word) : said.includes(word);
    if (!words.every(isFound)) return [];
    return [{ option, rank: (fits ? 0 : LONGEST) - words.filter((word) => own.includes(word)).length }];
  });
  return ranked.sort((one, other) => one.rank - other.rank).map(({ option }) => option);
}
var OptionList = class {
  /**
   * @param {HTMLInputElement} input
   * @param {(value: string) => void} choose called with the value that was picked
   */
  constructor(input, choose) {
    this.input = input;
    this.choose = choose;
    this.list = null;
    this.values = [];
    this.active = -1;
    this.place = () => this.#place();
  }
  get isOpen() {
    return this.list !== null;
  }
  /**
   * @param {Option[]} options
   * @param {string} current
   */
  show(options, current) {
    const found = options.slice(0, LONGEST);
    if (!found.length) return this.close();
    this.list ??= this.#open();
    this.list.replaceChildren(...rows(found, current));
    this.values = found.map(([value]) => value);
    this.#activate(this.values.indexOf(current));
    this.#place();
  }
  close() {
    if (!this.list) return;
    this.list.remove();
    this.list = null;
    this.active = -1;
    window.removeEventListener("scroll", this.place, true);
    window.removeEventListener("resize", this.place);
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-controls");
    this.input.removeAttribute("aria-activedescendant");
  }
  /** @param {1 | -1} step */
  move(step) {
    const count = this.values.length;
    this.#activate(this.active < 0 ? step > 0 ? 0 : count - 1 : (this.active + step + count) % count);
  }
  /** Picks what the arrow keys stopped at; says whether there was anything. */
  pick() {
    if (!this.list || this.active < 0) return false;
    this.choose(this.values[this.active]);
    this.close();
    return true;
  }
  #open() {
    const list = element("ul", {
      class: "dn-options",
      role: "listbox",
      id: uid("options"),
      popover: "manual",
      "aria-label": this.input.labels?.[0]?.textContent ?? ""
    });
    list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const row = (
        /** @type {Element} */
        event.target.closest("[role=option]")
      );
      if (!(row instanceof HTMLElement)) return;
      this.choose(row.dataset.value ?? "");
      this.close();
    });
    this.input.parentElement?.append(list);
    list.showPopover?.();
    window.addEventListener("scroll", this.place, true);
    window.addEventListener("resize", this.place);
    this.input.setAttribute("aria-expanded", "true");
    this.input.setAttribute("aria-controls", list.id);
    return list;
  }
  /** @param {number} number */
  #activate(number) {
    const rows2 = this.list?.querySelectorAll("[role=option]") ?? [];
    rows2[this.active]?.classList.remove("dn-active");
    this.active = number;
    const row = rows2[number];
    if (!row) return this.input.removeAttribute("aria-activedescendant");
    row.classList.add("dn-active");
    row.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", row.id);
  }
  #place() {
    if (!this.list) return;
    const box = this.input.getBoundingClientRect();
    const below = window.innerHeight - box.bottom - 12;
    const above = box.top - 12;
    const up = below < 160 && above > below;
    const style = this.list.style;
    style.minWidth = `${box.width}px`;
    style.maxHeight = `${Math.min(280, up ? above : below)}px`;
    style.left = "0";
    style.left = `${Math.max(4, Math.min(box.left, window.innerWidth - this.list.offsetWidth - 8))}px`;
    style.top = up ? "auto" : `${box.bottom + 3}px`;
    style.bottom = up ? `${window.innerHeight - box.top + 3}px` : "auto";
  }
};
function rows(options, current) {
  return options.flatMap(([value, detail, fits], number) => {
    const isFirstUnfit = !fits && (number === 0 || options[number - 1][2]);
    const row = element(
      "li",
      { role: "option", id: uid("option"), "data-value": value, class: fits ? "" : "dn-unfit", "aria-selected": String(value === current) },
      element("span", {}, value || detail),
      value && detail ? element("span", { class: "dn-detail" }, detail) : null
    );
    const divider = element("li", { class: "dn-divider", role: "presentation" }, "does not fit the other fields");
    return isFirstUnfit ? [divider, row] : [row];
  });
}

// src/form/files.js
var SHOWN_WITHIN_MS = 3e3;
var Files = class {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.saved = [];
    this.name = void 0;
    const id = uid("name");
    this.input = element("input", {
      id,
      type: "text",
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "a name",
      "data-own-undo": true,
      oninput: () => this.#typed(),
      onclick: () => this.#open(this.saved),
      onblur: () => this.list.close(),
      onkeydown: (event) => this.#pressed(event),
      ...OWN_KEYS
    });
    this.list = new OptionList(this.input, (name) => {
      this.input.value = name;
      this.#enable();
    });
    this.save = button("Save", () => this.#send("save"), { class: "dn-button" });
    this.load = button("Load", () => this.#send("load"), { class: "dn-button" });
    this.note = element("span", { class: "dn-note-of-files", role: "status" });
    this.rehearse = button("Rehearse in a new cell", () => this.#putInCell(form.view.rehearsal), {
      class: "dn-button",
      title: "A new cell with --rehearse: the same request, to stand-ins on this machine"
    });
    this.cell = button("Put in a new cell", () => this.#putInCell(form.view.cell), { class: "dn-button dn-main" });
    this.node = element(
      "div",
      { class: "dn-part dn-files" },
      element("label", { for: id }, "Layout"),
      element("span", { class: "dn-box" }, this.input),
      this.save,
      this.load,
      this.note,
      element("span", { class: "dn-run" }, this.rehearse, this.cell)
    );
  }
  /** @param {FilesView} files */
  update(files) {
    this.saved = files.saved;
    if (files.name !== this.name) this.input.value = files.name;
    this.name = files.name;
    this.say(files.note, files.tone);
    this.rehearse.hidden = !this.form.view.rehearsal;
    this.#enable();
  }
  /**
   * @param {string} text
   * @param {string} [tone]
   */
  say(text, tone = "good") {
    write(this.note, text);
    this.note.dataset.tone = tone;
  }
  #enable() {
    const name = this.input.value.trim();
    this.save.disabled = !name;
    this.load.disabled = !this.saved.includes(name);
  }
  #typed() {
    this.#enable();
    this.#open(this.saved.filter((name) => name.includes(this.input.value)));
  }
  /** @param {string[]} names */
  #open(names) {
    const options = names.map((name) => [name, "", true]);
    this.list.show(options, this.input.value);
  }
  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (this.list.isOpen) this.list.move(event.key === "ArrowDown" ? 1 : -1);
      else this.#open(this.saved);
    } else if (event.key === "Escape") {
      this.list.close();
    } else if (event.key === "Enter" && !this.list.pick()) {
      this.list.close();
      if (!this.save.disabled) this.#send("save");
    }
  }
  /** @param {"save" | "load"} action */
  #send(action) {
    this.form.send(action, { name: this.input.value });
  }
  /** @param {string} head the cell's, with its options */
  async #putInCell(head) {
    const source = `${head}
`;
    if (putInNewCell(this.form, source)) return this.say("The options are in the cell below");
    const done = await copy(source);
    this.say(done ? "The options are copied: paste them into a new cell" : "Copy the options above into a new cell");
  }
};
function putInNewCell({ model, root }, source) {
  const notebook = model.widget_manager?.context?.model?.sharedModel;
  if (!notebook?.insertCell) return false;
  const key = model.get("key");
  const isOurs = (cell) => JSON.stringify(cell.toJSON().outputs ?? []).includes(key);
  const at = notebook.cells.findIndex(isOurs);
  if (at < 0) return false;
  const here = root.closest(".jp-Cell");
  const next = here?.nextElementSibling;
  notebook.insertCell(at + 1, { cell_type: "code", source });
  if (here) focusBelow(here, next, performance.now() + SHOWN_WITHIN_MS);
  return true;
}
function focusBelow(cell, next, until) {
  const added = cell.nextElementSibling;
  const editor = added === next ? null : added?.querySelector(".cm-content");
  if (editor instanceof HTMLElement) {
    editor.focus();
    const selection = window.getSelection();
    selection?.selectAllChildren(editor);
    selection?.collapseToEnd();
  } else if (performance.now() < until) {
    requestAnimationFrame(() => focusBelow(cell, next, until));
  }
}

// src/form/outbox.js
var AGAIN_MS = 2e3;
var AGAIN_AT_MOST_MS = 6e4;
var Outbox = class {
  /** @param {Model<FormState>} model */
  constructor(model) {
    this.model = model;
    this.page = Math.random().toString(36).slice(2);
    this.sent = 0;
    this.heard = 0;
    this.unheard = [];
    this.timer = void 0;
  }
  get isWaiting() {
    return this.heard < this.sent;
  }
  /**
   * Gives the number that the kernel answers with. Throws once the kernel has gone.
   * @param {object} content
   */
  send(content) {
    const message = { ...content, page: this.page, number: this.sent + 1 };
    this.model.send(message);
    this.sent += 1;
    this.unheard.push(message);
    if (this.unheard.length === 1) this.#later(AGAIN_MS);
    return this.sent;
  }
  /**
   * A page that connects again asks for the state of all widgets, and may get one that is older than
   * what it has: ask for the newest then, until it comes.
   * @param {[page: string, number: number]} answer
   */
  hear([page, number]) {
    if (page !== this.page || number === this.heard) return;
    if (number < this.heard) {
      const message = { do: "state", page, number: this.heard };
      this.model.send(message);
      this.unheard.unshift(message);
    }
    this.heard = number;
    this.unheard = this.unheard.filter((message) => message.number > number);
    clearTimeout(this.timer);
    if (this.unheard.length) this.#later(AGAIN_MS);
  }
  /** Nobody answers any more. */
  close() {
    clearTimeout(this.timer);
    this.unheard = [];
  }
  /** @param {number} milliseconds doubled each time: the kernel may stand behind a long cell */
  #later(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      try {
        for (const message of this.unheard) this.model.send(message);
      } catch {
        return this.close();
      }
      this.#later(Math.min(2 * milliseconds, AGAIN_AT_MOST_MS));
    }, milliseconds);
  }
};

// src/form/fields.js
var visits = 0;
var Field = class {
  /**
   * @param {Form} form
   * @param {FieldView} view
   */
  constructor(form, view) {
    this.form = form;
    this.view = view;
    this.path = view.path;
    this.typing = false;
    this.sent = 0;
    this.group = "";
    this.options = [];
    this.list = void 0;
    const id = uid("field");
    this.label = element("label", { for: id }, view.label);
    this.input = element("input", {
      id,
      type: "text",
      autocomplete: "off",
      spellcheck: "false",
      "data-path": view.path,
      placeholder: view.hint,
      oninput: () => this.typed(),
      onfocus: () => this.focused(),
      onblur: () => this.blurred(),
      onkeydown: (event) => this.pressed(event),
      ...OWN_KEYS
    });
    this.box = element("span", { class: "dn-box" }, this.input);
    this.node = element("div", { class: `dn-field dn-${view.name}` }, this.label, this.box);
    if (view.kind === "combo") this.list = this.#becomeCombobox();
    if (view.kind === "number") this.#becomeNumber();
  }
  #becomeCombobox() {
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"]]) {
      this.input.setAttribute(name, value);
    }
    const list = new OptionList(this.input, (value) => this.chosen(value));
    const open = () => list.show(this.options, this.input.value);
    this.input.addEventListener("click", open);
    this.box.append(
      element("span", {
        class: "dn-caret",
        "aria-hidden": "true",
        onmousedown: (event) => {
          event.preventDefault();
          this.input.focus();
          if (list.isOpen) list.close();
          else open();
        }
      })
    );
    return list;
  }
  #becomeNumber() {
    this.input.setAttribute("inputmode", "numeric");
    this.input.setAttribute("role", "spinbutton");
  }
  /** @param {FieldView} view */
  update(view) {
    this.view = view;
    this.options = this.form.options[this.path] ?? [];
    this.box.classList.toggle("dn-listed", Boolean(this.list && this.options.length));
    if (!this.typing && this.sent <= this.form.heard) this.show(view.text);
    if (view.kind === "number") this.input.setAttribute("aria-valuetext", view.text || view.hint || "none");
  }
  /** @param {string} text */
  show(text) {
    if (this.input.value !== text) this.input.value = text;
  }
  /**
   * Marks the field with what is wrong with it.
   * @param {string[]} ids of the sentences
   * @param {string | undefined} severity the worst
   */
  mark(ids2, severity) {
    this.box.dataset.severity = severity ?? "";
    if (ids2.length) this.input.setAttribute("aria-describedby", ids2.join(" "));
    else this.input.removeAttribute("aria-describedby");
    if (severity === "error") this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }
  focused() {
    visits += 1;
    this.group = `${this.form.outbox.page}:${visits}`;
    this.input.select();
  }
  blurred() {
    if (this.typing) this.form.left();
    this.typing = false;
    this.list?.close();
    if (this.sent <= this.form.heard) this.show(this.view.text);
  }
  /** A list that is open listens to the window. */
  gone() {
    this.list?.close();
  }
  typed() {
    this.typing = true;
    this.form.typed();
    this.sent = this.form.send("set", { path: this.path, text: this.input.value, group: this.group });
    if (!this.list) return;
    const found = matching(this.options, this.input.value);
    const settled = found.length === 1 && found[0][0].toLowerCase() === this.input.value.toLowerCase();
    if (settled || !found.length) this.list.close();
    else this.list.show(found, this.input.value);
  }
  /** @param {string} value */
  chosen(value) {
    this.typing = false;
    this.show(value);
    this.sent = this.form.send("choose", { path: this.path, text: value });
  }
  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (this.list) this.#pressedInCombobox(this.list, event);
    else if (this.view.kind === "number" && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      const now = Number.parseInt(this.input.value, 10) || 0;
      this.input.value = String(Math.max(0, now + (event.key === "ArrowUp" ? 1 : -1)));
      this.typed();
    }
  }
  /**
   * @param {OptionList} list
   * @param {KeyboardEvent} event
   */
  #pressedInCombobox(list, event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.isOpen) list.move(event.key === "ArrowDown" ? 1 : -1);
      else list.show(this.options, this.input.value);
    } else if (event.key === "Enter" && list.pick()) {
      event.preventDefault();
    } else if (event.key === "Escape" && list.isOpen) {
      event.preventDefault();
      list.close();
      this.form.typed();
    }
  }
};

// src/form/settings.js
var Places = class {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.name = uid("place");
    this.sent = 0;
    this.radios = /* @__PURE__ */ new Map();
    this.node = element("fieldset", { class: "dn-places" }, element("legend", {}, "Where"));
  }
  /** @param {FormView} view */
  update(view) {
    for (const [place, title] of view.places) {
      const radio = this.radios.get(place) ?? this.#added(place, title);
      if (this.sent <= this.form.heard) radio.checked = place === view.on;
    }
  }
  /**
   * @param {string} place
   * @param {string} title
   */
  #added(place, title) {
    const id = uid("place");
    const choose = () => {
      this.sent = this.form.send("set", { path: "on", text: place, group: "" });
    };
    const radio = element("input", { type: "radio", id, name: this.name, value: place, onchange: choose, ...OWN_KEYS });
    this.radios.set(place, radio);
    this.node.append(element("span", {}, radio, element("label", { for: id }, title)));
    return radio;
  }
};
var Settings = class {
  /** @param {Form} form */
  constructor(form) {
    this.folded = new FoldedFields(form, "More options", "Fewer options", () => this.update(form.view));
    this.notes = new Notes(form);
    const { grid, extras, more } = this.folded;
    this.node = element("div", { class: "dn-part" }, grid, extras, more, this.notes.node);
  }
  get fields() {
    return this.folded.fields;
  }
  /** @param {FormView} view */
  update(view) {
    this.folded.update(view.settings, view);
    this.notes.update(view, [...this.fields.values()], (path) => this.fields.has(path));
  }
};
var FoldedFields = class {
  /**
   * @param {Form} form
   * @param {string} unfold what the button says
   * @param {string} fold
   * @param {() => void} toggled draws all that is folded
   */
  constructor(form, unfold, fold, toggled) {
    this.form = form;
    this.words = [unfold, fold];
    this.fields = /* @__PURE__ */ new Map();
    this.isOpen = false;
    this.grid = element("div", { class: "dn-settings" });
    this.extras = element("div", { class: "dn-settings", id: uid("extras") });
    const toggle = () => {
      this.isOpen = !this.isOpen;
      toggled();
    };
    this.more = button(unfold, toggle, { class: "dn-button dn-plain dn-more", "aria-controls": this.extras.id });
  }
  /**
   * @param {FieldView[]} fields
   * @param {FormView} view
   */
  update(fields, { findings }) {
    const nodes = fieldsOf(this.form, this.fields, fields);
    const isAbout = (wanted) => findings.some(({ places }) => places.some(([path]) => path === wanted));
    const shown = fields.map(({ extra, text, path }) => !extra || this.isOpen || text || isAbout(path));
    arrange(this.grid, nodes.filter((_, place) => !fields[place].extra));
    arrange(this.extras, nodes.filter((_, place) => fields[place].extra && shown[place]));
    this.more.hidden = !fields.some(({ extra }) => extra);
    this.more.setAttribute("aria-expanded", String(this.isOpen));
    write(this.more, this.words[Number(this.isOpen)]);
  }
};
function fieldsOf(form, fields, views) {
  return keyed(fields, views, ({ path }) => path, (view) => new Field(form, view), (field, view) => field.update(view));
}

// src/form/pools.js
var WIDTHS = {
  replicas: "76px",
  machine: "minmax(0, 2fr)",
  accelerator_count: "66px",
  accelerator: "minmax(0, 1.25fr)",
  disk_type: "minmax(0, 1.1fr)",
  disk_gb: "66px"
};
var ROLE_WIDTH = "152px";
var ACTIONS_WIDTH = "72px";
var Pool = class {
  /**
   * @param {Form} form
   * @param {PoolView} view
   */
  constructor(form, { role, title }) {
    this.form = form;
    this.role = role;
    this.fields = /* @__PURE__ */ new Map();
    this.title = element("span", { class: "dn-role", id: uid("role") }, title);
    this.row = element("div", { class: "dn-row" });
    this.extras = element("div", { class: "dn-settings dn-extras" });
    this.notes = new Notes(form);
    this.size = button("Auto", () => form.send("size", {}), {
      class: "dn-button",
      title: "Use as many reducers as the workers' bandwidth needs",
      "aria-label": "Size the Reduction Server for the workers"
    });
    this.remove = button("✕", () => this.#removed(), {
      class: "dn-button dn-plain dn-remove",
      "aria-label": `Remove: ${title}`,
      title: `Remove: ${title}`
    });
    this.actions = element("span", { class: "dn-actions" }, this.size, this.remove);
    this.node = element(
      "div",
      { class: `dn-pool dn-${role}`, role: "group", "aria-labelledby": this.title.id, "data-role": role },
      this.row,
      this.extras,
      this.notes.node
    );
  }
  #removed() {
    this.form.focusSoon(`+${this.role}`);
    this.form.send("remove", { role: this.role });
  }
  gone() {
    for (const field of this.fields.values()) field.gone();
  }
  /**
   * @param {PoolView} pool
   * @param {FormView} view
   */
  update(pool, view) {
    const nodes = fieldsOf(this.form, this.fields, [...pool.fields, ...pool.extras]);
    this.size.hidden = !pool.sizable;
    this.remove.hidden = !pool.removable;
    arrange(this.row, [this.title, ...nodes.slice(0, pool.fields.length), this.actions]);
    arrange(this.extras, nodes.slice(pool.fields.length));
    const isHere = (path) => path.split(".")[0] === pool.role;
    this.notes.update(view, [...this.fields.values()], isHere);
  }
};
var Pools = class {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.pools = /* @__PURE__ */ new Map();
    this.adders = /* @__PURE__ */ new Map();
    this.head = element("div", { class: "dn-row dn-heads", "aria-hidden": "true" });
    this.list = element("div", { class: "dn-pools" });
    this.add = element("div", { class: "dn-add" });
    this.node = element("div", { class: "dn-part" }, this.list, this.add);
  }
  /** @param {FormView} view */
  update(view) {
    const widths = view.columns.map(([name]) => WIDTHS[name]);
    const fields = widths.length > 1 ? widths : [...widths, "1fr", ACTIONS_WIDTH];
    this.node.style.setProperty("--dn-columns", [ROLE_WIDTH, ...widths, ACTIONS_WIDTH].join(" "));
    this.node.style.setProperty("--dn-fields", fields.join(" "));
    this.head.replaceChildren(element("span"), ...view.columns.map(([, label]) => element("span", {}, label)));
    const rows2 = keyed(
      this.pools,
      view.pools,
      ({ role }) => role,
      (pool) => new Pool(this.form, pool),
      (part, pool) => part.update(pool, view)
    );
    arrange(this.list, rows2.length ? [this.head, ...rows2] : []);
    arrange(this.add, keyed(this.adders, view.addable, ([role]) => role, (role) => ({ node: this.#adder(role) })));
  }
  /** @param {[role: string, title: string]} role */
  #adder([role, title]) {
    const add = () => {
      this.form.focusSoon(`${role}.machine`, `${role}.replicas`);
      this.form.send("add", { role });
    };
    return button(`+ ${title}`, add, { class: "dn-button dn-adder", "data-path": `+${role}` });
  }
};

// src/form/preview.js
var IMPORT = ["import", "Paste…", ""];
var PASTED = "A config.yaml, workerPoolSpecs in JSON or YAML, a gcloud command, a SageMaker estimator or request, or a %%distrain line";
var SAID_MS2 = 1500;
var Preview = class {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.tabs = /* @__PURE__ */ new Map();
    this.current = "";
    this.shown = "";
    this.list = element("div", {
      class: "dn-tabs",
      role: "tablist",
      "aria-label": "This layout in other formats",
      onkeydown: (event) => this.#pressed(event)
    });
    this.code = element("pre", { class: "dn-code", tabindex: "0", ...OWN_KEYS });
    this.copy = button("Copy", () => this.#copied(), { class: "dn-button dn-copy" });
    this.lost = element("p", { class: "dn-lost" });
    this.text = element("textarea", { id: uid("paste"), rows: "7", spellcheck: "false", "data-own-undo": true, ...OWN_KEYS });
    this.paste = element(
      "div",
      { class: "dn-paste" },
      element("label", { for: this.text.id }, PASTED),
      this.text,
      button("Read it", () => form.send("paste", { text: this.text.value }), { class: "dn-button" })
    );
    this.panel = element("div", { class: "dn-panel-of-tab", role: "tabpanel", id: uid("panel") });
    this.node = element("div", { class: "dn-part dn-preview" }, this.list, this.panel);
  }
  /** @param {FormView} view */
  update(view) {
    const forms = [...view.exports, IMPORT];
    const wanted = this.form.model.get("tab");
    const shown = forms.find(([name]) => name === wanted) ?? forms[0];
    const [current, , text, lost = ""] = shown;
    this.current = current;
    const tabs = keyed(
      this.tabs,
      forms,
      ([name]) => name,
      ([name, title]) => ({ node: this.#tab(name, title) }),
      ({ node }, [name]) => this.#turn(node, name)
    );
    arrange(this.list, tabs);
    this.panel.setAttribute("aria-labelledby", tabs[forms.indexOf(shown)].id);
    arrange(this.panel, shown === IMPORT ? [this.paste] : [this.code, this.copy, ...lost ? [this.lost] : []]);
    write(this.lost, lost);
    this.shown = text;
    write(this.code, text);
  }
  /**
   * @param {string} name
   * @param {string} title
   */
  #tab(name, title) {
    return button(title, () => this.#go(name), { role: "tab", id: uid("tab"), "data-tab": name, "aria-controls": this.panel.id });
  }
  /**
   * @param {HTMLElement} tab
   * @param {string} name
   */
  #turn(tab, name) {
    const isCurrent = name === this.current;
    tab.setAttribute("aria-selected", String(isCurrent));
    tab.tabIndex = isCurrent ? 0 : -1;
  }
  /** @param {string} name */
  #go(name) {
    this.form.model.set("tab", name);
    this.form.model.save_changes();
    this.update(this.form.view);
    this.tabs.get(name)?.node.focus();
  }
  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const names = [...this.tabs.keys()];
    const at = names.indexOf(this.current);
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 };
    const to = moves[event.key];
    if (to === void 0) return;
    event.preventDefault();
    this.#go(names[(to + names.length) % names.length]);
  }
  async #copied() {
    const done = await copy(this.shown);
    write(this.copy, done ? "Copied ✓" : "Not allowed here");
    setTimeout(() => write(this.copy, "Copy"), SAID_MS2);
  }
};

// src/form/tuning.js
var TUNING = "tuning";
var Row = class {
  /**
   * @param {Form} form
   * @param {number} number from 0
   * @param {{ what: string, remove: string, style: string }} kind what it is called, and the message
   */
  constructor(form, number, { what, remove, style }) {
    this.form = form;
    this.fields = /* @__PURE__ */ new Map();
    const name = `${what} ${number + 1}`;
    const title = `Remove ${name[0].toLowerCase()}${name.slice(1)}`;
    this.remove = button("✕", () => form.send(remove, { row: number }), {
      class: "dn-button dn-plain dn-remove",
      "aria-label": title,
      title
    });
    this.actions = element("span", { class: "dn-actions" }, this.remove);
    this.node = element("div", { class: `dn-row ${style}`, role: "group", "aria-label": name });
  }
  gone() {
    for (const field of this.fields.values()) field.gone();
  }
  /** @param {FieldView[]} views */
  update(views) {
    arrange(this.node, [...fieldsOf(this.form, this.fields, views), this.actions]);
  }
};
var PARAMETER = { what: "Parameter", remove: "untune", style: "dn-tuned" };
var INITIAL = { what: "Initial trial", remove: "unbegin", style: "dn-tuned dn-begun" };
var Rows = class {
  /**
   * @param {Form} form
   * @param {{ what: string, remove: string, style: string }} kind
   */
  constructor(form, kind) {
    this.form = form;
    this.kind = kind;
    this.rows = /* @__PURE__ */ new Map();
    this.node = element("div", { class: "dn-pools" });
  }
  get fields() {
    return [...this.rows.values()].flatMap(({ fields }) => [...fields.values()]);
  }
  /** @param {FieldView[][]} rows */
  update(rows2) {
    const numbered = rows2.map((views, number) => ({ views, number }));
    arrange(this.node, keyed(
      this.rows,
      numbered,
      ({ number }) => String(number),
      ({ number }) => new Row(this.form, number, this.kind),
      (row, { views }) => row.update(views)
    ));
  }
};
var Tuning = class {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.parameters = new Rows(form, PARAMETER);
    this.initial = new Rows(form, INITIAL);
    this.settings = new FoldedFields(form, "Advanced options", "Fewer options", () => this.update(form.view));
    this.notes = new Notes(form);
    const { grid, extras, more } = this.settings;
    const added = (words, clicked) => element("div", { class: "dn-add" }, button(words, clicked, { class: "dn-button dn-adder" }));
    this.begin = added("+ Initial trial", () => this.#begun());
    const add = added("+ Parameter to tune", () => this.#added());
    this.node = element(
      "div",
      { class: "dn-part dn-tuning" },
      this.parameters.node,
      grid,
      more,
      extras,
      this.initial.node,
      this.begin,
      this.notes.node,
      add
    );
  }
  #added() {
    this.form.focusSoon(`${TUNING}.${this.parameters.rows.size}.name`);
    this.form.send("tune", {});
  }
  #begun() {
    this.form.focusSoon(`${TUNING}.initial.${this.initial.rows.size}`);
    this.form.send("begin", {});
  }
  get fields() {
    return [...this.parameters.fields, ...this.settings.fields.values(), ...this.initial.fields];
  }
  /** @param {FormView} view */
  update(view) {
    const { rows: rows2, settings, initial } = view.tuning;
    this.parameters.update(rows2);
    this.settings.update(settings, view);
    this.initial.update(initial.map((field) => [field]));
    this.begin.hidden = !(rows2.length && (this.settings.isOpen || initial.length));
    this.notes.update(view, this.fields, (path) => path.split(".")[0] === TUNING);
  }
};

// src/form/form.js
var ANSWERED_WITHIN_MS = 400;
var RESTS_AFTER_MS = 800;
var CLICKED_WITHIN_MS = 250;
var Form = class {
  /**
   * @param {Model<FormState>} model
   * @param {HTMLElement} root
   */
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.view = model.get("view");
    this.options = model.get("options");
    this.outbox = new Outbox(model);
    this.waiting = void 0;
    this.holding = void 0;
    this.focusing = [];
    this.undo = button("↶", () => this.back("undo"), { class: "dn-button dn-plain", "aria-label": "Undo", title: "Undo (Ctrl+Z)" });
    this.redo = button("↷", () => this.back("redo"), { class: "dn-button dn-plain", "aria-label": "Redo", title: "Redo (Ctrl+Shift+Z)" });
    this.settings = new Settings(this);
    this.pools = new Pools(this);
    this.tuning = new Tuning(this);
    this.files = new Files(this);
    const places = new Places(this);
    const middle = [new Totals(), new Picture(), new Verdict(this), new Cost(this), new Traffic(this)];
    const preview = new Preview(this);
    this.parts = [places, this.settings, this.pools, this.tuning, ...middle, preview];
    this.ended = new Ended();
    root.append(
      this.ended.node,
      element("div", { class: "dn-part dn-top" }, places.node, element("span", { class: "dn-back" }, this.undo, this.redo)),
      this.settings.node,
      this.pools.node,
      this.tuning.node,
      element("div", { class: "dn-part dn-middle" }, ...middle.map((part) => part.node)),
      preview.node,
      this.files.node
    );
  }
  get isWaiting() {
    return this.outbox.isWaiting;
  }
  get heard() {
    return this.outbox.heard;
  }
  /**
   * Tell the kernel what the user does. Gives the number that it answers with.
   * @param {string} what
   * @param {object} rest
   */
  send(what, rest) {
    if (!this.ended.node.hidden) return this.outbox.sent;
    try {
      this.outbox.send({ do: what, ...rest });
    } catch {
      this.setLive(false);
      return this.outbox.sent;
    }
    clearTimeout(this.waiting);
    const show = () => this.root.toggleAttribute("data-waiting", this.isWaiting);
    this.waiting = setTimeout(show, ANSWERED_WITHIN_MS);
    return this.outbox.sent;
  }
  /**
   * Without a kernel nobody decides: show the layout as it was known last, and how to go on. A kernel
   * may be found again, as by a page that is loaded while it connects.
   * @param {boolean} isLive
   */
  setLive(isLive2) {
    if (isLive2 === this.ended.node.hidden) return;
    this.settle();
    clearTimeout(this.waiting);
    if (!isLive2) this.outbox.close();
    this.root.removeAttribute("data-waiting");
    this.ended.show(!isLive2, this.model.get("view").again ?? "");
    for (const node of this.root.children) node.toggleAttribute("inert", !isLive2 && node !== this.ended.node);
    this.draw();
  }
  /** @param {"undo" | "redo"} what */
  back(what) {
    this.settle();
    this.send(what, {});
  }
  get fields() {
    const rows2 = [this.settings, ...this.pools.pools.values()].flatMap(({ fields }) => [...fields.values()]);
    return [...rows2, ...this.tuning.fields];
  }
  /** Let every field show what the kernel says, also the one that is being typed in. */
  settle() {
    for (const field of this.fields) field.typing = false;
  }
  /** Nobody is told that half a word is wrong, or what a list is being searched for. */
  typed() {
    this.#hold(RESTS_AFTER_MS);
  }
  /** What comes into sight must not move what is just being clicked on. */
  left() {
    this.#hold(CLICKED_WITHIN_MS);
  }
  /** @param {number} milliseconds */
  #hold(milliseconds) {
    clearTimeout(this.holding);
    this.holding = setTimeout(() => {
      this.holding = void 0;
      this.draw();
    }, milliseconds);
  }
  /**
   * The view with the findings as they were and no verdict, while there are new ones and the user is busy.
   * @param {FormView} view
   */
  #calm(view) {
    const isChoosing = this.fields.some(({ typing, list }) => typing && list?.isOpen);
    if (this.holding === void 0 && !isChoosing && !this.isWaiting) return view;
    const known = new Set(this.view.findings.map(keyOf));
    if (view.findings.every((finding) => known.has(keyOf(finding)))) return view;
    return { ...view, findings: this.view.findings, verdict: NOT_CHECKED };
  }
  draw() {
    this.outbox.hear(this.model.get("heard"));
    this.view = this.#calm(this.model.get("view"));
    this.options = this.model.get("options");
    const hadFocus = this.root.contains(document.activeElement);
    for (const part of this.parts) part.update(this.view);
    this.files.update(this.model.get("files"));
    this.undo.disabled = !this.view.undo;
    this.redo.disabled = !this.view.redo;
    if (!this.isWaiting) this.#settled();
    if (hadFocus) this.#keepFocus();
  }
  /** What had the focus may be gone or disabled; the keys that undo it have to work all the same. */
  #keepFocus() {
    const focused = document.activeElement;
    const isDisabled = focused instanceof HTMLButtonElement && focused.disabled;
    if (!this.root.contains(focused) || isDisabled) this.root.focus({ preventScroll: true });
  }
  #settled() {
    clearTimeout(this.waiting);
    this.root.removeAttribute("data-waiting");
    this.focus(...this.focusing.splice(0));
  }
  /**
   * The first of these places that is there gets the focus once the kernel has answered.
   * @param {...string} paths
   */
  focusSoon(...paths) {
    this.settle();
    this.focusing = paths;
  }
  /** @param {...string} paths */
  focus(...paths) {
    const find = (selector) => (
      /** @type {HTMLElement | null} */
      this.root.querySelector(selector)
    );
    for (const path of paths.map((path2) => CSS.escape(path2))) {
      const node = find(`[data-path="${path}"]`) ?? find(`[data-role="${path}"] input`);
      if (node) return node.focus();
    }
  }
  /**
   * Keys that mean the whole form.
   * @param {KeyboardEvent} event
   */
  pressed(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase();
    const hasOwnUndo = (
      /** @type {Element} */
      event.target.closest("[data-own-undo]")
    );
    if (key === "s") {
      event.preventDefault();
      if (this.files.save.disabled) this.files.input.focus();
      else this.files.save.click();
    } else if ((key === "z" || key === "y") && !hasOwnUndo) {
      event.preventDefault();
      this.back(key === "y" || event.shiftKey ? "redo" : "undo");
    }
  }
};

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
function taken(key) {
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
  const view = own ?? unpark(key) ?? taken(key) ?? open(model);
  const kept = moveAfter(place, view.root);
  Promise.resolve(view.ready?.(kept)).then(() => {
    for (const part of still) part.remove();
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

// src/form.js
var LEFT_MS = 300;
var TRAITS = ["view", "options", "files", "heard"];
function openForm(model) {
  const root = element("section", { class: `distrain dn-form ${LITERAL}`, "aria-label": "Job layout", tabindex: "-1", ...OWN_KEYS });
  const form = new Form(model, root);
  root.addEventListener("keydown", (event) => form.pressed(event));
  let isDue = false;
  const draw = () => {
    isDue = false;
    form.draw();
  };
  const react = () => {
    if (!isDue) queueMicrotask(draw);
    isDue = true;
  };
  const look = async () => {
    form.setLive(await isLive(model));
  };
  const keeper = new Keeper(model, root, () => form.setLive(false));
  for (const name of TRAITS) model.on(`change:${name}`, react);
  model.on("comm_live_update", look);
  form.draw();
  look();
  const end = () => {
    keeper.close();
    form.outbox.close();
    for (const name of TRAITS) model.off(`change:${name}`, react);
    model.off("comm_live_update", look);
  };
  return { root, moved: keepFocus(root), end };
}
var Keeper = class {
  /**
   * @param {Model<FormState>} model
   * @param {HTMLElement} root
   * @param {() => void} gone called once the kernel has gone
   */
  constructor(model, root, gone) {
    this.model = model;
    this.root = root;
    this.gone = gone;
    this.timer = void 0;
    if (!document.querySelector("script#jupyter-config-data")) return;
    root.addEventListener("focusout", () => this.later());
    this.later();
  }
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.keep(), LEFT_MS);
  }
  keep() {
    const focused = document.activeElement;
    if (this.root.contains(focused)) return;
    if (focused === document.body) return void this.later();
    try {
      this.model.send({ do: "keep" });
    } catch {
      this.gone();
    }
  }
  close() {
    clearTimeout(this.timer);
  }
};
async function isLive(model) {
  try {
    const own = await model.widget_manager.get_model(model.get("key"));
    return own.comm_live !== false;
  } catch {
    return true;
  }
}
var render = (widget) => stand(widget, openForm);
var form_default = { initialize: standsWhereMarked(openForm), render };
export {
  form_default as default
};
