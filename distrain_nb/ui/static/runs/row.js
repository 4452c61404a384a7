// A row of the table: what is told of a run, and what can be done with it.

class Row {
  constructor(table, run) {
    this.table = table;
    this.run = run;
    this.node = element("tr", "", undefined, { tabindex: "-1" });
    this.tick = element("input", "", undefined, { type: "checkbox", "aria-label": `compare run ${run.id}` });
    this.tick.addEventListener("change", () => table.ticked());
    this.cells = COLUMNS.map((column) => element("td", className(column)));
    this.deeds = element("td", "dn-deeds");
    const ticks = element("td");
    ticks.append(this.tick);
    this.node.append(ticks, ...this.cells, this.deeds);
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.node.addEventListener("focusin", () => table.visit(this));
    this.buttons();
  }

  show(run, now, columns) {
    const ended = run.final !== this.run.final;
    this.run = run;
    this.node.dataset.state = run.state;
    this.node.setAttribute("aria-label", `run ${run.id}, ${run.name}, ${run.state}`);
    COLUMNS.forEach((column, place) => {
      const cell = this.cells[place];
      const text = column.text(run, now);
      cell.hidden = !columns.includes(column);
      if (cell.textContent === text) return;
      cell.textContent = text;
      cell.title = column.name === "layout" ? text : column.name === "state" ? run.error ?? "" : "";
    });
    if (ended) this.buttons();
  }

  buttons() {
    const { run, table } = this;
    const held = this.deeds.contains(document.activeElement);
    const deed = (text, title, act) => {
      const made = button("dn-chip", text, title, () => act());
      made.setAttribute("aria-label", `${text} run ${run.id}`);
      made.tabIndex = table.current === this ? 0 : -1;
      return made;
    };
    this.deeds.replaceChildren(
      deed("Log", "Show its state and log below the table", () => table.panels.log(run)),
      deed("Attach", "Show its state, log and charts below the table", () => table.panels.attach(run)),
      run.final
        ? deed("Delete", "Forget this run and remove its files", () => this.confirm())
        : deed("Stop", "Stop this run", () => this.stop()),
    );
    if (held) this.deeds.lastChild.focus();
  }

  stop() {
    this.deeds.lastChild.disabled = true;
    this.table.act(this.run, "cancel", `run ${this.run.id} is being stopped`);
  }

  // Files are gone for good: ask first, where the button was, with the harmless answer at hand.
  confirm() {
    const { id } = this.run;
    const back = () => { this.buttons(); this.node.focus(); };
    const keep = button("dn-chip", "Keep", "Delete nothing", back);
    const remove = button("dn-chip dn-danger", "Delete", `Delete run ${id} with its files`, () => {
      this.table.act(this.run, "delete", `run ${id} is deleted`);
    });
    remove.setAttribute("aria-label", `Yes, delete run ${id}`);
    const asked = element("span", "dn-asked", `Delete run ${id} and its files?`);
    this.deeds.replaceChildren(asked, remove, keep);
    this.deeds.onkeydown = (event) => { if (event.key === "Escape") back(); };
    keep.focus();
  }

  key(event) {
    const moves = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.table.move(this, moves[event.key]);
    else if (event.target !== this.node) return;
    else if (event.key === "Enter") this.table.panels.log(this.run);
    else if (event.key === " ") this.tick.click();
    else if (event.key === "Delete" && this.run.final) this.confirm();
    else return;
    event.preventDefault();
  }

  // Only the row that was visited last is on the way of the Tab key.
  reachable(yes) {
    this.node.tabIndex = yes ? 0 : -1;
    for (const it of this.node.querySelectorAll("button, input")) it.tabIndex = yes ? 0 : -1;
  }
}
