// The side panel: the newest runs, what they do, and Stop.

import { arrange, button, element, keyed, write } from "../dom.js";
import { SIGNS } from "../run/head.js";
import { stateText } from "../runs/columns.js";
import { messageOf } from "../source.js";
import { age, duration, plural } from "../words.js";
import { mayAsk } from "./notices.js";

/** @import { TableRun } from "../protocol.d.ts" */
/** @import { Watch } from "./watch.js" */

const MOST = 100;
const AGES_EVERY_MS = 1000;
const ABSENT = "Jupyter's server tells nothing of runs. In its environment: “pip install distrain-nb”, "
  + "“jupyter server extension enable distrain_nb.server”, then restart Jupyter.";

/** One run. */
class Item {
  /**
   * @param {TableRun} run
   * @param {RunsPanel} panel
   */
  constructor(run, panel) {
    this.sign = element("span", { class: "dn-sign", "aria-hidden": "true" });
    this.name = element("span", { class: "dn-name" });
    this.line = element("span", { class: "dn-soft" });
    this.more = element("span", { class: "dn-detail" });
    const open = button("", () => panel.open(run), { class: "dn-item", title: `Open run ${run.id}` });
    open.append(element("span", {}, this.sign, " ", this.name), this.line, this.more);
    this.stop = button("Stop", () => panel.stop(run, this.stop), {
      class: "dn-stop", "aria-label": `Stop run ${run.id}`,
    });
    this.node = element("li", {}, open, this.stop);
  }

  /**
   * @param {TableRun} run
   * @param {number} now
   */
  show(run, now) {
    const lasted = duration((run.end ?? now) - run.begin);
    const best = run.best ? `${run.best.tag} ${Number(run.best.value.toPrecision(4))}` : "";
    this.node.dataset.state = run.state;
    write(this.sign, SIGNS[run.state] ?? "◌");
    write(this.name, `${run.name} #${run.id}`);
    write(this.line, [stateText(run).slice(2), lasted, run.final ? age(now - (run.end ?? run.begin)) : ""].filter(Boolean).join(" · "));
    write(this.more, run.cause || [run.place, run.size, best].filter(Boolean).join(" · "));
    this.stop.hidden = run.final;
  }
}

export class RunsPanel {
  /**
   * @param {Watch} watch
   * @param {(run: TableRun) => void} open
   */
  constructor(watch, open) {
    this.watch = watch;
    this.open = open;
    /** @type {Map<string, Item>} */
    this.items = new Map();
    this.count = element("strong");
    this.ask = button("Notify me", () => this.allow(), {
      class: "dn-chip", title: "Let the browser say when a run ends, while you look at another window",
    });
    this.note = element("div", { class: "dn-note", role: "status", hidden: true });
    this.list = element("ul", { "aria-label": "runs" });
    this.rest = element("div", { class: "dn-soft dn-rest" });
    const bar = element("div", { class: "dn-bar" }, this.count, this.ask);
    this.root = element("div", { class: "distrain dn-side" }, bar, this.note, this.list, this.rest);
    watch.source.listeners.push(() => this.show());
    watch.source.probed.then(() => this.show());
    new ResizeObserver(() => this.show()).observe(this.root);  // also when it is opened
    setInterval(() => this.show(), AGES_EVERY_MS);
  }

  show() {
    if (!this.root.getClientRects().length || document.hidden) return;
    const { runs, running, source } = this.watch;
    const now = Date.now() / 1000;
    const words = `${plural(runs.length, "run")}${running.length ? `, ${running.length} running` : ""}`;
    write(this.count, runs.length ? words : "No runs yet");
    this.ask.hidden = !mayAsk();
    if (source.served === false) this.say(ABSENT);
    else if (this.note.textContent === ABSENT) this.say("");
    const newest = runs.slice(0, MOST);
    arrange(this.list, keyed(
      this.items, newest, (run) => String(run.id), (run) => new Item(run, this), (item, run) => item.show(run, now),
    ));
    write(this.rest, runs.length > MOST ? `${plural(runs.length - MOST, "older run")}: %distrain runs` : "");
  }

  /** @param {string} text */
  say(text) {
    this.note.hidden = !text;
    write(this.note, text);
  }

  /**
   * @param {TableRun} run
   * @param {HTMLButtonElement} stop
   */
  async stop(run, stop) {
    stop.disabled = true;
    try {
      await this.watch.source.act(run.id, "cancel");
      this.say("");
    } catch (error) {
      this.say(messageOf(error));
    }
    stop.disabled = false;
    await this.watch.look();
  }

  async allow() {
    await Notification.requestPermission();
    this.show();
  }
}
