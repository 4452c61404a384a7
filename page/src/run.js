// The live view of a run as a widget.

import { openRun } from "./run/view.js";
import { stand, standsWhereMarked } from "./standing.js";

/** @import { RunState, Widget } from "./protocol.d.ts" */

/** @param {Widget<RunState>} widget */
const render = (widget) => stand(widget, openRun);

export default { initialize: standsWhereMarked(openRun), render };
