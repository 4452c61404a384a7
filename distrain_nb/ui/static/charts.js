// The live charts of a run: one figure for all metrics, and the tools above it.

const NARROW = 560;
const WIDE = 900;
const FINE_POINTS = 1000;
const POINTS_AT_ONCE = 100000;
const REFINE_AGAIN_MS = 2000;
const X_AXES = [["step", "x: step"], ["relative", "x: seconds since the start"], ["wall", "x: time of day"]];
const Y_AXES = [["linear", "y: linear"], ["log", "y: logarithmic"]];

// plotly.js, once a page: by way of a widget of its own, so that no other copy is disturbed.
function plotlyOf(model) {
  window.distrainPlotly ??= bringPlotly(model).catch((error) => {
    window.distrainPlotly = undefined;
    throw error;
  });
  return window.distrainPlotly;
}

async function bringPlotly(model) {
  const carrier = await model.widget_manager.get_model(model.get("plotly"));
  const address = URL.createObjectURL(new Blob([carrier.get("code")], { type: "text/javascript" }));
  const before = window.Plotly;
  await import(address);
  const plotly = window.Plotly;
  window.Plotly = before;
  URL.revokeObjectURL(address);
  return plotly;
}

class Charts {
  constructor(model, root, plotly) {
    this.model = model;
    this.plotly = plotly;
    this.source = new Source(model);
    this.smoothing = 0;
    this.mode = "step";
    this.scale = "linear";
    this.fine = new Map();  // the number of a subplot -> {from, to, lines by number, at}
    this.note = element("span", "dn-chart-note", "", { role: "status" });
    this.figure = element("div", "dn-figure", undefined, { role: "group", "aria-label": "Charts" });
    root.append(this.tools(), this.figure);
    this.heard = () => this.arrived();
    model.on("change:lines", this.heard);
    this.width = 0;
    this.resized = new ResizeObserver(() => this.resize());
    this.resized.observe(root);
    this.themed = new MutationObserver(() => this.draw());
    this.themed.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
    this.draw();
  }

  tools() {
    const bar = element("div", "dn-chart-tools", undefined, {
      role: "group", "aria-label": "Chart tools", "data-lm-suppress-shortcuts": "true",  // arrow keys are the slider's
    });
    const label = element("label", "", "Smoothing ");
    const slider = element("input", "", undefined, { type: "range", min: 0, max: 0.99, step: 0.01, value: 0 });
    const told = element("output", "", "0.00");
    slider.addEventListener("input", () => {
      this.smoothing = Number(slider.value);
      told.textContent = this.smoothing.toFixed(2);
      this.draw();
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
    this.draw();
    const now = Date.now();
    for (const [place, range] of this.fine) if (now - range.at > REFINE_AGAIN_MS) this.refine(place);
  }

  resize() {
    const width = this.figure.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.draw();
  }

  draw() {
    const { traces, layouts, config, dots } = this.model.get("shape");
    const lines = this.model.get("lines").map(unpacked);
    if (!traces || lines.length !== traces.length || !this.width) return;
    this.start = Math.min(...lines.map((line) => line.wall[0] ?? Infinity));
    this.lines = lines.map((line, number) => this.closer(line, number));
    const data = this.lines.flatMap((line, number) => this.traces(traces[number], line, dots));
    this.drawn = this.plotly.react(this.figure, data, this.layout(layouts), config);
    if (this.listens) return;
    this.listens = true;
    this.figure.on("plotly_relayout", (change) => this.zoomed(change));
  }

  closer(line, number) {
    for (const range of this.fine.values()) {
      const fine = range.lines?.get(number);
      if (fine?.step.length) return refined(line, fine);
    }
    return line;
  }

  traces(trace, line, dots) {
    const x = across(line, this.mode, this.start);
    const mode = x.length <= dots ? "lines+markers" : "lines";
    if (!this.smoothing) return [{ ...trace, x, y: line.value, mode }];
    return [
      { ...trace, x, y: line.value, mode, opacity: 0.25, hoverinfo: "skip", showlegend: false },
      { ...trace, x, y: smoothed(line.value, this.smoothing), mode: "lines" },
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
    layout.uirevision = "the reader's";  // zoom and hidden lines stay when points come
    for (const name of Object.keys(layout)) {
      if (name.startsWith("xaxis")) Object.assign(layout[name], { uirevision: this.mode, type: this.mode === "wall" ? "date" : "linear" });
      if (name.startsWith("yaxis")) Object.assign(layout[name], { uirevision: this.scale, type: this.scale });
    }
    return layout;
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
    const axis = this.figure.layout[place ? `xaxis${place + 1}` : "xaxis"];
    const keys = this.model.get("shape").keys;
    const tags = [...new Set(keys.map(([, tag]) => tag))];
    const numbersOf = keys.flatMap(([, tag], number) => (tag === tags[place] ? [number] : []));
    const coarse = this.model.get("lines").map(unpacked);
    const steps = stepsWithin(numbersOf.map((number) => coarse[number]), this.mode, this.start, ...axis.range);
    if (!steps) return;
    const range = { ...this.fine.get(place), at: Date.now() };
    this.fine.set(place, range);
    const query = { tag: tags[place], from: steps[0], to: steps[1], points: FINE_POINTS };
    const told = await this.asked(query);
    if (!told || this.fine.get(place) !== range) return;
    const found = told.lines.map((line) => [
      keys.findIndex(([run, tag]) => run === line.run && tag === line.tag),
      { step: line.step, value: line.value.map((value) => value ?? NaN), wall: line.wall_time },
    ]);
    range.lines = new Map(found);
    this.draw();
  }

  async asked(query) {
    try {
      return await this.source.ask("metrics", query);
    } catch (error) {
      this.note.textContent = error.message;
      return null;
    }
  }

  // ---- Saving ------------------------------------------------------------------------------

  get fileName() {
    return `run-${this.model.get("run")}`;
  }

  savePicture() {
    const { clientWidth: width, clientHeight: height } = this.figure;
    this.plotly.downloadImage(this.figure, { format: "png", scale: 2, width, height, filename: this.fileName });
  }

  async saveTable() {
    this.note.textContent = "collecting the points…";
    const steps = this.lines.flatMap((line) => line.step);
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
    this.model.off("change:lines", this.heard);
    this.resized.disconnect();
    this.themed.disconnect();
    this.source.close();
    this.plotly.purge(this.figure);
  }
}

async function render({ model, el }) {
  const root = element("div", "distrain-charts");
  el.append(root);
  const charts = new Charts(model, root, await plotlyOf(model));
  return () => charts.close();
}

export default { render };
