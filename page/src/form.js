// The job builder as a widget.

import { element, LITERAL, OWN_KEYS } from "./dom.js";
import { Form } from "./form/form.js";
import { keepFocus, stand, standsWhereMarked } from "./standing.js";

/** @import { FormState, Model, View, Widget } from "./protocol.d.ts" */

const LEFT_MS = 300;
const TRAITS = ["view", "options", "files", "heard"];

/**
 * @param {Model<FormState>} model
 * @returns {View}
 */
function openForm(model) {
  const root = element("section", { class: `distrain dn-form ${LITERAL}`, "aria-label": "Job layout", tabindex: "-1", ...OWN_KEYS });
  const form = new Form(model, root);
  root.addEventListener("keydown", (event) => form.pressed(event));
  // What the kernel sends together is drawn together.
  let isDue = false;
  const draw = () => {
    isDue = false;
    form.draw();
  };
  const react = () => {
    if (!isDue) queueMicrotask(draw);
    isDue = true;
  };
  const look = async () => {
    form.setLive(await isLive(model));
  };
  const keeper = new Keeper(model, root, () => form.setLive(false));
  for (const name of TRAITS) model.on(`change:${name}`, react);
  model.on("comm_live_update", look);
  form.draw();
  look();
  const end = () => {
    keeper.close();
    form.outbox.close();
    for (const name of TRAITS) model.off(`change:${name}`, react);
    model.off("comm_live_update", look);
  };
  return { root, moved: keepFocus(root), end };
}

/**
 * In Jupyter's page the live form stands in a document, which the notebook is saved with. The kernel
 * writes it anew when the focus has left the form: a document that is replaced moves the form, and
 * what is moved loses the focus.
 */
class Keeper {
  /**
   * @param {Model<FormState>} model
   * @param {HTMLElement} root
   * @param {() => void} gone called once the kernel has gone
   */
  constructor(model, root, gone) {
    this.model = model;
    this.root = root;
    this.gone = gone;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    if (!document.querySelector("script#jupyter-config-data")) return;
    root.addEventListener("focusout", () => this.later());
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.keep(), LEFT_MS);
  }

  keep() {
    const focused = document.activeElement;
    if (this.root.contains(focused)) return;
    // What had the focus may have been drawn anew: it comes back with the kernel's answer.
    if (focused === document.body) return void this.later();
    try {
      this.model.send({ do: "keep" });
    } catch { this.gone(); }
  }

  close() { clearTimeout(this.timer); }
}

/**
 * Whether a kernel answers. What anywidget gives for a model doesn't say it; ipywidgets' own does.
 * @param {Model<FormState>} model
 */
async function isLive(model) {
  try {
    const own = await model.widget_manager.get_model(model.get("key"));
    return own.comm_live !== false;
  } catch {  // another front end's manager
    return true;
  }
}

/** @param {Widget<FormState>} widget */
const render = (widget) => stand(widget, openForm);

export default { initialize: standsWhereMarked(openForm), render };
