// The theme's colours and type, for what can't have them from a style sheet.

/** @param {Element} place */
export function themeColours(place) {
  const style = getComputedStyle(place);
  const colour = (/** @type {string} */ name, /** @type {string} */ otherwise) => style.getPropertyValue(name).trim() || otherwise;
  return {
    text: style.color,
    font: style.fontFamily,
    ground: colour("--jp-layout-color0", "#fff"),
    raised: colour("--jp-layout-color1", "#fff"),
  };
}

/**
 * Calls `act` when a change of theme has reached the place. Styles give it a transition of its
 * colour, however short: that tells of every change, whatever makes it and whenever styles arrive.
 * @param {HTMLElement} place
 * @param {() => void} act
 */
export function whenThemed(place, act) {
  // JupyterLab hides all for the moment of the change.
  const hear = (/** @type {Event} */ { target }) => { if (target === place) requestAnimationFrame(act); };
  for (const ended of ["transitionend", "transitioncancel"]) place.addEventListener(ended, hear);
}
