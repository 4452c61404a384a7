// What is said when a run or a study ends, by JupyterLab and, to who looks elsewhere, by the browser.

import { duration } from "../words.js";

/** @import { StudyRow, TableRun } from "../protocol.d.ts" */
/** @import { Notifications } from "./jupyterlab.d.ts" */
/** @import { What } from "./watch.js" */

const SHOWN_MS = 10_000;
/** @type {Record<string, "success" | "error">} */
const KINDS = { succeeded: "success", failed: "error" };

/**
 * `digits #12 failed after 3 min 05 s: ValueError: shapes differ`; of a study, else its best trial;
 * of a run that goes on its alarm.
 * @param {TableRun | StudyRow} item
 */
export function endOf(item) {
  const { id, name, state, begin, end, cause, best, final } = item;
  if (!final && "alarm" in item) return `${name} #${id}: ${item.alarm}`;
  const after = end === null ? "" : ` after ${duration(end - begin)}`;
  const more = cause || (typeof best === "string" ? best : "");
  return `${name} #${id} ${state}${after}${more ? `: ${more}` : ""}`;
}

/**
 * Whether the reader has it before their eyes: then nothing needs to be said.
 * @param {string} label of its view
 */
function isInSight(label) {
  if (document.hidden) return false;
  return [...document.querySelectorAll(`section.distrain[aria-label="${label}"]`)].some((view) => {
    const { top, bottom, width } = view.getBoundingClientRect();
    return width > 0 && bottom > 0 && top < window.innerHeight;
  });
}

/**
 * @param {TableRun | StudyRow} item
 * @param {What} what it is
 * @param {Notifications} notifications
 * @param {() => void} open
 */
export function announce(item, what, notifications, open) {
  if (isInSight(`${what} ${item.id}`)) return;
  const text = endOf(item);
  notifications.emit(text, item.final ? KINDS[item.state] ?? "info" : "warning", {
    autoClose: item.final && item.state !== "failed" ? SHOWN_MS : false,
    actions: [{ label: "Open", callback: open }],
  });
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(text, { tag: `distrain-${what}-${item.id}` });
  shown.onclick = () => { window.focus(); open(); };
}

/** Whether the browser has not been asked yet. */
export function mayAsk() {
  return "Notification" in window && Notification.permission === "default";
}
