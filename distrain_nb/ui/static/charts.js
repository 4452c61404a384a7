// Charts of a run: one figure for all metrics, and the tools above it.

const NARROW = 560;
const WIDE = 900;
const FINE_POINTS = 1000;
const SMOOTH_POINTS = 500;
const POINTS_AT_ONCE = 100000;
const AGAIN_MS = 2000;
const SETTLED_MS = 150;
const X_AXES = [["step", "x: step"], ["relative", "x: seconds since the start"], ["wall", "x: time of day"]];
const Y_AXES = [["linear", "y: linear"], ["log", "y: logarithmic"]];

class Charts {
  constructor(model, root, source, code) {
    this.model = model;
    this.source = source;
    this.smoothing = 0;
    this.mode = "step";
    this.scale = "linear";
    this.hidden = new Set();  // groups of the legend
    this.fine = new Map();    // the number of a subplot -> {lines by number, smooth by number, at}
    this.smooth = null;       // {weight, lines by number}: averaged over all points there are
    this.averagedAt = 0;
    this.note = element("span", "dn-chart-note", "", { role: "status" });
    this.figure = element("div", "dn-figure");
    const tools = this.tools();
    root.append(tools, this.figure);
    this.plot = new PlotFrame(this.figure, `Charts of ${this.subject}`, code, {
      near: tools,
      changed: (change) => this.zoomed(change),
      toggled: (hidden) => { this.hidden = new Set(hidden); },
      rested: () => { if (this.newer) this.arrived(); },
    });
    this.settled = quiet(SETTLED_MS, () => this.average());
    this.heard = () => this.arrived();
    model.on("change:lines", this.heard);
    this.width = 0;
    this.resized = new ResizeObserver(() => this.resize());
    this.resized.observe(this.figure);
    this.themed = new MutationObserver(() => this.draw());
    this.themed.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
    this.draw();
  }

  tools() {
    const bar = element("div", "dn-chart-tools", undefined, { role: "group", "aria-label": "Chart tools" });
    const label = element("label", "", "Smoothing ");
    const slider = element("input", "", undefined, { type: "range", min: 0, max: 0.99, step: 0.01, value: 0, ...OWN_KEYS });
    const told = element("output", "", "0.00");
    slider.addEventListener("input", () => {
      this.smoothing = Number(slider.value);
      told.textContent = this.smoothing.toFixed(2);
      this.draw();
      this.settled();
    });
    label.append(slider, told);
    bar.append(
      label,
      choice("X axis", X_AXES, (mode) => { this.mode = mode; this.fine.clear(); this.draw(); }),
      choice("Y axis", Y_AXES, (scale) => { this.scale = scale; this.draw(); }),
      button("", "PNG", "Save the charts as a picture", () => this.savePicture()),
      button("", "CSV", "Save all points as a table", () => this.saveTable()),
      this.note,
    );
    return bar;
  }

  // ---- Drawing -----------------------------------------------------------------------------

  arrived() {
    this.newer = this.plot.resting;
    if (this.newer) return;
    this.draw();
    const now = Date.now();
    for (const [place, range] of this.fine) if (now - range.at > AGAIN_MS) this.refine(place);
    if (this.smoothing && now - this.averagedAt > AGAIN_MS) this.average();
  }

  resize() {
    const width = this.figure.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.draw();
  }

  draw() {
    const { traces, layouts, config, dots, note } = this.model.get("shape");
    const lines = this.model.get("lines").map(unpacked);
    if (!traces || lines.length !== traces.length || !this.width) return;
    if (note) this.note.textContent = note;
    this.start = Math.min(...lines.map((line) => line.wall.find(Number.isFinite) ?? Infinity));
    this.lines = lines.map((line, number) => this.closer(line, number));
    const data = this.lines.flatMap((line, number) => this.traces(traces[number], line, number, dots));
    this.plot.draw(data, this.layout(layouts), config);
  }

  closer(line, number) {
    for (const range of this.fine.values()) {
      const fine = range.lines?.get(number);
      if (fine?.step.length) return refined(line, fine);
    }
    return line;
  }

  traces(trace, line, number, dots) {
    const x = across(line, this.mode, this.start);
    const mode = x.length <= dots ? "lines+markers" : "lines";
    const visible = this.hidden.has(trace.legendgroup) ? "legendonly" : true;
    const shown = { ...trace, visible, uid: `${number}`, x, y: line.value, mode };
    if (!this.smoothing) return [shown];
    const smooth = this.averaged(line, number);
    return [
      { ...shown, uid: `${number} raw`, opacity: 0.25, hoverinfo: "skip", showlegend: false },
      { ...shown, x: across(smooth, this.mode, this.start), y: smooth.value, mode: "lines" },
    ];
  }

  layout(layouts) {
    const columns = this.width < NARROW ? 1 : this.width < WIDE ? 2 : 3;
    const layout = structuredClone(layouts[columns - 1]);
    const style = getComputedStyle(this.figure);
    const colour = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
    const text = colour("--jp-ui-font-color1", "#1f2328");
    layout.width = this.width;
    layout.font.color = text;
    layout.hoverlabel.font.color = text;
    layout.hoverlabel.bgcolor = colour("--jp-layout-color1", "#fff");
    layout.uirevision = "the reader's";  // zoom stays when points come
    for (const name of Object.keys(layout)) {
      if (name.startsWith("xaxis")) Object.assign(layout[name], { uirevision: this.mode, type: this.mode === "wall" ? "date" : "linear" });
      if (name.startsWith("yaxis")) Object.assign(layout[name], { uirevision: this.scale, type: this.scale });
    }
    return layout;
  }

  // ---- Smoothing ---------------------------------------------------------------------------

  // The line averaged over all points: as asked for, or here, where all are at hand or until then.
  averaged(line, number) {
    const whole = this.smooth?.weight === this.smoothing ? this.smooth.lines.get(number) : null;
    if (!whole) return { ...line, value: smoothed(line.value, this.smoothing) };
    for (const range of this.fine.values()) {
      const fine = range.weight === this.smoothing ? range.smooth?.get(number) : null;
      if (fine?.step.length) return refined(whole, fine);
    }
    return whole;
  }

  async average() {
    const weight = this.smoothing;
    const { keys, thinned } = this.model.get("shape");
    if (!weight || !thinned) return;
    this.averagedAt = Date.now();
    const told = await this.asked({ points: SMOOTH_POINTS, smoothing: weight });
    if (!told || this.smoothing !== weight) return;
    this.smooth = { weight, lines: byNumber(told.lines, keys) };
    for (const [place, range] of this.fine) if (range.weight !== weight) this.refine(place);
    this.draw();
  }

  // ---- Zoom --------------------------------------------------------------------------------

  zoomed(change) {
    for (const [name, value] of Object.entries(change)) {
      const [, number, what] = name.match(/^xaxis(\d*)\.(autorange|range)/) ?? [];
      if (!what) continue;
      const place = Number(number || 1) - 1;
      if (what === "range") this.refine(place);
      else if (value && this.fine.delete(place)) this.draw();
    }
  }

  // The points of what is seen of one subplot, as many as of the whole line before.
  async refine(place) {
    const seen = this.plot.ranges[place ? `xaxis${place + 1}` : "xaxis"];
    const keys = this.model.get("shape").keys;
    const tags = [...new Set(keys.map(([, tag]) => tag))];
    const numbersOf = keys.flatMap(([, tag], number) => (tag === tags[place] ? [number] : []));
    const coarse = this.model.get("lines").map(unpacked);
    const steps = stepsWithin(numbersOf.map((number) => coarse[number]), this.mode, this.start, ...seen);
    if (!steps) return;
    const weight = this.smoothing;
    const range = { ...this.fine.get(place), weight, at: Date.now() };
    this.fine.set(place, range);
    const query = { tag: tags[place], from: steps[0], to: steps[1], points: FINE_POINTS };
    const told = await this.asked(query);
    const smooth = weight ? await this.asked({ ...query, smoothing: weight }) : null;
    if (!told || this.fine.get(place) !== range) return;
    range.lines = byNumber(told.lines, keys);
    range.smooth = smooth && byNumber(smooth.lines, keys);
    this.draw();
  }

  async asked(query) {
    try {
      return await this.source.ask(this.model.get("path"), query);
    } catch (error) {
      this.note.textContent = error.message;
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
    this.plot.savePicture({ format: "png", scale: 2, width, height, filename: this.fileName });
  }

  async saveTable() {
    this.note.textContent = "collecting the points…";
    const steps = this.lines.flatMap((line) => [...line.step]);
    const lines = await this.wholeLines(steps.reduce((a, b) => Math.min(a, b)), steps.reduce((a, b) => Math.max(a, b)));
    if (!lines) return;
    this.note.textContent = "";
    const link = element("a", "", "", { download: `${this.fileName}.csv` });
    link.href = URL.createObjectURL(new Blob([csv(lines)], { type: "text/csv" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // Every point between two steps. A line that is as long as an answer may be has been thinned:
  // then it is asked for in halves.
  async wholeLines(from, to) {
    const told = await this.asked({ from, to, points: POINTS_AT_ONCE });
    if (!told || from >= to || told.lines.every((line) => line.step.length < POINTS_AT_ONCE)) return told?.lines;
    const middle = Math.floor((from + to) / 2);
    const halves = [await this.wholeLines(from, middle), await this.wholeLines(middle + 1, to)];
    return halves.every(Boolean) ? halves.flat() : null;
  }

  close() {
    this.settled.cancel();
    this.model.off("change:lines", this.heard);
    this.resized.disconnect();
    this.themed.disconnect();
    this.plot.close();
  }
}
