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

const THEMED = ["data-jp-theme-name", "data-jp-theme-light"];

/**
 * Calls `act` when a change of theme has reached the place. Styles give it a transition of its
 * colour, however short: that tells of changes whatever makes them and whenever styles arrive, but
 * for those that come while JupyterLab hides all. These are told by the body's attributes, and by
 * style sheets that have been loaded.
 * @param {HTMLElement} place
 * @param {() => void} act
 * @returns {() => void} ends it
 */
export function whenThemed(place, act) {
  const later = () => requestAnimationFrame(act);
  const hear = (/** @type {Event} */ { target }) => { if (target === place) later(); };
  for (const ended of ["transitionend", "transitioncancel"]) place.addEventListener(ended, hear);
  const told = new MutationObserver(later);
  told.observe(document.body, { attributes: true, attributeFilter: THEMED });
  document.head.addEventListener("load", later, true);
  return () => { told.disconnect(); document.head.removeEventListener("load", later, true); };
}
