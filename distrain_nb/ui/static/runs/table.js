// The table of all runs: kept current, sorted by any column.

const RUNS_EVERY_MS = 2000;
const AGES_EVERY_MS = 1000;

class Table {
  constructor(root, source) {
    this.source = source;
    this.rows = new Map();
    this.order = { column: COLUMNS[0], down: true };
    this.bar = element("div", "dn-bar", undefined, { role: "toolbar", "aria-label": "runs" });
    this.count = element("strong");
    this.compare = button("dn-chip", "Compare", "Show what differs between the ticked runs", () => this.panels.compare(this.chosen));
    this.said = element("span", "dn-soft", "", { role: "status" });
    this.bar.append(this.count, this.compare, this.said);
    this.body = element("tbody");
    this.frame = element("div", "dn-runs", undefined, { "data-lm-suppress-shortcuts": "true" });
    this.frame.append(this.table());
    root.append(this.bar, this.frame);
    this.panels = new Panels(root, source);
    this.ticked();
    source.listeners.push(() => this.show());
    this.clock = setInterval(() => this.show(), AGES_EVERY_MS);
    this.look();
  }

  table() {
    const table = element("table", "dn-table", undefined, { "aria-label": "runs; arrow keys go from run to run, Enter shows a log" });
    this.heads = COLUMNS.map((column) => {
      const head = element("th", className(column), undefined, { scope: "col" });
      head.append(button("dn-sort", column.name, `Sort by ${column.name}`, () => this.sort(column)));
      return head;
    });
    const line = element("tr");
    const ticks = element("th", "", undefined, { scope: "col" });
    ticks.append(element("span", "dn-unseen", "compare"));
    const deeds = element("th", "dn-deeds", undefined, { scope: "col" });
    deeds.append(element("span", "dn-unseen", "actions"));
    line.append(ticks, ...this.heads, deeds);
    const head = element("thead");
    head.append(line);
    table.append(head, this.body);
    return table;
  }

  sort(column) {
    const down = this.order.column === column ? !this.order.down : false;
    this.order = { column, down };
    this.show();
  }

  look() {
    const again = async () => {
      if (!document.hidden) await this.source.refresh().catch(() => {});
      if (!this.over) this.timer = setTimeout(again, RUNS_EVERY_MS);
    };
    this.source.probed.then(again);
  }

  // ---- On screen -------------------------------------------------------------------------

  show() {
    const { runs } = this.source;
    if (!runs) return;
    const now = Date.now() / 1000;
    const columns = COLUMNS.filter((column) => column.name !== "experiment" || runs.some((run) => run.experiment));
    this.heads.forEach((head, place) => {
      const column = COLUMNS[place];
      head.hidden = !columns.includes(column);
      if (column !== this.order.column) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
    });
    const there = new Set(runs.map((run) => run.id));
    for (const [id, row] of this.rows) if (!there.has(id)) this.leave(id, row);
    sorted(runs, this.order, now).forEach((run, place) => {
      if (!this.rows.has(run.id)) this.rows.set(run.id, new Row(this, run));
      const row = this.rows.get(run.id);
      row.show(run, now, columns);
      this.put(row.node, place);
    });
    if (!this.rows.has(this.current?.run.id)) this.visit(this.rowAt(0));
    const alive = runs.filter((run) => !run.final).length;
    this.count.textContent = runs.length ? `${plural(runs.length, "run")}${alive ? `, ${alive} alive` : ""}` : "no runs yet";
    this.frame.hidden = !runs.length;
    this.ticked();
  }

  // What is moved loses the focus.
  put(node, place) {
    if (this.body.children[place] === node) return;
    const held = node.contains(document.activeElement) ? document.activeElement : null;
    this.body.insertBefore(node, this.body.children[place] ?? null);
    held?.focus({ preventScroll: true });
  }

  leave(id, row) {
    const held = row.node.contains(document.activeElement);
    const next = row.node.nextSibling ?? row.node.previousSibling;
    row.node.remove();
    this.rows.delete(id);
    if (held) next?.focus();
  }

  rowAt(place) {
    const node = this.body.children[place];
    return [...this.rows.values()].find((row) => row.node === node);
  }

  visit(row) {
    if (row === this.current) return;
    this.current?.reachable(false);
    this.current = row;
    row?.reachable(true);
  }

  move(row, by) {
    const last = this.body.children.length - 1;
    const place = [...this.body.children].indexOf(row.node) + by;
    this.body.children[Math.max(0, Math.min(last, place))].focus();
  }

  // ---- Actions ---------------------------------------------------------------------------

  get chosen() {
    return [...this.rows.values()].filter((row) => row.tick.checked).map((row) => row.run.id);
  }

  ticked() {
    const count = this.chosen.length;
    this.compare.disabled = count < 2;
    this.compare.textContent = count < 2 ? "Compare (tick two)" : `Compare ${count}`;
  }

  async act(run, deed, done) {
    this.say(this.source.served ? "" : "asking the kernel…");
    try {
      await this.source.act(run.id, deed);
      this.say(done);
    } catch (error) {
      this.say(error.message);
    }
    await this.source.refresh().catch(() => {});
  }

  say(text) {
    this.said.textContent = text;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.said.textContent = ""; }, 8000);
  }

  close() {
    this.over = true;
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    clearInterval(this.clock);
    this.panels.close();
  }
}
