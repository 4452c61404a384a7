// Where the job runs, and its settings.

import { arrange, button, element, keyed, OWN_KEYS, uid, write } from "../dom.js";
import { Field } from "./fields.js";
import { Notes } from "./notes.js";

/** @import { FieldView, FormView } from "../protocol.d.ts" */
/** @import { Form } from "./form.js" */

export class Places {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.name = uid("place");
    this.sent = 0;
    /** @type {Map<string, HTMLInputElement>} */
    this.radios = new Map();
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
    const choose = () => { this.sent = this.form.send("set", { path: "on", text: place, group: "" }); };
    const radio = element("input", { type: "radio", id, name: this.name, value: place, onchange: choose, ...OWN_KEYS });
    this.radios.set(place, radio);
    this.node.append(element("span", {}, radio, element("label", { for: id }, title)));
    return radio;
  }
}

export class Settings {
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
}

/** Fields, of which some are shown only when asked for, or when there is something to say of them. */
export class FoldedFields {
  /**
   * @param {Form} form
   * @param {string} unfold what the button says
   * @param {string} fold
   * @param {() => void} toggled draws all that is folded
   */
  constructor(form, unfold, fold, toggled) {
    this.form = form;
    this.words = [unfold, fold];
    /** @type {Map<string, Field>} */
    this.fields = new Map();
    this.isOpen = false;
    this.grid = element("div", { class: "dn-settings" });
    this.extras = element("div", { class: "dn-settings", id: uid("extras") });
    const toggle = () => { this.isOpen = !this.isOpen; toggled(); };
    this.more = button(unfold, toggle, { class: "dn-button dn-plain dn-more", "aria-controls": this.extras.id });
  }

  /**
   * @param {FieldView[]} fields
   * @param {FormView} view
   */
  update(fields, { findings }) {
    const nodes = fieldsOf(this.form, this.fields, fields);
    const isAbout = (/** @type {string} */ wanted) => findings.some(({ places }) => places.some(([path]) => path === wanted));
    const shown = fields.map(({ extra, text, path }) => (
      !extra || this.isOpen || text || isAbout(path)
    ));
    arrange(this.grid, nodes.filter((_, place) => !fields[place].extra));
    arrange(this.extras, nodes.filter((_, place) => fields[place].extra && shown[place]));
    this.more.hidden = !fields.some(({ extra }) => extra);
    this.more.setAttribute("aria-expanded", String(this.isOpen));
    write(this.more, this.words[Number(this.isOpen)]);
  }
}

/**
 * The fields' nodes, made and brought up to date.
 * @param {Form} form
 * @param {Map<string, Field>} fields by path
 * @param {FieldView[]} views
 */
export function fieldsOf(form, fields, views) {
  return keyed(fields, views, ({ path }) => path, (view) => new Field(form, view), (field, view) => field.update(view));
}
