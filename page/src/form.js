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
  for (const name of TRAITS) model.on(`change:${name}`, react);
  form.draw();
  return () => {
    for (const name of TRAITS) model.off(`change:${name}`, react);
  };
}

export default { render };
