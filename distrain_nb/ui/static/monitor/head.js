// State line, Stop, and the report of a failure.

const SIGNS = { queued: "◌", starting: "◐", running: "●", stopping: "◑", succeeded: "✓", failed: "✕", cancelled: "■", unreadable: "?" };
const ENABLE = "jupyter server extension enable distrain_nb.server";

function stateLine(root, source, stop) {
  const head = element("div", "dn-head", undefined, { role: "status", "aria-live": "off" });
  const badge = element("span", "dn-badge");
  const sign = element("span", "dn-sign", "", { "aria-hidden": "true" });
  const word = element("span");
  badge.append(sign, word);
  const time = element("span", "dn-time", "", { "aria-label": "elapsed" });
  const name = element("span", "dn-name");
  const where = element("span", "dn-soft");
  const steps = element("span", "dn-steps", undefined, { "aria-label": "phases" });
  head.append(badge, time, name, where, steps, stop);
  const said = element("span", "dn-unseen", "", { "aria-live": "polite" });
  root.append(head, said);
  let skew = 0;

  function tick() {
    const { facts } = source;
    if (!facts.state) return;
    const now = Date.now() / 1000 - skew;
    time.textContent = duration((facts.end ?? now) - facts.begin);
    facts.steps.forEach((step, place) => {
      const last = place === facts.steps.length - 1;
      const span = steps.children[place] ?? steps.appendChild(element("span"));
      const seconds = step.begin === null || step.begin === step.end ? "" : ` ${duration((step.end ?? now) - step.begin)}`;
      span.textContent = `${step.label}${seconds}`;
      span.className = last ? "dn-now" : "";
      if (last) span.setAttribute("aria-current", "step"); else span.removeAttribute("aria-current");
    });
    while (steps.children.length > facts.steps.length) steps.lastChild.remove();
  }

  function change() {
    const { facts } = source;
    if (!facts.state) return;
    skew = Date.now() / 1000 - facts.now;
    if (Math.abs(skew) < 2) skew = 0;
    root.dataset.state = facts.state;
    root.setAttribute("aria-label", `run ${facts.id}`);
    root.toggleAttribute("data-live", !facts.final);
    sign.textContent = SIGNS[facts.state];
    const phase = facts.phase && facts.phase !== facts.state ? ` · ${facts.phase}` : "";
    if (word.textContent !== facts.state + phase) said.textContent = `run ${facts.id} is ${facts.state}`;
    word.textContent = facts.state + phase;
    name.textContent = `${facts.name} #${facts.id}`;
    where.textContent = [facts.where, facts.size].filter(Boolean).join(" · ");
    tick();
  }
  source.listeners.push(change);
  change();
  const clock = setInterval(() => { if (!source.facts.final) tick(); }, 100);
  return () => clearInterval(clock);
}

// ---- Stop ----------------------------------------------------------------------------------

// The server stops the run whatever the kernel is doing. Where it can't, the kernel has to hear
// it; a cell that waits for this very run is interrupted, which is what cancels such a run.
async function askToStop(source) {
  if (source.served) {
    try {
      const answer = await request(source.address("cancel"), { method: "POST" });
      if (answer.ok) return;
    } catch { /* the server has gone: the kernel is still there */ }
  }
  source.model.send({ kind: "stop" });
  if (source.model.get("waiting") && source.model.get("kernel")) {
    await request(`api/kernels/${source.model.get("kernel")}/interrupt`, { method: "POST" });
  }
}

function stopButton(root, source) {
  const note = element("div", "dn-note", "", { role: "note" });
  note.hidden = true;
  root.append(note);
  let patience = 0;
  const stop = button("dn-stop", "Stop", "Stop this run", () => {
    stop.disabled = true;
    stop.textContent = "Stopping…";
    askToStop(source).catch(() => {});
    if (!source.served) patience = setTimeout(() => { note.hidden = false; }, 1500);
  });
  note.textContent = `The kernel is busy with another cell, and stops this run when that is done. To stop at once: “${ENABLE}”, then restart Jupyter.`;
  const change = () => {
    stop.hidden = source.facts.final !== false;
    if (stop.hidden || source.facts.state === "stopping") { clearTimeout(patience); note.hidden = true; }
  };
  source.listeners.push(change);
  change();
  return [stop, () => clearTimeout(patience)];
}

// ---- Progress, note and report -------------------------------------------------------------

// One bar for whatever takes long before the ranks run: phase, bytes, time.
function progressBar(root, source) {
  const line = element("div", "dn-progress");
  const meter = element("progress", "", undefined, { "aria-label": "progress" });
  const words = element("span");
  line.append(meter, words);
  root.append(line);
  const change = () => {
    const { progress, now } = source.facts;
    line.hidden = !progress;
    if (!progress) return;
    if (progress.total) Object.assign(meter, { max: progress.total, value: progress.done });
    else meter.removeAttribute("value");
    const bytes = progress.total ? `${size(progress.done)} of ${size(progress.total)}` : progress.done ? size(progress.done) : "";
    const time = progress.since ? duration(now - progress.since) : "";
    const told = [bytes, time].filter(Boolean).join(", ");
    words.textContent = told ? `${progress.phase}: ${told}` : progress.phase;
  };
  source.listeners.push(change);
  change();
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** unit;
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

const PLACE = /^\s*(File "|Cell In\[|  File )/;

function report(root, source) {
  const note = element("div", "dn-note", "", { role: "note" });
  const error = element("div", "", undefined, { role: "alert" });
  root.append(note, error);
  let shown = "";
  const change = () => {
    note.textContent = source.facts.note ?? "";
    note.hidden = !note.textContent;
    const text = (source.facts.error ?? "").trim();
    if (text !== shown) error.replaceChildren(...(text ? [reportBox(text)] : []));
    shown = text;
  };
  source.listeners.push(change);
  change();
}

// The cause as a heading, below it the traceback with the notebook's own lines marked.
function reportBox(text) {
  const [cause, ...lines] = text.split("\n");
  const box = element("div", "dn-error");
  box.append(element("div", "dn-cause", cause));
  const body = element("pre");
  lines.forEach((line, number) => {
    const below = number > 0 && lines[number - 1].includes("Cell In[") && !PLACE.test(line);
    const kind = line.includes("Cell In[") || below ? "dn-cell" : PLACE.test(line) ? "dn-place" : RAISED.test(line) ? "dn-raised" : "";
    body.append(kind ? element("span", kind, line) : line, "\n");
  });
  if (lines.length) box.append(body);
  return box;
}
