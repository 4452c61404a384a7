// What is above the log: filters, search, and what can be done with it.

const MANY = 8;

class Toolbar {
  constructor(root, source) {
    this.source = source;
    this.bar = element("div", "dn-bar", undefined, { role: "toolbar", "aria-label": "log" });
    root.append(this.bar);
    this.log = new Log(root, source);
    this.search = new Search(this.log);
    this.filters = element("span", "dn-filters");
    this.count = element("span", "dn-soft dn-count", "", { title: "lines" });
    this.said = element("span", "dn-soft", "", { role: "status" });
    const top = element("span", "dn-tools");
    top.append(this.filters, this.said, this.count);
    const below = element("span", "dn-tools");
    below.append(this.search.box, this.actions());
    this.bar.append(top, below);
    this.log.listeners.push(() => this.counted());
    this.labelled();
  }

  actions() {
    const actions = element("span", "dn-actions");
    actions.append(
      button("dn-chip", "First error", "Go to the first traceback or error", () => this.firstError()),
      this.lineField(),
      toggle("Time", "Show when each line came", (times) => this.log.restyle({ times })),
      button("dn-chip", "Copy", "Copy the lines in sight, or the selected text", () => this.copy()),
      button("dn-chip", "Download", "Save the whole log as a text file", () => this.download()),
    );
    return actions;
  }

  lineField() {
    const field = element("input", "dn-goto", undefined, {
      type: "text", inputmode: "numeric", placeholder: "Line", "aria-label": "go to line number", size: "6",
    });
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      const row = Number(field.value.replace(/\D/g, "")) - 1;
      if (event.key === "Enter" && row >= 0) this.log.jump(Math.min(row, this.log.rows.count - 1));
    });
    return field;
  }

  // ---- Filters -----------------------------------------------------------------------------

  labelled() {
    const { labels = {}, pools = {} } = this.source.facts;
    const key = JSON.stringify([labels, pools]);
    if (key === this.shown) return;
    this.shown = key;
    const processes = Object.entries(labels);
    const parts = processes.length < 2 ? [element("span", "", "log")] : this.processes(processes);
    const names = [...new Set(Object.values(pools))];
    if (names.length > 1) parts.push(this.menu("worker pool", "role", [["", "all pools"], ...names.map((name) => [name, name])]));
    parts.push(this.menu("stream", "stream", [["", "both streams"], ["o", "stdout"], ["e", "stderr"]]));
    this.filters.replaceChildren(...parts);
    this.log.labelled();
  }

  processes(entries) {
    const all = [["", "all"], ...entries];
    if (entries.length > MANY) return [this.menu("show the lines of", "process", all)];
    const chips = all.map(([process, label]) => {
      const colour = process === "" ? "" : ` dn-p${process % COLOURS}`;
      const chip = button(`dn-chip${colour}`, label, `Show the lines of ${label}`, () => {
        for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
        this.choose({ process });
      });
      chip.setAttribute("aria-label", label);
      chip.setAttribute("aria-pressed", String(process === this.log.rows.filter.process));
      return chip;
    });
    return chips;
  }

  menu(label, name, entries) {
    const menu = choice(label, entries, (value) => this.choose({ [name]: value }));
    menu.value = this.log.rows.filter[name];
    return menu;
  }

  choose(filter) {
    this.log.filter(filter).catch(() => {});
    this.search.start();
  }

  counted() {
    const { total, count, filtered, exact } = this.log.rows;
    const some = filtered && exact ? `${count.toLocaleString("en")} of ` : "";
    this.count.textContent = total ? `${some}${plural(total, "line")}` : "no output";
  }

  // ---- Actions -------------------------------------------------------------------------------

  say(text) {
    this.said.textContent = text;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.said.textContent = ""; }, 4000);
  }

  async firstError() {
    const { row } = await this.source.ask("first-error", this.log.rows.query);
    if (row === null) this.say("no error in the log");
    else this.log.jump(row);
  }

  async copy() {
    const selected = String(document.getSelection());
    const within = this.log.sheet.contains(document.getSelection().anchorNode);
    await navigator.clipboard.writeText(selected && within ? selected : this.log.inSight);
    this.say("copied");
  }

  async download() {
    const name = `run-${this.source.facts.id}.log`;
    if (this.source.served) return save(name, `${serverBase()}${this.source.address("download")}`);
    const address = URL.createObjectURL(new Blob(await this.wholeLog(), { type: "text/plain" }));
    save(name, address);
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }

  async wholeLog() {
    const parts = [];
    for (let first = 0, rows = 1; first < rows; first += 2000) {
      const answer = await this.source.ask("log", { first, count: 2000 });
      rows = answer.rows;
      parts.push(answer.lines.map((line) => `${this.log.asText(asLine(line))}\n`).join(""));
      this.say(`${Math.round(100 * Math.min(1, (first + 2000) / rows))} %`);
    }
    return parts;
  }

  close() {
    clearTimeout(this.silence);
    this.search.close();
    this.log.close();
  }
}

function save(name, address) {
  element("a", "", undefined, { href: address, download: name }).click();
}
