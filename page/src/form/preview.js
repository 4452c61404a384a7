// The layout in every form that it can be copied in.

import { arrange, button, copy, element, keyed, OWN_KEYS, uid, write } from "../dom.js";

/** @import { Part } from "../dom.js" */
/** @import { FormView } from "../protocol.d.ts" */
/** @import { Form } from "./form.js" */

/** @type {FormView["exports"][number]} */
const IMPORT = ["import", "Paste…", ""];
const PASTED = "A config.yaml, workerPoolSpecs in JSON or YAML, a gcloud command, a SageMaker estimator or request, "
  + "or a %%distrain line";
const SAID_MS = 1500;

export class Preview {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    /** @type {Map<string, Part>} by name */
    this.tabs = new Map();
    this.current = "";
    this.shown = "";
    this.list = element("div", {
      class: "dn-tabs", role: "tablist", "aria-label": "This layout in other formats",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#pressed(event),
    });
    this.code = element("pre", { class: "dn-code", tabindex: "0", ...OWN_KEYS });
    this.copy = button("Copy", () => this.#copied(), { class: "dn-button dn-copy" });
    this.lost = element("p", { class: "dn-lost" });
    this.text = element("textarea", { id: uid("paste"), rows: "7", spellcheck: "false", "data-own-undo": true, ...OWN_KEYS });
    this.paste = element(
      "div",
      { class: "dn-paste" },
      element("label", { for: this.text.id }, PASTED),
      this.text,
      button("Read it", () => form.send("paste", { text: this.text.value }), { class: "dn-button" }),
    );
    this.panel = element("div", { class: "dn-panel-of-tab", role: "tabpanel", id: uid("panel") });
    this.node = element("div", { class: "dn-part dn-preview" }, this.list, this.panel);
  }

  /** @param {FormView} view */
  update(view) {
    const forms = [...view.exports, IMPORT];
    const wanted = this.form.model.get("tab");
    const shown = forms.find(([name]) => name === wanted) ?? forms[0];
    const [current, , text, lost = ""] = shown;
    this.current = current;
    const tabs = keyed(
      this.tabs, forms, ([name]) => name,
      ([name, title]) => ({ node: this.#tab(name, title) }), ({ node }, [name]) => this.#turn(node, name),
    );
    arrange(this.list, tabs);
    this.panel.setAttribute("aria-labelledby", tabs[forms.indexOf(shown)].id);
    arrange(this.panel, shown === IMPORT ? [this.paste] : [this.code, this.copy, ...(lost ? [this.lost] : [])]);
    write(this.lost, lost);
    this.shown = text;
    write(this.code, text);
  }

  /**
   * @param {string} name
   * @param {string} title
   */
  #tab(name, title) {
    return button(title, () => this.#go(name), { role: "tab", id: uid("tab"), "data-tab": name, "aria-controls": this.panel.id });
  }

  /**
   * @param {HTMLElement} tab
   * @param {string} name
   */
  #turn(tab, name) {
    const isCurrent = name === this.current;
    tab.setAttribute("aria-selected", String(isCurrent));
    tab.tabIndex = isCurrent ? 0 : -1;
  }

  /** @param {string} name */
  #go(name) {
    this.form.model.set("tab", name);
    this.form.model.save_changes();
    this.update(this.form.view);
    this.tabs.get(name)?.node.focus();
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const names = [...this.tabs.keys()];
    const at = names.indexOf(this.current);
    /** @type {Record<string, number>} */
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#go(names[(to + names.length) % names.length]);
  }

  async #copied() {
    const done = await copy(this.shown);
    write(this.copy, done ? "Copied ✓" : "Not allowed here");
    setTimeout(() => write(this.copy, "Copy"), SAID_MS);
  }
}
