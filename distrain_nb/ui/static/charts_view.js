// Where charts stand: below the view of their run, and instead of the drawing that a document has.

// Charts with a title of their own are closed until the reader opens them.
function openCharts(model) {
  const root = element("div", "distrain-charts");
  const source = new Source(model);
  const code = () => plotlyCode(model);
  const place = model.get("title") ? folded(root, model.get("title")) : root;
  const charts = new Charts(model, place, source, code);
  // Up to then the drawing of the document stays. A frame that is moved has to draw anew.
  const ready = () => new Promise((resolve) => { if (place === root) charts.plot.whenDrawn = resolve; else resolve(); });
  return { root, ready, end: () => { charts.close(); source.close(); } };
}

function folded(root, title) {
  const box = element("details", "dn-folded");
  const inside = element("div");
  box.append(element("summary", "", title, OWN_KEYS), inside);
  root.append(box);
  return inside;
}

function render({ model, el }) {
  const view = unpark(model.get("key")) ?? openCharts(lastingModel(model));
  el.append(view.root);
  return () => park(model.get("key"), view);
}

export default { initialize: standsWhereMarked(openCharts), render };
