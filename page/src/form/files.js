// The saved layouts, and the way into a cell.

import { button, copy, element, OWN_KEYS, uid, write } from "../dom.js";
import { OptionList } from "./combobox.js";

/** @import { Files as FilesView, Option } from "../protocol.d.ts" */
/** @import { Form } from "./form.js" */

const SHOWN_WITHIN_MS = 3000;

export class Files {
  /** @param {Form} form */
  constructor(form) {
    this.form = form;
    /** @type {string[]} */
    this.saved = [];
    /** @type {string | undefined} */
    this.name = undefined;
    const id = uid("name");
    this.input = element("input", {
      id,
      type: "text",
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "a name",
      "data-own-undo": true,
      oninput: () => this.#typed(),
      onclick: () => this.#open(this.saved),
      onblur: () => this.list.close(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#pressed(event),
      ...OWN_KEYS,
    });
    this.list = new OptionList(this.input, (name) => {
      this.input.value = name;
      this.#enable();
    });
    this.save = button("Save", () => this.#send("save"), { class: "dn-button" });
    this.load = button("Load", () => this.#send("load"), { class: "dn-button" });
    this.note = element("span", { class: "dn-note-of-files", role: "status" });
    this.rehearse = button("Rehearse in a new cell", () => this.#putInCell(form.view.rehearsal), {
      class: "dn-button", title: "A new cell with --rehearse: the same request, to stand-ins on this machine",
    });
    this.cell = button("Put in a new cell", () => this.#putInCell(form.view.cell), { class: "dn-button dn-main" });
    this.node = element(
      "div",
      { class: "dn-part dn-files" },
      element("label", { for: id }, "Layout"),
      element("span", { class: "dn-box" }, this.input),
      this.save,
      this.load,
      this.note,
      element("span", { class: "dn-run" }, this.rehearse, this.cell),
    );
  }

  /** @param {FilesView} files */
  update(files) {
    this.saved = files.saved;
    if (files.name !== this.name) this.input.value = files.name;
    this.name = files.name;
    this.say(files.note, files.tone);
    this.rehearse.hidden = !this.form.view.rehearsal;
    this.#enable();
  }

  /**
   * @param {string} text
   * @param {string} [tone]
   */
  say(text, tone = "good") {
    write(this.note, text);
    this.note.dataset.tone = tone;
  }

  #enable() {
    const name = this.input.value.trim();
    this.save.disabled = !name;
    this.load.disabled = !this.saved.includes(name);
  }

  #typed() {
    this.#enable();
    this.#open(this.saved.filter((name) => name.includes(this.input.value)));
  }

  /** @param {string[]} names */
  #open(names) {
    /** @type {Option[]} */
    const options = names.map((name) => [name, "", true]);
    this.list.show(options, this.input.value);
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (this.list.isOpen) this.list.move(event.key === "ArrowDown" ? 1 : -1);
      else this.#open(this.saved);
    } else if (event.key === "Escape") {
      this.list.close();
    } else if (event.key === "Enter" && !this.list.pick()) {
      this.list.close();
      if (!this.save.disabled) this.#send("save");
    }
  }

  /** @param {"save" | "load"} action */
  #send(action) {
    this.form.send(action, { name: this.input.value });
  }

  /** @param {string} head the cell's, with its options */
  async #putInCell(head) {
    const source = `${head}\n`;
    if (putInNewCell(this.form, source)) return this.say("The options are in the cell below");
    const done = await copy(source);
    this.say(done ? "The options are copied: paste them into a new cell" : "Copy the options above into a new cell");
  }
}

/**
 * In JupyterLab and Notebook the page itself knows the notebook; elsewhere there is no way to it.
 * @param {Form} form
 * @param {string} source
 */
function putInNewCell({ model, root }, source) {
  const notebook = model.widget_manager?.context?.model?.sharedModel;
  if (!notebook?.insertCell) return false;
  const key = model.get("key");
  const isOurs = (/** @type {any} */ cell) => JSON.stringify(cell.toJSON().outputs ?? []).includes(key);
  const at = notebook.cells.findIndex(isOurs);
  if (at < 0) return false;
  const here = root.closest(".jp-Cell");
  const next = here?.nextElementSibling;
  notebook.insertCell(at + 1, { cell_type: "code", source });
  if (here) focusBelow(here, next, performance.now() + SHOWN_WITHIN_MS);
  return true;
}

/**
 * The notebook shows a new cell some frames after it has one.
 * @param {Element} cell
 * @param {Element | null | undefined} next what was below it before
 * @param {number} until when to give up
 */
function focusBelow(cell, next, until) {
  const added = cell.nextElementSibling;
  const editor = added === next ? null : added?.querySelector(".cm-content");
  if (editor instanceof HTMLElement) {
    editor.focus();
    const selection = window.getSelection();
    selection?.selectAllChildren(editor);
    selection?.collapseToEnd();
  } else if (performance.now() < until) {
    requestAnimationFrame(() => focusBelow(cell, next, until));
  }
}
