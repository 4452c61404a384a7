// The whole: one answer of the kernel is drawn at a time, and keys that mean the whole form.

const PATIENCE = 400;
const TRAITS = ["view", "options", "files", "heard"];

class Form {
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.page = Math.random().toString(36).slice(2);
    this.sent = 0;
    this.heard = 0;
    this.focusing = [];
    this.undo = button("↶", () => this.back("undo"), { class: "dn-button dn-plain", "aria-label": "Undo", title: "Undo (Ctrl+Z)" });
    this.redo = button("↷", () => this.back("redo"), { class: "dn-button dn-plain", "aria-label": "Redo", title: "Redo (Ctrl+Shift+Z)" });
    this.parts = [new Places(this), new Settings(this), new Pools(this), new Totals(), new Picture(), new Verdict(this), new Traffic(this), new Preview(this)];
    this.files = new Files(this);
    const [places, settings, pools, totals, picture, verdict, traffic, preview] = this.parts.map((part) => part.node);
    const head = element("div", { class: "dn-part dn-top" }, places, element("span", { class: "dn-back" }, this.undo, this.redo));
    const middle = element("div", { class: "dn-part dn-middle" }, totals, picture, verdict, traffic);
    root.append(head, settings, pools, middle, preview, this.files.node);
  }

  get isWaiting() {
    return this.heard < this.sent;
  }

  send(what, rest) {
    this.sent += 1;
    this.model.send({ do: what, page: this.page, number: this.sent, ...rest });
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.root.toggleAttribute("data-waiting", this.isWaiting), PATIENCE);
    return this.sent;
  }

  back(what) {
    this.settle();
    this.send(what, {});
  }

  // Let every field show what the kernel says, also the one that is being typed in.
  settle() {
    for (const input of this.root.querySelectorAll("input[data-path]")) this.fieldOf(input).typing = false;
  }

  fieldOf(input) {
    const path = input.dataset.path;
    const [, settings, pools] = this.parts;
    return settings.fields.get(path) ?? pools.pools.get(path.split(".")[0]).fields.get(path);
  }

  draw() {
    this.view = this.model.get("view");
    this.options = this.model.get("options");
    const hadFocus = this.root.contains(document.activeElement);
    const [page, number] = this.model.get("heard");
    if (page === this.page) this.heard = number;
    for (const part of this.parts) part.update(this.view);
    this.files.update(this.model.get("files"));
    this.undo.disabled = !this.view.undo;
    this.redo.disabled = !this.view.redo;
    if (!this.isWaiting) this.#settled();
    if (hadFocus) this.#keepFocus();
  }

  // What had the focus may be gone or disabled; the keys that undo it have to work all the same.
  #keepFocus() {
    const focused = document.activeElement;
    if (!this.root.contains(focused) || focused.disabled) this.root.focus({ preventScroll: true });
  }

  #settled() {
    clearTimeout(this.patience);
    this.root.removeAttribute("data-waiting");
    this.focus(...this.focusing.splice(0));
  }

  // The first of these places that is there gets the focus once the kernel has answered.
  focusSoon(...paths) {
    this.settle();
    this.focusing = paths;
  }

  focus(...paths) {
    for (const path of paths) {
      const node = this.root.querySelector(`[data-path="${CSS.escape(path)}"]`) ?? this.root.querySelector(`[data-role="${CSS.escape(path)}"] input`);
      if (node) return node.focus();
    }
  }

  pressed(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key === "s") {
      event.preventDefault();
      if (this.files.save.disabled) this.files.input.focus();
      else this.files.save.click();
    } else if ((key === "z" || key === "y") && !event.target.closest("[data-own-undo]")) {
      event.preventDefault();
      this.back(key === "y" || event.shiftKey ? "redo" : "undo");
    }
  }
}

function render({ model, el }) {
  const root = element("section", { class: "distrain dn-form", "aria-label": "Job layout", tabindex: "-1" });
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
