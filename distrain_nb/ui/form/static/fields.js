// Fields: an input with its label. What is typed goes to the kernel at every keystroke; what the
// kernel says is shown unless the user is just typing something else here.

let visits = 0;

class Field {
  constructor(form, told) {
    this.form = form;
    this.path = told.path;
    this.typing = false;
    this.sent = 0;
    this.options = [];
    const id = uid("field");
    this.label = element("label", { for: id }, told.label);
    this.input = element("input", {
      id,
      type: "text",
      autocomplete: "off",
      spellcheck: "false",
      "data-path": told.path,
      placeholder: told.hint,
      oninput: () => this.typed(),
      onfocus: () => this.focused(),
      onblur: () => this.blurred(),
      onkeydown: (event) => this.pressed(event),
    });
    this.box = element("span", { class: "dn-box" }, this.input);
    this.node = element("div", { class: `dn-field dn-${told.name}` }, this.label, this.box);
    if (told.kind === "combo") this.#becomeCombobox();
    if (told.kind === "number") this.#becomeNumber();
  }

  #becomeCombobox() {
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"]]) {
      this.input.setAttribute(name, value);
    }
    this.list = new OptionList(this.input, (value) => this.chosen(value));
    this.input.addEventListener("click", () => this.openList());
    this.box.append(
      element("span", {
        class: "dn-caret",
        "aria-hidden": "true",
        onmousedown: (event) => {
          event.preventDefault();
          this.input.focus();
          if (this.list.isOpen) this.list.close();
          else this.openList();
        },
      }),
    );
  }

  #becomeNumber() {
    this.input.setAttribute("inputmode", "numeric");
    this.input.setAttribute("role", "spinbutton");
  }

  update(told) {
    this.told = told;
    this.options = this.form.options[this.path] ?? [];
    this.box.classList.toggle("dn-listed", Boolean(this.list && this.options.length));
    if (!this.typing && this.sent <= this.form.heard) this.show(told.text);
    if (told.kind === "number") this.input.setAttribute("aria-valuetext", told.text || told.hint || "none");
  }

  show(text) {
    if (this.input.value !== text) this.input.value = text;
  }

  // Marks the field with what is wrong with it: the ids of the sentences, the worst severity.
  mark(ids, severity) {
    this.box.dataset.severity = severity ?? "";
    if (ids.length) this.input.setAttribute("aria-describedby", ids.join(" "));
    else this.input.removeAttribute("aria-describedby");
    if (severity === "error") this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }

  focused() {
    visits += 1;
    this.group = `${this.form.page}:${visits}`;
    this.input.select();
  }

  blurred() {
    this.typing = false;
    this.list?.close();
    if (this.sent <= this.form.heard) this.show(this.told.text);
  }

  // A list that is open listens to the window.
  gone() {
    this.list?.close();
  }

  typed() {
    this.typing = true;
    this.#send(this.input.value, this.group);
    if (!this.list) return;
    const found = matching(this.options, this.input.value);
    const settled = found.length === 1 && found[0][0] === this.input.value;
    if (settled || !found.length) this.list.close();
    else this.list.show(found, this.input.value);
  }

  chosen(value) {
    this.typing = false;
    this.show(value);
    this.#send(value, "");
  }

  // What the kernel has not answered yet is newer than what it says meanwhile.
  #send(text, group) {
    this.sent = this.form.send("set", { path: this.path, text, group });
  }

  openList() {
    this.list.show(this.options, this.input.value);
  }

  pressed(event) {
    if (this.list) this.#pressedInCombobox(event);
    else if (this.told.kind === "number" && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      const now = Number.parseInt(this.input.value, 10) || 0;
      this.input.value = String(Math.max(0, now + (event.key === "ArrowUp" ? 1 : -1)));
      this.typed();
    }
  }

  #pressedInCombobox(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (this.list.isOpen) this.list.move(step);
      else this.openList();
    } else if (event.key === "Enter" && this.list.pick()) {
      event.preventDefault();
    } else if (event.key === "Escape" && this.list.isOpen) {
      event.preventDefault();
      this.list.close();
    }
  }
}
