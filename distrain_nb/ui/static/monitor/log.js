// The log: all rows can be scrolled to, those in sight and near it are in the page.

const TALLEST = 8_000_000;   // pixels that every browser can lay out
const BLOCK = 200;
const MARGIN = 6;

class Log {
  constructor(root, source) {
    this.source = source;
    this.rows = new Rows();
    this.folds = new Folds();
    this.top = 0;                       // place in sight at the top, a fraction while between two
    this.follow = true;
    this.times = false;
    this.wanted = null;                 // pattern to highlight
    this.current = null;                // row that was jumped to
    this.painted = new Map();           // row → its element
    this.style = 0;                     // counts changes of how every row looks
    this.listeners = [];
    this.build(root);
    this.labelled();
  }

  build(root) {
    this.frame = element("div", "dn-frame");
    this.view = element("div", "dn-log", undefined, {
      role: "log", tabindex: "0", "aria-live": "off",
      "aria-label": "log; arrow keys scroll, slash searches, End follows the latest lines",
    });
    this.sheet = element("div", "dn-rows");
    this.view.append(this.sheet);
    this.latest = button("dn-latest", "↓ Latest", "Show new lines as they come", () => this.toEnd());
    this.latest.hidden = true;
    this.moving = element("div", "dn-bars", undefined, { "aria-label": "progress" });
    this.note = element("div", "dn-note dn-hint", "", { role: "note" });
    this.note.hidden = true;
    this.frame.append(this.view, this.latest);
    root.append(this.frame, this.moving, this.note);
    this.view.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.view.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("copy", (event) => this.copied(event));
    this.resized = new ResizeObserver(() => this.draw());
    // An empty log has no size that would change when it is in the page again.
    for (const box of [this.view, this.frame]) this.resized.observe(box);
  }

  labelled() {
    const labels = Object.values(this.source.facts.labels ?? {});
    const longest = Math.max(4, ...labels.map((label) => label.length));
    this.frame.parentElement.style.setProperty("--dn-tags", `${Math.min(24, longest + 1)}ch`);
    this.rows.pools = this.source.facts.pools ?? {};
    this.restyle({});
  }

  // Change how rows look: `times`, or the pattern that is `wanted`.
  restyle(changes) {
    Object.assign(this, changes);
    this.style += 1;
    this.draw();
  }

  // ---- Where in the log -----------------------------------------------------------------

  get places() { return this.folds.places(this.rows.count); }
  get fits() { return this.view.clientHeight / ROW; }
  get lowest() { return Math.max(0, this.places - this.fits); }
  get height() { return Math.min(TALLEST, this.places * ROW); }

  // Pixels of the scroll bar for each place: ROW, or less in a log too long for a browser.
  get scale() {
    const room = this.height - this.view.clientHeight;
    return room > 0 && this.lowest > 0 ? room / this.lowest : ROW;
  }

  scrolled() {
    if (Math.abs(this.view.scrollTop - this.placed) < 1) return;
    this.placed = this.view.scrollTop;
    this.move(this.view.scrollTop / this.scale);
  }

  // Where pixels of the bar stand for many lines the wheel still goes line by line.
  wheel(event) {
    if (this.scale >= ROW - 0.01 || !event.deltaY || event.ctrlKey) return;
    event.preventDefault();
    this.move(this.top + event.deltaY * (event.deltaMode === 1 ? 1 : 1 / ROW));
  }

  move(top) {
    this.top = Math.max(0, Math.min(this.lowest, top));
    this.follow = this.top >= this.lowest - 1;
    this.draw();
  }

  toEnd() {
    this.follow = true;
    this.draw();
    this.tell();
  }

  // Put the row in sight, and mark it.
  jump(row) {
    this.folds.reveal(row);
    this.current = row;
    this.move(this.folds.placeOf(row) - Math.floor(this.fits / 3));
    this.follow = false;
    this.draw();
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.fits) - 1);
    const moves = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.move(this.top + moves[event.key]);
    else if (event.key === "Home") this.move(0);
    else if (event.key === "End") this.toEnd();
    else if (event.key === "/") this.onSlash?.();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  filter(filter) {
    this.rows.choose(filter);
    this.folds.reset();
    this.current = null;
    this.top = 0;
    this.follow = true;
    this.draw();
    this.tell();
    return this.refresh();
  }

  // ---- Lines -----------------------------------------------------------------------------

  take(batch) {
    this.rows.takeBatch(batch);
    this.draw();
  }

  // The newest lines, or how many there are while older ones are looked at.
  async refresh() {
    return this.load(this.follow ? { first: -BLOCK, count: BLOCK } : { first: -1, count: 1 });
  }

  async load(window) {
    const { generation } = this.rows;
    const answer = await this.source.ask("log", { ...this.rows.query, ...window });
    if (generation !== this.rows.generation) return;
    this.rows.takeAnswer(answer);
    if (this.source.served) this.rows.bars = answer.bars.map(asLine);
    this.draw();
  }

  async fetch(row) {
    if (this.fetching) return;
    const block = Math.floor(row / BLOCK) * BLOCK;
    const settled = block + BLOCK <= this.rows.count - OPEN_NEAR_END;
    const window = { first: block, count: settled ? BLOCK + OPEN_NEAR_END : BLOCK };
    this.fetching = true;
    try {
      await this.load(window);
      if (settled) await this.findFolds(window);
    } finally {
      this.fetching = false;
      this.draw();
    }
  }

  async findFolds(window) {
    const { generation } = this.rows;
    const { folds } = await this.source.ask("tracebacks", { ...this.rows.query, ...window });
    if (generation !== this.rows.generation || !folds.length) return;
    this.refold(() => this.folds.find(folds, this.rows));
  }

  // Change folds while the row at the top stays where it is.
  refold(change) {
    const [whole, part] = [Math.floor(this.top), this.top % 1];
    const row = this.folds.rowAt(whole);
    change();
    if (row !== this.current) this.top = this.folds.placeOf(row) + part;
    this.draw();
  }

  // ---- On screen -------------------------------------------------------------------------

  draw() {
    if (this.scheduled) return;
    this.scheduled = requestAnimationFrame(() => { this.scheduled = 0; this.paint(); });
  }

  tell() { for (const listener of this.listeners) listener(); }

  paint() {
    if (!this.view.isConnected) return;
    this.sheet.style.height = `${this.height}px`;
    this.view.style.display = this.rows.count ? "" : "none";
    this.top = this.follow ? this.lowest : Math.min(this.top, this.lowest);
    const scroll = this.top * this.scale;
    if (Math.abs(this.view.scrollTop - scroll) >= 1) this.view.scrollTop = scroll;
    this.placed = this.view.scrollTop;
    const from = Math.max(0, Math.floor(this.top) - MARGIN);
    const to = Math.min(this.places, Math.ceil(this.top + this.fits) + MARGIN);
    this.paintRows(from, to);
    this.moving.replaceChildren(...this.rows.bars.filter((line) => this.rows.passes(line)).map((line) => this.line(line)));
    this.latest.hidden = this.follow || !this.rows.count;
    this.note.hidden = !(this.source.kernelIsBusy && this.lacking !== null);
    this.note.textContent = "The kernel is busy: lines that are not here come when it is free, or at once with "
      + "“jupyter server extension enable distrain_nb.server” and a restart of Jupyter.";
    this.tell();
  }

  // What is in the page already stays there, so that text can be marked while lines come.
  paintRows(from, to) {
    const painted = new Map();
    for (let place = from; place < to; place++) {
      const number = this.folds.rowAt(place);
      const row = this.row(number, this.painted.get(number));
      row.style.top = `${this.placed + (place - this.top) * ROW}px`;
      painted.set(number, row);
    }
    for (const [number, row] of this.painted) if (painted.get(number) !== row) row.remove();
    [...painted.values()].forEach((row, place) => {
      if (this.sheet.children[place] !== row) this.sheet.insertBefore(row, this.sheet.children[place] ?? null);
    });
    this.painted = painted;
    const first = this.folds.rowAt(from);
    this.lacking = this.rows.missing(first, this.folds.rowAt(Math.max(from, to - 1)) + 1);
    this.fetchSoon(this.rows.exact ? this.lacking : first);
    this.rows.tidy(first);
  }

  fetchSoon(row) {
    clearTimeout(this.soon);
    if (row !== null && this.rows.count) this.soon = setTimeout(() => this.fetch(row).catch(() => {}), 40);
  }

  row(number, painted) {
    const line = this.rows.lines.get(number);
    const before = this.rows.lines.get(number - 1);
    const cell = line && (inCell(line.text) || (before?.process === line.process && inCell(before.text)));
    const fold = this.folds.at(number);
    const looks = [this.style, number === this.current, cell, fold?.open].join(" ");
    if (painted && painted.shownLine === line && painted.looks === looks) return painted;
    const row = line ? this.line(line) : element("div", "dn-line dn-gap", "…");
    Object.assign(row, { shownLine: line, looks });
    row.dataset.row = number;
    if (number === this.current) row.classList.add("dn-current");
    if (cell) row.classList.add("dn-cell");
    if (line && fold) this.foldSign(row, number, fold);
    return row;
  }

  foldSign(row, number, fold) {
    const title = fold.open ? "Fold this traceback" : "Show the whole traceback";
    const sign = button("dn-fold", fold.open ? "▾" : `▸ ${plural(fold.lines, "line")}`, title, () => {
      this.refold(() => this.folds.turn(number, !fold.open));
    });
    sign.setAttribute("aria-expanded", String(fold.open));
    row.append(sign);
  }

  line(line) {
    const row = element("div", `dn-line dn-${line.stream} dn-p${line.process % COLOURS}`);
    const label = this.source.facts.labels?.[line.process] ?? String(line.process);
    const stream = line.stream === "e" ? `${label}, stderr` : label;
    row.append(element("span", "dn-tag", label, { title: stream }));
    if (this.times && line.time) row.append(element("time", "dn-when", clockTime(line.time)));
    const text = element("span", RAISED.test(line.text) ? "dn-raised" : "");
    appendText(text, line.text, this.wanted);
    row.append(text);
    return row;
  }

  // ---- Copy ------------------------------------------------------------------------------

  copied(event) {
    const selection = this.view.ownerDocument.getSelection();
    if (selection.isCollapsed) return;
    const rows = [...this.sheet.children].filter((row) => selection.containsNode(row, true));
    if (rows.length < 2) return;
    event.clipboardData.setData("text/plain", this.textOf(rows));
    event.preventDefault();
  }

  textOf(rows) {
    const lines = rows.map((row) => this.rows.lines.get(Number(row.dataset.row))).filter(Boolean);
    return lines.map((line) => `${this.asText(line)}\n`).join("");
  }

  asText(line) {
    return `[${this.source.facts.labels?.[line.process] ?? line.process}] ${plainText(line.text)}`;
  }

  get inSight() {
    const rows = [...this.sheet.children].filter((row) => {
      const top = parseFloat(row.style.top) - this.placed;
      return top > -ROW && top < this.view.clientHeight;
    });
    return this.textOf(rows);
  }

  close() {
    cancelAnimationFrame(this.scheduled);
    clearTimeout(this.soon);
    this.resized.disconnect();
  }
}

const RAISED = /^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b/;

function inCell(text) {
  return text.includes("Cell In[");
}
