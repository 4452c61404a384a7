// Colours that programs print, and the places that a search has found, as spans of a line.

const ANSI = /\x1b\[([0-9;]*)m|\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g;
const ANSI_COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

function styleAfter(style, codes) {
  const numbers = codes.split(";").map((code) => Number(code || 0));
  if (numbers[0] === 38 || numbers[0] === 48) return style;
  for (const code of numbers) {
    if (code === 0) style = [];
    else if (code <= 4) style = [...style, ["bold", "dim", "italic", "underline"][code - 1]];
    else if (code === 22) style = style.filter((name) => name !== "bold" && name !== "dim");
    else if (code === 23 || code === 24) style = style.filter((name) => name !== ["italic", "underline"][code - 23]);
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97) || code === 39) {
      style = style.filter((name) => !name.startsWith("ansi-"));
      if (code !== 39) style.push(`ansi-${ANSI_COLOURS[code % 10]}`);
    }
  }
  return style;
}

// Pieces of text with the classes that each has.
function ansiPieces(text) {
  if (!text.includes("\x1b")) return [[text, ""]];
  const pieces = [];
  let style = [];
  let at = 0;
  for (const escape of text.matchAll(ANSI)) {
    pieces.push([text.slice(at, escape.index), style.join(" ")]);
    at = escape.index + escape[0].length;
    if (escape[1] !== undefined) style = styleAfter(style, escape[1]);
  }
  pieces.push([text.slice(at), style.join(" ")]);
  return pieces.filter(([part]) => part);
}

function plainText(text) {
  return text.includes("\x1b") ? text.replace(ANSI, "") : text;
}

function appendText(parent, text, wanted) {
  for (const [part, style] of ansiPieces(text)) {
    const place = style ? element("span", style) : parent;
    appendMarked(place, part, wanted);
    if (style) parent.append(place);
  }
}

function appendMarked(parent, text, wanted) {
  let at = 0;
  for (const found of wanted ? text.matchAll(wanted) : []) {
    if (!found[0]) continue;
    parent.append(text.slice(at, found.index), element("mark", "", found[0]));
    at = found.index + found[0].length;
  }
  parent.append(text.slice(at));
}
