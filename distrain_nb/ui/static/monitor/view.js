// The view of a run: state line, Stop, report, log of all ranks, from whoever answers for it.

const LOOK_EVERY_MS = 200;
const FACTS_EVERY = 2;   // looks

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
    if (looks++ % FACTS_EVERY === 0) source.learn(await source.ask("facts", { watching: 1 }));
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
  const refocus = keepFocus(root);
  // What came while it stood nowhere is not drawn yet.
  const moved = () => { toolbar.log.draw(); refocus(); };
  return { root, moved, end: () => { for (const end of ends) end(); toolbar.close(); source.close(); } };
}
