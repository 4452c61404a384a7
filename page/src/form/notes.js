// What is wrong beside a group of fields, each sentence with the two smallest repairs, and the way
// back from a repair.

import { arrange, button, element, keyed } from "../dom.js";

/** @import { Part } from "../dom.js" */
/** @import { Finding, FormView } from "../protocol.d.ts" */
/** @import { Field } from "./fields.js" */
/** @import { Form } from "./form.js" */

export class Notes {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    /** @type {Map<string, Part>} */
    this.parts = new Map();
    this.way = new WayBack(form);
    this.node = element("div", { class: "dn-notes" });
  }

  /**
   * A finding about several groups stands beside the first.
   * @param {FormView} view
   * @param {Field[]} fields
   * @param {(path: string) => boolean} isHere whether a path is one of this group
   */
  update(view, fields, isHere) {
    const findings = view.findings.filter(({ places }) => places.some(([path]) => isHere(path)));
    const own = findings.filter(({ places }) => isHere(places[0][0]));
    const { label = "", beside = "" } = view.repaired;
    const notes = keyed(this.parts, own, keyOf, (finding) => ({ node: this.#note(finding) }));
    arrange(this.node, label && isHere(beside) ? [this.way.update(label), ...notes] : notes);
    for (const field of fields) {
      const about = findings.filter(({ places }) => places.some(([path]) => path === field.path));
      field.mark(about.map((finding) => this.#idOf(finding)), about[0]?.severity);
    }
  }

  /** @param {Finding} finding */
  #note(finding) {
    const { message, places, fixes, severity } = finding;
    const text = places.length > 1 ? `${placesOf(finding)}: ${message}` : message;
    const sentence = element("span", { id: this.#idOf(finding), class: "dn-sentence" }, text);
    const buttons = fixes.slice(0, 2).map((label) => repairButton(this.form, finding, label));
    return element("div", { class: "dn-note", "data-severity": severity }, sentence, ...buttons);
  }

  /** @param {Finding} finding */
  #idOf({ code, places }) {
    return `dn-note-${this.form.outbox.page}-${code}-${places[0][0]}`.replaceAll(/[^\w-]/g, "-");
  }
}

/** What was just repaired, with its undo. */
export class WayBack {
  /** @param {Form} form */
  constructor(form) {
    this.sentence = element("span", { class: "dn-sentence" });
    this.undo = button("Undo", () => form.back("undo"), { class: "dn-button dn-repair" });
    this.node = element("div", { class: "dn-note dn-repaired" }, this.sentence, this.undo);
  }

  /** @param {string} label of the repair */
  update(label) {
    this.sentence.textContent = `✓ ${label}`;
    this.undo.setAttribute("aria-label", `Undo: ${label}`);
    return this.node;
  }
}

/** @param {Finding} finding */
export function keyOf(finding) { return JSON.stringify(finding); }

/** @param {Finding} finding */
export function placesOf({ places }) { return places.map(([, label]) => label).join(" · "); }

/**
 * @param {Form} form
 * @param {Finding} finding
 * @param {string} label of the repair
 */
export function repairButton(form, finding, label) {
  const where = finding.places[0]?.[0] ?? "";
  const repair = () => {
    form.focusSoon(where);
    form.send("repair", { code: finding.code, where, label });
  };
  const saves = finding.saves?.[finding.fixes.indexOf(label)];
  return button(saves ? `${label} (${saves})` : label, repair, { class: "dn-button dn-repair" });
}
