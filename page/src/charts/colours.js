// The theme's colours, for what can't have them from a style sheet.

/** @param {Element} place */
export function themeColours(place) {
  const style = getComputedStyle(place);
  const colour = (/** @type {string} */ name, /** @type {string} */ otherwise) => style.getPropertyValue(name).trim() || otherwise;
  return {
    text: colour("--jp-ui-font-color1", "#1f2328"),
    ground: colour("--jp-layout-color0", "#fff"),
    raised: colour("--jp-layout-color1", "#fff"),
  };
}
