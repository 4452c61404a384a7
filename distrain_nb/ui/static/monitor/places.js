// Where a view stands: in the output of its cell, whatever takes the place of that output.

const FIND_EVERY_MS = 250;
const PARKED_MS = 5000;
const STANDING = new Map();  // the newest view in an output of its cell, by key
const PARKED = new Map();    // those that lost their place a moment ago
const WIDGETS = new Map();   // by key: the widget's model, and what finds new places for its view

// What is moved in a page loses the focus. Gives what gives it back to whoever had it.
function keepFocus(root) {
  let kept = null;
  root.addEventListener("focusin", (event) => { kept = event.target; });
  root.addEventListener("focusout", () => setTimeout(() => {
    if (root.isConnected && !root.contains(document.activeElement)) kept = null;
  }));
  return () => {
    const now = document.activeElement;
    if (kept && (now === document.body || now.contains(root))) kept.focus({ preventScroll: true });
  };
}

// What an output shows of a widget: its view, up to the end of the output.
function stand(model, el, open) {
  const key = model.get("key");
  const view = unpark(key) ?? open(lastingModel(model));
  const standing = { view };
  el.append(view.root);
  STANDING.set(key, standing);
  return () => {
    if (STANDING.get(key) === standing) STANDING.delete(key);
    if (standing.view) park(key, view);
  };
}

// A view that its output still shows, taken from there.
function taken(key) {
  const standing = STANDING.get(key);
  if (!standing) return undefined;
  STANDING.delete(key);
  const { view } = standing;
  standing.view = null;
  return view;
}

// A view that loses its place may get another: it waits, as it was, with what the reader looks at.
function park(key, view) {
  const timer = setTimeout(() => {
    if (PARKED.get(key)?.view === view) PARKED.delete(key);
    view.end();
  }, PARKED_MS);
  PARKED.set(key, { view, timer });
  const find = () => {
    if (!PARKED.has(key)) return;
    WIDGETS.get(key)?.find();
    requestAnimationFrame(find);
  };
  requestAnimationFrame(find);
}

function unpark(key) {
  const parked = PARKED.get(key);
  clearTimeout(parked?.timer);
  PARKED.delete(key);
  return parked?.view;
}

// What `render` is given hears nothing more once its output is gone; a view may outlive that.
function lastingModel(model) { return WIDGETS.get(model.get("key"))?.model ?? model; }

// Gives whether frames within it are still loaded, as browsers keep them that can move an element
// without taking it out of the page.
function moveAfter(place, moved) {
  const kept = moved.isConnected && "moveBefore" in place.parentElement;
  if (kept) place.parentElement.moveBefore(moved, place.nextSibling);
  else place.after(moved);
  return kept;
}

// A document that needs neither kernel nor scripts marks where the live view stands instead of it,
// as long as somebody answers.
function revive(place, model, open) {
  const still = [...place.parentElement.querySelectorAll(":scope > .distrain")];
  const key = model.get("key");
  const view = unpark(key) ?? taken(key) ?? open(model);
  const kept = moveAfter(place, view.root);
  Promise.resolve(view.ready?.(kept)).then(() => { for (const part of still) part.remove(); });
  view.moved?.();
  return () => { view.end(); view.root.replaceWith(...still); };
}

// A widget's `initialize`, by which views that `open` gives stand wherever they are marked.
function standsWhereMarked(open) {
  return ({ model }) => {
    const key = model.get("key");
    const revived = new Map();
    const find = () => {
      for (const [place, end] of revived) {
        if (!place.isConnected) { end(); revived.delete(place); }
      }
      for (const place of document.querySelectorAll(`[data-distrain-live="${key}"]`)) {
        if (!revived.has(place)) revived.set(place, revive(place, model, open));
      }
    };
    const told = ({ kind }) => { if (kind === "marked") find(); };
    WIDGETS.set(key, { model, find });
    model.on("msg:custom", told);
    const clock = setInterval(find, FIND_EVERY_MS);
    return () => {
      clearInterval(clock);
      model.off("msg:custom", told);
      WIDGETS.delete(key);
      unpark(key)?.end();
      for (const end of revived.values()) end();
    };
  };
}
