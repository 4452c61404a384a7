// The buttons that stop a run, and that start it again from what it has saved.

import { button, element, write } from "../dom.js";
import { Gone, Refused, request } from "../source.js";

/** @import { Model } from "../protocol.d.ts" */
/** @import { RunSource } from "../source.js" */
/** @import { StudySource } from "../study/source.js" */
/** @typedef {RunSource | StudySource} Stoppable */

const ANSWERED_WITHIN_MS = 1500;
const busy = (/** @type {string} */ what) => (
  `The kernel is busy with another cell, and stops this ${what} when that is done. To stop at once: `
  + "“jupyter server extension enable distrain_nb.server”, then restart Jupyter."
);
const gone = (/** @type {string} */ what, /** @type {number} */ number) => (
  `The kernel has ended or restarted, and Jupyter's server does not answer either: the ${what} goes on. `
  + `To stop it, run: ${what === "study" ? `%distrain tune ${number} --stop` : `%distrain cancel ${number}`}`
);
const unreachable = (/** @type {string} */ what) => (
  `Jupyter's server does not answer: the ${what} goes on. Try again when it is back.`
);

/**
 * The server stops the run whatever the kernel is doing. Where it can't, the kernel has to be asked;
 * a cell that waits for this very run is interrupted, which is what cancels such a run. Raises Gone,
 * Refused.
 * @param {Stoppable} source
 * @param {string} what it stops
 */
async function askToStop(source, what) {
  if (source.served && await source.order("POST", "cancel")) return;
  if (source.model.lacksKernel) throw new Refused(unreachable(what));
  const model = /** @type {Model} */ (source.model);
  const answer = source.askKernel("cancel", {});
  if (model.get("waiting") && model.get("kernel")) {
    await Promise.race([answer, null]);  // there may be no kernel
    await request(`api/kernels/${model.get("kernel")}/interrupt`, { method: "POST" });
  }
  await answer;
}

/**
 * The button, and what ends it.
 * @param {HTMLElement} root
 * @param {Stoppable} source
 * @param {string} what it stops
 * @returns {[HTMLButtonElement, () => void]}
 */
export function stopButton(root, source, what = "run") {
  const note = element("div", { class: "dn-note", role: "note", hidden: true });
  root.append(note);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let wait;
  const say = (/** @type {string} */ why) => { write(note, why); note.hidden = false; };
  const click = () => {
    stop.disabled = true;
    stop.textContent = "Stopping…";
    if (!source.served) wait = setTimeout(() => say(busy(what)), ANSWERED_WITHIN_MS);
    askToStop(source, what).catch((error) => {
      if (!(error instanceof Gone || error instanceof Refused)) return;
      clearTimeout(wait);
      say(error instanceof Gone ? gone(what, source.summary.id ?? 0) : error.message);
      Object.assign(stop, { disabled: false, textContent: "Stop" });
    });
  };
  const stop = button("Stop", click, { class: "dn-stop", title: `Stop this ${what}` });
  const change = () => {
    stop.hidden = source.summary.final !== false;
    if (stop.hidden) Object.assign(stop, { disabled: false, textContent: "Stop" });  // it may go on
    if (stop.hidden || source.summary.state === "stopping") { clearTimeout(wait); note.hidden = true; }
  };
  source.listeners.push(change);
  change();
  return [stop, () => clearTimeout(wait)];
}

/**
 * Only a kernel starts a run again: the server may have another environment.
 * @param {HTMLElement} root
 * @param {RunSource} source
 */
export function resumeButton(root, source) {
  const note = element("div", { class: "dn-note", role: "note", hidden: true });
  root.append(note);
  const say = (/** @type {string} */ text) => { write(note, text); note.hidden = false; };
  const click = async () => {
    resume.disabled = true;
    try {
      const { id, name } = await source.askKernel("resume", {});
      say(`Run ${id} (${name}) goes on from what this run has saved. To see it, run: %distrain attach ${id}`);
    } catch (error) {
      resume.disabled = false;
      const why = error instanceof Gone ? "The kernel has ended or restarted." : /** @type {Error} */ (error).message;
      say(error instanceof Gone ? `${why} To resume this run, run: %distrain resume ${source.summary.id}` : why);
    }
  };
  const resume = button("Resume", click, { class: "dn-resume", title: "Start this run again from what it has saved" });
  const change = () => { resume.hidden = !source.summary.resumable; };
  source.listeners.push(change);
  change();
  return resume;
}
