// One conversation on a canvas, step by step: which nodes it came to, by which edges, and where it is.

import { badge, button, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { stepMarks, stepsOf } from "./overlays.js";

/**
 * `view`: a canvas with `overlay` and `light`; `has(kind, id)`: whether it shows that. Returned: `element`, and `update(turns)`
 * with the turns so far, whose last step is shown unless somebody looks at an earlier one.
 */
export function course(view, has) {
  let steps = [];
  let at = -1;
  let isLast = true;
  const place = h("p", { role: "status" });
  const list = h("div");
  const [before, next] = [["Step back", -1], ["Next step", 1]].map(([text, by]) => button(text, () => go(at + by), { kind: "small" }));

  function go(number) {
    at = Math.min(Math.max(number, 0), steps.length - 1);
    isLast = at === steps.length - 1;
    const { node, edge, name, turn } = steps[at];
    before.disabled = at === 0;
    next.disabled = isLast;
    view.overlay(stepMarks(steps, at));
    view.light(node, edge);
    show(place, `Step ${at + 1} of ${steps.length}: ${name}, ${turn}.`);
    showSteps();
  }

  const showSteps = () => show(list, table("Steps", [
    ["Step", (step) => button(String(steps.indexOf(step) + 1), () => go(steps.indexOf(step)),
      { kind: "small", "aria-label": `Step ${steps.indexOf(step) + 1}, ${step.name}`, "aria-current": steps[at] === step ? "step" : null })],
    ["Node", ({ name, node }) => [name, !has("node", node) && [" ", badge("gone")]]],
    ["By the edge", ({ label }) => label],
    ["When", ({ turn }) => turn],
  ], steps));

  return {
    element: h("div", { class: "stack" }, h("div", { class: "actions" }, before, next, place), list),
    update(turns) {
      steps = stepsOf(turns);
      if (steps.length) go(isLast ? steps.length - 1 : at);
    },
  };
}
