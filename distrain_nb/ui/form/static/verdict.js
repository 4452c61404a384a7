// The middle: what it adds up to, the picture, and everything that was found.

const MARKS = { error: "✕", warning: "!", info: "i" };

class Totals {
  constructor() {
    this.node = element("dl", { class: "dn-totals", "aria-label": "In total" });
  }

  update(view) {
    const said = JSON.stringify(view.totals);
    if (said === this.said) return;
    this.said = said;
    const pairs = view.totals.map(([figure, what]) => element("div", {}, element("dt", {}, what), element("dd", {}, figure)));
    this.node.replaceChildren(...pairs);
  }
}

class Picture {
  constructor() {
    this.node = element("div", { class: "dn-picture" });
  }

  update(view) {
    if (view.picture === this.drawn) return;
    this.drawn = view.picture;
    this.node.innerHTML = view.picture;
  }
}

class Verdict {
  constructor(form) {
    this.form = form;
    this.parts = new Map();
    this.head = element("div", { class: "dn-verdict" });
    this.list = element("ul", { class: "dn-findings", "aria-label": "Findings" });
    this.said = element("div", { class: "dn-unseen", "aria-live": "polite", role: "status" });
    this.node = element("div", { class: "dn-judged" }, this.head, this.list, this.said);
  }

  update(view) {
    const worst = view.findings[0]?.severity ?? "";
    this.head.dataset.severity = worst;
    write(this.head, view.verdict);
    const keyOf = (finding) => JSON.stringify(finding);
    arrange(this.list, keyed(this.parts, view.findings, keyOf, (finding) => ({ node: this.#row(finding) }), () => {}));
    this.#announce(view);
  }

  // Once the typing has paused, so that nobody hears a verdict on half a word.
  #announce(view) {
    clearTimeout(this.pause);
    const text = [view.verdict, ...view.findings.slice(0, 3).map(({ label, message }) => `${label}: ${message}`)].join(". ");
    if (this.announced === undefined) this.announced = text;
    if (text === this.announced) return;
    this.pause = setTimeout(() => {
      this.announced = text;
      write(this.said, text);
    }, 700);
  }

  #row(finding) {
    const go = () => this.form.focus(finding.where);
    return element(
      "li",
      { "data-severity": finding.severity, "data-code": finding.code },
      element("span", { class: "dn-mark", "aria-label": finding.severity, role: "img" }, MARKS[finding.severity]),
      element(
        "div",
        {},
        element("div", { class: "dn-place" }, finding.label ? button(finding.label, go, { class: "dn-link" }) : null, element("code", {}, finding.code)),
        element("div", {}, finding.message),
        finding.fixes.length ? element("div", { class: "dn-repairs" }, ...finding.fixes.map((label) => repairButton(this.form, finding, label))) : null,
      ),
    );
  }
}

// What gradients cost on the wire. A size that can't be read yet leaves the table as it was.
class Traffic {
  constructor(form) {
    const id = uid("gradient");
    this.input = element("input", {
      id,
      type: "text",
      autocomplete: "off",
      "data-own-undo": true,
      oninput: () => form.send("gradient", { text: this.input.value }),
      onblur: () => this.update(form.view),
    });
    this.rows = element("tbody");
    const heads = ["all-reduce", "sent per worker", "latency", "at least"].map((head) => element("th", { scope: "col" }, head));
    this.node = element(
      "div",
      { class: "dn-traffic" },
      element("div", { class: "dn-asked" }, element("label", { for: id }, "Exchanging gradients of"), element("span", { class: "dn-box" }, this.input)),
      element("table", {}, element("thead", {}, element("tr", {}, ...heads)), this.rows),
    );
  }

  update(view) {
    this.node.hidden = !view.traffic.length;
    if (document.activeElement !== this.input) this.input.value = view.gradient;
    const said = JSON.stringify(view.traffic);
    if (said === this.said) return;
    this.said = said;
    const rows = view.traffic.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
    this.rows.replaceChildren(...rows);
  }
}
