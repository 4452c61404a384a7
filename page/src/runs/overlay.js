// Charts of the ticked runs, in one set: below the table for as long as two or more are ticked.

import { button, debounce, element, write } from "../dom.js";

/** @import { Panels } from "./panels.js" */

const SETTLED_MS = 300;  // several boxes are ticked one after the other
const MOST = 50;

export class Overlay {
  /**
   * @param {HTMLElement} root
   * @param {() => Panels} panels know how charts are drawn
   * @param {() => void} untick calls for no run to be ticked
   */
  constructor(root, panels, untick) {
    this.panels = panels;
    /** @type {number[]} */
    this.runs = [];
    this.drawn = "";
    /** @type {(() => void)[]} */
    this.ends = [];
    this.title = element("strong");
    this.body = element("div");
    const close = button("✕ Close", untick, { class: "dn-chip", title: "Untick all runs" });
    this.node = element(
      "section", { class: "dn-panel", hidden: true, "aria-label": "charts of the ticked runs" },
      element("div", { class: "dn-panel-head" }, this.title, close), this.body,
    );
    root.append(this.node);
    this.later = debounce(SETTLED_MS, () => this.draw());
  }

  /** @param {number[]} runs those that are ticked */
  show(runs) {
    this.runs = runs.length < 2 ? [] : [...runs].sort((a, b) => a - b).slice(0, MOST);
    if (this.runs.join() !== this.drawn) this.later();
  }

  draw() {
    if (this.runs.join() === this.drawn) return;
    this.close();
    this.drawn = this.runs.join();
    this.node.hidden = !this.drawn;
    write(this.title, `Metrics of runs ${this.runs.join(", ")}`);
    if (!this.drawn) return;
    const body = element("div");
    this.body.append(body);
    this.panels().overlay(this.runs, { body, ends: this.ends });
  }

  close() {
    this.later.cancel();
    for (const end of this.ends.splice(0)) end();
    this.body.replaceChildren();
    this.drawn = "";
  }
}
