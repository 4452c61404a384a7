// The live table of runs as a widget: it stands where its still picture is marked.

function openRuns(model) {
  const root = element("section", "distrain", undefined, { role: "region", "aria-label": "runs" });
  const source = new RunsSource(model);
  const table = new Table(root, source);
  const moved = keepFocus(root);
  return { root, moved, end: () => { table.close(); source.close(); } };
}

export default { initialize: standsWhereMarked(openRuns) };
