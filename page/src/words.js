// Numbers and times in words. tests/ui/words.json has examples that the kernel's words share.

/**
 * `1 line`, `2,000 lines`, `3 processes`, `2 studies`.
 * @param {number} count
 * @param {string} noun in the singular
 */
export function plural(count, noun) {
  const ending = /(s|x|z|ch|sh)$/.test(noun) ? "es" : "s";
  const several = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}${ending}`;
  return `${thousands(count)} ${count === 1 ? noun : several}`;
}

/** @param {number} count */
export function thousands(count) {
  return count.toLocaleString("en");
}

/**
 * `0.4 s`, `42 s`, `3 min 05 s`, `2 h 07 min`.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${digits(whole % 60, 2)} s`;
  return `${Math.floor(whole / 3600)} h ${digits(Math.floor((whole % 3600) / 60), 2)} min`;
}

/**
 * How long ago, in one unit: a table is read at a glance.
 * @param {number} seconds
 */
export function age(seconds) {
  const units = /** @type {const} */ ([["d", 86400], ["h", 3600], ["min", 60]]);
  const [unit, long] = units.find(([, long]) => seconds >= long) ?? ["s", 1];
  return `${Math.max(0, Math.floor(seconds / long))} ${unit} ago`;
}

/**
 * The reader's time of day, to the millisecond.
 * @param {number} seconds since 1970
 */
export function clockTime(seconds) {
  const at = new Date(seconds * 1000);
  const parts = [at.getHours(), at.getMinutes(), at.getSeconds()].map((n) => digits(n, 2));
  return `${parts.join(":")}.${digits(at.getMilliseconds(), 3)}`;
}

/**
 * `512 B`, `1.5 MiB`, `12 GiB`.
 * @param {number} bytes
 */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** unit;
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/**
 * A number in about four digits.
 * @param {number} value
 */
export function brief(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(4))) : value.toExponential(3);
}

/** @param {number} number @param {number} count */
function digits(number, count) {
  return String(number).padStart(count, "0");
}
