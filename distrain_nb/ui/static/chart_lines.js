// The numbers of a chart: from the kernel's bytes to what plotly draws. They stay in typed arrays,
// which go to the frame as they are: plain ones are taken apart and put together number by number.

function numbers(view, Kind) {
  // A copy, since bytes that arrive together need not begin where such numbers may.
  return new Kind(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

function unpacked(line) {
  const seconds = numbers(line.seconds, Float32Array);
  return {
    step: numbers(line.step, line.wide ? Float64Array : Float32Array),
    value: numbers(line.value, Float32Array),
    wall: Float64Array.from(seconds, (passed) => line.began + passed),
  };
}

// Lines of an answer, by the number that their line has among these keys.
function byNumber(lines, keys) {
  return new Map(lines.map((line) => [
    keys.findIndex(([run, tag]) => run === line.run && tag === line.tag),
    { step: line.step, value: line.value.map((value) => value ?? NaN), wall: line.wall_time.map((seconds) => seconds ?? NaN) },
  ]));
}

// Exponential moving average without the pull towards zero at the start, as TensorBoard's; what is
// no finite number stays as it is and counts for nothing.
function smoothed(values, weight) {
  let average = 0;
  let share = 1;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    average = average * weight + value * (1 - weight);
    share *= weight;
    return average / (1 - share);
  });
}

// The points between two steps in full, the others as they were.
function refined(coarse, fine) {
  const from = fine.step[0];
  const to = fine.step[fine.step.length - 1];
  const joined = {};
  for (const name of ["step", "wall", "value"]) {
    joined[name] = [
      ...coarse[name].filter((_, at) => coarse.step[at] < from),
      ...fine[name],
      ...coarse[name].filter((_, at) => coarse.step[at] > to),
    ];
  }
  return joined;
}

function across(line, mode, start) {
  if (mode === "step") return line.step;
  if (mode === "relative") return line.wall.map((seconds) => seconds - start);
  return Array.from(line.wall, localTime);
}

// Plotly takes a date as it is written, in no time zone: the reader's is meant.
function localTime(seconds) {
  const at = new Date(seconds * 1000);
  if (Number.isNaN(at.getTime())) return null; // no time at all, or none that a date can be
  return new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, -1);
}

// The steps that a stretch of the x axis stands for, by the points that lie in it.
function stepsWithin(lines, mode, start, from, to) {
  let low = Infinity;
  let high = -Infinity;
  const [begin, end] = mode === "wall" ? [from, to].map((at) => new Date(at).getTime()) : [from, to];
  for (const line of lines) {
    const places = across(line, mode, start);
    const first = places.findIndex((at) => (mode === "wall" ? new Date(at).getTime() : at) >= begin);
    const next = places.findIndex((at) => (mode === "wall" ? new Date(at).getTime() : at) > end);
    if (first < 0) continue;
    const last = next < 0 ? places.length - 1 : next;
    low = Math.min(low, line.step[Math.max(0, first - 1)]);
    high = Math.max(high, line.step[last]);
  }
  return low <= high ? [Math.floor(low), Math.ceil(high)] : null;
}

function csv(lines) {
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = ["run,tag,step,wall_time,value"];
  for (const line of lines) {
    const head = `${cell(line.run)},${cell(line.tag)}`;
    line.step.forEach((step, at) => rows.push(`${head},${step},${line.wall_time[at] ?? "nan"},${line.value[at] ?? "nan"}`));
  }
  return `${rows.join("\n")}\n`;
}
