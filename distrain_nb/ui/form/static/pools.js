// The upper half: where the job runs, its settings, and a row of fields a pool.

const WIDTHS = {
  replicas: "76px",
  machine: "minmax(0, 2fr)",
  accelerator_count: "66px",
  accelerator: "minmax(0, 1.25fr)",
  disk_type: "minmax(0, 1.1fr)",
  disk_gb: "66px",
};

class Places {
  constructor(form) {
    this.form = form;
    this.name = uid("place");
    this.radios = new Map();
    this.node = element("fieldset", { class: "dn-places" }, element("legend", {}, "Where"));
  }

  update(view) {
    for (const [place, title] of view.places) {
      if (!this.radios.has(place)) {
        const id = uid("place");
        const radio = element("input", {
          type: "radio",
          id,
          name: this.name,
          value: place,
          onchange: () => this.form.send("set", { path: "on", text: place, group: "" }),
        });
        this.radios.set(place, radio);
        this.node.append(element("span", {}, radio, element("label", { for: id }, title)));
      }
      this.radios.get(place).checked = place === view.on;
    }
  }
}

// What is wrong beside a group of fields, each sentence with the two smallest repairs.
class Notes {
  constructor(form) {
    this.form = form;
    this.parts = new Map();
    this.node = element("div", { class: "dn-notes" });
  }

  update(findings, fields) {
    const nodes = keyed(
      this.parts,
      findings,
      (finding) => JSON.stringify(finding),
      (finding) => this.#note(finding),
      () => {},
    );
    arrange(this.node, nodes);
    for (const field of fields) {
      const own = findings.filter((finding) => finding.where === field.path);
      const ids = own.map((finding) => nodes[findings.indexOf(finding)].firstChild.id);
      field.mark(ids, own[0]?.severity);
    }
  }

  #note(finding) {
    const sentence = element("span", { id: uid("note"), class: "dn-sentence" }, finding.message);
    const fixes = finding.fixes.slice(0, 2).map((label) => repairButton(this.form, finding, label));
    return { node: element("div", { class: "dn-note", "data-severity": finding.severity }, sentence, ...fixes) };
  }
}

function repairButton(form, finding, label) {
  return button(
    label,
    () => {
      form.focusSoon(finding.where);
      form.send("repair", { code: finding.code, where: finding.where, label });
    },
    { class: "dn-button dn-repair" },
  );
}

function about(findings, name) {
  return findings.filter(({ where }) => where === name || where.startsWith(`${name}.`));
}

class Settings {
  constructor(form) {
    this.form = form;
    this.fields = new Map();
    this.isOpen = false;
    this.grid = element("div", { class: "dn-settings" });
    this.extras = element("div", { class: "dn-settings", id: uid("extras") });
    this.notes = new Notes(form);
    this.more = button("More options", () => this.toggle(), { class: "dn-button dn-plain dn-more", "aria-controls": this.extras.id });
    this.node = element("div", { class: "dn-part" }, this.grid, this.extras, this.more, this.notes.node);
  }

  toggle() {
    this.isOpen = !this.isOpen;
    this.update(this.form.view);
  }

  update(view) {
    const nodes = keyed(this.fields, view.settings, (told) => told.path, (told) => new Field(this.form, told), (field, told) => field.update(told));
    const findings = view.findings.filter(({ where }) => this.fields.has(where));
    const isShown = (told) => !told.extra || this.isOpen || told.text || findings.some(({ where }) => where === told.path);
    const shown = view.settings.map(isShown);
    arrange(this.grid, nodes.filter((_, place) => !view.settings[place].extra));
    arrange(this.extras, nodes.filter((_, place) => view.settings[place].extra && shown[place]));
    this.more.hidden = !view.settings.some((told) => told.extra);
    this.more.setAttribute("aria-expanded", String(this.isOpen));
    write(this.more, this.isOpen ? "Fewer options" : "More options");
    this.notes.update(findings, [...this.fields.values()]);
  }
}

class Pool {
  constructor(form, told) {
    this.form = form;
    this.role = told.role;
    this.fields = new Map();
    this.title = element("span", { class: "dn-role", id: uid("role") }, told.title);
    this.row = element("div", { class: "dn-row" });
    this.extras = element("div", { class: "dn-settings dn-extras" });
    this.notes = new Notes(form);
    const title = told.title;
    this.size = button("Auto", () => form.send("size", {}), { title: "As many reducers as just cover the workers", "aria-label": "Size the Reduction Server for the workers" });
    this.remove = button("✕", () => this.#removed(), { class: "dn-button dn-plain dn-remove", "aria-label": `Remove: ${title}`, title: `Remove: ${title}` });
    this.actions = element("span", { class: "dn-actions" }, this.size, this.remove);
    this.node = element(
      "div",
      { class: `dn-pool dn-${told.role}`, role: "group", "aria-labelledby": this.title.id, "data-role": told.role },
      this.row,
      this.extras,
      this.notes.node,
    );
  }

  #removed() {
    this.form.focusSoon(`+${this.role}`);
    this.form.send("remove", { role: this.role });
  }

  gone() {
    for (const field of this.fields.values()) field.gone();
  }

  update(told, view) {
    const all = [...told.fields, ...told.extras];
    const nodes = keyed(this.fields, all, (one) => one.path, (one) => new Field(this.form, one), (field, one) => field.update(one));
    this.size.hidden = !told.sizable;
    this.remove.hidden = !told.removable;
    arrange(this.row, [this.title, ...nodes.slice(0, told.fields.length), this.actions]);
    arrange(this.extras, nodes.slice(told.fields.length));
    this.notes.update(about(view.findings, told.role), [...this.fields.values()]);
  }
}

class Pools {
  constructor(form) {
    this.form = form;
    this.pools = new Map();
    this.adders = new Map();
    this.head = element("div", { class: "dn-row dn-heads", "aria-hidden": "true" });
    this.list = element("div", { class: "dn-pools" });
    this.add = element("div", { class: "dn-add" });
    this.node = element("div", { class: "dn-part" }, this.list, this.add);
  }

  update(view) {
    const widths = view.columns.map(([name]) => WIDTHS[name]);
    const actions = "72px";
    this.node.style.setProperty("--dn-columns", ["144px", ...widths, actions].join(" "));
    // On narrow pages the role and the buttons stand above the fields.
    this.node.style.setProperty("--dn-fields", widths.length > 1 ? widths.join(" ") : [...widths, "1fr", actions].join(" "));
    this.head.replaceChildren(element("span", {}, ""), ...view.columns.map(([, label]) => element("span", {}, label)));
    const rows = keyed(this.pools, view.pools, (told) => told.role, (told) => new Pool(this.form, told), (pool, told) => pool.update(told, view));
    arrange(this.list, rows.length ? [this.head, ...rows] : []);
    const adders = keyed(this.adders, view.addable, ([role]) => role, (told) => ({ node: this.#adder(told) }), () => {});
    arrange(this.add, adders);
  }

  #adder([role, title]) {
    const added = () => {
      this.form.focusSoon(`${role}.machine`, `${role}.replicas`);
      this.form.send("add", { role });
    };
    return button(`+ ${title}`, added, { class: "dn-button dn-adder", "data-path": `+${role}` });
  }
}
