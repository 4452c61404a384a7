// The middle: what it adds up to, the picture, and everything that was found.

import { arrange, button, element, keyed, OWN_KEYS, uid, write } from "../dom.js";
import { drawn } from "../markup.js";
import { keyOf, placesOf, repairButton, WayBack } from "./notes.js";

/** @import { Part } from "../dom.js" */
/** @import { Finding, FormView } from "../protocol.d.ts" */
/** @import { Form } from "./form.js" */

const MARKS = { error: "✕", warning: "!", info: "i" };
const PAUSE_MS = 700;
export const NOT_CHECKED = "Not checked yet";

export class Totals {
  constructor() {
    this.shown = "";
    this.node = element("dl", { class: "dn-totals", "aria-label": "In total" });
  }

  /** @param {FormView} view */
  update({ totals }) {
    const key = JSON.stringify(totals);
    if (key === this.shown) return;
    this.shown = key;
    this.node.replaceChildren(...pairs(totals));
  }
}

/**
 * Figures above what they count.
 * @param {[figure: string, what: string][]} figures
 */
export function pairs(figures) {
  return figures.map(([figure, what]) => element("div", {}, element("dt", {}, what), element("dd", {}, figure)));
}

export class Picture {
  constructor() {
    this.shown = "";
    this.node = element("div", { class: "dn-picture" });
  }

  /** @param {FormView} view */
  update({ picture }) {
    if (picture === this.shown) return;
    this.shown = picture;
    this.node.replaceChildren(drawn(picture) ?? "");
  }
}

export class Verdict {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    /** @type {Map<string, Part>} */
    this.parts = new Map();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.pause = undefined;
    /** @type {string | undefined} */
    this.announced = undefined;
    this.head = element("div", { class: "dn-verdict" });
    this.way = new WayBack(form);
    this.list = element("ul", { class: "dn-findings", "aria-label": "Findings" });
    this.spoken = element("div", { class: "dn-unseen", "aria-live": "polite", role: "status" });
    this.node = element("div", { class: "dn-check" });
  }

  /** @param {FormView} view */
  update(view) {
    this.head.dataset.severity = view.verdict === NOT_CHECKED ? "pending" : view.findings[0]?.severity ?? "";
    write(this.head, view.verdict);
    const { label = "", beside } = view.repaired;
    const way = label && !beside ? [this.way.update(label)] : [];
    arrange(this.node, [this.head, ...way, this.list, this.spoken]);
    arrange(this.list, keyed(this.parts, view.findings, keyOf, (finding) => ({ node: this.#row(finding) })));
    this.#announce(view);
  }

  /**
   * Once the typing has paused, so that nobody hears a verdict on half a word.
   * @param {FormView} view
   */
  #announce(view) {
    clearTimeout(this.pause);
    const text = [view.verdict, ...view.findings.slice(0, 3).map((one) => `${placesOf(one)}: ${one.message}`)].join(". ");
    this.announced ??= text;
    if (text === this.announced || view.verdict === NOT_CHECKED) return;
    this.pause = setTimeout(() => {
      this.announced = text;
      write(this.spoken, text);
    }, PAUSE_MS);
  }

  /** @param {Finding} finding */
  #row(finding) {
    const { severity, code, message, fixes, places } = finding;
    const links = places.map(([path, label]) => button(label, () => this.form.focus(path), { class: "dn-link" }));
    const repairs = fixes.map((fix) => repairButton(this.form, finding, fix));
    return element(
      "li",
      { "data-severity": severity, "data-code": code },
      element("span", { class: "dn-mark", "aria-label": severity, role: "img" }, MARKS[severity]),
      element(
        "div",
        {},
        element("div", { class: "dn-place" }, ...links, element("code", {}, code)),
        element("div", {}, message),
        repairs.length ? element("div", { class: "dn-repairs" }, ...repairs) : null,
      ),
    );
  }
}

/** What gradients cost on the wire, and what reducers bring. What can't be read yet leaves both as they were. */
export class Traffic {
  /** @param {Form} form */
  constructor(form) {
    this.shown = "";
    this.gradient = this.asked(form, "gradient");
    this.step = this.asked(form, "step");
    this.rows = element("tbody");
    this.gain = element("div", { role: "status" });
    const heads = ["all-reduce", "sent per worker", "latency", "about"].map((head) => element("th", { scope: "col" }, head));
    this.node = element(
      "div",
      { class: "dn-traffic" },
      element(
        "div",
        { class: "dn-asked" },
        element("label", { for: this.gradient.id }, "Exchanging gradients of"),
        element("span", { class: "dn-box" }, this.gradient),
        element("label", { for: this.step.id }, "in steps of"),
        element("span", { class: "dn-box" }, this.step),
      ),
      element("table", {}, element("thead", {}, element("tr", {}, ...heads)), this.rows),
      this.gain,
    );
  }

  /**
   * @param {Form} form
   * @param {"gradient" | "step"} what
   */
  asked(form, what) {
    const input = element("input", {
      id: uid(what),
      type: "text",
      autocomplete: "off",
      "data-own-undo": true,
      oninput: () => form.send(what, { text: input.value }),
      onblur: () => this.update(form.view),
      ...OWN_KEYS,
    });
    return input;
  }

  /** @param {FormView} view */
  update({ traffic, gradient, step, gain }) {
    this.node.hidden = !traffic.length;
    if (document.activeElement !== this.gradient) this.gradient.value = gradient;
    if (document.activeElement !== this.step) this.step.value = step;
    this.gain.textContent = gain;
    const key = JSON.stringify(traffic);
    if (key === this.shown) return;
    this.shown = key;
    const rows = traffic.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
    this.rows.replaceChildren(...rows);
  }
}
