// The job builder. The kernel keeps the layout and decides everything; this draws what it says and
// sends what the user does. The files of this folder are read as one module, in the order of
// `SCRIPTS` in builder.py.

let made = 0;

function uid(what) {
  made += 1;
  return `dn-${what}-${made}`;
}

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) node.setAttribute(name, value);
  }
  // Keys pressed in here are ours: JupyterLab's own would move between cells or delete them.
  if (node.matches("button, input, textarea, [tabindex]")) node.dataset.lmSuppressShortcuts = "true";
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", class: "dn-button", onclick, ...attributes }, label);
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Puts the nodes into the parent in this order, moving only what has to be moved, so that what is
// focused stays so.
function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
}

// Keeps one part a key: makes what is new, brings all up to date, forgets what is gone.
function keyed(parts, items, keyOf, make, update) {
  const keys = new Set(items.map(keyOf));
  for (const [key, part] of parts) {
    if (keys.has(key)) continue;
    part.gone?.();
    parts.delete(key);
  }
  return items.map((item) => {
    const key = keyOf(item);
    if (!parts.has(key)) parts.set(key, make(item));
    const part = parts.get(key);
    update(part, item);
    return part.node;
  });
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
    focused?.focus();
    return done;
  }
}
