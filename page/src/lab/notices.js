// What is said when a run ends, by JupyterLab and, to who looks elsewhere, by the browser.

import { duration } from "../words.js";

/** @import { TableRun } from "../protocol.d.ts" */
/** @import { Notifications } from "./jupyterlab.d.ts" */

const SHOWN_MS = 10_000;
/** @type {Record<string, "success" | "error">} */
const KINDS = { succeeded: "success", failed: "error" };

/**
 * `digits #12 failed after 3 min 05 s: ValueError: shapes differ`
 * @param {TableRun} run
 */
export function endOf({ id, name, state, begin, end, cause }) {
  const after = end === null ? "" : ` after ${duration(end - begin)}`;
  return `${name} #${id} ${state}${after}${cause ? `: ${cause}` : ""}`;
}

/**
 * Whether the reader has the run before their eyes: then nothing needs to be said.
 * @param {TableRun} run
 */
function isInSight({ id }) {
  if (document.hidden) return false;
  return [...document.querySelectorAll(`section.distrain[aria-label="run ${id}"]`)].some((view) => {
    const { top, bottom, width } = view.getBoundingClientRect();
    return width > 0 && bottom > 0 && top < window.innerHeight;
  });
}

/**
 * @param {TableRun} run
 * @param {Notifications} notifications
 * @param {() => void} open
 */
export function announce(run, notifications, open) {
  if (isInSight(run)) return;
  const text = endOf(run);
  notifications.emit(text, KINDS[run.state] ?? "info", {
    autoClose: run.state === "failed" ? false : SHOWN_MS,
    actions: [{ label: "Open", callback: open }],
  });
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(text, { tag: `distrain-${run.id}` });
  shown.onclick = () => { window.focus(); open(); };
}

/** Whether the browser has not been asked yet. */
export function mayAsk() {
  return "Notification" in window && Notification.permission === "default";
}
