// Where the page asks: at addresses of our own, whatever a document or an answer says.

const NUMBER = "[1-9][0-9]{0,15}";
const SESSION = "[A-Za-z](?:[\\w.-]|%[89A-F][0-9A-F])*";  // letters beyond ASCII are escaped, in UTF-8
const OWN = new RegExp(
  "^(?:"
  + "distrain/(?:version|runs|studies|sessions|compare|curves|overlay)"
  + `|distrain/(?:runs|studies)/${NUMBER}(?:/[a-z-]+)?`
  + `|distrain/sessions/${SESSION}/stop`
  + "|lab/extensions/distrain-nb/static/plotly-basic\\.min\\.js"
  + "|api/kernels/[0-9A-Za-z-]+/interrupt"
  + ")(?:\\?[\\w.~*%+=&-]*)?$",
);

/**
 * Whether something numbers a run, a study or a trial.
 * @param {unknown} value
 * @returns {value is number}
 */
export function isNumber(value) { return Number.isSafeInteger(value) && Number(value) > 0; }

/**
 * The path below the server's base, as it was given. Raises an error for any that is not ours.
 * @param {string} path
 */
export function ownPath(path) {
  if (!OWN.test(path)) throw new Error(`${JSON.stringify(path)} is no address of distrain-nb`);
  return path;
}
