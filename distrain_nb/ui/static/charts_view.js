// Where charts stand: below the view of their run, and instead of the drawing that a document has.

// Asking about several runs at once.
class ComparedSource extends Source {
  get opening() { return "compare"; }

  address(path, query = {}) {
    const words = new URLSearchParams({ ...query, runs: this.model.get("runs"), home: this.model.get("home") });
    return `distrain/${path}?${words}`;
  }
}

// Charts with a title of their own are closed until the reader opens them.
function openCharts(model) {
  const root = element("div", "distrain-charts");
  const source = model.get("runs") ? new ComparedSource(model) : new Source(model);
  const code = () => plotlyCode(model);
  const place = model.get("title") ? folded(root, model.get("title")) : root;
  const charts = new Charts(model, place, source, code);
  // Up to then the drawing of the document stays. A frame that was not kept has to draw anew.
  const ready = (kept) => new Promise((resolve) => {
    if (place !== root || (kept && charts.plot.isDrawn)) resolve();
    else charts.plot.whenDrawn = resolve;
  });
  return { root, ready, end: () => { charts.close(); source.close(); } };
}

function folded(root, title) {
  const box = element("details", "dn-folded");
  const inside = element("div");
  box.append(element("summary", "", title, OWN_KEYS), inside);
  root.append(box);
  return inside;
}

const render = ({ model, el }) => stand(model, el, openCharts);

export default { initialize: standsWhereMarked(openCharts), render };
