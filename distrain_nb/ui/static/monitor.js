// The live view of a run: state line, log of all ranks, Stop.
//
// The kernel keeps the trait `facts` current and sends the log as batches in the trait `batch`. Whatever moves
// with time, filters or scrolls is done here, so that it works while the kernel computes.

const ROW = 18;
const KEPT = 10000;
const COLOURS = 8;
const SIGNS = { queued: "◌", starting: "◐", running: "●", stopping: "◑", succeeded: "✓", failed: "✕", cancelled: "■" };
const ANSI = /\x1b\[([0-9;]*)m|\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g;
const ANSI_COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

function element(tag, className, text, attributes = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function duration(seconds) {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  const whole = Math.floor(seconds);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

// ---- ANSI colours --------------------------------------------------------------------------

function styleAfter(style, codes) {
  const numbers = codes.split(";").map((code) => Number(code || 0));
  if (numbers[0] === 38 || numbers[0] === 48) return style;
  for (const code of numbers) {
    if (code === 0) style = [];
    else if (code <= 4) style = [...style, ["bold", "dim", "italic", "underline"][code - 1]];
    else if (code === 22) style = style.filter((name) => name !== "bold" && name !== "dim");
    else if (code === 23 || code === 24) style = style.filter((name) => name !== ["italic", "underline"][code - 23]);
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97) || code === 39) {
      style = style.filter((name) => !name.startsWith("ansi-"));
      if (code !== 39) style.push(`ansi-${ANSI_COLOURS[code % 10]}`);
    }
  }
  return style;
}

function appendAnsi(parent, text) {
  if (!text.includes("\x1b")) return parent.append(text);
  let style = [];
  let at = 0;
  const add = (part) => part && parent.append(style.length ? element("span", style.join(" "), part) : part);
  for (const escape of text.matchAll(ANSI)) {
    add(text.slice(at, escape.index));
    at = escape.index + escape[0].length;
    if (escape[1] !== undefined) style = styleAfter(style, escape[1]);
  }
  add(text.slice(at));
}

// ---- State line ----------------------------------------------------------------------------

function stateLine(root, model, stop) {
  const head = element("div", "dn-head", undefined, { role: "status", "aria-live": "off" });
  const badge = element("span", "dn-badge");
  const sign = element("span", "dn-sign", "", { "aria-hidden": "true" });
  const word = element("span");
  badge.append(sign, word);
  const time = element("span", "dn-time", "", { "aria-label": "elapsed" });
  const name = element("span", "dn-name");
  const where = element("span", "dn-soft");
  const steps = element("span", "dn-steps", undefined, { "aria-label": "phases" });
  head.append(badge, time, name, where, steps, stop);
  const said = element("span", "", "", { "aria-live": "polite", style: "position:absolute;clip-path:inset(50%)" });
  root.append(head, said);
  let skew = 0;

  function tick() {
    const facts = model.get("facts");
    if (!facts.state) return;
    const now = Date.now() / 1000 - skew;
    time.textContent = duration((facts.end ?? now) - facts.begin);
    facts.steps.forEach((step, place) => {
      const last = place === facts.steps.length - 1;
      const span = steps.children[place] ?? steps.appendChild(element("span"));
      const seconds = step.begin === null || step.begin === step.end ? "" : ` ${duration((step.end ?? now) - step.begin)}`;
      span.textContent = `${step.label}${seconds}`;
      span.className = last ? "dn-now" : "";
      if (last) span.setAttribute("aria-current", "step"); else span.removeAttribute("aria-current");
    });
    while (steps.children.length > facts.steps.length) steps.lastChild.remove();
  }

  function change() {
    const facts = model.get("facts");
    if (!facts.state) return;
    skew = Date.now() / 1000 - facts.now;
    if (Math.abs(skew) < 2) skew = 0;
    root.dataset.state = facts.state;
    root.toggleAttribute("data-live", !facts.final);
    sign.textContent = SIGNS[facts.state];
    const phase = facts.phase && facts.phase !== facts.state ? ` · ${facts.phase}` : "";
    if (word.textContent !== facts.state + phase) said.textContent = `run ${facts.id} is ${facts.state}`;
    word.textContent = facts.state + phase;
    name.textContent = `${facts.name} #${facts.id}`;
    where.textContent = [facts.where, facts.size].filter(Boolean).join(" · ");
    tick();
  }
  model.on("change:facts", change);
  change();
  const clock = setInterval(tick, 100);
  return () => { clearInterval(clock); model.off("change:facts", change); };
}

// ---- Stop ----------------------------------------------------------------------------------

function pageConfig() {
  const config = document.getElementById("jupyter-config-data");
  return config ? JSON.parse(config.textContent) : null;
}

// A cell that waits for its run keeps the kernel from hearing the widget: interrupting the cell
// is what cancels such a run, and the server does that whatever the kernel is doing.
async function interrupt(kernel) {
  const config = pageConfig();
  if (!config || !kernel) return;
  const base = config.baseUrl.endsWith("/") ? config.baseUrl : `${config.baseUrl}/`;
  const cookie = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/);
  const headers = {};
  if (cookie) headers["X-XSRFToken"] = cookie[1];
  if (config.token) headers.Authorization = `token ${config.token}`;
  await fetch(`${base}api/kernels/${kernel}/interrupt`, { method: "POST", headers });
}

function stopButton(model) {
  const button = element("button", "dn-stop", "Stop", { type: "button", title: "Stop this run" });
  const change = () => { button.hidden = model.get("facts").final !== false; };
  button.addEventListener("click", () => {
    button.disabled = true;
    button.textContent = "Stopping…";
    model.send({ kind: "stop" });
    if (model.get("waiting")) interrupt(model.get("kernel"));
  });
  model.on("change:facts", change);
  change();
  return [button, () => model.off("change:facts", change)];
}

// ---- Error and note ------------------------------------------------------------------------

function report(root, model) {
  const note = element("div", "dn-note", "", { role: "note" });
  const error = element("div", "", undefined, { role: "alert" });
  root.append(note, error);
  const change = () => {
    note.textContent = model.get("facts").note ?? "";
    note.style.display = note.textContent ? "" : "none";
    error.innerHTML = model.get("error_html");
  };
  model.on("change:facts change:error_html", change);
  change();
  return () => model.off("change:facts change:error_html", change);
}

// ---- Log -----------------------------------------------------------------------------------

class Log {
  constructor(root, model) {
    this.model = model;
    this.lines = [];      // {process, stream, text}
    this.first = 0;       // number of lines[0] in the whole log
    this.total = 0;
    this.shown = [];      // indexes into `lines` of those that pass the filter
    this.only = null;     // the process to show, or all
    this.bars = [];
    this.follow = true;
    this.bar = element("div", "dn-bar", undefined, { role: "toolbar", "aria-label": "log filter" });
    this.count = element("span", "dn-soft");
    this.frame = element("div", "dn-frame");
    this.view = element("div", "dn-log", undefined, { role: "log", tabindex: "0", "aria-label": "log of all ranks", "aria-live": "off" });
    this.rows = element("div", "dn-rows");
    this.latest = element("button", "dn-latest", "↓ Latest", { type: "button", hidden: "" });
    this.moving = element("div", "dn-bars", undefined, { "aria-label": "progress" });
    this.view.append(this.rows);
    this.frame.append(this.view, this.latest);
    root.append(this.bar, this.frame, this.moving);
    this.view.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.latest.addEventListener("click", () => { this.follow = true; this.draw(); });
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.view);
    this.labels();
  }

  labels() {
    const labels = this.model.get("facts").labels ?? {};
    const key = JSON.stringify(labels);
    if (key === this.labelled) return;
    this.labelled = key;
    const longest = Math.max(4, ...Object.values(labels).map((label) => label.length));
    this.frame.parentElement.style.setProperty("--dn-tags", `${Math.min(24, longest + 1)}ch`);
    const many = Object.keys(labels).length > 10;
    this.bar.replaceChildren(...(many ? [this.menu(labels)] : this.chips(labels)), this.count);
    this.draw();
  }

  chips(labels) {
    const one = Object.keys(labels).length < 2;
    const entries = one ? [] : [[null, "all"], ...Object.entries(labels).map(([n, label]) => [Number(n), label])];
    const chips = entries.map(([process, label]) => {
      const colour = process === null ? "" : ` dn-p${process % COLOURS}`;
      const chip = element("button", `dn-chip${colour}`, label, { type: "button", "aria-pressed": String(process === this.only) });
      chip.addEventListener("click", () => {
        for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
        this.filter(process);
      });
      return chip;
    });
    return one ? [element("span", "", "log")] : chips;
  }

  menu(labels) {
    const menu = element("select", "", undefined, { "aria-label": "show the lines of" });
    menu.append(new Option("all", ""), ...Object.entries(labels).map(([n, label]) => new Option(label, n)));
    menu.addEventListener("change", () => this.filter(menu.value === "" ? null : Number(menu.value)));
    return menu;
  }

  filter(process) {
    this.only = process;
    this.follow = true;
    this.refilter();
    this.draw();
  }

  refilter() {
    this.shown = [];
    this.lines.forEach((line, index) => { if (this.passes(line)) this.shown.push(index); });
  }

  passes(line) {
    return this.only === null || line.process === this.only || line.process === null;
  }

  take(message, bytes) {
    const known = this.first + this.lines.length;
    let lines = parse(bytes);
    if (message.whole && (message.first > known || message.total < known)) this.forget(message.first);
    const have = this.first + this.lines.length;
    if (message.first > have) this.add({ process: null, text: `… ${(message.first - have).toLocaleString()} lines not shown here` }, message.first - have);
    lines = lines.slice(Math.max(0, have - message.first));
    for (const line of lines) this.add(line, 1);
    this.total = message.total;
    this.bars = message.bars;
    if (this.lines.length > KEPT + 1000) {
      this.first += this.lines.length - KEPT;
      this.lines.splice(0, this.lines.length - KEPT);
      this.refilter();
    }
    this.draw();
  }

  forget(first) {
    this.lines = [];
    this.shown = [];
    this.first = first;
  }

  // `stands` is for how many lines of the log this one row stands: 1, or the size of a gap.
  add(line, stands) {
    this.first += stands - 1;
    this.lines.push(line);
    if (this.passes(line)) this.shown.push(this.lines.length - 1);
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.view;
    this.follow = scrollTop + clientHeight >= scrollHeight - ROW;
    this.draw();
  }

  draw() {
    if (this.scheduled) return;
    this.scheduled = requestAnimationFrame(() => { this.scheduled = 0; this.paint(); });
  }

  paint() {
    const height = this.shown.length * ROW;
    this.rows.style.height = `${height}px`;
    this.view.style.display = height ? "" : "none";
    if (this.follow) this.view.scrollTop = height;
    const from = Math.max(0, Math.floor(this.view.scrollTop / ROW) - 4);
    const to = Math.min(this.shown.length, from + Math.ceil(this.view.clientHeight / ROW) + 8);
    const rows = [];
    for (let place = from; place < to; place++) {
      const row = this.row(this.lines[this.shown[place]]);
      row.style.top = `${place * ROW}px`;
      rows.push(row);
    }
    this.rows.replaceChildren(...rows);
    const bars = this.bars.filter((line) => this.passes(line));
    this.moving.replaceChildren(...bars.map((line) => this.row(line)));
    this.latest.hidden = this.follow;
    this.count.textContent = this.total ? `${this.total.toLocaleString()} line${this.total === 1 ? "" : "s"}` : "no output yet";
  }

  row(line) {
    if (line.process === null) return element("div", "dn-line dn-gap", line.text);
    const row = element("div", `dn-line dn-${line.stream} dn-p${line.process % COLOURS}`);
    const label = this.model.get("facts").labels?.[line.process] ?? String(line.process);
    const stream = line.stream === "e" ? `${label}, stderr` : label;
    row.append(element("span", "dn-tag", label, { title: stream }));
    const text = element("span");
    appendAnsi(text, line.text);
    row.append(text);
    return row;
  }

  close() {
    cancelAnimationFrame(this.scheduled);
    this.resized.disconnect();
  }
}

function parse(bytes) {
  const text = new TextDecoder().decode(bytes);
  return text.split("\n").slice(0, -1).map((record) => {
    const [process, stream, , ...rest] = record.split("\t");
    return { process: Number(process), stream, text: rest.join("\t") };
  });
}

// Batches are numbered. One that is `whole` has all lines that the kernel keeps, so that a view
// that has missed some, or has just come, is put right even when the kernel can't be asked.
function follow(log, model) {
  let next = null;
  const receive = () => {
    const batch = model.get("batch");
    if (batch.seq === undefined || batch.seq === next - 1) return;
    if (!batch.whole && batch.seq !== next) {
      model.send({ kind: "resync" });
      return;
    }
    next = batch.seq + 1;
    log.take(batch, batch.lines);
  };
  const labels = () => log.labels();
  model.on("change:batch", receive);
  model.on("change:facts", labels);
  receive();
  if (next === null) model.send({ kind: "resync" });
  return () => { model.off("change:batch", receive); model.off("change:facts", labels); log.close(); };
}

// What stands for the charts until plotly has arrived in the page.
function sketch(root, model) {
  const place = element("div");
  root.append(place);
  const change = () => { place.innerHTML = model.get("sketch"); };
  model.on("change:sketch", change);
  change();
  const clock = setInterval(() => {
    const output = root.closest(".jp-OutputArea-output, .output_area, .cell-output");
    place.hidden = Boolean(output?.querySelector(".js-plotly-plot .main-svg"));
  }, 200);
  return () => { clearInterval(clock); model.off("change:sketch", change); };
}

// Plotly measures its place once, before it has its width: tell it when that has changed.
function fitCharts(root) {
  let tried = "";
  const fit = () => {
    const plots = root.closest(".jp-OutputArea-output, .output_area, body").querySelectorAll(".js-plotly-plot");
    for (const plot of plots) {
      const drawn = plot.querySelector(".main-svg")?.clientWidth ?? 0;
      const attempt = `${drawn} in ${plot.clientWidth}`;
      if (drawn && Math.abs(drawn - plot.clientWidth) > 2 && attempt !== tried) {
        tried = attempt;
        window.dispatchEvent(new Event("resize"));
      }
    }
  };
  const clock = setInterval(fit, 400);
  return () => clearInterval(clock);
}

function render({ model, el }) {
  const root = element("section", "distrain", undefined, { role: "region", "aria-label": `run ${model.get("facts").id ?? ""}` });
  el.append(root);
  const [stop, stopOver] = stopButton(model);
  const ends = [stateLine(root, model, stop), report(root, model), stopOver];
  ends.push(follow(new Log(root, model), model), sketch(root, model), fitCharts(root));
  return () => { for (const end of ends) end(); };
}

export default { render };
