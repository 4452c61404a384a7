// The layout of the figure, as wide as its place and in the page's colours.

import { themeColours } from "./colours.js";

/** @import { Shape } from "../protocol.d.ts" */
/** @import { Mode } from "./lines.js" */

const NARROW = 560;  // pixels
const WIDE = 900;

/**
 * @param {Shape["layouts"]} layouts one for each number of columns
 * @param {{figure: Element, width: number, mode: Mode, scale: string}} charts
 */
export function layoutFor(layouts, { figure, width, mode, scale }) {
  const columns = width < NARROW ? 1 : width < WIDE ? 2 : 3;
  const layout = structuredClone(layouts[columns - 1]);
  const { text, raised } = themeColours(figure);
  layout.width = width;
  layout.font.color = text;
  layout.hoverlabel.font.color = text;
  layout.hoverlabel.bgcolor = raised;
  layout.uirevision = "the reader's";  // zoom stays when points come
  for (const name of Object.keys(layout)) {
    if (name.startsWith("xaxis")) Object.assign(layout[name], { uirevision: mode, type: mode === "wall" ? "date" : "linear" });
    if (name.startsWith("yaxis")) Object.assign(layout[name], { uirevision: scale, type: scale });
  }
  return layout;
}
