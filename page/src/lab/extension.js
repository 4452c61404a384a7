// The extension of JupyterLab: runs and studies in outputs, in a side panel and in the status bar, and
// a notification when one ends. Notebook 7 has the outputs.

import { element, write } from "../dom.js";
import { plotlyAt } from "./charts.js";
import { announce } from "./notices.js";
import { renderOutputs } from "./output.js";
import { counted, RunsPanel } from "./panel.js";
import { modelOf, openServed, openServedStudy, studyModelOf } from "./view.js";
import { Watch } from "./watch.js";

/** @import { StudyRow, TableRun } from "../protocol.d.ts" */
/** @import { What } from "./watch.js" */
/** @import { App, LabWidget, RenderMime, Restorer, Shared, Shell, StatusBar } from "./jupyterlab.d.ts" */

const PANEL = "distrain-runs";
const ICON = '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3 jp-icon-selectable" '
  + 'fill="#616161"><circle cx="5" cy="12" r="3"/><circle cx="19" cy="5" r="3"/><circle cx="19" cy="12" r="3"/>'
  + '<circle cx="19" cy="19" r="3"/><path d="M5 11h14v2H5z"/><path d="M4.5 11.2 18.5 4.2l.9 1.8-14 7z"/>'
  + '<path d="m4.5 12.8 14 7 .9-1.8-14-7z"/></g></svg>';

/**
 * @param {Shared} lab
 * @param {URL} base the folder of the extension's files
 */
export function runsPlugin(lab, base) {
  const { ILabShell, ILayoutRestorer } = lab.application;
  const optional = [ILabShell, ILayoutRestorer, ...(lab.statusbar ? [lab.statusbar.IStatusBar] : [])];
  return {
    id: "distrain-nb:runs",
    description: "Shows distrain's runs, live from the server.",
    autoStart: true,
    requires: [lab.rendermime.IRenderMimeRegistry],
    optional,
    /**
     * @param {App} app
     * @param {RenderMime} registry
     * @param {Shell | null} shell
     * @param {Restorer | null} restorer
     * @param {StatusBar | null} [statusBar]
     */
    activate(app, registry, shell, restorer, statusBar) {
      document.head.append(element("link", { rel: "stylesheet", href: new URL("lab.css", base) }));
      const code = plotlyAt(new URL("plotly-basic.min.js", base));
      const watch = shell ? inLab(lab, shell, restorer, statusBar ?? null, code) : null;
      renderOutputs(registry, lab.widgets, code, () => watch?.look());
    },
  };
}

/**
 * @param {Shared} lab
 * @param {Shell} shell
 * @param {Restorer | null} restorer
 * @param {StatusBar | null} statusBar
 * @param {() => Promise<DataView>} code
 */
function inLab(lab, shell, restorer, statusBar, code) {
  const icon = new lab.components.LabIcon({ name: "distrain:runs", svgstr: ICON });
  const open = opener(lab, shell, icon, code);
  const show = () => shell.activateById(PANEL);
  const watch = new Watch((news) => announce(news, lab.apputils.Notification, open, show));
  const panel = new lab.widgets.Widget({ node: new RunsPanel(watch, open).root });
  panel.id = PANEL;
  Object.assign(panel.title, { icon, caption: "Runs and studies" });
  shell.add(panel, "left", { rank: 700 });
  restorer?.add(panel, PANEL);
  if (statusBar) countIn(statusBar, new lab.widgets.Widget(), watch, show);
  return watch;
}

/**
 * Opens a run or a study in a tab of the main area, one for each.
 * @param {Shared} lab
 * @param {Shell} shell
 * @param {unknown} icon
 * @param {() => Promise<DataView>} code
 */
function opener(lab, shell, icon, code) {
  /** @type {Map<string, LabWidget>} */
  const tabs = new Map();
  return (/** @type {TableRun | StudyRow} */ { id, name }, /** @type {What} */ what) => {
    const called = `distrain-${what}-${id}`;
    let tab = tabs.get(called);
    if (!tab || tab.isDisposed) {
      const view = what === "study"
        ? openServedStudy(studyModelOf({ study: id, home: "" }), code)
        : openServed(modelOf({ run: id, home: "" }), code);
      const made = new (tabClass(lab, view.end))({ node: element("div", { class: "dn-tab" }, view.root) });
      made.id = called;
      const caption = `${what === "study" ? "Study" : "Run"} ${id}`;
      Object.assign(made.title, { label: `${name} #${id}`, caption, closable: true, icon });
      shell.add(made, "main");
      tabs.set(called, made);
      tab = made;
    }
    shell.activateById(tab.id);
  };
}

/**
 * @param {Shared} lab
 * @param {() => void} end
 */
function tabClass({ widgets: { Widget } }, end) {
  return class extends Widget {
    /** JupyterLab closes a tab by this, and keeps nothing of it. */
    dispose() {
      if (!this.isDisposed) end();
      super.dispose();
    }

    onCloseRequest() { this.dispose(); }
  };
}

/**
 * How many runs and studies go on, as long as some do.
 * @param {StatusBar} statusBar
 * @param {LabWidget} item
 * @param {Watch} watch
 * @param {() => void} onclick
 */
function countIn(statusBar, item, watch, onclick) {
  const words = element("span", { class: "jp-StatusBar-TextItem" });
  item.node.append(element("button", { type: "button", class: "dn-running", title: "Show runs and studies", onclick }, words));
  item.addClass("jp-mod-highlighted");
  const show = () => {
    const going = counted(watch.runningStudies.length, watch.running.length);
    write(words, going ? `● ${going} running` : "");
    item.setHidden(!going);
  };
  for (const { listeners } of [watch.source, watch.studySource]) listeners.push(show);
  show();
  statusBar.registerStatusItem("distrain-nb:running", { item, align: "left", rank: 40 });
}
