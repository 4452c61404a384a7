// What event files have besides scalars: histograms, images, texts and hyperparameters, each folded.

const MEDIA = [["histogram", "Histograms"], ["image", "Images"], ["text", "Texts"]];
function fold(title) {
  const box = element("details", "dn-folded");
  const inside = element("div", "dn-media");
  const summary = element("summary", "", title, OWN_KEYS);
  box.append(summary, inside);
  return { box, inside, summary };
}

function nameOf({ run, tag }) {
  return run ? `${run} · ${tag}` : tag;
}

// All of one kind: one row at a time, and of it one step at a time but for histograms.
class Shown {
  constructor(kind, title, source, plot) {
    Object.assign(this, { kind, title, source, plot });
    this.rows = [];
    this.row = null;
    this.following = true;  // the newest step, until the reader chooses another
    Object.assign(this, fold(title));
    this.menu = choice(title, [], (name) => this.choose(name));
    this.slider = element("input", "", undefined, { type: "range", min: 0, step: 1, "aria-label": `Step of ${title}`, ...OWN_KEYS });
    this.told = element("output", "");
    this.place = element("div", "dn-media-place");
    const tools = element("div", "dn-chart-tools");
    tools.append(this.menu, ...(kind === "histogram" ? [] : [this.slider]), this.told);
    this.inside.append(tools, this.place);
    this.settled = quiet(80, () => this.show());
    this.slider.addEventListener("input", () => {
      this.following = Number(this.slider.value) === this.row.count - 1;
      this.settled();
    });
    this.box.addEventListener("toggle", () => this.show());
  }

  update(rows) {
    this.rows = rows.filter((row) => row.kind === this.kind);
    this.box.hidden = !this.rows.length;
    this.summary.textContent = `${this.title} (${this.rows.length.toLocaleString("en")})`;
    if (!this.rows.length) return;
    const names = this.rows.map(nameOf);
    if (names.length !== this.menu.options.length) {
      const chosen = this.row ? nameOf(this.row) : names[0];
      this.menu.replaceChildren(...names.map((name) => new Option(name, name)));
      this.menu.value = chosen;
    }
    const before = this.row?.last;
    this.row = this.rows[names.indexOf(this.menu.value)] ?? this.rows[0];
    this.slider.max = this.row.count - 1;
    if (this.following) this.slider.value = this.slider.max;
    if (this.following && this.row.last !== before) this.show();
  }

  choose(name) {
    this.row = this.rows.find((row) => nameOf(row) === name);
    this.following = true;
    this.slider.max = this.slider.value = this.row.count - 1;
    this.show();
  }

  async show() {
    if (!this.box.open || !this.row) return;
    const { kind, run, tag } = this.row;
    const at = kind === "histogram" ? {} : { at: Number(this.slider.value) };
    const asked = this.asked = {};
    const told = await this.source.ask("media", { kind, run, tag, ...at }).catch((error) => ({ note: error.message }));
    if (this.asked !== asked) return;
    this.told.textContent = told.step === undefined ? "" : `step ${told.step.toLocaleString("en")}`;
    if (told.note) this.place.replaceChildren(element("span", "dn-chart-note", told.note));
    else this[kind](told);
  }

  image({ form, data }) {
    this.place.replaceChildren(element("img", "dn-media-image", undefined, { src: `data:${form};base64,${data}`, alt: this.menu.value }));
  }

  text({ text }) {
    this.place.replaceChildren(element("pre", "dn-media-text", text));
  }

  histogram(told) {
    this.told.textContent = told.notes.join("; ");
    if (!this.frame) {
      this.figure = element("div", "dn-figure");
      this.place.replaceChildren(this.figure);
      this.frame = this.plot(this.figure, "Histograms");
    }
    const style = getComputedStyle(this.figure);
    const colour = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
    const text = colour("--jp-ui-font-color1", "#1f2328");
    const ground = colour("--jp-layout-color0", "#fff");
    this.frame.draw(...ridges(told, { width: this.place.clientWidth, text, ground }), { displaylogo: false });
  }

  close() {
    this.settled.cancel();
    this.frame?.close();
  }
}

// A row for each name, a column for each run of the HParams plugin.
function hparamsTable(values) {
  const runs = Object.keys(values);
  const names = [...new Set(runs.flatMap((run) => Object.keys(values[run])))];
  const row = (name, cells, tag) => {
    const made = element("tr");
    made.append(element("th", "", name, { scope: tag === "th" ? "col" : "row" }), ...cells.map((cell) => element(tag, "", cell)));
    return made;
  };
  const table = element("table", "dn-hparams");
  if (runs.length > 1 || runs[0]) table.append(row("", runs.map((run) => run || "run"), "th"));
  table.append(...names.map((name) => row(name, runs.map((run) => String(values[run][name] ?? "")), "td")));
  return table;
}

function openMedia(model) {
  const root = element("div", "distrain-charts");
  const source = new Source(model);
  const plot = (place, title) => new PlotFrame(place, title, () => plotlyCode(model));
  const shown = MEDIA.map(([kind, title]) => new Shown(kind, title, source, plot));
  const hparams = fold("Hyperparameters");
  const notes = element("div", "dn-media-notes");
  root.append(...shown.map((each) => each.box), hparams.box, notes);
  const change = () => {
    const index = model.get("index");
    for (const each of shown) each.update(index.rows ?? []);
    const values = index.hparams ?? {};
    hparams.box.hidden = !Object.keys(values).length;
    hparams.inside.replaceChildren(hparamsTable(values));
    notes.replaceChildren(...(index.notes ?? []).map((note) => element("div", "dn-chart-note", note)));
  };
  model.on("change:index", change);
  change();
  return { root, end: () => { model.off("change:index", change); for (const each of shown) each.close(); source.close(); } };
}

const render = ({ model, el }) => stand(model, el, openMedia);

export default { initialize: standsWhereMarked(openMedia), render };
