// The job builder as a widget.

import { element, LITERAL, OWN_KEYS } from "./dom.js";
import { Form } from "./form/form.js";

/** @import { FormState, Widget } from "./protocol.d.ts" */

const TRAITS = ["view", "options", "files", "heard"];

/** @param {Widget<FormState>} widget */
function render({ model, el }) {
  const root = element("section", { class: `distrain dn-form ${LITERAL}`, "aria-label": "Job layout", tabindex: "-1", ...OWN_KEYS });
  el.append(root);
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
  for (const name of TRAITS) model.on(`change:${name}`, react);
  model.on("comm_live_update", look);
  form.draw();
  look();
  return () => {
    for (const name of TRAITS) model.off(`change:${name}`, react);
    model.off("comm_live_update", look);
  };
}

/**
 * Whether a kernel answers. What anywidget gives for a model doesn't say it; ipywidgets' own does.
 * @param {Widget<FormState>["model"]} model
 */
async function isLive(model) {
  try {
    const own = await model.widget_manager.get_model(model.get("key"));
    return own.comm_live !== false;
  } catch {  // another front end's manager
    return true;
  }
}

export default { render };
