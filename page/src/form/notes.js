// What is wrong beside a group of fields, each sentence with the two smallest repairs.

import { arrange, button, element, keyed, uid } from "../dom.js";

/** @import { Part } from "../dom.js" */
/** @import { Finding } from "../protocol.d.ts" */
/** @import { Field } from "./fields.js" */
/** @import { Form } from "./form.js" */

export class Notes {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    /** @type {Map<string, Part & {id: string}>} */
    this.parts = new Map();
    this.node = element("div", { class: "dn-notes" });
  }

  /**
   * @param {Finding[]} findings
   * @param {Field[]} fields
   */
  update(findings, fields) {
    arrange(this.node, keyed(this.parts, findings, keyOf, (finding) => this.#note(finding)));
    for (const field of fields) {
      const own = findings.filter((finding) => finding.where === field.path);
      const ids = own.map((finding) => this.parts.get(keyOf(finding))?.id ?? "");
      field.mark(ids, own[0]?.severity);
    }
  }

  /** @param {Finding} finding */
  #note(finding) {
    const id = uid("note");
    const sentence = element("span", { id, class: "dn-sentence" }, finding.message);
    const fixes = finding.fixes.slice(0, 2).map((label) => repairButton(this.form, finding, label));
    return { id, node: element("div", { class: "dn-note", "data-severity": finding.severity }, sentence, ...fixes) };
  }
}

/** @param {Finding} finding */
export function keyOf(finding) { return JSON.stringify(finding); }

/**
 * @param {Form} form
 * @param {Finding} finding
 * @param {string} label of the repair
 */
export function repairButton(form, finding, label) {
  const repair = () => {
    form.focusSoon(finding.where);
    form.send("repair", { code: finding.code, where: finding.where, label });
  };
  return button(label, repair, { class: "dn-button dn-repair" });
}

/**
 * The findings about a group of fields.
 * @param {Finding[]} findings
 * @param {string} name
 */
export function about(findings, name) {
  return findings.filter(({ where }) => where === name || where.startsWith(`${name}.`));
}
