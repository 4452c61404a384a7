// State line and progress of a run.

import { element, write } from "../dom.js";
import { duration, size, thousands } from "../words.js";

/** @import { RunSummary, Progress } from "../protocol.d.ts" */
/** @import { Stoppable } from "./stop.js" */

/** @type {Record<string, string>} */
export const SIGNS = {
  queued: "◌", starting: "◐", running: "●", stopping: "◑", succeeded: "✓", failed: "✕", cancelled: "■", unreadable: "?",
};
/**
 * What a run or study has cost, with what that leaves out.
 * @param {{cost?: string, cost_note?: string}} item
 */
export function costText({ cost, cost_note }) { return cost && cost_note ? `${cost} (${cost_note})` : (cost ?? ""); }

const TICK_MS = 100;
const CLOCKS_AGREE_S = 2;

/** State, time, name, place and phases, with the button that stops the run. */
export class StateLine {
  /**
   * @param {HTMLElement} root
   * @param {Stoppable} source
   * @param {HTMLElement} stop
   * @param {string} what it is the state of
   */
  constructor(root, source, stop, what = "run") {
    this.root = root;
    this.what = what;
    this.source = source;
    this.skew = 0;  // seconds that this clock is ahead of the kernel's
    this.sign = element("span", { class: "dn-sign", "aria-hidden": "true" });
    this.word = element("span");
    this.time = element("span", { class: "dn-time", role: "timer", "aria-label": "elapsed" });
    this.name = element("span", { class: "dn-name" });
    this.where = element("span", { class: "dn-soft" });
    this.steps = element("span", { class: "dn-steps", role: "group", "aria-label": "phases" });
    this.spoken = element("span", { class: "dn-unseen", "aria-live": "polite" });
    const badge = element("span", { class: "dn-badge" }, this.sign, this.word);
    const parts = [badge, this.time, this.name, this.where, this.steps, stop];
    this.node = element("div", { class: "dn-head", role: "status", "aria-live": "off" }, ...parts);
    root.prepend(this.node);
    root.append(this.spoken);
    source.listeners.push(() => this.change());
    this.change();
    this.clock = setInterval(() => { if (!source.summary.final) this.tick(); }, TICK_MS);
  }

  /** What is known of the run; null before anything is. */
  get summary() {
    return this.source.summary.state === undefined ? null : /** @type {RunSummary} */ (this.source.summary);
  }

  tick() {
    const { summary, steps } = this;
    if (!summary) return;
    const now = Date.now() / 1000 - this.skew;
    write(this.time, duration((summary.end ?? now) - summary.begin));
    // An animation would have the browser draw the page 60 times a second.
    this.sign.classList.toggle("dn-dim", !summary.final && Math.floor(now - summary.begin) % 2 === 1);
    summary.steps.forEach((step, place) => {
      const last = place === summary.steps.length - 1;
      const span = steps.children[place] ?? steps.appendChild(element("span"));
      const seconds = step.begin === null || step.begin === step.end ? "" : ` ${duration((step.end ?? now) - step.begin)}`;
      write(span, `${step.label}${seconds}`);
      if (last === span.hasAttribute("aria-current")) return;
      span.className = last ? "dn-now" : "";
      if (last) span.setAttribute("aria-current", "step"); else span.removeAttribute("aria-current");
    });
    steps.hidden = !summary.steps.length;
    while (steps.children.length > summary.steps.length) steps.lastChild?.remove();
  }

  change() {
    const { summary, root } = this;
    if (!summary) return;
    this.skew = Date.now() / 1000 - summary.now;
    if (Math.abs(this.skew) < CLOCKS_AGREE_S) this.skew = 0;
    root.dataset.state = summary.state;
    root.setAttribute("aria-label", `${this.what} ${summary.id}`);
    const phase = summary.phase && summary.phase !== summary.state ? ` · ${summary.phase}` : "";
    const words = summary.state + phase;
    write(this.sign, SIGNS[summary.state]);
    if (this.word.textContent !== words) this.spoken.textContent = `${this.what} ${summary.id}: ${summary.state}`;
    write(this.word, words);
    write(this.name, `${summary.name} #${summary.id}`);
    write(this.where, [summary.where, summary.size, costText(summary)].filter(Boolean).join(" · "));
    this.tick();
  }

  close() { clearInterval(this.clock); }
}

/**
 * One bar for whatever takes long: phase, bytes and time before the ranks run, then their steps.
 * @param {HTMLElement} root
 * @param {Stoppable} source
 */
export function progressBar(root, source) {
  const meter = element("progress", { "aria-label": "progress" });
  const words = element("span");
  const line = element("div", { class: "dn-progress" }, meter, words);
  root.append(line);
  const change = () => {
    const { progress, now = 0 } = source.summary;
    line.hidden = !progress;
    if (!progress) return;
    fill(meter, progress);
    write(words, progressText(progress, now));
  };
  source.listeners.push(change);
  change();
}

/**
 * Where nobody knows how much there is, a bar has no value.
 * @param {HTMLProgressElement} meter
 * @param {Pick<Progress, "total" | "done">} progress
 */
export function fill(meter, { total, done }) {
  if (total) Object.assign(meter, { max: total, value: done });
  else meter.removeAttribute("value");
}

/**
 * `sending the image: 12 MiB of 40 MiB, 3.1 s`, or `300 of 1,000 steps, about 4 min left`, with
 * only what is known.
 * @param {Progress} progress
 * @param {number} now
 */
export function progressText({ phase, total, done, since, unit, left }, now) {
  if (unit) return [phase, [counted(done, total, unit), left].filter(Boolean).join(", ")].filter(Boolean).join(": ");
  const bytes = total ? `${size(done)} of ${size(total)}` : done ? size(done) : "";
  const time = since ? duration(now - since) : "";
  const known = [bytes, time].filter(Boolean).join(", ");
  return known ? `${phase}: ${known}` : phase;
}

/**
 * @param {number} done
 * @param {number} total
 * @param {string} unit
 */
function counted(done, total, unit) {
  if (unit === "%") return `${done} %`;
  return total ? `${thousands(done)} of ${thousands(total)} ${unit}` : `${thousands(done)} ${unit} begun`;
}
