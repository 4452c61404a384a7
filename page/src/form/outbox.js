// What the page sends to the form's kernel. A front end may lose a message while it connects again,
// so what gets no answer is sent again. The kernel takes each number once.

/** @import { FormState, Model } from "../protocol.d.ts" */

const AGAIN_MS = 2000;
const AGAIN_AT_MOST_MS = 60_000;

export class Outbox {
  /** @param {Model<FormState>} model */
  constructor(model) {
    this.model = model;
    this.page = Math.random().toString(36).slice(2);
    this.sent = 0;
    this.heard = 0;
    /** @type {{number: number}[]} */
    this.unheard = [];
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  get isWaiting() {
    return this.heard < this.sent;
  }

  /**
   * Gives the number that the kernel answers with. Throws once the kernel has gone.
   * @param {object} content
   */
  send(content) {
    const message = { ...content, page: this.page, number: this.sent + 1 };
    this.model.send(message);
    this.sent += 1;
    this.unheard.push(message);
    if (this.unheard.length === 1) this.#later(AGAIN_MS);
    return this.sent;
  }

  /**
   * A page that connects again asks for the state of all widgets, and may get one that is older than
   * what it has: ask for the newest then, until it comes.
   * @param {[page: string, number: number]} answer
   */
  hear([page, number]) {
    if (page !== this.page || number === this.heard) return;
    if (number < this.heard) {
      const message = { do: "state", page, number: this.heard };
      this.model.send(message);
      this.unheard.unshift(message);
    }
    this.heard = number;
    this.unheard = this.unheard.filter((message) => message.number > number);
    clearTimeout(this.timer);
    if (this.unheard.length) this.#later(AGAIN_MS);
  }

  /** Nobody answers any more. */
  close() {
    clearTimeout(this.timer);
    this.unheard = [];
  }

  /** @param {number} milliseconds doubled each time: the kernel may stand behind a long cell */
  #later(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      try {
        for (const message of this.unheard) this.model.send(message);
      } catch { return this.close(); }
      this.#later(Math.min(2 * milliseconds, AGAIN_AT_MOST_MS));
    }, milliseconds);
  }
}
