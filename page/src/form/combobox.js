// A text field with a list of what fits: any text may be typed, and the list narrows down to it.

import { element, uid } from "../dom.js";

/** @import { Option } from "../protocol.d.ts" */

const LONGEST = 250;

/**
 * Numbers and units in one spelling, so that `8 x H100` is `8gpu h100`, and `80 GiB` is `80gb`.
 * @param {string} text
 */
function normal(text) {
  return text.toLowerCase()
    .replace(/(\d),(?=\d{3})/g, "$1")
    .replace(/\b(\d+)\s*[x×*]\s*/g, "$1gpu ")
    .replace(/\b(\d+)\s*(gpu|tpu|gb|vcpu)s?\b/g, "$1$2")
    .replace(/\b(\d+)\s*gib\b/g, "$1gb");
}

/**
 * The options that all the words fit, each of them some text or a number with its unit; those come
 * first that have what is wanted, before others that can be given it.
 * @param {Option[]} options
 * @param {string} text
 */
export function matching(options, text) {
  const words = normal(text).split(/\s+/).filter(Boolean);
  const ranked = options.flatMap((option) => {
    const [value, detail, fits, has = "", takes = ""] = option;
    const own = has.split(" ");
    const said = normal(`${value} ${detail} ${has} ${takes}`);
    const terms = new Set(said.split(/[\s,()]+/));
    const isFound = (/** @type {string} */ word) => (/^\d+[a-z]+$/.test(word) ? terms.has(word) : said.includes(word));
    if (!words.every(isFound)) return [];
    return [{ option, rank: (fits ? 0 : LONGEST) - words.filter((word) => own.includes(word)).length }];
  });
  return ranked.sort((one, other) => one.rank - other.rank).map(({ option }) => option);
}

export class OptionList {
  /**
   * @param {HTMLInputElement} input
   * @param {(value: string) => void} choose called with the value that was picked
   */
  constructor(input, choose) {
    this.input = input;
    this.choose = choose;
    /** @type {HTMLUListElement | null} null while it is closed */
    this.list = null;
    /** @type {string[]} */
    this.values = [];
    this.active = -1;
    this.place = () => this.#place();
  }

  get isOpen() {
    return this.list !== null;
  }

  /**
   * @param {Option[]} options
   * @param {string} current
   */
  show(options, current) {
    const found = options.slice(0, LONGEST);
    if (!found.length) return this.close();
    this.list ??= this.#open();
    this.list.replaceChildren(...rows(found, current));
    this.values = found.map(([value]) => value);
    this.#activate(this.values.indexOf(current));
    this.#place();
  }

  close() {
    if (!this.list) return;
    this.list.remove();
    this.list = null;
    this.active = -1;
    window.removeEventListener("scroll", this.place, true);
    window.removeEventListener("resize", this.place);
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-controls");
    this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {1 | -1} step */
  move(step) {
    const count = this.values.length;
    this.#activate(this.active < 0 ? (step > 0 ? 0 : count - 1) : (this.active + step + count) % count);
  }

  /** Picks what the arrow keys stopped at; says whether there was anything. */
  pick() {
    if (!this.list || this.active < 0) return false;
    this.choose(this.values[this.active]);
    this.close();
    return true;
  }

  #open() {
    const list = element("ul", {
      class: "dn-options", role: "listbox", id: uid("options"), popover: "manual",
      "aria-label": this.input.labels?.[0]?.textContent ?? "",
    });
    // Before the input loses the focus, which closes the list.
    list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const row = /** @type {Element} */ (event.target).closest("[role=option]");
      if (!(row instanceof HTMLElement)) return;
      this.choose(row.dataset.value ?? "");
      this.close();
    });
    this.input.parentElement?.append(list);
    list.showPopover?.();
    window.addEventListener("scroll", this.place, true);
    window.addEventListener("resize", this.place);
    this.input.setAttribute("aria-expanded", "true");
    this.input.setAttribute("aria-controls", list.id);
    return list;
  }

  /** @param {number} number */
  #activate(number) {
    const rows = this.list?.querySelectorAll("[role=option]") ?? [];
    rows[this.active]?.classList.remove("dn-active");
    this.active = number;
    const row = rows[number];
    if (!row) return this.input.removeAttribute("aria-activedescendant");
    row.classList.add("dn-active");
    row.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", row.id);
  }

  #place() {
    if (!this.list) return;
    const box = this.input.getBoundingClientRect();
    const below = window.innerHeight - box.bottom - 12;
    const above = box.top - 12;
    const up = below < 160 && above > below;
    const style = this.list.style;
    style.minWidth = `${box.width}px`;
    style.maxHeight = `${Math.min(280, up ? above : below)}px`;
    style.left = "0";  // its width is that of the window then, not that of what is right of the field
    style.left = `${Math.max(4, Math.min(box.left, window.innerWidth - this.list.offsetWidth - 8))}px`;
    style.top = up ? "auto" : `${box.bottom + 3}px`;
    style.bottom = up ? `${window.innerHeight - box.top + 3}px` : "auto";
  }
}

/**
 * @param {Option[]} options
 * @param {string} current
 */
function rows(options, current) {
  return options.flatMap(([value, detail, fits], number) => {
    const isFirstUnfit = !fits && (number === 0 || options[number - 1][2]);
    const row = element(
      "li",
      { role: "option", id: uid("option"), "data-value": value, class: fits ? "" : "dn-unfit", "aria-selected": String(value === current) },
      element("span", {}, value || detail),
      value && detail ? element("span", { class: "dn-detail" }, detail) : null,
    );
    const divider = element("li", { class: "dn-divider", role: "presentation" }, "does not fit the other fields");
    return isFirstUnfit ? [divider, row] : [row];
  });
}
