// A study's charts as a picture: drawings and texts, where they stand, in one SVG.

import { saveAs } from "../dom.js";
import { escaped } from "../markup.js";

const SCALE = 2;
const STROKES = [
  "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-opacity", "stroke-dasharray", "opacity", "vector-effect", "fill",
];

/**
 * @param {HTMLElement} figure
 * @param {string} name of the file, without its end
 * @param {string} ground
 */
export async function savePicture(figure, name, ground) {
  const { width, height } = figure.getBoundingClientRect();
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(asSvg(figure, ground))}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: width * SCALE, height: height * SCALE });
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(SCALE, SCALE);
  pen.drawImage(image, 0, 0, width, height);
  const blob = await new Promise((/** @type {(blob: Blob | null) => void} */ done) => canvas.toBlob(done, "image/png"));
  if (blob) saveAs(`${name}.png`, [blob], "image/png");
}

/**
 * @param {HTMLElement} figure
 * @param {string} ground
 */
function asSvg(figure, ground) {
  const origin = figure.getBoundingClientRect();
  const sheet = figure.querySelector(".dn-sheet");
  const parts = [`<rect width="100%" height="100%" fill="${ground}"/>`];
  for (const drawing of sheet?.querySelectorAll("svg") ?? []) parts.push(nested(drawing, origin));
  for (const bar of sheet?.querySelectorAll(".dn-shares i") ?? []) parts.push(box(bar, origin));
  for (const name of sheet?.querySelectorAll(".dn-series") ?? []) parts.push(inkOf(name, origin));
  if (sheet) parts.push(...texts(sheet, origin));
  const { width, height } = origin;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${parts.join("")}</svg>`;
}

/**
 * @param {SVGSVGElement} drawing
 * @param {DOMRect} origin
 */
function nested(drawing, origin) {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true));
  const { left, top, width, height } = drawing.getBoundingClientRect();
  const overflow = getComputedStyle(drawing).clipPath === "none" ? "visible" : "hidden";
  const place = { x: left - origin.left, y: top - origin.top, width, height, overflow, fill: "none" };
  for (const [name, value] of Object.entries(place)) copy.setAttribute(name, String(value));
  const shown = drawing.querySelectorAll("path");
  copy.querySelectorAll("path").forEach((path, number) => {
    const style = getComputedStyle(shown[number]);
    path.setAttribute("style", STROKES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
  });
  return new XMLSerializer().serializeToString(copy);
}

/**
 * @param {Element} bar
 * @param {DOMRect} origin
 */
function box(bar, origin) {
  const { left, top, width, height } = bar.getBoundingClientRect();
  return `<rect x="${left - origin.left}" y="${top - origin.top}" width="${width}" height="${height}" fill="${getComputedStyle(bar).backgroundColor}"/>`;
}

/**
 * @param {Element} name in the legend
 * @param {DOMRect} origin
 */
function inkOf(name, origin) {
  const { left, top, height } = name.getBoundingClientRect();
  const ink = getComputedStyle(name, "::before").backgroundColor;
  return `<rect x="${left - origin.left + 6}" y="${top - origin.top + height / 2 - 1.5}" width="14" height="3" rx="1.5" fill="${ink}"/>`;
}

/**
 * @param {Element} sheet
 * @param {DOMRect} origin
 */
function texts(sheet, origin) {
  const walker = document.createTreeWalker(sheet, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const holder = node.parentElement;
    const text = node.textContent?.trim();
    if (!holder || !text || holder.closest(".dn-brushes")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const { left, top, width, height } = range.getBoundingClientRect();
    if (!width) continue;
    const { color, fontFamily, fontSize, fontWeight } = getComputedStyle(holder);
    found.push(
      `<text x="${left - origin.left}" y="${top - origin.top + height / 2}" dominant-baseline="central" fill="${color}" `
      + `font-family="${fontFamily.replaceAll('"', "'")}" font-size="${fontSize}" font-weight="${fontWeight}">${escaped(text)}</text>`,
    );
  }
  return found;
}
