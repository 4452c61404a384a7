// An output that names its run or study: all of it where the server has it, else what the output has
// besides.

import { namedRun, namedStudy } from "../shapes.js";
import { stand } from "../standing.js";
import { isServed, isServedStudy, modelOf, openServed, openServedStudy, studyModelOf } from "./view.js";

/** @import { Model } from "../protocol.d.ts" */
/** @import { Open } from "../standing.js" */
/** @import { LabWidget, Lumino, MimeModel, Renderer, RenderMime } from "./jupyterlab.d.ts" */
/**
 * What a MIME type names.
 * @typedef {{
 *   type: string,
 *   named: (reference: unknown) => any,
 *   isServed: (reference: any) => Promise<boolean | null>,
 *   modelOf: (reference: any) => Model<any>,
 *   open: Open,
 * }} Kind
 */

const ASK_AGAIN_MS = 5000;
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
      open: (model) => openServed(model, code),
    },
    {
      type: "application/vnd.distrain.study+json", named: namedStudy, isServed: isServedStudy, modelOf: studyModelOf,
      open: (model) => openServedStudy(model, code),
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
      if (served === null) this.askAgain(reference, isCurrent);
      if (served) this.showLive(reference);
      else await this.showOther(model);
    }

    /**
     * @param {{part?: string}} reference
     * @param {() => boolean} isCurrent whether the output still shows that model
     */
    async askAgain(reference, isCurrent) {
      let served = null;
      while (served === null && isCurrent()) {
        await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
        served = await kind.isServed(reference);
      }
      if (served && isCurrent()) this.showLive(reference);
    }

    /** @param {{part?: string}} reference */
    showLive(reference) {
      this.live = true;
      this.other?.renderer.dispose();
      if (reference.part === "charts") {
        (this.parent ?? this).hide();  // they stand with their run
        return;
      }
      this.end = stand({ model: kind.modelOf(reference), el: this.node }, kind.open);
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
