// Where a view stands: in the output of its cell, whatever takes the place of that output.

/** @import { Asking, Model, View, Widget } from "./protocol.d.ts" */
/** @typedef {(model: Model<any>) => View} Open builds the view of a widget */

const LOOK_EVERY_MS = 250;
const PARKED_MS = 5000;
/** @type {Map<string, {view: View | null}>} the newest view in an output of its cell, by key */
const STANDING = new Map();
/** @type {Map<string, {view: View, timer: ReturnType<typeof setTimeout>}>} without a place for now */
const PARKED = new Map();
/** @type {Map<string, Model<any>>} of the widgets that there are, by key */
const MODELS = new Map();

/**
 * What is moved in a page loses the focus. Gives what gives it back to whoever had it.
 * @param {HTMLElement} root
 */
export function keepFocus(root) {
  /** @type {HTMLElement | null} */
  let kept = null;
  root.addEventListener("focusin", ({ target }) => { kept = /** @type {HTMLElement} */ (target); });
  root.addEventListener("focusout", () => setTimeout(() => {
    if (root.isConnected && !root.contains(document.activeElement)) kept = null;
  }));
  return () => {
    const now = document.activeElement;
    if (kept && (now === document.body || now?.contains(root))) focusAgain(kept);
  };
}

/**
 * A field that selects its text when somebody comes to it must not when it is only moved: the next
 * key would replace all that stands there.
 * @param {HTMLElement} node
 */
function focusAgain(node) {
  const { selectionStart: from, selectionEnd: to } = /** @type {HTMLInputElement} */ (node);
  node.focus({ preventScroll: true });
  if (typeof from === "number") /** @type {HTMLInputElement} */ (node).setSelectionRange(from, to);
}

/**
 * What an output shows of a widget: its view, up to the end of the output.
 * @param {Widget<any>} widget
 * @param {Open} open
 */
export function stand({ model, el }, open) {
  const key = model.get("key");
  const view = unpark(key) ?? open(lastingModel(model));
  /** @type {{view: View | null}} */
  const standing = { view };
  el.append(view.root);
  view.moved?.();
  STANDING.set(key, standing);
  return () => {
    if (STANDING.get(key) === standing) STANDING.delete(key);
    if (standing.view) park(key, view);
  };
}

/**
 * A view that its output still shows, taken from there.
 * @param {string} key
 */
function taken(key) {
  const standing = STANDING.get(key);
  if (!standing) return undefined;
  STANDING.delete(key);
  const { view } = standing;
  standing.view = null;
  return view;
}

/**
 * A view that loses its place may get another: it waits, as it was, with what the reader looks at.
 * @param {string} key
 * @param {View} view
 */
function park(key, view) {
  const timer = setTimeout(() => {
    if (PARKED.get(key)?.view === view) PARKED.delete(key);
    view.end();
  }, PARKED_MS);
  PARKED.set(key, { view, timer });
}

/** @param {string} key */
function unpark(key) {
  const parked = PARKED.get(key);
  clearTimeout(parked?.timer);
  PARKED.delete(key);
  return parked?.view;
}

/**
 * What `render` is given hears nothing more once its output is gone; a view may outlive that.
 * @param {Model<Asking>} model
 */
function lastingModel(model) { return MODELS.get(model.get("key")) ?? model; }

/**
 * Says whether frames within it are still loaded, as browsers keep them that can move an element
 * without taking it out of the page.
 * @param {Element} place
 * @param {Element} moved
 */
function moveAfter(place, moved) {
  const parent = /** @type {Element & {moveBefore?: (node: Node, before: Node | null) => void}} */ (
    place.parentElement
  );
  const kept = moved.isConnected && parent.moveBefore !== undefined;
  if (kept) parent.moveBefore?.(moved, place.nextSibling);
  else place.after(moved);
  return kept;
}

/**
 * A document that needs neither kernel nor scripts marks where the live view stands instead of it,
 * as long as somebody answers. Gives the view, and what puts the document back.
 * @param {Element} place
 * @param {Model<any>} model
 * @param {Open} open
 * @param {View} [own] of a place that is there no more
 */
function revive(place, model, open, own) {
  const still = [...place.parentElement?.querySelectorAll(":scope > :is(.distrain, .distrain-charts)") ?? []];
  const key = model.get("key");
  const view = own ?? unpark(key) ?? taken(key) ?? open(model);
  const kept = moveAfter(place, view.root);
  Promise.resolve(view.ready?.(kept)).then(() => { for (const part of still) part.remove(); });
  view.moved?.();
  return { view, end: () => { view.end(); view.root.replaceWith(...still); } };
}

/**
 * Calls `found` with each element that comes into the page, before the page is drawn with it.
 * @param {string} selector
 * @param {(element: Element) => void} found
 */
function whenever(selector, found) {
  const observer = new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        if (node.matches(selector)) found(node);
        for (const inside of node.querySelectorAll(selector)) found(inside);
      }
    }
  });
  observer.observe(document.body, { childList: true, subtree: true });
  for (const there of document.querySelectorAll(selector)) found(there);
  return observer;
}

/**
 * A widget's `initialize`, by which views that `open` gives stand wherever they are marked.
 * @param {Open} open
 */
export function standsWhereMarked(open) {
  return (/** @type {{model: Model<any>}} */ { model }) => {
    const key = model.get("key");
    /** @type {Map<Element, {view: View, end: () => void}>} */
    const revived = new Map();
    MODELS.set(key, model);
    // A document that is replaced takes its live view over, as it stands.
    const left = () => {
      const [gone, { view }] = [...revived].find(([place]) => !place.isConnected) ?? [null, {}];
      if (gone) revived.delete(gone);
      return view;
    };
    const observer = whenever(`[data-distrain-live="${key}"]`, (place) => {
      if (place.isConnected && !revived.has(place)) revived.set(place, revive(place, model, open, left()));
    });
    const clock = setInterval(() => {  // what is moved is out of the page for less than a moment
      for (const [place, { end }] of revived) {
        if (place.isConnected) continue;
        end();
        revived.delete(place);
      }
    }, LOOK_EVERY_MS);
    return () => {
      observer.disconnect();
      clearInterval(clock);
      MODELS.delete(key);
      unpark(key)?.end();
      for (const { end } of revived.values()) end();
    };
  };
}
