// Elements, and what every part of the page does with them.

/** @typedef {{node: HTMLElement, gone?: () => void}} Part what shows one item of a list */

// In such an element dollars are dollars: elsewhere a page takes what they enclose for TeX.
export const LITERAL = "mathjax_ignore tex2jax_ignore";

// On whatever can have the focus, or around it: JupyterLab takes its keys (arrows, Enter, x) otherwise.
export const OWN_KEYS = { "data-lm-suppress-shortcuts": "true" };

/**
 * An element with attributes, listeners (`onclick`) and children. Attributes that are `false` or
 * missing are left out, those that are `true` are empty; so are missing children. What can have the
 * focus has its own keys.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, String(value));
  }
  if (made.tabIndex >= 0 || "tabindex" in attributes) made.setAttribute("data-lm-suppress-shortcuts", "true");
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/**
 * @param {string} label
 * @param {() => void} onclick
 * @param {Record<string, unknown>} [attributes]
 */
export function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...OWN_KEYS, ...attributes }, label);
}

/**
 * A button that is on or off.
 * @param {string} label
 * @param {string} title
 * @param {(pressed: boolean) => void} onChange
 */
export function toggle(label, title, onChange) {
  const change = () => {
    made.setAttribute("aria-pressed", String(!isPressed(made)));
    onChange(isPressed(made));
  };
  const made = button(label, change, {
    class: "dn-chip dn-toggle", title, "aria-pressed": "false",
  });
  return made;
}

/** @param {HTMLElement} toggle */
export function isPressed(toggle) {
  return toggle.getAttribute("aria-pressed") === "true";
}

/**
 * A menu of values with their names.
 * @param {string} label
 * @param {(readonly [value: string, name: string])[]} entries
 * @param {(value: string) => void} onChange
 */
export function choice(label, entries, onChange) {
  const menu = element("select", { "aria-label": label, ...OWN_KEYS });
  menu.append(...entries.map(([value, name]) => new Option(name, value)));
  menu.addEventListener("change", () => onChange(menu.value));
  return menu;
}

/**
 * What is folded away until the reader opens it.
 * @param {string} title
 * @param {string} [className] of what is inside
 */
export function fold(title, className) {
  const summary = element("summary", { ...OWN_KEYS }, title);
  const inside = element("div", { class: className });
  const box = element("details", { class: "dn-folded" }, summary, inside);
  return { box, inside, summary };
}

// Each widget of a page has loaded this module for itself.
const mine = Math.random().toString(36).slice(2);
let ids = 0;

/**
 * An id that no other element has.
 * @param {string} what
 */
export function uid(what) {
  ids += 1;
  return `dn-${what}-${mine}-${ids}`;
}

/**
 * Set a text that may be the same as before.
 * @param {Element} node
 * @param {string} text
 */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Put the nodes into the parent in this order. Only what has to be moved is moved, since that loses
 * the focus.
 * @param {Element} parent
 * @param {Element[]} nodes
 */
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
}

/**
 * Keep one part for each key: make what is new, bring all up to date, forget what is gone.
 * @template Item
 * @template {Part} P
 * @param {Map<string, P>} parts
 * @param {Item[]} items
 * @param {(item: Item) => string} keyOf
 * @param {(item: Item) => P} make
 * @param {(part: P, item: Item) => void} [update]
 */
export function keyed(parts, items, keyOf, make, update = () => {}) {
  const keys = new Set(items.map(keyOf));
  for (const [key, part] of parts) {
    if (keys.has(key)) continue;
    part.gone?.();
    parts.delete(key);
  }
  return items.map((item) => {
    const key = keyOf(item);
    const part = parts.get(key) ?? make(item);
    parts.set(key, part);
    update(part, item);
    return part.node;
  });
}

/**
 * Calls the function once nobody has called for so many milliseconds.
 * @param {number} milliseconds
 * @param {() => void} act
 */
export function debounce(milliseconds, act) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const cancel = () => clearTimeout(timer);
  const later = () => { cancel(); timer = setTimeout(act, milliseconds); };
  return Object.assign(later, { cancel });
}

/**
 * Copy a text to the clipboard, also where the page may not; says whether that has worked.
 * @param {string} text
 */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { style: "position:fixed;opacity:0" });
    const focused = document.activeElement;
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return done;
  }
}

/**
 * Let the browser save what is at an address.
 * @param {string} name of the file
 * @param {string} address
 */
export function download(name, address) {
  element("a", { href: address, download: name }).click();
}

/**
 * Let the browser save a file that is made here.
 * @param {string} name
 * @param {BlobPart[]} parts
 * @param {string} type a MIME type
 */
export function saveAs(name, parts, type) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  download(name, address);
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
