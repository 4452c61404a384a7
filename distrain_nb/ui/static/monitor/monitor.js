// The live view of a run: state line, log of all ranks, Stop. The parts are in the files beside.

const LOOK_EVERY_MS = 200;
const FACTS_EVERY = 2;   // looks
const FIND_EVERY_MS = 250;
const PARKED_MS = 5000;
const PARKED = new Map();    // views that lost their place a moment ago, by key

// Batches are numbered. One that is `whole` has all lines that the kernel keeps, so that a view
// that has missed some, or has just come, is put right even when the kernel can't be asked.
function receiveBatches(log, source) {
  const { model } = source;
  let next = null;
  const receive = () => {
    const batch = model.get("batch");
    if (source.served || batch.seq === undefined || batch.seq === next - 1) return;
    if (!batch.whole && batch.seq !== next) {
      model.send({ kind: "resync" });
      return;
    }
    next = batch.seq + 1;
    log.take(batch);
  };
  model.on("change:batch", receive);
  source.probed.then((served) => {
    receive();
    if (!served && next === null) model.send({ kind: "resync" });
  });
  return () => model.off("change:batch", receive);
}

// Where the server tells of the run nothing depends on the kernel: look there, up to the end.
function look(log, source) {
  let looks = 0;
  let timer = 0;
  async function once() {
    if (!source.served || document.hidden) return false;
    const before = source.facts.final;
    if (looks++ % FACTS_EVERY === 0) source.learn(await source.ask("facts"));
    await log.refresh();
    return before;
  }
  async function again() {
    const over = await once().catch(() => false);
    if (timer !== null && !over) timer = setTimeout(again, LOOK_EVERY_MS);
  }
  source.probed.then(async () => {
    await log.refresh().catch(() => {});
    if (!source.facts.final) again();
  });
  return () => { clearTimeout(timer); timer = null; };
}

// What stands for the charts until plotly has arrived in the page.
function sketch(root, model) {
  const place = element("div");
  root.append(place);
  const change = () => { place.innerHTML = model.get("sketch"); };
  model.on("change:sketch", change);
  change();
  const clock = setInterval(() => {
    const output = root.closest(".jp-OutputArea-output, .output_area, .cell-output");
    place.hidden = Boolean(output?.querySelector(".js-plotly-plot .main-svg"));
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

// Build a view; gives its element and what takes it down.
function open(model) {
  const root = element("section", "distrain", undefined, { role: "region", "aria-label": "run" });
  const source = new Source(model);
  const [stop, stopOver] = stopButton(root, source);
  const headOver = stateLine(root, source, stop);
  root.prepend(...root.querySelectorAll(":scope > .dn-head"));
  progressBar(root, source);
  report(root, source);
  const toolbar = new Toolbar(root, source);
  source.listeners.push(() => toolbar.labelled());
  const ends = [receiveBatches(toolbar.log, source), look(toolbar.log, source), headOver, stopOver];
  return { root, end: () => { for (const end of ends) end(); toolbar.close(); source.close(); } };
}

// A view that loses its place may get another: it waits, as it was, with what the reader looks at.
function park(key, view) {
  const timer = setTimeout(() => { PARKED.delete(key); view.end(); }, PARKED_MS);
  PARKED.set(key, { view, timer });
}

function unpark(key) {
  const parked = PARKED.get(key);
  clearTimeout(parked?.timer);
  PARKED.delete(key);
  return parked?.view;
}

function render({ model, el }) {
  const view = open(model);
  el.append(view.root);
  const ends = [sketch(view.root, model), fitCharts(view.root)];
  return () => { for (const end of ends) end(); park(model.get("key"), view); };
}

// When the run has ended, a document that needs neither kernel nor scripts takes the view's place.
// As long as somebody answers, the live view stands there instead.
function revive(place, model) {
  const still = [...place.parentElement.querySelectorAll(":scope > .distrain")];
  const view = unpark(model.get("key")) ?? open(model);
  place.after(view.root);
  for (const part of still) part.remove();
  return () => { view.end(); view.root.replaceWith(...still); };
}

function initialize({ model }) {
  const mark = `[data-distrain-live="${model.get("key")}"]`;
  const revived = new Map();
  const find = () => {
    for (const [place, end] of revived) {
      if (!place.isConnected) { end(); revived.delete(place); }
    }
    for (const place of document.querySelectorAll(mark)) {
      if (!revived.has(place)) revived.set(place, revive(place, model));
    }
  };
  const clock = setInterval(find, FIND_EVERY_MS);
  return () => {
    clearInterval(clock);
    unpark(model.get("key"))?.end();
    for (const end of revived.values()) end();
  };
}

export default { initialize, render };
