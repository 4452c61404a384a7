// What a study varies, a row of fields for each parameter, and what is wanted of it.

import { arrange, button, element, keyed } from "../dom.js";
import { Notes } from "./notes.js";
import { fieldsOf, FoldedFields } from "./settings.js";

/** @import { FieldView, FormView } from "../protocol.d.ts" */
/** @import { Field } from "./fields.js" */
/** @import { Form } from "./form.js" */

const TUNING = "tuning";

/** Fields with a button that removes them. */
class Row {
  /**
   * @param {Form} form
   * @param {number} number from 0
   * @param {{ what: string, remove: string, style: string }} kind what it is called, and the message
   */
  constructor(form, number, { what, remove, style }) {
    this.form = form;
    /** @type {Map<string, Field>} */
    this.fields = new Map();
    const name = `${what} ${number + 1}`;
    const title = `Remove ${name[0].toLowerCase()}${name.slice(1)}`;
    this.remove = button("✕", () => form.send(remove, { row: number }), {
      class: "dn-button dn-plain dn-remove", "aria-label": title, title,
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
}

const PARAMETER = { what: "Parameter", remove: "untune", style: "dn-tuned" };
const INITIAL = { what: "Initial trial", remove: "unbegin", style: "dn-tuned dn-begun" };

/** Rows of one kind. */
class Rows {
  /**
   * @param {Form} form
   * @param {{ what: string, remove: string, style: string }} kind
   */
  constructor(form, kind) {
    this.form = form;
    this.kind = kind;
    /** @type {Map<string, Row>} by number */
    this.rows = new Map();
    this.node = element("div", { class: "dn-pools" });
  }

  get fields() {
    return [...this.rows.values()].flatMap(({ fields }) => [...fields.values()]);
  }

  /** @param {FieldView[][]} rows */
  update(rows) {
    const numbered = rows.map((views, number) => ({ views, number }));
    arrange(this.node, keyed(
      this.rows, numbered, ({ number }) => String(number),
      ({ number }) => new Row(this.form, number, this.kind), (row, { views }) => row.update(views),
    ));
  }
}

export class Tuning {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    this.parameters = new Rows(form, PARAMETER);
    this.initial = new Rows(form, INITIAL);
    this.settings = new FoldedFields(form, "Advanced options", "Fewer options", () => this.update(form.view));
    this.notes = new Notes(form);
    const { grid, extras, more } = this.settings;
    const added = (/** @type {string} */ words, /** @type {() => void} */ clicked) => (
      element("div", { class: "dn-add" }, button(words, clicked, { class: "dn-button dn-adder" }))
    );
    this.begin = added("+ Initial trial", () => this.#begun());
    const add = added("+ Parameter to tune", () => this.#added());
    this.node = element(
      "div", { class: "dn-part dn-tuning" },
      this.parameters.node, grid, more, extras, this.initial.node, this.begin, this.notes.node, add,
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
    const { rows, settings, initial } = view.tuning;
    this.parameters.update(rows);
    this.settings.update(settings, view);
    this.initial.update(initial.map((field) => [field]));
    this.begin.hidden = !(rows.length && (this.settings.isOpen || initial.length));
    this.notes.update(view, this.fields, (path) => path.split(".")[0] === TUNING);
  }
}
