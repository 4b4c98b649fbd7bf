// How much of an agent is reached by its tests or by practice callers: in numbers, what isn't by name, and on the canvas.

import { looking } from "../../builder/looking.js";
import { legend } from "../../builder/legend.js";
import { progress } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

const KINDS = [
  ["nodes", "Steps", (who) => `Steps that no ${who} reaches`],
  ["edges", "Paths", (who) => `Paths that no ${who} takes`],
  ["variables", "Answers", (who) => `Answers that no ${who} gives`],
];

/** `definition` of the version that was tested, `marks` of an overlay; `who` touches it. */
export async function coverageView({ coverage, definition, marks, who = "test", signal }) {
  const missing = KINDS.filter(([kind]) => coverage[kind].untouched.length);
  const view = await looking(definition, { label: "Drawing of what is reached", signal });
  view.overlay(marks);
  return h("div", { class: "stack" },
    KINDS.map(([kind, label]) => coverage[kind].total
      ? progress(`${label} reached, ${coverage[kind].percent} %`, coverage[kind].covered, coverage[kind].total)
      : h("p", {}, `${label}: the agent has none.`)),
    missing.length ? missing.map(([kind, , title]) => [
      h("h3", {}, title(who)),
      h("ul", { "aria-label": title(who) }, coverage[kind].untouched.map((part) => h("li", {}, part.name))),
    ]) : h("p", {}, coverage.variables.total ? "Every step, every path and every answer is reached." : "Every step and every path is reached."),
    view.element, legend(marks));
}
