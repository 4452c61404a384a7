// The live view of a run as a widget, with what stands for its charts.

// What stands for the charts until plotly has drawn them.
function sketch(root, model) {
  const place = element("div");
  root.append(place);
  const change = () => { place.innerHTML = model.get("sketch"); };
  model.on("change:sketch", change);
  change();
  const clock = setInterval(() => {
    const output = root.closest(".jp-OutputArea-output, .output_area, .cell-output");
    place.hidden = Boolean(output?.querySelector(".dn-figure[data-drawn]"));
  }, 200);
  return () => { clearInterval(clock); model.off("change:sketch", change); place.remove(); };
}

// Plotly measures its place once, before it has its width: tell it when that has changed.
function fitCharts(root) {
  let tried = "";
  const fit = () => {
    const plots = root.closest(".jp-OutputArea-output, .output_area, body").querySelectorAll(".js-plotly-plot");
    for (const plot of plots) {
      const drawn = plot.querySelector(".main-svg")?.clientWidth ?? 0;
      const attempt = `${drawn} in ${plot.clientWidth}`;
      if (drawn && Math.abs(drawn - plot.clientWidth) > 2 && attempt !== tried) {
        tried = attempt;
        window.dispatchEvent(new Event("resize"));
      }
    }
  };
  const clock = setInterval(fit, 400);
  return () => clearInterval(clock);
}

function render({ model, el }) {
  const view = open(lastingModel(model));
  el.append(view.root);
  const ends = [sketch(view.root, model), fitCharts(view.root)];
  return () => { for (const end of ends) end(); park(model.get("key"), view); };
}

export default { initialize: standsWhereMarked(open), render };
