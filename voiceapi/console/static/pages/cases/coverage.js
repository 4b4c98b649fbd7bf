// How much of an agent is touched by its cases or by callers: in numbers, what isn't by name, and on the canvas.

import { looking } from "../../builder/looking.js";
import { legend } from "../../builder/legend.js";
import { progress } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

const KINDS = [
  ["nodes", "Nodes", (who) => `Nodes that no ${who} passes`],
  ["edges", "Edges", (who) => `Edges that no ${who} takes`],
  ["variables", "Variables", (who) => `Variables that no ${who} gives a value`],
];

/** `definition` of the version that was tested, `marks` of an overlay; `who` touches it. */
export async function coverageView({ coverage, definition, marks, who = "case", signal }) {
  const missing = KINDS.filter(([kind]) => coverage[kind].untouched.length);
  const view = await looking(definition, { label: "Drawing of what is touched", signal });
  view.overlay(marks);
  return h("div", { class: "stack" },
    KINDS.map(([kind, label]) => coverage[kind].total
      ? progress(`${label}, ${coverage[kind].percent} %`, coverage[kind].covered, coverage[kind].total)
      : h("p", {}, `${label}: there are none.`)),
    missing.length ? missing.map(([kind, , title]) => [
      h("h3", {}, title(who)),
      h("ul", { "aria-label": title(who) }, coverage[kind].untouched.map((part) => h("li", {}, part.name))),
    ]) : h("p", {}, coverage.variables.total ? "Every node, every edge and every variable is touched." : "Every node and every edge is touched."),
    view.element, legend(marks));
}
