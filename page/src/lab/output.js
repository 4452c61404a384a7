// An output that names its run or study: all of it where the server has it, else what the output has
// besides.

import { namedRun, namedStudy, taken } from "../shapes.js";
import { request } from "../source.js";
import { stand } from "../standing.js";
import { isServed, isServedStudy, modelOf, openServed, openServedStudy, studyModelOf } from "./view.js";

/** @import { Model, RunReference } from "../protocol.d.ts" */
/** @import { Open } from "../standing.js" */
/** @import { LabWidget, Lumino, MimeModel, Renderer, RenderMime } from "./jupyterlab.d.ts" */
/**
 * What a MIME type names.
 * @typedef {{
 *   type: string,
 *   named: (reference: unknown) => any,
 *   isServed: (reference: any) => Promise<boolean | null>,
 *   modelOf: (reference: any) => Model<any>,
 *   place: (model: Model<any>) => string,
 *   open: Open,
 * }} Kind
 */

const ASK_AGAIN_MS = 5000;
const ENDS_EVERY_MS = 5000;
const RANK = -20;  // of all types that an output has the lowest is shown; that of widgets is -10

/**
 * The registry of the document that the output is in, which knows more than the application's: its
 * widgets.
 * @param {LabWidget} output
 * @param {RenderMime} otherwise
 * @returns {RenderMime}
 */
function registryOf(output, otherwise) {
  for (let above = output.parent; above; above = above.parent) {
    if ("rendermime" in above) return /** @type {RenderMime} */ (above.rendermime);
  }
  return otherwise;
}

/**
 * Shows the reader's own run, as the reader's own server tells of it. That is safe whoever wrote the
 * document, whose outputs name no more than a number and a time.
 * @param {RenderMime} registry
 * @param {Lumino} lumino
 * @param {() => Promise<DataView>} code of plotly
 * @param {() => void} shown is called when a run is shown
 */
export function renderOutputs(registry, lumino, code, shown) {
  /** @type {Kind[]} */
  const kinds = [
    {
      type: "application/vnd.distrain.run+json", named: namedRun, isServed, modelOf,
      place: (model) => `runs/${model.get("run")}`, open: (model) => openServed(model, code),
    },
    {
      type: "application/vnd.distrain.study+json", named: namedStudy, isServed: isServedStudy, modelOf: studyModelOf,
      place: (model) => `studies/${model.get("study")}`, open: (model) => openServedStudy(model, code),
    },
  ];
  for (const kind of kinds) {
    const createRenderer = () => /** @type {Renderer} */ (new (outputClass(registry, lumino, kind, shown))());
    registry.addFactory({ safe: true, mimeTypes: [kind.type], createRenderer }, RANK);
  }
}

/**
 * @param {RenderMime} registry
 * @param {Lumino} lumino
 * @param {Kind} kind
 * @param {() => void} shown
 */
function outputClass(registry, { Panel }, kind, shown) {
  return class LiveOutput extends Panel {
    asked = 0;
    /** @type {(() => void) | undefined} ends the live view */
    end = undefined;
    live = false;
    /** @type {{type: string, renderer: Renderer} | undefined} */
    other = undefined;

    /** @param {MimeModel} model */
    async renderModel(model) {
      if (this.live) return;
      const asked = ++this.asked;
      const reference = kind.named(model.data[kind.type]);
      const isCurrent = () => !this.isDisposed && this.asked === asked;
      const served = reference !== null && await kind.isServed(reference);
      if (!isCurrent()) return;
      if (served === null) this.askAgain(reference, model, isCurrent);
      if (served) this.showLive(reference, model);
      else await this.showOther(model);
    }

    /**
     * @param {Partial<RunReference>} reference
     * @param {MimeModel} model
     * @param {() => boolean} isCurrent whether the output still shows that model
     */
    async askAgain(reference, model, isCurrent) {
      let served = null;
      while (served === null && isCurrent()) {
        await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
        served = await kind.isServed(reference);
      }
      if (served && isCurrent()) this.showLive(reference, model);
    }

    /**
     * @param {Partial<RunReference>} reference
     * @param {MimeModel} model
     */
    showLive(reference, model) {
      this.live = true;
      this.other?.renderer.dispose();
      if (reference.part === "charts") {
        (this.parent ?? this).hide();  // they stand with their run
        return;
      }
      const shownModel = kind.modelOf(reference);
      this.end = stand({ model: shownModel, el: this.node }, kind.open);
      keepEnding(shownModel, model, kind, () => this.isDisposed);
      shown();
    }

    /** @param {MimeModel} model */
    async showOther(model) {
      const { [kind.type]: _, ...data } = model.data;
      const known = registryOf(this, registry);
      const type = known.preferredMimeType(data, model.trusted ? "any" : "ensure");
      const { trusted, metadata } = model;
      const rest = { data, trusted, metadata, setData: (/** @type {object} */ options) => model.setData(options) };
      if (this.other?.type !== type) {
        this.other?.renderer.dispose();
        this.other = type ? { type, renderer: known.createRenderer(type) } : undefined;
        if (this.other) this.addWidget(this.other.renderer);
      }
      await this.other?.renderer.renderModel(rest);
    }

    dispose() {
      if (this.isDisposed) return;
      this.end?.();
      super.dispose();
    }
  };
}

/**
 * What was saved before the end of a run or study says how it was then: once it has ended, the document gets the
 * end, for whoever reads it without this server. A kernel that still follows it does so itself.
 * @param {Model<any>} shown
 * @param {MimeModel} document
 * @param {Kind} kind
 * @param {() => boolean} isOver whether the output is gone
 */
async function keepEnding(shown, document, { type, named, place }, isOver) {
  const open = () => !isOver() && named(document.data[type])?.final === false;
  while (open()) {
    const ending = await endingOf(shown, place(shown)).catch(() => null);
    if (ending?.final && open()) {
      const reference = { ...document.data[type], final: true };
      const html = ending.html ? { "text/html": ending.html } : {};  // a server that was not started anew has none
      document.setData({ data: { [type]: reference, ...html, "text/plain": ending.text } });
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, ENDS_EVERY_MS));
  }
}

/**
 * @param {Model<any>} shown
 * @param {string} place
 */
async function endingOf(shown, place) {
  const answer = await request(`distrain/${place}/ending?${new URLSearchParams({ home: shown.get("home") })}`);
  return answer.ok ? taken("ending", await answer.json()) : null;
}
