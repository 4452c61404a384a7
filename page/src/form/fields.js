// Fields: an input with its label. What is typed goes to the kernel at every keystroke; what the
// kernel says is shown unless the user is just typing something else here.

import { element, OWN_KEYS, uid } from "../dom.js";
import { matching, OptionList } from "./combobox.js";

/** @import { FieldView, Option } from "../protocol.d.ts" */
/** @import { Form } from "./form.js" */

let visits = 0;

export class Field {
  /**
   * @param {Form} form
   * @param {FieldView} view
   */
  constructor(form, view) {
    this.form = form;
    this.view = view;
    this.path = view.path;
    this.typing = false;
    this.sent = 0;  // its last message; what the kernel says before it has answered that is older
    this.group = "";  // what is typed in one visit is undone at once
    /** @type {Option[]} */
    this.options = [];
    /** @type {OptionList | undefined} */
    this.list = undefined;
    const id = uid("field");
    this.label = element("label", { for: id }, view.label);
    this.input = element("input", {
      id,
      type: "text",
      autocomplete: "off",
      spellcheck: "false",
      "data-path": view.path,
      placeholder: view.hint,
      oninput: () => this.typed(),
      onfocus: () => this.focused(),
      onblur: () => this.blurred(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.pressed(event),
      ...OWN_KEYS,
    });
    this.box = element("span", { class: "dn-box" }, this.input);
    this.node = element("div", { class: `dn-field dn-${view.name}` }, this.label, this.box);
    if (view.kind === "combo") this.list = this.#becomeCombobox();
    if (view.kind === "number") this.#becomeNumber();
  }

  #becomeCombobox() {
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"]]) {
      this.input.setAttribute(name, value);
    }
    const list = new OptionList(this.input, (value) => this.chosen(value));
    const open = () => list.show(this.options, this.input.value);
    this.input.addEventListener("click", open);
    this.box.append(
      element("span", {
        class: "dn-caret",
        "aria-hidden": "true",
        onmousedown: (/** @type {MouseEvent} */ event) => {
          event.preventDefault();
          this.input.focus();
          if (list.isOpen) list.close();
          else open();
        },
      }),
    );
    return list;
  }

  #becomeNumber() {
    this.input.setAttribute("inputmode", "numeric");
    this.input.setAttribute("role", "spinbutton");
  }

  /** @param {FieldView} view */
  update(view) {
    this.view = view;
    this.options = this.form.options[this.path] ?? [];
    this.box.classList.toggle("dn-listed", Boolean(this.list && this.options.length));
    if (!this.typing && this.sent <= this.form.heard) this.show(view.text);
    if (view.kind === "number") this.input.setAttribute("aria-valuetext", view.text || view.hint || "none");
  }

  /** @param {string} text */
  show(text) {
    if (this.input.value !== text) this.input.value = text;
  }

  /**
   * Marks the field with what is wrong with it.
   * @param {string[]} ids of the sentences
   * @param {string | undefined} severity the worst
   */
  mark(ids, severity) {
    this.box.dataset.severity = severity ?? "";
    if (ids.length) this.input.setAttribute("aria-describedby", ids.join(" "));
    else this.input.removeAttribute("aria-describedby");
    if (severity === "error") this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }

  focused() {
    visits += 1;
    this.group = `${this.form.outbox.page}:${visits}`;
    this.input.select();
  }

  blurred() {
    if (this.typing) this.form.left();
    this.typing = false;
    this.list?.close();
    if (this.sent <= this.form.heard) this.show(this.view.text);
  }

  /** A list that is open listens to the window. */
  gone() {
    this.list?.close();
  }

  typed() {
    this.typing = true;
    this.form.typed();
    this.sent = this.form.send("set", { path: this.path, text: this.input.value, group: this.group });
    if (!this.list) return;
    const found = matching(this.options, this.input.value);
    const settled = found.length === 1 && found[0][0].toLowerCase() === this.input.value.toLowerCase();
    if (settled || !found.length) this.list.close();
    else this.list.show(found, this.input.value);
  }

  /** @param {string} value */
  chosen(value) {
    this.typing = false;
    this.show(value);
    this.sent = this.form.send("choose", { path: this.path, text: value });
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (this.list) this.#pressedInCombobox(this.list, event);
    else if (this.view.kind === "number" && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      const now = Number.parseInt(this.input.value, 10) || 0;
      this.input.value = String(Math.max(0, now + (event.key === "ArrowUp" ? 1 : -1)));
      this.typed();
    }
  }

  /**
   * @param {OptionList} list
   * @param {KeyboardEvent} event
   */
  #pressedInCombobox(list, event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.isOpen) list.move(event.key === "ArrowDown" ? 1 : -1);
      else list.show(this.options, this.input.value);
    } else if (event.key === "Enter" && list.pick()) {
      event.preventDefault();
    } else if (event.key === "Escape" && list.isOpen) {
      event.preventDefault();
      list.close();
      this.form.typed();
    }
  }
}
