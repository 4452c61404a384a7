// What stands for a widget's model where there is no kernel: the state is the page's own.

/** @import { Model } from "../protocol.d.ts" */

const UNREACHABLE = "Jupyter's server does not answer now; the page asks again.";

/**
 * @template State
 * @implements {Model<State>}
 */
export class PageModel {
  /**
   * @param {State} state
   * @param {() => Promise<DataView>} [code] the packed code of plotly
   */
  constructor(state, code) {
    this.state = state;
    /** @type {Map<string, Set<(message: any) => void>>} */
    this.listeners = new Map();
    this.lacksKernel = true;
    this.widget_manager = { get_model: async () => ({ get: () => code?.() }) };
  }

  /**
   * @template {keyof State} Name
   * @param {Name} name
   */
  get(name) { return this.state[name]; }

  /**
   * @template {keyof State} Name
   * @param {Name} name
   * @param {State[Name]} value
   */
  set(name, value) {
    this.state[name] = value;
    this.tell(`change:${String(name)}`);
  }

  save_changes() {}

  /**
   * Whoever asks is told that nobody answers.
   * @param {any} message
   */
  send({ kind, id }) {
    if (kind !== "ask") return;
    queueMicrotask(() => this.tell("msg:custom", { kind: "answer", id, error: UNREACHABLE }));
  }

  /**
   * @param {string} event
   * @param {unknown} [message]
   */
  tell(event, message) {
    for (const listener of [...this.listeners.get(event) ?? []]) listener(message);
  }

  /**
   * @param {string} event
   * @param {(message: any) => void} listener
   */
  on(event, listener) {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(listener));
  }

  /**
   * @param {string} event
   * @param {(message: any) => void} listener
   */
  off(event, listener) { this.listeners.get(event)?.delete(listener); }
}
