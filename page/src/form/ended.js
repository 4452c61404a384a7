// What a form says once the kernel has gone that kept its layout.

import { button, copy, element, write } from "../dom.js";

const SAID_MS = 1500;

export class Ended {
  constructor() {
    this.code = element("code", { class: "dn-again" });
    this.copy = button("Copy", () => this.#copied(), { class: "dn-button" });
    this.node = element(
      "div",
      { class: "dn-part dn-ended", role: "status", hidden: true },
      element("p", {}, "The kernel of this form has ended or restarted, so this form takes no more changes. To continue from here, run:"),
      this.code,
      this.copy,
    );
  }

  /**
   * @param {boolean} isEnded
   * @param {string} again the code that opens a form like this one
   */
  show(isEnded, again) {
    write(this.code, again);
    this.node.hidden = !isEnded;
  }

  async #copied() {
    const done = await copy(this.code.textContent ?? "");
    write(this.copy, done ? "Copied ✓" : "Not allowed here");
    setTimeout(() => write(this.copy, "Copy"), SAID_MS);
  }
}
