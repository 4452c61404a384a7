// Plotly's layout: subplots where the sheet has their places, in the page's colours and type.

import { themeColours } from "./colours.js";

/** @import { Box } from "./sheet.js" */
/** @import { Mode } from "./lines.js" */
/** @typedef {Record<string, any>} Plain what is plotly's */

const TOLD_TOGETHER = 8;  // lines
const GREY = "#808080";
const GRID = "rgba(128,128,128,.25)";
// Ticks as `distrain_nb/run/charts/ticks.py` chooses them for the drawings of documents.
const AXIS = { zeroline: false, automargin: false, tickangle: 0, tickfont: { size: 11 }, ticklabeloverflow: "allow", gridcolor: GRID };
// A label says all digits of a step; plotly's own would be 810.645k.
const X_AXIS = { ...AXIS, hoverformat: ",.10~g", nticks: 6, showgrid: false, showline: true, linecolor: GREY };
const Y_AXIS = { ...AXIS, nticks: 5, exponentformat: "e", minexponent: 4 };

/**
 * The number of a subplot's axes, as plotly counts: none for the first.
 * @param {number} place
 */
export function axisNumber(place) { return place ? String(place + 1) : ""; }

/**
 * A label for all lines at a step would stand over the chart where there are many: then it is that of
 * the nearest line.
 * @param {Plain[]} data
 */
export function hoverMode(data) {
  return new Set(data.map(({ name }) => name)).size > TOLD_TOGETHER ? "closest" : "x unified";
}

/**
 * @param {string[]} tags
 * @param {Map<string, Box>} boxes of those that are shown
 * @param {{figure: Element, mode: Mode, scale: string}} look
 * @returns {Plain}
 */
export function layoutFor(tags, boxes, { figure, mode, scale }) {
  const { clientWidth: width, clientHeight: height } = figure;
  const { text, raised, font } = themeColours(figure);
  /** @type {Plain} */
  const layout = {
    width, height, margin: { l: 0, r: 0, t: 0, b: 0 }, template: {}, showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: text, size: 12, family: font },
    hoverlabel: { font: { size: 11, color: text }, bgcolor: raised, bordercolor: GREY },
    uirevision: "the reader's",  // zoom stays when points come
  };
  if (!boxes.size) Object.assign(layout, { xaxis: { visible: false }, yaxis: { visible: false } });
  tags.forEach((tag, place) => {
    const box = boxes.get(tag);
    if (!box) return;
    const number = axisNumber(place);
    const x = [box.left / width, (box.left + box.width) / width];
    const y = [1 - (box.top + box.height) / height, 1 - box.top / height];
    layout[`xaxis${number}`] = { ...X_AXIS, ...(mode === "wall" ? { hoverformat: "" } : {}), domain: within(x), anchor: `y${number}`, uirevision: mode, type: mode === "wall" ? "date" : "linear" };
    layout[`yaxis${number}`] = { ...Y_AXIS, domain: within(y), anchor: `x${number}`, uirevision: scale, type: scale };
  });
  return layout;
}

/** @param {number[]} shares */
function within(shares) { return shares.map((share) => Math.min(1, Math.max(0, share))); }

/**
 * A figure with what a picture of it needs besides: the titles and the legend that the page has
 * around the lines.
 * @param {[Plain[], Plain]} figure
 * @param {Map<string, Box>} boxes
 * @param {string} ground
 * @returns {[Plain[], Plain]}
 */
export function asPicture([data, layout], boxes, ground) {
  const annotations = [...boxes].map(([tag, { left, top }]) => ({
    text: `<b>${tag.replaceAll("<", "&lt;")}</b>`, xref: "paper", yref: "paper", x: left / layout.width, y: 1 - top / layout.height,
    xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 12 },
  }));
  const named = new Set();
  const lines = data.map((line) => {
    const showlegend = line.hoverinfo !== "skip" && line.visible && !named.has(line.name);
    if (showlegend) named.add(line.name);
    return { ...line, showlegend };
  });
  const legend = { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "top", itemwidth: 30, bgcolor: "rgba(0,0,0,0)" };
  const showlegend = new Set(data.map((line) => line.name)).size > 1;
  return [lines, { ...layout, annotations, legend, showlegend, paper_bgcolor: ground }];
}
