// A table that is kept current, sorted by any column; arrow keys go from row to row.

import { button, element, OWN_KEYS, write } from "../dom.js";
import { fill } from "../run/head.js";
import { className, sorted } from "./columns.js";

/** @import { Progress } from "../protocol.d.ts" */

const PAGE_OF_ROWS = 50;  // more are laid out and painted for longer than a frame

/** @typedef {{id: number, state: string, final: boolean}} Item what a row shows */
/**
 * @template {Item} T
 * @typedef {import("./columns.js").Column<T>} Column
 */

/** @template {Item} T */
export class SortedTable {
  /**
   * @param {string} what its rows are, in the plural
   * @param {Column<T>[]} columns
   * @param {Column<T>} first by which it is sorted
   * @param {Record<string, string>} [attributes] of the table
   */
  constructor(what, columns, first, attributes = {}) {
    this.columns = columns;
    /** @type {Map<number, SortedRow<T>>} by the item's number */
    this.rows = new Map();
    /** @type {SortedRow<T> | undefined} the one that the Tab key goes to */
    this.current = undefined;
    this.order = { column: first, down: true };
    this.most = PAGE_OF_ROWS;
    /** @type {T[]} all that pass, in their order */
    this.items = [];
    /** @type {Set<number>} */
    this.ticks = new Set();
    this.body = element("tbody");
    this.heads = columns.map((column) => this.head(column));
    const unseen = (/** @type {string} */ text, className = "") => (
      element("th", { class: className, scope: "col" }, element("span", { class: "dn-unseen" }, text))
    );
    const line = element("tr", {}, unseen("compare"), ...this.heads, unseen("actions", "dn-row-actions"));
    const label = `${what}; arrow keys go from row to row, Enter opens one`;
    const table = element("table", { class: "dn-table", "aria-label": label, ...attributes }, element("thead", {}, line), this.body);
    this.rest = button("", () => this.showMore(), { class: "dn-chip dn-rest", hidden: true });
    this.frame = element("div", { class: "dn-runs", ...OWN_KEYS }, table, this.rest);
  }

  showMore() {
    this.most += PAGE_OF_ROWS;
    this.show();
    this.rowAt(this.most - PAGE_OF_ROWS)?.node.focus();
  }

  /**
   * The row of an item that passes, made if it is further down than rows are shown.
   * @param {number} id
   */
  reveal(id) {
    const place = this.items.findIndex((item) => item.id === id);
    if (place >= this.most) {
      this.most = place + 1;
      this.show();
    }
    return this.rows.get(id);
  }

  /**
   * @param {number} id
   * @param {boolean} isTicked
   */
  tick(id, isTicked) {
    if (isTicked) this.ticks.add(id);
    else this.ticks.delete(id);
    this.ticked();
  }

  untick() {
    this.ticks.clear();
    for (const row of this.rows.values()) row.tick.checked = false;
    this.ticked();
    this.current?.node.focus();
  }

  /** @param {Column<T>} column */
  head(column) {
    const sort = button(column.name, () => this.sort(column), { class: "dn-sort", title: `Sort by ${column.name}` });
    return element("th", { class: className(column), scope: "col" }, sort);
  }

  /** @param {Column<T>} column */
  sort(column) {
    const down = this.order.column === column ? !this.order.down : false;
    this.order = { column, down };
    this.show();
  }

  /** Bring it up to date. */
  show() {}

  /**
   * @param {T} _item
   * @returns {SortedRow<T>}
   */
  row(_item) { throw new Error("has no rows"); }

  /** A box was ticked, or is there no more. */
  ticked() {}

  /**
   * What was asked for by Enter.
   * @param {T} _item
   */
  open(_item) {}

  /**
   * @param {T[]} items
   * @param {Column<T>[]} columns those that are shown
   * @param {number} now
   */
  fill(items, columns, now) {
    this.showHeads(columns);
    this.items = sorted(items, this.order, now);
    const shown = this.items.slice(0, this.most);
    const there = new Set(shown.map(({ id }) => id));
    for (const [id, row] of this.rows) if (!there.has(id)) this.leave(id, row);
    /** @type {Element | null} the row that stands where the next one belongs */
    let next = this.body.firstElementChild;
    for (const item of shown) {
      const row = this.rows.get(item.id) ?? this.row(item);
      this.rows.set(item.id, row);
      row.show(item, now, columns);
      if (row.node === next) next = next.nextElementSibling;
      else this.put(row.node, next);
    }
    const more = items.length - shown.length;
    this.rest.hidden = !more;
    write(this.rest, `Show ${Math.min(more, PAGE_OF_ROWS)} more of ${more}`);
    if (!this.current || !this.rows.has(this.current.item.id)) this.visit(this.rowAt(0));
  }

  /** @param {Column<T>[]} columns those that are shown */
  showHeads(columns) {
    this.heads.forEach((head, place) => {
      const column = this.columns[place];
      head.hidden = !columns.includes(column);
      if (column !== this.order.column) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
    });
  }

  /**
   * What is moved loses the focus.
   * @param {HTMLElement} node
   * @param {Element | null} next
   */
  put(node, next) {
    const held = node.contains(document.activeElement) ? document.activeElement : null;
    this.body.insertBefore(node, next);
    if (held instanceof HTMLElement) held.focus({ preventScroll: true });
  }

  /**
   * @param {number} id
   * @param {SortedRow<T>} row
   */
  leave(id, row) {
    const held = row.node.contains(document.activeElement);
    const next = row.node.nextElementSibling ?? row.node.previousElementSibling;
    row.node.remove();
    this.rows.delete(id);
    if (held && next instanceof HTMLElement) next.focus();
  }

  /** @param {number} place */
  rowAt(place) {
    const node = this.body.children[place];
    return [...this.rows.values()].find((row) => row.node === node);
  }

  /** @param {SortedRow<T> | undefined} row */
  visit(row) {
    if (row === this.current) return;
    this.current?.reachable(false);
    this.current = row;
    row?.reachable(true);
  }

  /**
   * @param {SortedRow<T>} row
   * @param {number} by
   */
  move(row, by) {
    const last = this.body.children.length - 1;
    const place = [...this.body.children].indexOf(row.node) + by;
    this.rowAt(Math.max(0, Math.min(last, place)))?.node.focus();
  }

  /** The items whose boxes are ticked. */
  get tickedItems() { return this.items.filter(({ id }) => this.ticks.has(id)); }
}

/** @template {Item} T */
export class SortedRow {
  /**
   * @param {SortedTable<T>} table
   * @param {T} item
   * @param {string} what it is, in the singular
   */
  constructor(table, item, what) {
    this.table = table;
    this.item = item;
    this.what = what;
    this.tick = element("input", {
      type: "checkbox", "aria-label": `compare ${what} ${item.id}`, checked: table.ticks.has(item.id),
      onchange: () => table.tick(this.item.id, this.tick.checked),
    });
    this.cells = table.columns.map((column) => element("td", { class: className(column) }));
    /** @type {string[]} what the cells say */
    this.texts = [];
    this.actions = element("td", { class: "dn-row-actions" });
    const parts = [element("td", {}, this.tick), ...this.cells, this.actions];
    this.node = element("tr", {
      tabindex: "-1",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onfocusin: () => table.visit(this),
    }, ...parts);
  }

  /** What is said of it as a whole. */
  get label() { return `${this.what} ${this.item.id}, ${this.item.state}`; }

  /** Offer what can be done with it now. */
  buttons() {}

  /**
   * @param {T} item
   * @param {number} now
   * @param {Column<T>[]} columns those that are shown
   */
  show(item, now, columns) {
    const ended = item.final !== this.item.final;
    this.item = item;
    if (this.node.dataset.state !== item.state) this.node.dataset.state = item.state;
    if (this.node.getAttribute("aria-label") !== this.label) this.node.setAttribute("aria-label", this.label);
    this.table.columns.forEach((column, place) => {
      const cell = this.cells[place];
      const [text, detail] = [column.text(item, now), column.detail?.(item) ?? ""];
      cell.hidden = !columns.includes(column);
      if (this.texts[place] === text + detail) return;
      this.texts[place] = text + detail;
      cell.replaceChildren(text, detail ? element("div", { class: "dn-detail" }, meterOf(column.bar?.(item)), detail) : "");
      cell.title = detail || (column.name === "name" ? text : "");
    });
    if (ended) this.buttons();
  }

  /**
   * @param {string} text
   * @param {string} title
   * @param {() => void} act
   */
  button(text, title, act) {
    const tabindex = this.table.current === this ? 0 : -1;
    return button(text, act, { class: "dn-chip", title, "aria-label": `${text} ${this.what} ${this.item.id}`, tabindex });
  }

  /**
   * What a key does besides what all rows do; says whether it did something.
   * @param {string} _key
   */
  pressed(_key) { return false; }

  /** @param {KeyboardEvent} event */
  key(event) {
    /** @type {Record<string, number>} */
    const moves = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.table.move(this, moves[event.key]);
    else if (event.target !== this.node) return;
    else if (event.key === "Enter") this.table.open(this.item);
    else if (event.key === " ") this.tick.click();
    else if (!this.pressed(event.key)) return;
    event.preventDefault();
  }

  /**
   * Only the row that was visited last is on the way of the Tab key.
   * @param {boolean} yes
   */
  reachable(yes) {
    this.node.tabIndex = yes ? 0 : -1;
    for (const it of /** @type {NodeListOf<HTMLElement>} */ (this.node.querySelectorAll("button, input"))) {
      it.tabIndex = yes ? 0 : -1;
    }
  }
}

/** @param {Progress | null | undefined} progress */
function meterOf(progress) {
  if (!progress) return null;
  const meter = element("progress", { "aria-label": "progress" });
  fill(meter, progress);
  return meter;
}
