// The side panel: sessions, the newest studies and runs, what they do, and Stop.

import { arrange, button, element, keyed, OWN_KEYS, write } from "../dom.js";
import { annotationText } from "../run/annotation.js";
import { costText, fill, progressText, SIGNS } from "../run/head.js";
import { barOf, causeText, stateText } from "../runs/columns.js";
import { hasWords } from "../runs/filters.js";
import { messageOf } from "../source.js";
import { age, duration, plural } from "../words.js";
import { mayAsk } from "./notices.js";

/** @import { Progress, SessionRow, StudyRow, TableRun } from "../protocol.d.ts" */
/** @import { Watch, What } from "./watch.js" */

const MOST = { run: 100, study: 20 };
const FILTERED_FROM = 10;  // what one sees at a glance
const REFUSED = "The browser refuses notifications for this page: allow them in its settings for this site.";
const AGES_EVERY_MS = 1000;
const ABSENT = "Jupyter's server has no distrain-nb. In its environment, run “pip install distrain-nb” and "
  + "“jupyter server extension enable distrain_nb.server”, then restart Jupyter.";

/**
 * One run or study.
 * @template {TableRun | StudyRow} Shown
 */
class Item {
  /**
   * @param {Shown} item
   * @param {What} what it is
   * @param {RunsPanel} panel
   */
  constructor(item, what, panel) {
    this.sign = element("span", { class: "dn-sign", "aria-hidden": "true" });
    this.name = element("span", { class: "dn-name" });
    this.line = element("span", { class: "dn-soft" });
    this.more = element("span", { class: "dn-detail" });
    const open = button("", () => panel.open(item, what), { class: "dn-item", title: `Open ${what} ${item.id}` });
    this.meter = element("progress", { "aria-label": "progress", hidden: true });
    open.append(element("span", {}, this.sign, " ", this.name), this.line, this.meter, this.more);
    this.stop = button("Stop", () => panel.stop(item, what, this.stop), {
      class: "dn-stop", "aria-label": `Stop ${what} ${item.id}`,
    });
    this.node = element("li", {}, open, this.stop);
  }

  /**
   * @param {Shown} item
   * @param {number} now
   * @param {string[]} words how it is
   * @param {string[]} more
   * @param {Progress | null} [progress]
   */
  show(item, now, words, more, progress = null) {
    this.meter.hidden = !progress;
    if (progress) fill(this.meter, progress);
    const lasted = item.begin ? duration((item.end ?? now) - item.begin) : "";
    const ago = item.final && item.begin ? age(now - (item.end ?? item.begin)) : "";
    this.node.dataset.state = item.state;
    write(this.sign, SIGNS[item.state] ?? "◌");
    write(this.name, `${item.name} #${item.id}`);
    write(this.line, [...words, lasted, ago].filter(Boolean).join(" · "));
    const cause = causeText(item);
    write(this.more, [...(cause ? [cause] : more), costText(item)].filter(Boolean).join(" · "));
    this.more.title = this.more.textContent;
    this.stop.hidden = item.final || item.state === "stopping";
  }
}

/** One session. */
class SessionItem {
  /**
   * @param {SessionRow} session
   * @param {RunsPanel} panel
   */
  constructor({ name }, panel) {
    this.line = element("span", { class: "dn-soft" });
    this.more = element("span", { class: "dn-detail" });
    const words = element("div", { class: "dn-item" }, element("span", { class: "dn-name" }, `session ${name}`), this.line, this.more);
    this.stop = button("Stop", () => panel.endSession(name, this.stop), {
      class: "dn-stop", title: "End its ranks, with their names", "aria-label": `Stop session ${name}`,
    });
    this.node = element("li", {}, words, this.stop);
  }

  /** @param {SessionRow} session */
  show({ ranks, place, state, last, idle, limit, memory }) {
    write(this.line, [`${ranks} rank${ranks === "1" ? "" : "s"}`, place, state].join(" · "));
    const words = [last && `last cell ${last}`, idle && `idle ${idle} of ${limit}`, memory];
    write(this.more, words.filter(Boolean).join(" · "));
  }
}

/** @param {TableRun} run */
function ofRun(run) {
  const { place, size, best } = run, steps = barOf(run);
  return [steps ? progressText(steps, 0) : "", annotationText(run), place, size, best ? `${best.tag} ${Number(best.value.toPrecision(4))}` : ""];
}

export class RunsPanel {
  /**
   * @param {Watch} watch
   * @param {(item: TableRun | StudyRow, what: What) => void} open
   */
  constructor(watch, open) {
    this.watch = watch;
    this.open = open;
    /** @type {Map<string, Item<TableRun>>} */
    this.runs = new Map();
    /** @type {Map<string, Item<StudyRow>>} */
    this.studies = new Map();
    this.count = element("strong");
    this.ask = button("Notify me", () => this.allow(), {
      class: "dn-chip", title: "Show a notification of the browser when a run or a study ends while you are in another window",
    });
    this.note = element("div", { class: "dn-note", role: "status", hidden: true });
    this.most = { ...MOST };
    this.field = element("input", {
      class: "dn-search", type: "search", placeholder: "Filter", "aria-label": "filter runs and studies by text",
      spellcheck: "false", autocomplete: "off", oninput: () => this.show(), ...OWN_KEYS,
    });
    /** @type {Map<string, SessionItem>} */
    this.sessions = new Map();
    this.sessionList = element("ul", { "aria-label": "sessions", class: "dn-studies" });
    this.studyList = element("ul", { "aria-label": "studies", class: "dn-studies" });
    this.list = element("ul", { "aria-label": "runs" });
    this.rest = button("", () => this.showMore(), { class: "dn-chip dn-rest", hidden: true });
    const bar = element("div", { class: "dn-bar" }, this.count, this.field, this.ask);
    this.root = element("div", { class: "distrain dn-side" }, bar, this.note, this.sessionList, this.studyList, this.list, this.rest);
    for (const { listeners } of [watch.source, watch.studySource, watch.sessionSource]) listeners.push(() => this.show());
    watch.source.probed.then(() => this.show());
    new ResizeObserver(() => this.show()).observe(this.root);  // also when it is opened
    setInterval(() => this.show(), AGES_EVERY_MS);
  }

  show() {
    if (!this.root.getClientRects().length || document.hidden) return;
    const { runs, studies, running, runningStudies, source } = this.watch;
    const now = Date.now() / 1000;
    const there = counted(studies.length, runs.length);
    const going = running.length + runningStudies.length;
    write(this.count, there ? `${there}${going ? `, ${going} running` : ""}` : "No runs yet");
    this.ask.hidden = !mayAsk();
    if (source.served === false) this.say(ABSENT);
    else if (this.note.textContent === ABSENT) this.say("");
    this.field.hidden = runs.length + studies.length < FILTERED_FROM && !this.field.value;
    arrange(this.sessionList, keyed(
      this.sessions, this.watch.sessions, ({ name }) => name, (session) => new SessionItem(session, this),
      (item, session) => item.show(session),
    ));
    const ofStudies = studies.filter((study) => hasAll(study, this.field.value));
    const ofRuns = runs.filter((run) => hasWords(run, this.field.value));
    arrange(this.studyList, keyed(
      this.studies, ofStudies.slice(0, this.most.study), ({ id }) => String(id), (study) => new Item(study, "study", this),
      (item, study) => item.show(study, now, [study.state, study.progress], [study.best]),
    ));
    arrange(this.list, keyed(
      this.runs, ofRuns.slice(0, this.most.run), ({ id }) => String(id), (run) => new Item(run, "run", this),
      (item, run) => item.show(run, now, [stateText(run, now).slice(2)], ofRun(run), barOf(run)),
    ));
    const more = counted(Math.max(0, ofStudies.length - this.most.study), Math.max(0, ofRuns.length - this.most.run));
    this.rest.hidden = !more;
    write(this.rest, `Show older: ${more}`);
  }

  showMore() {
    this.most.run += MOST.run;
    this.most.study += MOST.study;
    this.show();
  }

  /** @param {string} text */
  say(text) {
    this.note.hidden = !text;
    write(this.note, text);
  }

  /**
   * @param {TableRun | StudyRow} item
   * @param {What} what
   * @param {HTMLButtonElement} stop
   */
  async stop({ id }, what, stop) {
    stop.disabled = true;
    try {
      if (what === "study") await this.watch.studySource.cancel(id);
      else await this.watch.source.act(id, "cancel");
      this.say("");
    } catch (error) {
      this.say(messageOf(error));
    }
    stop.disabled = false;
    await this.watch.look();
  }

  /**
   * @param {string} name
   * @param {HTMLButtonElement} stop
   */
  async endSession(name, stop) {
    stop.disabled = true;
    try {
      await this.watch.sessionSource.end(name);
      this.say("");
    } catch (error) {
      this.say(messageOf(error));
    }
    stop.disabled = false;
    await this.watch.look();
  }

  async allow() {
    const answer = await Notification.requestPermission();
    this.say(answer === "denied" ? REFUSED : "");
    this.show();
  }
}

/**
 * Whether all words stand somewhere in what the panel says of a study.
 * @param {StudyRow} study
 * @param {string} words
 */
function hasAll({ id, name, state, progress, best, cause }, words) {
  const text = [`#${id}`, name, state, progress, best, cause].join("\n").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/**
 * `1 study, 3 runs`, without what there is none of.
 * @param {number} studies
 * @param {number} runs
 */
export function counted(studies, runs) {
  const named = [studies ? plural(studies, "study") : "", runs ? plural(runs, "run") : ""];
  return named.filter(Boolean).join(", ");
}
