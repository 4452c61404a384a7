// What the table says of a run, column by column.

// How long ago, in one unit: a table is read at a glance.
function age(seconds) {
  const [unit, long] = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]].find(([, long]) => seconds >= long) ?? ["s", 1];
  return `${Math.max(0, Math.floor(seconds / long))} ${unit} ago`;
}

function stateText(run) {
  const { progress } = run;
  return `${SIGNS[run.state] ?? "◌"} ${run.state}${progress ? `: ${progress.phase}` : ""}`;
}

function numberText(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(4))) : value.toExponential(3);
}

// `value` is what is sorted by: arrays by their first part that differs.
const COLUMNS = [
  { name: "run", value: (run) => run.id, text: (run) => String(run.id) },
  { name: "name", value: (run) => run.name, text: (run) => run.name },
  { name: "state", value: (run) => run.state, text: stateText },
  { name: "where", value: (run) => run.where, text: (run) => run.where },
  { name: "layout", value: (run) => run.layout, text: (run) => run.layout },
  {
    name: "best metric",
    value: (run) => (run.best ? [run.best.tag, run.best.value] : null),
    text: (run) => (run.best ? `${run.best.tag} ${numberText(run.best.value)}` : ""),
  },
  { name: "duration", value: (run, now) => (run.end ?? now) - run.begin, text: (run, now) => duration((run.end ?? now) - run.begin) },
  { name: "age", value: (run) => -run.begin, text: (run, now) => age(now - run.begin) },
  { name: "experiment", value: (run) => run.experiment, text: (run) => run.experiment },
];

function className(column) { return `dn-${column.name.split(" ")[0]}`; }

function compared(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (Array.isArray(a)) return compared(a[0], b[0]) || compared(a[1], b[1]);
  return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
}

// The runs in the order of a column; those that have no value come last either way.
function sorted(runs, { column, down }, now) {
  const value = (run) => column.value(run, now);
  return [...runs].sort((a, b) => {
    const nothing = (value(a) === null) - (value(b) === null);
    return nothing || (down ? -1 : 1) * compared(value(a), value(b)) || b.id - a.id;
  });
}
