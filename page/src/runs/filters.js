// Which rows of the table are shown.

import { choice, element, OWN_KEYS } from "../dom.js";
import { annotationText } from "../run/annotation.js";

/** @import { TableRun } from "../protocol.d.ts" */

/** @type {{label: string, all: string, of: (run: TableRun) => string}[]} */
const CHOICES = [
  { label: "state", all: "all states", of: (run) => run.state },
  { label: "place", all: "all places", of: (run) => run.place },
  { label: "experiment", all: "all experiments", of: (run) => run.experiment },
];

export class Filters {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.field = element("input", {
      class: "dn-search", type: "search", placeholder: "Filter", "aria-label": "filter runs by text",
      spellcheck: "false", autocomplete: "off", oninput: onChange, ...OWN_KEYS,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.menus = CHOICES.map(({ label }) => choice(label, [], onChange));
    this.node = element("span", { class: "dn-filters", role: "group", "aria-label": "Filters" }, this.field, ...this.menus);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    event.stopPropagation();
    if (event.key !== "Escape") return;
    this.field.value = "";
    this.onChange();
  }

  /**
   * Offer what there is to choose from.
   * @param {TableRun[]} runs
   */
  offer(runs) {
    this.node.hidden = runs.length < 2;
    this.menus.forEach((menu, place) => {
      const { all, of } = CHOICES[place];
      const values = [...new Set([...runs.map(of), menu.value])].filter(Boolean).sort();
      menu.hidden = values.length < 2;
      const key = values.join("\n");
      if (menu.dataset.values === key) return;
      const { value } = menu;
      menu.replaceChildren(new Option(all, ""), ...values.map((each) => new Option(each, each)));
      menu.value = value;
      menu.dataset.values = key;
    });
  }

  /** @param {TableRun} run */
  passes(run) {
    const chosen = CHOICES.every(({ of }, place) => !this.menus[place].value || this.menus[place].value === of(run));
    return chosen && hasWords(run, this.field.value);
  }
}

/**
 * Whether all words stand somewhere in what the table says of the run.
 * @param {TableRun} run
 * @param {string} words
 */
export function hasWords(run, words) {
  const parts = [`#${run.id}`, run.name, run.state, run.cause, run.place, run.size, run.machines, run.experiment, run.best?.tag, annotationText(run)];
  const text = parts.join("\n").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
