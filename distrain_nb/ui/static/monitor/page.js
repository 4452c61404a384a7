// What every part of the page uses: elements, numbers, times.

const ROW = 18;
const COLOURS = 8;

function element(tag, className, text, attributes = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// On whatever has the focus, for JupyterLab takes its keys (arrows, Enter, Space) for itself.
const OWN_KEYS = { "data-lm-suppress-shortcuts": "true" };

function button(className, text, title, onClick) {
  const made = element("button", className, text, { type: "button", title, ...OWN_KEYS });
  made.addEventListener("click", onClick);
  return made;
}

// A button that is on or off.
function toggle(text, title, onChange) {
  const made = button("dn-chip dn-toggle", text, title, () => {
    const pressed = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(pressed));
    onChange(pressed);
  });
  made.setAttribute("aria-pressed", "false");
  made.setAttribute("aria-label", title);
  return made;
}

function choice(label, entries, onChange) {
  const menu = element("select", "", undefined, { "aria-label": label, ...OWN_KEYS });
  menu.append(...entries.map(([value, text]) => new Option(text, value)));
  menu.addEventListener("change", () => onChange(menu.value));
  return menu;
}

function duration(seconds) {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  const whole = Math.floor(seconds);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

function clockTime(seconds) {
  const at = new Date(seconds * 1000);
  const parts = [at.getHours(), at.getMinutes(), at.getSeconds()].map((n) => String(n).padStart(2, "0"));
  return `${parts.join(":")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

function plural(count, noun) {
  const ending = count === 1 ? "" : noun.endsWith("h") ? "es" : "s";
  return `${count.toLocaleString("en")} ${noun}${ending}`;
}

// Calls the function once things have been quiet for so many milliseconds.
function quiet(milliseconds, act) {
  let timer = 0;
  const later = (...words) => { clearTimeout(timer); timer = setTimeout(() => act(...words), milliseconds); };
  later.cancel = () => clearTimeout(timer);
  return later;
}
