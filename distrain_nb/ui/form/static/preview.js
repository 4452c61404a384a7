// The lower half: the layout in every form that it can be copied in, and the saved layouts.

const IMPORT = ["import", "Paste…", ""];

class Preview {
  constructor(form) {
    this.form = form;
    this.tabs = new Map();
    this.list = element("div", { class: "dn-tabs", role: "tablist", "aria-label": "The same in other forms", onkeydown: (event) => this.#pressed(event) });
    this.code = element("pre", { class: "dn-code", tabindex: "0" });
    this.copy = button("Copy", () => this.#copied(), { class: "dn-button dn-copy" });
    this.lost = element("p", { class: "dn-lost" });
    this.text = element("textarea", { id: uid("paste"), rows: "7", spellcheck: "false", "data-own-undo": true });
    this.paste = element(
      "div",
      { class: "dn-paste" },
      element("label", { for: this.text.id }, "A config.yaml, workerPoolSpecs in JSON or YAML, a gcloud command, a SageMaker estimator or request, or a %%distrain line"),
      this.text,
      button("Read it", () => form.send("paste", { text: this.text.value })),
    );
    this.panel = element("div", { class: "dn-panel-of-tab", role: "tabpanel", id: uid("panel") });
    this.node = element("div", { class: "dn-part dn-preview" }, this.list, this.panel);
  }

  update(view) {
    const forms = [...view.exports, IMPORT];
    const names = forms.map(([name]) => name);
    const wanted = this.form.model.get("tab");
    this.current = names.includes(wanted) ? wanted : names[0];
    const tabs = keyed(this.tabs, forms, ([name]) => name, (one) => ({ node: this.#tab(one) }), ({ node }, [name]) => this.#turn(node, name));
    arrange(this.list, tabs);
    this.panel.setAttribute("aria-labelledby", this.tabs.get(this.current).node.id);
    const isPaste = this.current === IMPORT[0];
    const [, , text, lost] = forms[names.indexOf(this.current)];
    arrange(this.panel, isPaste ? [this.paste] : [this.code, this.copy, ...(lost ? [this.lost] : [])]);
    write(this.lost, lost ?? "");
    this.shown = text;
    write(this.code, this.shown);
  }

  #tab([name, title]) {
    const attributes = { type: "button", role: "tab", id: uid("tab"), "data-tab": name, "aria-controls": this.panel.id, onclick: () => this.#go(name) };
    return element("button", attributes, title);
  }

  #turn(node, name) {
    const isCurrent = name === this.current;
    node.setAttribute("aria-selected", String(isCurrent));
    node.tabIndex = isCurrent ? 0 : -1;
  }

  #go(name) {
    this.form.model.set("tab", name);
    this.form.model.save_changes();
    this.update(this.form.view);
    this.tabs.get(name).node.focus();
  }

  #pressed(event) {
    const names = [...this.tabs.keys()];
    const at = names.indexOf(this.current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#go(names[(to + names.length) % names.length]);
  }

  async #copied() {
    const done = await copy(this.shown);
    write(this.copy, done ? "Copied ✓" : "Not allowed here");
    setTimeout(() => write(this.copy, "Copy"), 1500);
  }
}

class Files {
  constructor(form) {
    this.form = form;
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
      onclick: () => this.#open(),
      onblur: () => this.list.close(),
      onkeydown: (event) => this.#pressed(event),
    });
    this.list = new OptionList(this.input, (name) => {
      this.input.value = name;
      this.#able();
    });
    this.save = button("Save", () => this.#sent("save"));
    this.load = button("Load", () => this.#sent("load"));
    this.note = element("span", { class: "dn-note-of-files", role: "status" });
    this.cell = button("Put in a new cell", () => this.#cell(), { class: "dn-button dn-main" });
    this.node = element(
      "div",
      { class: "dn-part dn-files" },
      element("label", { for: id }, "Layout"),
      element("span", { class: "dn-box" }, this.input),
      this.save,
      this.load,
      this.note,
      this.cell,
    );
  }

  update(files) {
    this.saved = files.saved;
    if (files.name !== this.name) this.input.value = files.name;
    this.name = files.name;
    this.say(files.note, files.tone);
    this.#able();
  }

  say(text, tone = "good") {
    write(this.note, text);
    this.note.dataset.tone = tone;
  }

  #able() {
    const name = this.input.value.trim();
    this.save.disabled = !name;
    this.load.disabled = !this.saved.includes(name);
  }

  #typed() {
    this.#able();
    const found = this.saved.filter((name) => name.includes(this.input.value)).map((name) => [name, "", true]);
    this.list.show(found, this.input.value);
  }

  #open() {
    this.list.show(this.saved.map((name) => [name, "", true]), this.input.value);
  }

  #pressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (this.list.isOpen) this.list.move(step);
      else this.#open();
    } else if (event.key === "Escape") {
      this.list.close();
    } else if (event.key === "Enter" && !this.list.pick()) {
      this.list.close();
      if (!this.save.disabled) this.#sent("save");
    }
  }

  #sent(what) {
    this.form.send(what, { name: this.input.value });
  }

  async #cell() {
    const [, , line] = this.form.view.exports[0];
    if (putInNewCell(this.form.model, line)) return this.say("The line is in the cell below");
    const done = await copy(line);
    this.say(done ? "The line is copied: paste it into a new cell" : "Copy the line above into a new cell");
  }
}

// In JupyterLab and Notebook the page itself knows the notebook; elsewhere there is no way to it.
function putInNewCell(model, source) {
  const notebook = model.widget_manager?.context?.model?.sharedModel;
  if (!notebook?.insertCell) return false;
  const key = model.get("key");
  const isOurs = (cell) => JSON.stringify(cell.outputs ?? []).includes(key);
  const at = notebook.cells.findIndex((cell) => isOurs(cell.toJSON()));
  if (at < 0) return false;
  notebook.insertCell(at + 1, { cell_type: "code", source });
  return true;
}
