// A row of fields for each pool.

import { arrange, button, element, keyed, uid } from "../dom.js";
import { Notes } from "./notes.js";
import { fieldsOf } from "./settings.js";

/** @import { Part } from "../dom.js" */
/** @import { FormView, PoolView } from "../protocol.d.ts" */
/** @import { Field } from "./fields.js" */
/** @import { Form } from "./form.js" */

/** @type {Record<string, string>} */
const WIDTHS = {
  replicas: "76px",
  machine: "minmax(0, 2fr)",
  accelerator_count: "66px",
  accelerator: "minmax(0, 1.25fr)",
  disk_type: "minmax(0, 1.1fr)",
  disk_gb: "66px",
};
const ROLE_WIDTH = "152px";
const ACTIONS_WIDTH = "72px";

class Pool {
  /**
   * @param {Form} form
   * @param {PoolView} view
   */
  constructor(form, { role, title }) {
    this.form = form;
    this.role = role;
    /** @type {Map<string, Field>} */
    this.fields = new Map();
    this.title = element("span", { class: "dn-role", id: uid("role") }, title);
    this.row = element("div", { class: "dn-row" });
    this.extras = element("div", { class: "dn-settings dn-extras" });
    this.notes = new Notes(form);
    this.size = button("Auto", () => form.send("size", {}), {
      class: "dn-button",
      title: "Use as many reducers as the workers' bandwidth needs",
      "aria-label": "Size the Reduction Server for the workers",
    });
    this.remove = button("✕", () => this.#removed(), {
      class: "dn-button dn-plain dn-remove", "aria-label": `Remove: ${title}`, title: `Remove: ${title}`,
    });
    this.actions = element("span", { class: "dn-actions" }, this.size, this.remove);
    this.node = element(
      "div",
      { class: `dn-pool dn-${role}`, role: "group", "aria-labelledby": this.title.id, "data-role": role },
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
    const isHere = (/** @type {string} */ path) => path.split(".")[0] === pool.role;
    this.notes.update(view, [...this.fields.values()], isHere);
  }
}

export class Pools {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    /** @type {Map<string, Pool>} by role */
    this.pools = new Map();
    /** @type {Map<string, Part>} */
    this.adders = new Map();
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
    // On narrow pages the role and the buttons stand above the fields.
    this.node.style.setProperty("--dn-fields", fields.join(" "));
    this.head.replaceChildren(element("span"), ...view.columns.map(([, label]) => element("span", {}, label)));
    const rows = keyed(
      this.pools, view.pools, ({ role }) => role,
      (pool) => new Pool(this.form, pool), (part, pool) => part.update(pool, view),
    );
    arrange(this.list, rows.length ? [this.head, ...rows] : []);
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
}
