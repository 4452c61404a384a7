// What is above the log: filters, search, and what can be done with it.

import { button, choice, download, element, saveAs, toggle, uid, write } from "../dom.js";
import { serverAddress } from "../source.js";
import { plural, thousands } from "../words.js";
import { colourOf, lineText } from "./line.js";
import { Log } from "./log.js";
import { asLine } from "./rows.js";
import { Search } from "./search.js";

/** @import { LogAnswer, RunSummary } from "../protocol.d.ts" */
/** @import { RunSource } from "../source.js" */
/** @import { Filter } from "./rows.js" */

const MOST_CHIPS = 8;
const DOWNLOAD_AT_ONCE = 2000;  // lines
const SAID_MS = 4000;

export class Toolbar {
  /**
   * @param {HTMLElement} root
   * @param {RunSource} source
   */
  constructor(root, source) {
    this.source = source;
    this.shown = "";
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.silence = undefined;
    this.bar = element("div", { class: "dn-bar", role: "toolbar", "aria-label": "log" });
    root.append(this.bar);
    this.log = new Log(root, source);
    this.search = new Search(this.log);
    this.filters = element("span", { class: "dn-filters" });
    this.count = element("span", { class: "dn-soft dn-count", title: "lines" });
    this.status = element("span", { class: "dn-soft", role: "status" });
    this.bar.append(
      element("span", { class: "dn-tools" }, this.filters, this.status, this.count),
      element("span", { class: "dn-tools" }, this.search.box, this.actions()),
    );
    this.empty = element("div", { class: "dn-empty dn-soft", hidden: true });
    this.bar.after(this.empty);
    this.log.listeners.push(() => this.showCount());
    this.relabel();
  }

  actions() {
    return element(
      "span", { class: "dn-actions" },
      button("First error", () => this.firstError(), { class: "dn-chip", title: "Go to the first traceback or error" }),
      this.lineField(),
      toggle("Wrap", "Break long lines", (wrap) => this.log.restyle({ wrap })),
      toggle("Time", "Show the time of each line", (times) => this.log.restyle({ times })),
      button("Copy", () => this.copy(), { class: "dn-chip", title: "Copy the lines in sight, or the selected text" }),
      button("Download", () => this.download(), { class: "dn-chip", title: "Save the whole log as a text file" }),
    );
  }

  lineField() {
    const go = (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      const row = Number(field.value.replace(/\D/g, "")) - 1;
      if (event.key === "Enter" && row >= 0) this.log.jump(Math.min(row, this.log.rows.count - 1));
    };
    const field = element("input", {
      class: "dn-goto", type: "text", inputmode: "numeric", placeholder: "Line",
      "aria-label": "go to line number", size: "6", onkeydown: go,
    });
    return field;
  }

  // ---- Filters -----------------------------------------------------------------------------

  /** Show what the ranks and pools are called now. */
  relabel() {
    const { labels = {}, pools = {} } = this.source.summary;
    const key = JSON.stringify([labels, pools]);
    if (key === this.shown) return;
    this.shown = key;
    const processes = Object.entries(labels);
    const parts = processes.length < 2 ? [element("span", {}, "log")] : this.processes(processes);
    const names = [...new Set(Object.values(pools))];
    if (names.length > 1) parts.push(this.menu("worker pool", "role", [["", "all pools"], ...pairs(names)]));
    parts.push(this.menu("stream", "stream", [["", "both streams"], ["o", "stdout"], ["e", "stderr"]]));
    this.filters.replaceChildren(...parts);
    this.log.relabel();
  }

  /**
   * @param {[process: string, label: string][]} entries
   * @returns {HTMLElement[]}
   */
  processes(entries) {
    if (entries.length > MOST_CHIPS) return this.finder(entries);
    /** @type {[string, string][]} */
    const all = [["", "all"], ...entries];
    const chips = all.map(([process, label]) => {
      const choose = () => {
        for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
        this.choose({ process });
      };
      const chip = button(label, choose, {
        class: process === "" ? "dn-chip" : `dn-chip ${colourOf(process)}`,
        title: `Show the lines of ${label}`,
        "aria-label": label,
        "aria-pressed": String(process === this.log.rows.filter.process),
      });
      return chip;
    });
    return chips;
  }

  /**
   * A field that finds one of a thousand ranks by its name or its number alone.
   * @param {[process: string, label: string][]} entries
   */
  finder(entries) {
    const chosen = entries.find(([process]) => process === this.log.rows.filter.process)?.[1] ?? "";
    const choose = () => {
      const process = processNamed(entries, field.value);
      if (process === undefined) this.say(`no process is called ${field.value}`);
      else if (process !== this.log.rows.filter.process) this.choose({ process });
    };
    const list = element("datalist", { id: uid("processes") }, ...entries.map(([, label]) => new Option(label)));
    const field = element("input", {
      class: "dn-process", type: "search", list: list.id, placeholder: `all ${entries.length}`, value: chosen,
      autocomplete: "off", spellcheck: "false", size: "10",
      "aria-label": "show the lines of", title: "Show the lines of one process: rank 7, or 7",
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.stopPropagation(),
      onchange: choose,
      // What was picked from the list counts at once, what is typed when it is complete.
      oninput: (/** @type {InputEvent} */ { inputType }) => {
        if (!field.value || !inputType || inputType === "insertReplacementText") choose();
      },
    });
    return [field, list];
  }

  /**
   * @param {string} label
   * @param {keyof Filter} name
   * @param {[value: string, name: string][]} entries
   */
  menu(label, name, entries) {
    const menu = choice(label, entries, (value) => this.choose({ [name]: value }));
    menu.value = this.log.rows.filter[name];
    return menu;
  }

  /** @param {Partial<Filter>} filter */
  choose(filter) {
    this.log.filter(filter).catch(() => {});
    this.search.start();
  }

  showCount() {
    const { total, count, filtered, exact, bars } = this.log.rows;
    const moving = bars.filter((line) => this.log.rows.passes(line)).length;
    const some = filtered && exact ? `${thousands(count + moving)} of ` : "";
    write(this.count, `${some}${plural(total + bars.length, "line")}`);
    this.bar.hidden = !total && !bars.length;
    this.empty.hidden = !this.bar.hidden;
    write(this.empty, noOutput(this.source.summary, this.log.isRead));
  }

  // ---- Actions -------------------------------------------------------------------------------

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.status.textContent = ""; }, SAID_MS);
  }

  async firstError() {
    const { row } = await this.source.ask("first-error", this.log.rows.query);
    if (row === null) this.say("no error in the log");
    else this.log.jump(row);
  }

  async copy() {
    const selection = document.getSelection();
    const selected = this.log.sheet.node.contains(selection?.anchorNode ?? null) && String(selection);
    await navigator.clipboard.writeText(selected || this.log.sheet.textInSight);
    this.say("copied");
  }

  async download() {
    const name = `run-${this.source.summary.id}.log`;
    if (this.source.served) download(name, serverAddress(this.source.address("download")));
    else saveAs(name, await this.wholeLog(), "text/plain");
  }

  async wholeLog() {
    const parts = [];
    for (let first = 0, rows = 1; first < rows; first += DOWNLOAD_AT_ONCE) {
      /** @type {LogAnswer} */
      const answer = await this.source.ask("log", { first, count: DOWNLOAD_AT_ONCE });
      rows = answer.rows;
      parts.push(answer.lines.map((line) => lineText(asLine(line), this.source.summary)).join(""));
      this.say(`${Math.round(100 * Math.min(1, (first + DOWNLOAD_AT_ONCE) / rows))} %`);
    }
    return parts;
  }

  close() {
    clearTimeout(this.silence);
    this.search.close();
    this.log.close();
  }
}

/**
 * @param {string[]} names
 * @returns {[string, string][]}
 */
function pairs(names) { return names.map((name) => [name, name]); }

/**
 * The process that a reader means by its name, or by the number in it; empty for all, undefined where
 * there is none.
 * @param {[process: string, label: string][]} entries
 * @param {string} text
 */
export function processNamed(entries, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return "";
  const by = (/** @type {(label: string) => boolean} */ fits) => entries.find(([, label]) => fits(label.toLowerCase()))?.[0];
  return by((label) => label === wanted) ?? by((label) => label.endsWith(` ${wanted}`));
}

/**
 * What is said in place of a log that has no line.
 * @param {Partial<RunSummary>} summary
 * @param {boolean} [isRead] whether the log is known as far as the run has come
 */
export function noOutput({ final, phase, state }, isRead = true) {
  if (!isRead) return "reading the log…";
  if (final) return "no output";
  const waits = phase && phase !== state ? `: ${phase}` : "";
  return `no output yet${waits}`;
}
