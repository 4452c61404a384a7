// What the ranks have shown: images, tables, figures of plotly, HTML, texts, each asked for once.
// Nothing of it runs here. A run's HTML has a frame without scripts, forms and an origin, whose policy
// lets nothing be fetched.

import { isNear, PlotFrame, plotlyCode } from "./charts/frame.js";
import { arrange, button, element, keyed, LITERAL, write } from "./dom.js";
import { messageOf, Source } from "./source.js";
import { stand, standsWhereMarked } from "./standing.js";
import { thousands } from "./words.js";

/** @import { DisplayAnswer, DisplayRow, DisplaysState, Model, View, Widget } from "./protocol.d.ts" */

const AT_FIRST = 20;  // the newest
const LOOK_EVERY_MS = 300;
const LINE_PX = 26;
const LOWEST_PX = 60;
const DRAWN_PX = 320;
const HIGHEST_PX = 480;
const FIGURE_PX = 450;
const MARGINS_PX = 24;
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:";
// A white card, as pictures are: a run's colours are chosen for black ink.
const STYLE = "html { background: #fff; } body { margin: 8px; font: 13px/1.5 system-ui, sans-serif; color: #1f2328; }";
const BREAKS = /<(?:tr|p|li|br|h[1-6])\b/gi;
const DRAWS = /<(?:svg|img)\b/i;

/** One display: it is asked for when it comes near to being seen. */
class Shown {
  /**
   * @param {DisplayRow} row
   * @param {Source<DisplaysState>} source
   * @param {() => Promise<DataView>} code of plotly
   */
  constructor(row, source, code) {
    this.row = row;
    this.source = source;
    this.code = code;
    this.node = element("div", { class: "dn-display dn-figure" });
    /** @type {PlotFrame | undefined} */
    this.frame = undefined;
    /** @type {ResizeObserver | undefined} */
    this.sized = undefined;
    this.width = 0;  // of a figure as it is drawn
    this.clock = setInterval(() => { if (isNear(this.node)) this.ask(); }, LOOK_EVERY_MS);
  }

  async ask() {
    clearInterval(this.clock);
    /** @type {DisplayAnswer} */
    const answer = await this.source.ask("display", { name: this.row.name }).catch((error) => ({ note: messageOf(error) }));
    const number = this.row.name.split("-")[3] ?? "";  // so that no two frames have the same name
    const label = `display ${number} of rank ${this.row.rank}`;
    const { figure } = answer;
    if (figure) {
      this.sized = new ResizeObserver(() => this.draw(figure, label));
      this.sized.observe(this.node);
    } else this.node.replaceChildren(...this.parts(answer, label));
  }

  /**
   * @param {DisplayAnswer} answer
   * @param {string} label
   */
  parts({ image, table, page, text, note, label: named }, label) {
    if (image) return [element("img", { alt: named || label, src: `data:${image.form};base64,${image.data}` })];
    if (table) {
      const rows = table.rows.map((row) => element("tr", {}, ...row.map(cellOf)));
      const scrolled = element("div", { class: "dn-scrolled", tabindex: 0, role: "group", "aria-label": label }, element("table", { class: "dn-table" }, ...rows));
      return [scrolled, table.note ? element("div", { class: "dn-chart-note" }, table.note) : ""];
    }
    if (page !== undefined) return [this.page(page, label)];
    if (text) return [element("pre", { class: "dn-media-text", tabindex: 0 }, text)];
    return [element("div", { class: "dn-chart-note" }, named ? `${named}: ${note}` : note)];
  }

  /**
   * @param {string} page HTML of a run
   * @param {string} label
   */
  page(page, label) {
    const frame = element("iframe", { class: "dn-page", sandbox: "", title: label, tabindex: 0 });
    const lines = (page.match(BREAKS)?.length ?? 0) + 1;
    const least = DRAWS.test(page) ? DRAWN_PX : LOWEST_PX;
    frame.style.height = `${Math.min(HIGHEST_PX, Math.max(least, lines * LINE_PX))}px`;
    frame.srcdoc = framed(page);
    return frame;
  }

  /**
   * @param {{data: Record<string, any>[], layout: Record<string, any>}} figure of plotly
   * @param {string} label
   */
  draw({ data, layout }, label) {
    const height = Math.min(2 * HIGHEST_PX, Math.max(LOWEST_PX, Number(layout.height) || FIGURE_PX));
    const width = Math.min(Number(layout.width) || Infinity, this.node.clientWidth - MARGINS_PX);
    if (width === this.width || width <= 0) return;
    this.width = width;
    this.frame ??= new PlotFrame(this.node, label, this.code);
    this.frame.draw(data, { ...layout, width, height }, true);
  }

  gone() {
    clearInterval(this.clock);
    this.sized?.disconnect();
    this.frame?.close();
  }
}

/** @param {[text: string, head: boolean, columns: number, rows: number]} cell */
function cellOf([text, head, columns, rows]) {
  return element(head && text ? "th" : "td", { colspan: columns > 1 && columns, rowspan: rows > 1 && rows }, text);
}

/**
 * The document of a frame in which nothing runs.
 * @param {string} page
 */
export function framed(page) {
  return `<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="${POLICY}">`
    + `<style>${STYLE}</style></head><body>${page}</body></html>`;
}

/**
 * @param {Model<DisplaysState>} model
 * @returns {View}
 */
export function openDisplays(model) {
  const list = element("div");
  const root = element("section", { class: `distrain-charts ${LITERAL}`, "aria-label": "shown by the run" });
  const source = new Source(model);
  /** @type {Map<string, Shown>} */
  const parts = new Map();
  let all = false;
  const more = button("", () => { all = true; change(); });
  const tools = element("div", { class: "dn-chart-tools" }, more);
  root.append(list);
  const change = () => {
    const rows = model.get("rows");
    const shown = all ? rows : rows.slice(-AT_FIRST);
    if (shown.length === rows.length) tools.remove();
    else if (tools.parentElement !== root) root.prepend(tools);
    write(more, `Show ${thousands(rows.length - shown.length)} earlier`);
    arrange(list, keyed(parts, shown, (row) => row.name, (row) => new Shown(row, source, () => plotlyCode(model))));
  };
  model.on("change:rows", change);
  change();
  const end = () => {
    model.off("change:rows", change);
    for (const part of parts.values()) part.gone();
    source.close();
  };
  return { root, end };
}

/** @param {Widget<DisplaysState>} widget */
const render = (widget) => stand(widget, openDisplays);

export default { initialize: standsWhereMarked(openDisplays), render };
