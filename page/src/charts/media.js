// What event files have besides scalars, each kind folded.

import { choice, debounce, element, fold, OWN_KEYS } from "../dom.js";
import { messageOf } from "../source.js";
import { thousands } from "../words.js";
import { themeColours, whenThemed } from "./colours.js";
import { ridges } from "./ridges.js";

/** @import { Histograms, MediaRow, MediaState } from "../protocol.d.ts" */
/** @import { Query, Source } from "../source.js" */
/** @import { PlotFrame } from "./frame.js" */

const SETTLED_MS = 80;

/** @param {MediaRow} row */
function nameOf({ run, tag }) {
  return run ? `${run} · ${tag}` : tag;
}

/** All of one kind: one row at a time, and of it one step at a time but for histograms. */
export class MediaFold {
  /**
   * @param {MediaRow["kind"]} kind
   * @param {string} title
   * @param {Source<MediaState>} source
   * @param {(place: HTMLElement, title: string) => PlotFrame} plot
   */
  constructor(kind, title, source, plot) {
    this.kind = kind;
    this.title = title;
    this.source = source;
    this.plot = plot;
    /** @type {MediaRow[]} */
    this.rows = [];
    /** @type {MediaRow | undefined} the one that is shown */
    this.row = undefined;
    this.following = true;  // the newest step, until the reader chooses another
    this.asked = 0;         // counts questions: only the last one's answer is shown
    /** @type {PlotFrame | undefined} */
    this.frame = undefined;
    this.figure = element("div", { class: "dn-figure" });
    const { box, inside, summary } = fold(title, "dn-media");
    this.box = box;
    this.summary = summary;
    this.menu = choice(title, [], (name) => this.choose(name));
    this.slider = element("input", { type: "range", min: 0, step: 1, "aria-label": `Step of ${title}`, ...OWN_KEYS });
    this.label = element("output");
    this.place = element("div", { class: "dn-media-place" });
    const slider = kind === "histogram" ? null : this.slider;
    inside.append(element("div", { class: "dn-chart-tools" }, this.menu, slider, this.label), this.place);
    this.settled = debounce(SETTLED_MS, () => this.show());
    this.slider.addEventListener("input", () => {
      this.following = this.slider.value === this.slider.max;
      this.settled();
    });
    this.box.addEventListener("toggle", () => this.show());
    /** @type {Histograms | undefined} */
    this.histograms = undefined;
    this.unthemed = whenThemed(this.figure, () => { if (this.histograms) this.histogram(this.histograms); });
  }

  /** @param {MediaRow[]} rows of all kinds */
  update(rows) {
    this.rows = rows.filter((row) => row.kind === this.kind);
    this.box.hidden = !this.rows.length;
    this.summary.textContent = `${this.title} (${thousands(this.rows.length)})`;
    if (!this.rows.length) return;
    const names = this.rows.map(nameOf);
    if (names.length !== this.menu.options.length) {
      const chosen = this.row ? nameOf(this.row) : names[0];
      this.menu.replaceChildren(...names.map((name) => new Option(name, name)));
      this.menu.value = chosen;
    }
    const before = this.row?.last;
    this.row = this.rows[names.indexOf(this.menu.value)] ?? this.rows[0];
    this.slider.max = String(this.row.count - 1);
    if (this.following) this.slider.value = this.slider.max;
    if (this.following && this.row.last !== before) this.show();
  }

  /** @param {string} name */
  choose(name) {
    this.row = this.rows.find((row) => nameOf(row) === name);
    this.following = true;
    this.slider.max = this.slider.value = String((this.row?.count ?? 1) - 1);
    this.show();
  }

  async show() {
    if (!this.box.open || !this.row) return;
    const { kind, run, tag } = this.row;
    /** @type {Query} */
    const query = { kind, run, tag };
    if (kind !== "histogram") query.at = Number(this.slider.value);
    const number = ++this.asked;
    const answer = await this.source.ask("media", query)
      .catch((error) => ({ note: messageOf(error) }));
    if (this.asked !== number) return;
    this.label.textContent = answer.step === undefined ? "" : `step ${thousands(answer.step)}`;
    if (answer.note) this.place.replaceChildren(element("span", { class: "dn-chart-note" }, answer.note));
    else this[kind](answer);
  }

  /** @param {{form: string, data: string}} answer a MIME type and bytes in base64 */
  image({ form, data }) {
    const source = `data:${form};base64,${data}`;
    this.place.replaceChildren(element("img", { class: "dn-media-image", src: source, alt: this.menu.value }));
  }

  /** @param {{text: string}} answer */
  text({ text }) {
    this.place.replaceChildren(element("pre", { class: "dn-media-text" }, text));
  }

  /** @param {Histograms} answer */
  histogram(answer) {
    this.histograms = answer;
    this.label.textContent = answer.notes.join("; ");
    if (this.figure.parentElement !== this.place) this.place.replaceChildren(this.figure);
    this.frame ??= this.plot(this.figure, this.title);
    const { text, ground } = themeColours(this.figure);
    const [hills, layout] = ridges(answer, { width: this.place.clientWidth, text, ground });
    this.frame.draw(hills, layout);
  }

  close() {
    this.unthemed();
    this.settled.cancel();
    this.frame?.close();
  }
}
