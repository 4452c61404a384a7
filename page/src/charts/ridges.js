// Histograms over time as a row of hills, the newest in front: a line with its area for each step.

import { thousands } from "../words.js";

/** @import { Histograms } from "../protocol.d.ts" */

const HILL = { old: 88, newest: 50 };   // lightness, per cent
const TALLEST = 2.5;                    // times the distance of two rows, where rows are few
const LABELS = 6;

/** @param {number} age from 0, the newest, to 1 */
function hillColour(age) {
  return `hsl(217, 80%, ${Math.round(HILL.newest + (HILL.old - HILL.newest) * age)}%)`;
}

/**
 * One step's counts above its own ground.
 * @param {{step: number, counts: number[], values: number[], base: number, scale: number, age: number, ground: string}} row
 */
function hill({ step, counts, values, base, scale, age, ground }) {
  const [first, last] = [values[0], values[values.length - 1]];
  return {
    type: "scatter", mode: "lines", fill: "toself", hoveron: "points", showlegend: false,
    x: [first, ...values, last], y: [base, ...counts.map((count) => base + count * scale), base],
    customdata: [0, ...counts, 0], fillcolor: hillColour(age), line: { color: ground, width: 1 },
    hovertemplate: `step ${thousands(step)}<br>value %{x:.4g}<br>%{customdata:.4g} values<extra></extra>`,
  };
}

/**
 * Data and layout for plotly.
 * @param {Histograms} histograms
 * @param {{width: number, text: string, ground: string}} look
 * @returns {[Record<string, any>[], Record<string, any>]}
 */
export function ridges({ steps, edges, counts }, { width, text, ground }) {
  const values = edges.slice(1).map((edge, at) => (edge + edges[at]) / 2);
  const rows = steps.length;
  const tallest = Math.max(TALLEST, rows / 5);
  const scale = tallest / Math.max(1e-12, ...counts.flat());
  const baseOf = (/** @type {number} */ row) => rows - 1 - row;
  const hills = steps.map((step, row) => {
    const age = baseOf(row) / Math.max(1, rows - 1);
    return hill({ step, counts: counts[row], values, base: baseOf(row), scale, age, ground });
  });
  const every = Math.max(1, Math.ceil(rows / LABELS));
  const labelled = steps.map((_, row) => row).filter((row) => baseOf(row) % every === 0);
  const axis = { zeroline: false, gridcolor: "rgba(128,128,128,.25)" };
  const layout = {
    width, height: 300, margin: { l: 64, r: 16, t: 10, b: 40 }, hovermode: "closest",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: text, size: 11 },
    xaxis: { ...axis, type: "linear", title: { text: "value" } },
    yaxis: {
      ...axis, type: "linear", title: { text: "step" }, range: [-0.5, rows - 1 + tallest * 1.05],
      tickvals: labelled.map(baseOf), ticktext: labelled.map((row) => thousands(steps[row])),
    },
  };
  return [hills, layout];
}
