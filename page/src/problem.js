// Buttons for the repairs of a cell, in the panel that says what is wrong with it.

import { button, copy, element, write } from "./dom.js";

/** @import { Model } from "./protocol.d.ts" */
/** @typedef {{getSource: () => string, setSource: (text: string) => void}} Cell */

const FIND_EVERY_MS = 250;
const ANSWER_WITHIN_MS = 3000;

/** @param {{model: Model<{key: string}>}} widget */
function initialize({ model }) {
  const offered = new WeakSet();
  const find = () => {
    for (const panel of document.querySelectorAll(`[data-distrain-problem="${model.get("key")}"]`)) {
      if (!offered.has(panel)) offer(panel, model);
      offered.add(panel);
    }
  };
  const clock = setInterval(find, FIND_EVERY_MS);
  return () => clearInterval(clock);
}

/**
 * @param {Element} panel
 * @param {Model<{key: string}>} model
 */
function offer(panel, model) {
  const said = element("div", { class: "dn-said", role: "status" });
  panel.append(said);
  for (const way of panel.querySelectorAll("[data-repair]")) {
    if (!(way instanceof HTMLElement)) continue;
    const made = button("", () => repair(model, way, made, said), { title: way.dataset.line });
    made.append(...way.childNodes);
    way.append(made);
  }
}

/**
 * The kernel says what the cell, as it stands now, becomes; where that can't be, its line is copied.
 * @param {Model<{key: string}>} model
 * @param {HTMLElement} way
 * @param {HTMLButtonElement} pressed
 * @param {HTMLElement} said
 */
async function repair(model, way, pressed, said) {
  const cell = cellOf(model);
  const source = cell && await answer(model, way.dataset, cell.getSource());
  if (cell && source !== undefined) {
    cell.setSource(source);
    pressed.disabled = true;
    write(said, "The cell is changed: run it again");
  } else {
    const line = way.dataset.line ?? "";
    write(said, await copy(line) ? `Copied: ${line}` : `Write it into the cell: ${line}`);
  }
}

/**
 * The text of the repaired cell; nothing when no kernel answers.
 * @param {Model<{key: string}>} model
 * @param {DOMStringMap} wanted
 * @param {string} source
 * @returns {Promise<string | undefined>}
 */
function answer(model, wanted, source) {
  const id = Math.random().toString(36).slice(2);
  return new Promise((resolve) => {
    const done = (/** @type {string | undefined} */ text) => {
      model.off("msg:custom", hear);
      clearTimeout(timer);
      resolve(text);
    };
    const hear = (/** @type {any} */ message) => { if (message.id === id) done(message.source); };
    const timer = setTimeout(() => done(undefined), ANSWER_WITHIN_MS);
    model.on("msg:custom", hear);
    const { point, repair: number } = wanted;
    try {
      model.send({ kind: "repair", id, point: Number(point), repair: Number(number), source });
    } catch {  // the kernel is gone
      done(undefined);
    }
  });
}

/**
 * In JupyterLab and Notebook the page itself knows the notebook; elsewhere there is no way to it.
 * @param {Model<{key: string}>} model
 * @returns {Cell | undefined}
 */
function cellOf(model) {
  const notebook = model.widget_manager?.context?.model?.sharedModel;
  const key = model.get("key");
  const isOurs = (/** @type {any} */ cell) => JSON.stringify(cell.toJSON().outputs ?? []).includes(key);
  return notebook?.cells?.find(isOurs);
}

export default { initialize };
