// Below the table: logs, monitors and comparisons that were asked for, the newest first.

const MOST_PANELS = 6;

class Panels {
  constructor(root, source) {
    this.source = source;
    this.place = element("div", "dn-panels");
    this.ends = new Map();  // by the panel's element
    root.append(this.place);
  }

  // Gives the panel with that title, and its body if it is new.
  open(title, end = () => {}) {
    const there = [...this.ends.keys()].find((panel) => panel.getAttribute("aria-label") === title);
    if (there) {
      there.focus();
      return [there, null];
    }
    const panel = element("section", "dn-panel", undefined, { "aria-label": title, tabindex: "-1" });
    const head = element("div", "dn-panel-head");
    const body = element("div");
    head.append(element("strong", "", title), button("dn-chip", "✕ Close", `Close: ${title}`, () => this.shut(panel)));
    panel.append(head, body);
    this.place.prepend(panel);
    this.ends.set(panel, end);
    if (this.ends.size > MOST_PANELS) this.shut([...this.ends.keys()][0]);
    panel.focus();
    return [panel, body];
  }

  shut(panel) {
    this.ends.get(panel)?.();
    this.ends.delete(panel);
    panel.remove();
  }

  log(run) { this.watch(run, `run ${run.id}: log`); }

  attach(run) {
    const body = this.watch(run, `run ${run.id}: log and charts`);
    if (body) this.charts(String(run.id), body).catch((error) => this.note(body, `The charts can't be shown: ${error.message}`));
  }

  watch(run, title) {
    const view = { end: () => {} };
    const [, body] = this.open(title, () => view.end());
    if (!body) return null;
    const { root, end } = open(new OneRun(this.source.model, run.id));
    view.end = end;
    body.append(root);
    return body;
  }

  // The kernel draws charts, and it may be busy.
  async charts(runs, body) {
    const wait = setTimeout(() => this.note(body, "The kernel is busy: the charts come when it is free."), 1500);
    const { charts } = await this.source.askKernel("charts", { runs });
    clearTimeout(wait);
    this.note(body, charts.length ? "" : "There are no metrics yet: close this and open it again when there are.");
    const manager = this.source.model.widget_manager;
    for (const id of charts) {
      const view = await manager.create_view(await manager.get_model(id));
      if (!body.isConnected) return;
      body.append(view.el);
      this.ends.set(body.parentElement, after(this.ends.get(body.parentElement), () => view.remove()));
    }
  }

  note(body, text) {
    body.querySelector(":scope > .dn-note")?.remove();
    if (text) body.append(element("div", "dn-note", text, { role: "note" }));
  }

  async compare(runs) {
    const [, body] = this.open(`runs ${runs.join(" and ")} compared`);
    if (!body) return;
    try {
      body.append(differences(await this.source.ask("compare", { runs: runs.join(",") })));
      await this.charts(runs.join(","), body);
    } catch (error) {
      this.note(body, error.message);
    }
  }

  close() { for (const panel of [...this.ends.keys()]) this.shut(panel); }
}

function after(first, second) {
  return () => { first?.(); second(); };
}

function differences({ titles, rows }) {
  const table = element("table", "dn-table");
  const line = (kind, scope, cells) => {
    const row = element("tr");
    row.append(...cells.map((text, place) => element(place && kind !== "th" ? kind : "th", "", text, place && kind !== "th" ? {} : { scope })));
    return row;
  };
  const head = element("thead");
  const body = element("tbody");
  head.append(line("th", "col", ["what differs", ...titles]));
  body.append(...rows.map((cells) => line("td", "row", cells)));
  table.append(head, body);
  const frame = element("div", "dn-runs");
  frame.append(table);
  return frame;
}
