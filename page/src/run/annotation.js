// What people say of a run, a note and tags: the line below its head, and the form that changes them.

import { button, element, OWN_KEYS } from "../dom.js";
import { messageOf } from "../source.js";

/** @import { Annotation } from "../protocol.d.ts" */
/** @import { RunSource } from "../source.js" */
/** @typedef {{note: string, tags: string}} Change tags are parted by commas */

const LONGEST_NOTE = 2000;

/**
 * `#baseline #good the first that converges`
 * @param {{annotation?: Annotation}} run
 */
export function annotationText({ annotation }) {
  return annotation ? [...annotation.tags.map((tag) => `#${tag}`), annotation.note].filter(Boolean).join(" ") : "";
}

/**
 * Fields for note and tags. `save` raises what the reader is told; `done` is called when it is over.
 * @param {number} run
 * @param {Annotation | undefined} annotation
 * @param {(change: Change) => Promise<void>} save
 * @param {() => void} done
 */
export function annotationForm(run, annotation, save, done) {
  const own = { spellcheck: "false", autocomplete: "off", ...OWN_KEYS };
  const tags = element("input", { type: "text", placeholder: "baseline, good", value: annotation?.tags.join(", ") ?? "", ...own });
  const note = element("textarea", { rows: 3, maxlength: LONGEST_NOTE, ...own, spellcheck: "true" });
  note.value = annotation?.note ?? "";
  const said = element("span", { class: "dn-soft", role: "status" });
  const keep = async () => {
    keeps.disabled = true;
    try {
      await save({ note: note.value, tags: tags.value });
      done();
    } catch (error) {
      said.textContent = messageOf(error);
      keeps.disabled = false;
    }
  };
  const keeps = button("Save", keep, { class: "dn-chip dn-save", title: "Keep note and tags" });
  const form = element(
    "div", {
      class: "dn-annotate", role: "group", "aria-label": `note and tags of run ${run}`,
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        event.stopPropagation();
        if (event.key === "Escape") done();
        if (event.key === "Enter" && (event.target === tags || event.ctrlKey || event.metaKey)) keep();
      },
    },
    element("label", {}, "Tags ", tags),
    element("label", {}, "Note ", note),
    element("div", {}, keeps, button("Cancel", done, { class: "dn-chip", title: "Change nothing" }), said),
  );
  return { form, focus: () => tags.focus() };
}

/**
 * The line with note and tags, which is there where a run has some, and the button that changes them.
 * @param {HTMLElement} root
 * @param {RunSource} source
 */
export function annotationLine(root, source) {
  const words = element("div", { class: "dn-about", hidden: true });
  const place = element("div");
  root.append(words, place);
  const save = async (/** @type {Change} */ change) => {
    if (!await source.order("POST", "annotate", change)) await source.askKernel("annotate", change);
    source.learn(await source.ask("summary"));
  };
  const done = () => { place.replaceChildren(); edit.hidden = false; edit.focus(); };
  const edit = button("Note", () => {
    const { id = 0, annotation } = source.summary;
    const { form, focus } = annotationForm(id, annotation, save, done);
    place.replaceChildren(form);
    edit.hidden = true;
    focus();
  }, { class: "dn-chip dn-save", title: "Change note and tags", "aria-label": "Note and tags" });
  let shown = "";
  const change = () => {
    const { annotation } = source.summary;
    edit.hidden = source.summary.state === undefined || place.childElementCount > 0;
    const text = JSON.stringify(annotation ?? {});
    if (text === shown) return;
    shown = text;
    words.hidden = !annotation || !(annotation.note || annotation.tags.length);
    words.replaceChildren(
      ...(annotation?.tags ?? []).map((tag) => element("span", { class: "dn-label" }, tag)),
      annotation?.note ? element("span", {}, annotation.note) : "",
    );
  };
  source.listeners.push(change);
  change();
  return edit;
}
