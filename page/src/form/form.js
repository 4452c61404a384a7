// The job builder as a whole. The kernel keeps the layout and decides everything; this draws what it
// says, one answer at a time, and sends what the user does.

import { button, element } from "../dom.js";
import { Cost } from "./cost.js";
import { Ended } from "./ended.js";
import { Files } from "./files.js";
import { keyOf } from "./notes.js";
import { Outbox } from "./outbox.js";
import { Pools } from "./pools.js";
import { Preview } from "./preview.js";
import { Places, Settings } from "./settings.js";
import { Tuning } from "./tuning.js";
import { NOT_CHECKED, Picture, Totals, Traffic, Verdict } from "./verdict.js";

/** @import { FormState, FormView, Model } from "../protocol.d.ts" */

const ANSWERED_WITHIN_MS = 400;
const RESTS_AFTER_MS = 800;
const CLICKED_WITHIN_MS = 250;

export class Form {
  /**
   * @param {Model<FormState>} model
   * @param {HTMLElement} root
   */
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.view = model.get("view");
    this.options = model.get("options");
    this.outbox = new Outbox(model);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.waiting = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} while what is new about a text waits */
    this.holding = undefined;
    /** @type {string[]} */
    this.focusing = [];
    this.undo = button("↶", () => this.back("undo"), { class: "dn-button dn-plain", "aria-label": "Undo", title: "Undo (Ctrl+Z)" });
    this.redo = button("↷", () => this.back("redo"), { class: "dn-button dn-plain", "aria-label": "Redo", title: "Redo (Ctrl+Shift+Z)" });
    this.settings = new Settings(this);
    this.pools = new Pools(this);
    this.tuning = new Tuning(this);
    this.files = new Files(this);
    const places = new Places(this);
    const middle = [new Totals(), new Picture(), new Verdict(this), new Cost(this), new Traffic(this)];
    const preview = new Preview(this);
    this.parts = [places, this.settings, this.pools, this.tuning, ...middle, preview];
    this.ended = new Ended();
    root.append(
      this.ended.node,
      element("div", { class: "dn-part dn-top" }, places.node, element("span", { class: "dn-back" }, this.undo, this.redo)),
      this.settings.node,
      this.pools.node,
      this.tuning.node,
      element("div", { class: "dn-part dn-middle" }, ...middle.map((part) => part.node)),
      preview.node,
      this.files.node,
    );
  }

  get isWaiting() {
    return this.outbox.isWaiting;
  }

  get heard() {
    return this.outbox.heard;
  }

  /**
   * Tell the kernel what the user does. Gives the number that it answers with.
   * @param {string} what
   * @param {object} rest
   */
  send(what, rest) {
    if (!this.ended.node.hidden) return this.outbox.sent;
    try {
      this.outbox.send({ do: what, ...rest });
    } catch {  // the kernel has gone, and this front end marks no views
      this.setLive(false);
      return this.outbox.sent;
    }
    clearTimeout(this.waiting);
    const show = () => this.root.toggleAttribute("data-waiting", this.isWaiting);
    this.waiting = setTimeout(show, ANSWERED_WITHIN_MS);
    return this.outbox.sent;
  }

  /**
   * Without a kernel nobody decides: show the layout as it was known last, and how to go on. A kernel
   * may be found again, as by a page that is loaded while it connects.
   * @param {boolean} isLive
   */
  setLive(isLive) {
    if (isLive === this.ended.node.hidden) return;
    this.settle();
    clearTimeout(this.waiting);
    if (!isLive) this.outbox.close();
    this.root.removeAttribute("data-waiting");
    this.ended.show(!isLive, this.model.get("view").again ?? "");
    for (const node of this.root.children) node.toggleAttribute("inert", !isLive && node !== this.ended.node);
    this.draw();
  }

  /** @param {"undo" | "redo"} what */
  back(what) {
    this.settle();
    this.send(what, {});
  }

  get fields() {
    const rows = [this.settings, ...this.pools.pools.values()].flatMap(({ fields }) => [...fields.values()]);
    return [...rows, ...this.tuning.fields];
  }

  /** Let every field show what the kernel says, also the one that is being typed in. */
  settle() {
    for (const field of this.fields) field.typing = false;
  }

  /** Nobody is told that half a word is wrong, or what a list is being searched for. */
  typed() {
    this.#hold(RESTS_AFTER_MS);
  }

  /** What comes into sight must not move what is just being clicked on. */
  left() {
    this.#hold(CLICKED_WITHIN_MS);
  }

  /** @param {number} milliseconds */
  #hold(milliseconds) {
    clearTimeout(this.holding);
    this.holding = setTimeout(() => {
      this.holding = undefined;
      this.draw();
    }, milliseconds);
  }

  /**
   * The view with the findings as they were and no verdict, while there are new ones and the user is busy.
   * @param {FormView} view
   */
  #calm(view) {
    const isChoosing = this.fields.some(({ typing, list }) => typing && list?.isOpen);
    if (this.holding === undefined && !isChoosing && !this.isWaiting) return view;
    const known = new Set(this.view.findings.map(keyOf));
    if (view.findings.every((finding) => known.has(keyOf(finding)))) return view;
    return { ...view, findings: this.view.findings, verdict: NOT_CHECKED };
  }

  draw() {
    this.outbox.hear(this.model.get("heard"));
    this.view = this.#calm(this.model.get("view"));
    this.options = this.model.get("options");
    const hadFocus = this.root.contains(document.activeElement);
    for (const part of this.parts) part.update(this.view);
    this.files.update(this.model.get("files"));
    this.undo.disabled = !this.view.undo;
    this.redo.disabled = !this.view.redo;
    if (!this.isWaiting) this.#settled();
    if (hadFocus) this.#keepFocus();
  }

  /** What had the focus may be gone or disabled; the keys that undo it have to work all the same. */
  #keepFocus() {
    const focused = document.activeElement;
    const isDisabled = focused instanceof HTMLButtonElement && focused.disabled;
    if (!this.root.contains(focused) || isDisabled) this.root.focus({ preventScroll: true });
  }

  #settled() {
    clearTimeout(this.waiting);
    this.root.removeAttribute("data-waiting");
    this.focus(...this.focusing.splice(0));
  }

  /**
   * The first of these places that is there gets the focus once the kernel has answered.
   * @param {...string} paths
   */
  focusSoon(...paths) {
    this.settle();
    this.focusing = paths;
  }

  /** @param {...string} paths */
  focus(...paths) {
    const find = (/** @type {string} */ selector) => /** @type {HTMLElement | null} */ (this.root.querySelector(selector));
    for (const path of paths.map((path) => CSS.escape(path))) {
      const node = find(`[data-path="${path}"]`) ?? find(`[data-role="${path}"] input`);
      if (node) return node.focus();
    }
  }

  /**
   * Keys that mean the whole form.
   * @param {KeyboardEvent} event
   */
  pressed(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase();
    const hasOwnUndo = /** @type {Element} */ (event.target).closest("[data-own-undo]");
    if (key === "s") {
      event.preventDefault();
      if (this.files.save.disabled) this.files.input.focus();
      else this.files.save.click();
    } else if ((key === "z" || key === "y") && !hasOwnUndo) {
      event.preventDefault();
      this.back(key === "y" || event.shiftKey ? "redo" : "undo");
    }
  }
}
