// What a study varies, a row of fields for each parameter, and what is wanted of it.

import { arrange, button, element, keyed } from "../dom.js";
import { Notes } from "./notes.js";
import { fieldsOf } from "./settings.js";

/** @import { FieldView, FormView } from "../protocol.d.ts" */
/** @import { Field } from "./fields.js" */
/** @import { Form } from "./form.js" */

const TUNING = "tuning";

class Row {
  /**
   * @param {Form} form
   * @param {number} number from 0
   */
  constructor(form, number) {
    this.form = form;
    /** @type {Map<string, Field>} */
    this.fields = new Map();
    const title = `Remove parameter ${number + 1}`;
    this.remove = button("✕", () => form.send("untune", { row: number }), {
      class: "dn-button dn-plain dn-remove", "aria-label": title, title,
    });
    this.actions = element("span", { class: "dn-actions" }, this.remove);
    this.node = element("div", { class: "dn-row dn-tuned", role: "group", "aria-label": `Parameter ${number + 1}` });
  }

  gone() {
    for (const field of this.fields.values()) field.gone();
  }

  /** @param {FieldView[]} views */
  update(views) {
    arrange(this.node, [...fieldsOf(this.form, this.fields, views), this.actions]);
  }
}

export class Tuning {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    /** @type {Map<string, Row>} by number */
    this.rows = new Map();
    /** @type {Map<string, Field>} */
    this.settings = new Map();
    this.list = element("div", { class: "dn-pools" });
    this.grid = element("div", { class: "dn-settings" });
    this.notes = new Notes(form);
    const adder = button("+ Parameter to tune", () => this.#added(), { class: "dn-button dn-adder" });
    const add = element("div", { class: "dn-add" }, adder);
    this.node = element("div", { class: "dn-part dn-tuning" }, this.list, this.grid, this.notes.node, add);
  }

  #added() {
    this.form.focusSoon(`${TUNING}.${this.rows.size}.name`);
    this.form.send("tune", {});
  }

  get fields() {
    return [...[...this.rows.values()].flatMap(({ fields }) => [...fields.values()]), ...this.settings.values()];
  }

  /** @param {FormView} view */
  update(view) {
    const { rows, settings } = view.tuning;
    const numbered = rows.map((views, number) => ({ views, number }));
    arrange(this.list, keyed(
      this.rows, numbered, ({ number }) => String(number),
      ({ number }) => new Row(this.form, number), (row, { views }) => row.update(views),
    ));
    arrange(this.grid, fieldsOf(this.form, this.settings, settings));
    this.notes.update(view, this.fields, (path) => path.split(".")[0] === TUNING);
  }
}
