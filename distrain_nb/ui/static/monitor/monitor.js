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

function render({ model, el }) {
  const over = stand(model, el, open);
  const sketched = sketch(el.firstElementChild, model);
  return () => { sketched(); over(); };
}

export default { initialize: standsWhereMarked(open), render };
