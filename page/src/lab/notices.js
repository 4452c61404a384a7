// Notifications of a run's or study's end: JupyterLab's, or the browser's if its page isn't seen.

import { duration, plural, thousands } from "../words.js";

/** @import { StudyRow, TableRun } from "../protocol.d.ts" */
/** @import { Notifications } from "./jupyterlab.d.ts" */
/** @import { News, What } from "./watch.js" */

const SHOWN_MS = 10_000;
const MOST_AT_ONCE = 3;
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
 * `12 runs and 1 study have ended: 11 succeeded, 2 failed`.
 * @param {News[]} news
 */
export function endsOf(news) {
  /** @type {Record<string, number>} */
  const states = {};
  for (const { item } of news) states[item.state] = (states[item.state] ?? 0) + 1;
  const kinds = /** @type {const} */ (["run", "study"])
    .map((kind) => plural(news.filter(({ what }) => what === kind).length, kind))
    .filter((words) => !words.startsWith("0 "));
  const parts = Object.entries(states).map(([state, count]) => `${thousands(count)} ${state}`);
  return `${kinds.join(" and ")} have ended: ${parts.join(", ")}`;
}

/**
 * Says each by itself, but many at once in one sentence: their notifications would fill the page.
 * @param {News[]} news
 * @param {Notifications} notifications
 * @param {(item: TableRun | StudyRow, what: What) => void} open
 * @param {() => void} openAll
 */
export function announce(news, notifications, open, openAll) {
  const unseen = news.filter(({ item, what }) => !isInSight(`${what} ${item.id}`));
  const ended = unseen.filter(({ item }) => item.final);
  const together = ended.length > MOST_AT_ONCE ? ended : [];
  for (const one of unseen.filter((each) => !together.includes(each))) {
    const { item: { id, state, final }, what } = one;
    const kind = final ? KINDS[state] ?? "info" : "warning";
    emit(endOf(one.item), `${what}-${id}`, kind, final && state !== "failed", () => open(one.item, what));
  }
  if (!together.length) return;
  const failed = together.some(({ item }) => item.state === "failed");
  emit(endsOf(together), "runs", failed ? "error" : "success", !failed, openAll);

  /**
   * @param {string} text
   * @param {string} tag of the browser's notification
   * @param {"success" | "error" | "info" | "warning"} kind
   * @param {boolean} passes whether it closes by itself
   * @param {() => void} callback of its button
   */
  function emit(text, tag, kind, passes, callback) {
    const actions = [{ label: "Open", callback }];
    notifications.emit(text, kind, { autoClose: passes ? SHOWN_MS : false, actions });
    if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
    const shown = new Notification(text, { tag: `distrain-${tag}` });
    shown.onclick = () => { window.focus(); callback(); };
  }
}

/** Whether the browser has not been asked yet. */
export function mayAsk() {
  return "Notification" in window && Notification.permission === "default";
}
