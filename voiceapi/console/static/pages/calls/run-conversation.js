// A run as a conversation: its turns beside the canvas, on which the step and the path of the chosen turn are lit.

import { keepQuery } from "../../app/router.js";
import { turnsOfRun } from "../../app/turns.js";
import { course } from "../../builder/course.js";
import { items } from "../../builder/items.js";
import { looking } from "../../builder/looking.js";
import { stepsOf } from "../../builder/overlays.js";
import { section } from "../../parts/components.js";
import { h } from "../../parts/dom.js";
import { answererOf, showList, turnView } from "./turns.js";

// From turn to turn: how many of them, or to the first and the last.
const KEYS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, Home: -Infinity, End: Infinity };
const NO_CANVAS = { overlay() {}, light() {} };

/**
 * `version`: what the run was held with, null if it is gone; `label` that of the canvas; `wanted`: the number of a turn to begin
 * with, null for the last. `actions(turn, node)`: what can be done from a turn, which ended at the node of that id. Returned:
 * `element`; `update(run)`, after which the last turn is chosen unless somebody looks at an earlier one; `reveal()`, which scrolls to
 * the turn that was wanted.
 */
export async function runConversation({ version, label, wanted, actions, signal }) {
  const list = h("div", { class: "conversation", role: "feed", "aria-label": "Turns" });
  const nothing = h("p", { class: "empty" }, "Nothing was said yet.");
  const definition = version?.workflow_json;
  let turns = [];
  let isBegun = false;
  let current = null; // the number of the chosen turn
  const view = version && await looking(definition, { label, signal, chosen(found, isOpened) {
    if (found && steps.item(found.kind, found.id) && isOpened) article()?.focus();
  } });
  const has = (kind, id) => items(definition ?? {}, `${kind}s`).some(({ item }) => item.id === id);
  const steps = course(view ?? NO_CANVAS, has, (step, isAsked) => choose(step.number, isAsked));

  const article = () => list.children[turns.findIndex(({ number }) => number === current)];

  function choose(number, isAsked) {
    current = number;
    mark();
    if (!isAsked) return;
    keepQuery({ turn: number });
    reveal();
  }

  function mark() {
    [...list.children].forEach((each, at) => {
      const isChosen = turns[at].number === current;
      each.tabIndex = isChosen ? 0 : -1;
      each.toggleAttribute("aria-current", isChosen);
      if (isChosen) each.setAttribute("aria-current", "true");
      each.setAttribute("aria-posinset", at + 1);
      each.setAttribute("aria-setsize", turns.length);
    });
  }

  list.addEventListener("click", ({ target }) => {
    const at = [...list.children].indexOf(target.closest("article"));
    if (at >= 0 && !target.closest("a, button, summary") && getSelection().isCollapsed) steps.turn(turns[at].number);
  });
  list.addEventListener("keydown", (event) => {
    const by = KEYS[event.key];
    if (!by || event.target.parentElement !== list || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const at = turns.findIndex(({ number }) => number === current) + by;
    steps.turn(turns[Math.min(Math.max(at, 0), turns.length - 1)].number);
    article().focus({ preventScroll: true });
  });

  const reveal = () => article()?.scrollIntoView({ block: "nearest" });

  return {
    reveal: () => wanted !== null && reveal(),
    element: h("div", { class: "run" },
      version && h("section", { class: "card run-canvas", "aria-label": "Step by step" }, steps.controls, view.element),
      section("What was said, and why", list, nothing)),
    update(run) {
      const model = answererOf(run);
      turns = turnsOfRun(run);
      const nodes = new Map(stepsOf(turns).map(({ number, node }) => [number, node]));
      showList(list, turns.map((turn) => ({ turn, node: nodes.get(turn.number) ?? null })), ({ turn, node }) =>
        turnView(turn, { model, actions: actions(turn, node) }));
      list.hidden = !turns.length;
      nothing.hidden = turns.length > 0;
      nothing.textContent = run.is_completed ? "Nothing was said." : "Nothing was said yet.";
      steps.update(turns);
      mark();
      if (!isBegun && wanted !== null) steps.turn(wanted);
      isBegun = true;
    },
  };
}
