// One conversation on a canvas, step by step: where it came to, by which paths, and where it is.

import { badge, button, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { stepMarks, stepsOf } from "./overlays.js";

/**
 * `view`: a canvas with `overlay` and `light`; `has(kind, id)`: whether it shows that; `chosen(step, isAsked)` is told which step
 * is shown, and whether somebody asked for it. Returned: `controls`; `list`, the steps as a table; `element`, both; `update(turns)`
 * with the turns so far, whose last step is shown unless somebody looks at an earlier one; `turn(number)` shows where that turn
 * ended, and `item(kind, id)` the next step of that node or edge, round and round; both are false if there is none.
 */
export function course(view, has, chosen = () => {}) {
  let steps = [];
  let at = -1;
  let isLast = true;
  const place = h("p", { role: "status" });
  const list = h("div");
  const ask = (text, to) => button(text, () => go(to(), true), { kind: "small" });
  const [before, next, last] = [ask("Back", () => at - 1), ask("Next", () => at + 1), ask("Latest", () => steps.length - 1)];
  const controls = h("div", { class: "actions course" }, before, next, last, place);

  function go(number, isAsked = false) {
    at = Math.min(Math.max(number, 0), steps.length - 1);
    isLast = at === steps.length - 1;
    const { node, edge, name, turn, isStay } = steps[at];
    before.disabled = at === 0;
    next.disabled = last.disabled = isLast;
    view.overlay(stepMarks(steps, at));
    view.light(node, edge);
    show(place, `Step ${at + 1} of ${steps.length}: ${isStay ? "stays at " : ""}${name}, ${turn}.`);
    showSteps();
    chosen(steps[at], isAsked);
  }

  const showSteps = () => show(list, table("Steps", [
    ["Number", (step) => button(String(steps.indexOf(step) + 1), () => go(steps.indexOf(step), true),
      { kind: "small", "aria-label": `Step ${steps.indexOf(step) + 1}, ${step.name}`, "aria-current": steps[at] === step ? "step" : null })],
    ["Step", ({ name, node }) => [name, !has("node", node) && [" ", badge("gone")]]],
    ["By the path", ({ label, isStay }) => (isStay ? "stays" : label)],
    ["When", ({ turn }) => turn],
  ], steps));

  function goIf(number) {
    if (number >= 0) go(number, true);
    return number >= 0;
  }

  return {
    element: h("div", { class: "stack" }, controls, list),
    controls,
    update(turns) {
      steps = stepsOf(turns);
      if (steps.length) go(isLast ? steps.length - 1 : at);
    },
    turn: (number) => goIf(steps.findLastIndex((step) => step.number === number)),
    item(kind, id) {
      const found = steps.map((step, number) => [step, number]).filter(([step]) => step[kind] === id).map(([, number]) => number);
      return goIf(found.find((number) => number > at) ?? found[0] ?? -1);
    },
  };
}
