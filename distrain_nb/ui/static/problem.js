// Made from page/src by `make page`: edit that.

// src/dom.js
var OWN_KEYS = { "data-lm-suppress-shortcuts": "true" };
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      made.addEventListener(
        name.slice(2),
        /** @type {EventListener} */
        value
      );
    } else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== void 0 && value !== null) made.setAttribute(name, String(value));
  }
  if (made.tabIndex >= 0 || "tabindex" in attributes) made.setAttribute("data-lm-suppress-shortcuts", "true");
  made.append(...children.filter((child) => child !== null && child !== void 0));
  return made;
}
function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...OWN_KEYS, ...attributes }, label);
}
var mine = Math.random().toString(36).slice(2);
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { style: "position:fixed;opacity:0" });
    const focused = document.activeElement;
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return done;
  }
}

// src/problem.js
var FIND_EVERY_MS = 250;
var ANSWER_WITHIN_MS = 3e3;
function initialize({ model }) {
  const offered = /* @__PURE__ */ new WeakSet();
  const find = () => {
    for (const panel of document.querySelectorAll(`[data-distrain-problem="${model.get("key")}"]`)) {
      if (!offered.has(panel)) offer(panel, model);
      offered.add(panel);
    }
  };
  const clock = setInterval(find, FIND_EVERY_MS);
  return () => clearInterval(clock);
}
function offer(panel, model) {
  const said = element("div", { class: "dn-said", role: "status" });
  panel.append(said);
  for (const way of panel.querySelectorAll("[data-repair]")) {
    if (!(way instanceof HTMLElement)) continue;
    const made = button("", () => repair(model, way, made, said), { title: way.dataset.line });
    made.append(...way.childNodes);
    way.append(made);
  }
}
async function repair(model, way, pressed, said) {
  const cell = cellOf(model);
  const source = cell && await answer(model, way.dataset, cell.getSource());
  if (cell && source !== void 0) {
    cell.setSource(source);
    pressed.disabled = true;
    write(said, "The cell is changed: run it again");
  } else {
    const line = way.dataset.line ?? "";
    write(said, await copy(line) ? `Copied: ${line}` : `Write it into the cell: ${line}`);
  }
}
function answer(model, wanted, source) {
  const id = Math.random().toString(36).slice(2);
  return new Promise((resolve) => {
    const done = (text) => {
      model.off("msg:custom", hear);
      clearTimeout(timer);
      resolve(text);
    };
    const hear = (message) => {
      if (message.id === id) done(message.source);
    };
    const timer = setTimeout(() => done(void 0), ANSWER_WITHIN_MS);
    model.on("msg:custom", hear);
    const { point, repair: number } = wanted;
    try {
      model.send({ kind: "repair", id, point: Number(point), repair: Number(number), source });
    } catch {
      done(void 0);
    }
  });
}
function cellOf(model) {
  const notebook = model.widget_manager?.context?.model?.sharedModel;
  const key = model.get("key");
  const isOurs = (cell) => JSON.stringify(cell.toJSON().outputs ?? []).includes(key);
  return notebook?.cells?.find(isOurs);
}
var problem_default = { initialize };
export {
  problem_default as default
};
