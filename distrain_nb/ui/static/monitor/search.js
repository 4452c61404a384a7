// Search over the whole log on disk.

const HITS_AT_ONCE = 1000;
const MOST_HITS = 20000;
const GO_ON_EVERY_MS = 2000;

class Search {
  constructor(log) {
    this.log = log;
    this.field = element("input", "dn-search", undefined, {
      type: "search", placeholder: "Search", "aria-label": "search the whole log", spellcheck: "false", autocomplete: "off",
    });
    this.regex = toggle(".*", "Regular expression", () => this.start());
    this.letters = toggle("Aa", "Match upper and lower case", () => this.start());
    this.back = button("dn-chip", "↑", "Previous match (Shift+Enter)", () => this.step(-1));
    this.on = button("dn-chip", "↓", "Next match (Enter)", () => this.step(1));
    this.said = element("span", "dn-soft dn-hits", "", { role: "status" });
    this.box = element("span", "dn-searchbox", undefined, { role: "search" });
    this.box.append(this.field, this.regex, this.letters, this.back, this.on, this.said);
    const soon = quiet(200, () => this.start());
    this.field.addEventListener("input", soon);
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.log.onSlash = () => { this.field.focus(); this.field.select(); };
    this.clear();
    this.clock = setInterval(() => this.goOn(), GO_ON_EVERY_MS);
  }

  key(event) {
    event.stopPropagation();
    if (event.key === "Enter") this.enter(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") { this.field.value = ""; this.start(); this.log.view.focus(); }
    else return;
    event.preventDefault();
  }

  enter(direction) {
    if (this.field.value !== this.text) this.start(); else this.step(direction);
  }

  clear() {
    this.turn = (this.turn ?? 0) + 1;
    this.text = this.field.value;
    this.hits = [];
    this.place = -1;
    this.searched = -1;  // the last row that has been
    this.busy = false;
    this.failure = "";
    this.log.restyle({ wanted: this.pattern(), current: null });
    this.show();
  }

  // The same pattern for the eyes; what JavaScript can't say is found but not highlighted.
  pattern() {
    if (!this.text) return null;
    const source = this.isOn(this.regex) ? this.text : this.text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    try {
      return new RegExp(source, this.isOn(this.letters) ? "gu" : "giu");
    } catch {
      return null;
    }
  }

  isOn(button) { return button.getAttribute("aria-pressed") === "true"; }

  // Begin anew, at what is in sight.
  async start() {
    this.clear();
    const row = this.log.folds.rowAt(Math.floor(this.log.top));
    await this.goOn();
    if (!this.hits.length) return;
    this.place = this.hits.findIndex((hit) => hit >= row) - 1;
    if (this.place === -2) this.place = this.hits.length - 2;
    this.step(1);
  }

  // Look through what has not been searched yet.
  async goOn() {
    if (!this.text || this.busy || this.failure || !this.log.view.isConnected) return;
    if (this.searched >= 0 && this.searched >= this.log.rows.count - 1) return;
    const { turn } = this;
    this.busy = true;
    this.show();
    try {
      while (turn === this.turn && !(await this.more(turn)) && this.hits.length < MOST_HITS);
    } catch (error) {
      if (turn === this.turn) this.failure = error.message;
    }
    if (turn !== this.turn) return;
    this.busy = false;
    this.show();
  }

  async more(turn) {
    const query = { ...this.log.rows.query, text: this.text, after: this.searched, limit: HITS_AT_ONCE };
    if (this.isOn(this.regex)) query.regex = 1;
    if (this.isOn(this.letters)) query.case = 1;
    const answer = await this.log.source.ask("search", query);
    if (turn !== this.turn) return true;
    this.hits.push(...answer.rows);
    const stuck = answer.searched <= this.searched;
    this.searched = answer.searched;
    this.show();
    return answer.done || stuck;
  }

  step(direction) {
    if (!this.hits.length) return;
    this.place = (this.place + direction + this.hits.length) % this.hits.length;
    this.log.jump(this.hits[this.place]);
    this.log.tell();
    this.show();
  }

  show() {
    const all = this.hits.length.toLocaleString("en") + (this.hits.length >= MOST_HITS ? "+" : "");
    const at = this.place >= 0 && this.hits.length ? `${(this.place + 1).toLocaleString("en")} of ` : "";
    const found = this.hits.length || !this.busy ? `${at}${all}` : "searching…";
    this.said.textContent = this.failure || (this.text ? (found === "0" ? "no match" : found) : "");
    this.said.classList.toggle("dn-bad", Boolean(this.failure));
    this.field.setAttribute("aria-invalid", String(Boolean(this.failure)));
    this.back.disabled = this.on.disabled = !this.hits.length;
  }

  close() { clearInterval(this.clock); this.turn += 1; }
}
