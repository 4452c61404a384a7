// The one place where text becomes elements: drawings that Python has written. They are built anew
// of the elements, attributes and styles that drawings have; everything else is dropped.

const SVG = "http://www.w3.org/2000/svg";
const HTML = "http://www.w3.org/1999/xhtml";
/** @type {Record<string, Set<string>>} by namespace */
const TAGS = {
  [HTML]: new Set(["b", "details", "div", "i", "span", "summary", "table", "tbody", "td", "th", "tr"]),
  [SVG]: new Set(["g", "path", "rect", "svg", "text", "tspan"]),
};
const ATTRIBUTES = new Set([
  "aria-label", "d", "data-group", "data-heat", "data-most", "data-series", "data-tag", "data-trial", "dx", "fill", "height", "open",
  "preserveAspectRatio", "role", "rx", "scope", "stroke", "title", "viewBox", "width", "x", "y",
]);
const PAINTS = new Set(["fill", "stroke"]);
const COLOUR = /^#[0-9a-f]{3,8}$/i;
const STYLE = /^(?:left|top|width|--dn-[a-z]+)$/;
const VALUE = /^(?:-?[0-9.]+(?:px|%)?|#[0-9a-f]{3,8}|var\(--dn-[a-z]+\))$/i;

/**
 * The first element of a text, built anew; null where it has none that a drawing may have.
 * @param {string} markup
 * @returns {Element | null}
 */
export function drawn(markup) {
  const first = parsed(markup);
  const made = first && built(first);
  return made instanceof Element ? made : null;
}

/**
 * The first element of a text, in a document that nobody shows: `built` makes its parts anew.
 * @param {string} markup
 */
export function parsed(markup) { return new DOMParser().parseFromString(markup, "text/html").body.firstElementChild; }

/**
 * A text as XML has it.
 * @param {string} text
 */
export function escaped(text) { return new XMLSerializer().serializeToString(document.createTextNode(text)); }

/**
 * @param {Node} node of a document that nobody shows, in which nothing runs
 * @returns {Node | null}
 */
export function built(node) {
  if (node instanceof Text) return document.createTextNode(node.data);
  if (!(node instanceof Element) || !TAGS[node.namespaceURI ?? ""]?.has(node.localName)) return null;
  const made = /** @type {HTMLElement | SVGElement} */ (document.createElementNS(node.namespaceURI, node.localName));
  const names = [...node.classList].filter((name) => name.startsWith("dn-"));
  if (names.length) made.setAttribute("class", names.join(" "));
  for (const { name, value } of node.attributes) {
    if (ATTRIBUTES.has(name) && (!PAINTS.has(name) || COLOUR.test(value))) made.setAttribute(name, value);
  }
  dress(made.style, /** @type {HTMLElement | SVGElement} */ (node).style);
  made.append(...[...node.childNodes].map(built).filter((child) => child !== null));
  return made;
}

/**
 * By properties, since a page may forbid styles that stand in an attribute.
 * @param {CSSStyleDeclaration} made
 * @param {CSSStyleDeclaration} given
 */
function dress(made, given) {
  for (const name of given) {
    const value = given.getPropertyValue(name).trim();
    if (STYLE.test(name) && VALUE.test(value)) made.setProperty(name, value);
  }
}
