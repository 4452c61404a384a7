// What the layout costs: an hour, for its time limit, on spot machines, and by region when asked.

import { button, element, write } from "../dom.js";
import { pairs } from "./verdict.js";

/** @import { FormView } from "../protocol.d.ts" */
/** @import { Form } from "./form.js" */

export class Cost {
  /** @param {Form} form */
  constructor(form) {
    this.shown = "";
    this.sums = element("dl", { class: "dn-totals", "aria-label": "Cost" });
    this.note = element("p", { class: "dn-cost-note", role: "status" });
    this.ask = button("Compare regions", () => form.send("regions", {}), { class: "dn-button dn-plain" });
    this.rows = element("tbody");
    const heads = ["region", "per hour"].map((head) => element("th", { scope: "col" }, head));
    this.table = element(
      "table",
      { "aria-label": "Prices by region" },
      element("thead", {}, element("tr", {}, ...heads)),
      this.rows,
    );
    this.scrolled = element("div", { class: "dn-regions", tabindex: "0", role: "region", "aria-label": "Prices by region" }, this.table);
    this.node = element("div", { class: "dn-cost" }, this.sums, this.note, this.ask, this.scrolled);
  }

  /** @param {FormView} view */
  update({ cost }) {
    this.node.hidden = !cost;
    const key = JSON.stringify(cost);
    if (!cost || key === this.shown) return;
    this.shown = key;
    this.sums.replaceChildren(...pairs(cost.sums));
    write(this.note, cost.note);
    this.note.hidden = !cost.note;
    this.ask.hidden = !cost.asks;
    this.scrolled.hidden = !cost.regions;
    const rows = (cost.regions ?? []).map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
    this.rows.replaceChildren(...rows);
  }
}
