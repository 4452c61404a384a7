// Spans that the reader chooses on parallel axes, by the mouse or, at both ends, by keys.

import { element, OWN_KEYS } from "../dom.js";
import { stepOf, textAt } from "./axes.js";

/** @import { StudyAxis } from "../protocol.d.ts" */
/** @import { Span } from "./axes.js" */

const MOVED = 0.015;  // of an axis: less is a click
const PAGE = 5;       // steps

export class Brushes {
  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.names = "";
    /** @type {Brush[]} */
    this.brushes = [];
    this.node = element("div", { class: "dn-brushes", role: "group", "aria-label": "Which trials are shown, by axis" });
  }

  /** @param {StudyAxis[]} axes */
  show(axes) {
    const names = JSON.stringify(axes.map(({ name }) => name));
    if (names !== this.names) {
      this.names = names;
      this.brushes = axes.map((axis, place) => new Brush(axis, place / Math.max(1, axes.length - 1), this.changed));
      this.node.replaceChildren(...this.brushes.map(({ node }) => node));
    }
    this.brushes.forEach((brush, place) => brush.rename(axes[place]));
  }

  get spans() { return this.brushes.map(({ span }) => span); }

  clear() {
    for (const brush of this.brushes) brush.set(null);
    this.changed();
  }
}

class Brush {
  /**
   * @param {StudyAxis} axis
   * @param {number} left from 0 to 1
   * @param {() => void} changed
   */
  constructor(axis, left, changed) {
    this.axis = axis;
    this.changed = changed;
    /** @type {Span | null} */
    this.span = null;
    this.box = element("div", { class: "dn-span", hidden: true });
    this.grips = /** @type {const} */ ([0, 1]).map((end) => this.grip(end));
    this.node = element("div", { class: "dn-brush", style: `left:${left * 100}%` }, this.box, ...this.grips);
    this.node.addEventListener("pointerdown", (event) => this.drag(event));
    this.set(null);
  }

  /** @param {0 | 1} end */
  grip(end) {
    return element("div", {
      class: "dn-grip", role: "slider", tabindex: 0, "aria-orientation": "vertical",
      "aria-label": `${this.axis.name} ${end ? "to" : "from"}`, "aria-valuemin": 0, "aria-valuemax": 100, ...OWN_KEYS,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event, end),
    });
  }

  /** @param {StudyAxis} axis whose range may have changed */
  rename(axis) {
    this.axis = axis;
    this.tell();
  }

  /** @param {Span | null} span */
  set(span) {
    this.span = span && (span[0] > 0 || span[1] < 1) ? span : null;
    const [low, high] = span ?? [0, 1];
    this.box.hidden = !this.span;
    Object.assign(this.box.style, { bottom: `${low * 100}%`, height: `${(high - low) * 100}%` });
    this.tell();
  }

  tell() {
    (this.span ?? [0, 1]).forEach((share, end) => {
      const grip = this.grips[end];
      grip.style.bottom = `${share * 100}%`;
      grip.setAttribute("aria-valuenow", String(Math.round(share * 100)));
      const inside = end ? share - 1e-9 : share;  // the upper end of a listed value's place is its own
      grip.setAttribute("aria-valuetext", textAt(this.axis, inside));
    });
  }

  /** @param {PointerEvent} event */
  shareAt({ clientY }) {
    const { top, height } = this.node.getBoundingClientRect();
    return Math.min(1, Math.max(0, 1 - (clientY - top) / height));
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (event.button) return;
    const from = this.shareAt(event);
    event.preventDefault();
    this.node.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ moved) => {
      const to = this.shareAt(moved);
      this.set(Math.abs(to - from) < MOVED ? null : [Math.min(from, to), Math.max(from, to)]);
      this.changed();
    };
    const end = (/** @type {PointerEvent} */ last) => {
      move(last);
      this.node.removeEventListener("pointermove", move);
    };
    this.node.addEventListener("pointermove", move);
    this.node.addEventListener("pointerup", end, { once: true });
    this.node.addEventListener("pointercancel", () => this.node.removeEventListener("pointermove", move), { once: true });
  }

  /**
   * @param {KeyboardEvent} event
   * @param {0 | 1} end
   */
  key(event, end) {
    const step = stepOf(this.axis);
    /** @type {Record<string, number>} */
    const moves = {
      ArrowUp: step, ArrowRight: step, ArrowDown: -step, ArrowLeft: -step,
      PageUp: PAGE * step, PageDown: -PAGE * step, Home: -1, End: 1,
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") this.set(null);
    else if (event.key in moves) this.set(this.moved(end, moves[event.key], step));
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.changed();
  }

  /**
   * @param {0 | 1} end
   * @param {number} by
   * @param {number} least between the ends
   * @returns {Span}
   */
  moved(end, by, least) {
    const [low, high] = this.span ?? [0, 1];
    const to = (/** @type {number} */ share) => Math.round(share * 1e6) / 1e6;
    return end
      ? [low, to(Math.min(1, Math.max(low + least, high + by)))]
      : [to(Math.max(0, Math.min(high - least, low + by))), high];
  }
}
