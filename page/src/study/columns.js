// What the table says of a trial, column by column.

import { SIGNS } from "../run/head.js";
import { brief, duration } from "../words.js";

/** @import { StudySummary, Trial } from "../protocol.d.ts" */
/** @import { Column } from "../runs/columns.js" */

/** @param {string | number | undefined} value */
export function written(value) {
  return value === undefined ? "" : typeof value === "number" ? brief(value) : value;
}

/** @param {Trial} trial */
function stateText({ state }) {
  const known = state === "requested" ? "starting" : state;
  return `${SIGNS[known] ?? "◌"} ${known}`;
}

/**
 * @param {Trial} trial
 * @param {number} now
 */
export function lasted(trial, now) { return (trial.end ?? now) - trial.begin; }

/**
 * @param {StudySummary} summary
 * @returns {Column<Trial>[]}
 */
export function columnsOf({ names, goals }) {
  const parameters = names.map((name) => ({
    name, kind: "parameter",
    value: (/** @type {Trial} */ trial) => trial.parameters[name] ?? null,
    text: (/** @type {Trial} */ trial) => written(trial.parameters[name]),
  }));
  const reached = goals.map((goal) => ({
    name: goal, kind: "goal",
    value: (/** @type {Trial} */ trial) => trial.goals[goal] ?? null,
    text: (/** @type {Trial} */ trial) => written(trial.goals[goal] ?? undefined),
  }));
  return [
    { name: "trial", value: ({ id }) => id, text: ({ id }) => String(id) },
    { name: "state", value: ({ state }) => state, text: stateText, detail: ({ why }) => why },
    ...reached,
    ...parameters,
    { name: "steps", kind: "count", value: ({ steps }) => steps, text: ({ steps }) => String(steps) },
    { name: "duration", value: lasted, text: (trial, now) => duration(lasted(trial, now)) },
    { name: "run", value: ({ run }) => run, text: ({ run }) => (run === null ? "" : String(run)) },
  ];
}

/**
 * What is said of a trial beside the mouse.
 * @param {Trial} trial
 */
export function told({ id, state, goals, parameters, why }) {
  const reached = Object.entries(goals).map(([name, value]) => `${name} ${written(value ?? undefined)}`);
  const values = Object.entries(parameters).map(([name, value]) => `${name} = ${written(value)}`);
  return [`trial ${id}, ${state}`, ...reached, ...values, ...(why ? [why] : [])].join("\n");
}

/**
 * All trials, as a table for other programs.
 * @param {StudySummary} summary
 */
export function asCsv({ names, goals, trials, now }) {
  const heads = ["trial", "state", ...goals, ...names, "steps", "duration", "run", "why"];
  const rows = trials.map((trial) => [
    trial.id, trial.state, ...goals.map((goal) => trial.goals[goal] ?? ""), ...names.map((name) => trial.parameters[name] ?? ""),
    trial.steps, lasted(trial, now).toFixed(3), trial.run ?? "", trial.why,
  ]);
  return [heads, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n");
}

/** @param {string | number} value */
function quoted(value) {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
