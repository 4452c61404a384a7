// The live view of a study as a widget: it stands where its still picture is marked.

import { standsWhereMarked } from "./standing.js";
import { openStudy } from "./study/view.js";

export default { initialize: standsWhereMarked((model) => openStudy(model)) };
