// Below the table: logs, monitors and comparisons that were asked for, the newest first.

import { button, element } from "../dom.js";
import { plotlyAt, ServedCharts } from "../lab/charts.js";
import { openRun } from "../run/view.js";
import { Gone, messageOf, request, serverAddress } from "../source.js";
import { Comparison } from "./comparison.js";
import { modelOf } from "./source.js";

/** @import { RunsSource } from "./source.js" */
/** @import { StudySource } from "../study/source.js" */
/** @import { View } from "../protocol.d.ts" */
/** @typedef {{id: number, title?: string}} Shown a run, with the title of its panel */
/** @typedef {(run: number) => View} OpenRun shows a run with its charts, which need no kernel */
/** @typedef {{node: HTMLElement, body: HTMLElement, ends: (() => void)[]}} Panel */

const MOST_PANELS = 6;
const ANSWERED_WITHIN_MS = 1500;
const CHARTS_EVERY_MS = 2000;
const PLOTLY = "lab/extensions/distrain-nb/static/plotly-basic.min.js";

export class Panels {
  /**
   * @param {HTMLElement} root
   * @param {RunsSource | StudySource} source
   * @param {OpenRun} [openRun] where no kernel draws charts
   */
  constructor(root, source, openRun) {
    this.source = source;
    this.openRun = openRun;
    this.place = element("div", { class: "dn-panels" });
    /** @type {Map<string, Panel>} by title, the oldest first */
    this.panels = new Map();
    root.append(this.place);
  }

  /**
   * A new panel with that title; null if there is one already, which gets the focus.
   * @param {string} title
   */
  open(title) {
    const there = this.panels.get(title);
    there?.node.focus();
    if (there) return null;
    const close = button("✕ Close", () => this.shut(title), { class: "dn-chip", title: `Close: ${title}` });
    const head = element("div", { class: "dn-panel-head" }, element("strong", {}, title), close);
    const body = element("div");
    const node = element("section", { class: "dn-panel", "aria-label": title, tabindex: "-1" }, head, body);
    /** @type {Panel} */
    const panel = { node, body, ends: [] };
    this.place.prepend(node);
    this.panels.set(title, panel);
    if (this.panels.size > MOST_PANELS) this.shut([...this.panels.keys()][0]);
    node.focus();
    return panel;
  }

  /** @param {string} title */
  shut(title) {
    const panel = this.panels.get(title);
    this.panels.delete(title);
    panel?.ends.forEach((end) => end());
    panel?.node.remove();
  }

  /** @param {Shown} run */
  attach(run) {
    const panel = this.watch(run, run.title ?? `run ${run.id}: log and charts`);
    if (!panel || this.openRun) return;
    this.runCharts(run, panel).catch((error) => note(panel, `The charts can't be shown: ${messageOf(error)}`));
  }

  /**
   * The server draws them where it can, whatever has become of the kernel.
   * @param {Shown} run
   * @param {Panel} panel
   */
  async runCharts({ id }, panel) {
    const code = await this.source.answersItself() && await servedPlotly();
    if (!code) return this.charts(String(id), panel);
    const charts = new ServedCharts(modelOf(this.source.model, id), code);
    panel.ends.push(() => charts.close());
    panel.body.append(charts.root);
    return undefined;
  }

  /**
   * @param {Shown} run
   * @param {string} title
   */
  watch(run, title) {
    const panel = this.open(title);
    if (!panel) return null;
    const { root, end } = this.openRun?.(run.id) ?? openRun(modelOf(this.source.model, run.id));
    panel.ends.push(end);
    panel.body.append(root);
    return panel;
  }

  /**
   * The kernel draws charts, and it may be busy.
   * @param {string} runs their numbers
   * @param {Pick<Panel, "body" | "ends">} panel
   */
  async charts(runs, panel) {
    const wait = setTimeout(() => note(panel, "The kernel is busy: the charts come when it is free."), ANSWERED_WITHIN_MS);
    const charts = await this.drawn(runs, panel).finally(() => clearTimeout(wait));
    const manager = this.source.model.widget_manager;
    for (const id of charts) {
      const view = await manager.create_view(await manager.get_model(id));
      if (!panel.body.isConnected) return;
      panel.body.append(view.el);
      panel.ends.push(() => view.remove());
    }
  }

  /**
   * By which the charts are found, as soon as there are metrics: the kernel looks for them.
   * @param {string} runs
   * @param {Pick<Panel, "body" | "ends">} panel
   * @returns {Promise<string[]>}
   */
  async drawn(runs, panel) {
    for (;;) {
      const { charts } = await this.source.askKernel("charts", { runs });
      const over = this.source.runs?.every((run) => run.final || !runs.split(",").includes(String(run.id)));
      const none = over ? "There are no metrics." : "There are no metrics yet: charts come with the first.";
      note(panel, charts.length ? "" : none);
      if (charts.length || over || !panel.body.isConnected) return charts;
      await new Promise((next) => setTimeout(next, CHARTS_EVERY_MS));
    }
  }

  /**
   * Whether a comparison of these runs, with their charts, is open.
   * @param {number[]} runs
   */
  hasCompared(runs) { return this.panels.has(comparedTitle(runs)); }

  /** @param {number[]} runs */
  async compare(runs) {
    const panel = this.open(comparedTitle(runs));
    if (!panel) return;
    const table = new Comparison(panel.body, () => this.source.ask("compare", { runs: runs.join(",") }));
    panel.ends.push(() => table.close());
    await this.overlay(runs, panel);
  }

  /**
   * The charts of several runs in one: the server's where it answers, else the kernel's.
   * @param {number[]} runs
   * @param {Pick<Panel, "body" | "ends">} panel
   */
  async overlay(runs, panel) {
    const numbers = runs.join(",");
    const code = await this.source.answersItself() && await servedPlotly();
    if (!panel.body.isConnected) return;
    if (code) {
      const charts = new ServedCharts(this.source.model, code, numbers);
      panel.ends.push(() => charts.close());
      panel.body.append(charts.root);
      return;
    }
    const needKernel = `Their charts side by side need a kernel: %distrain compare ${runs.join(" ")}`;
    try {
      if (this.openRun) throw new Gone();
      await this.charts(numbers, panel);
    } catch (error) {
      note(panel, error instanceof Gone ? needKernel : messageOf(error));
    }
  }

  close() { for (const title of [...this.panels.keys()]) this.shut(title); }
}

/** @param {number[]} runs */
function comparedTitle(runs) { return `runs ${runs.join(" and ")} compared`; }

/** The page's own copy of plotly, where its server has JupyterLab's extension. */
async function servedPlotly() {
  const answer = await request(PLOTLY, { method: "HEAD" }).catch(() => null);
  return answer?.ok ? plotlyAt(new URL(serverAddress(PLOTLY), document.baseURI)) : null;
}

/**
 * @param {Pick<Panel, "body" | "ends">} panel
 * @param {string} text none if it is empty
 */
function note({ body }, text) {
  body.querySelector(":scope > .dn-note")?.remove();
  if (text) body.append(element("div", { class: "dn-note", role: "note" }, text));
}
