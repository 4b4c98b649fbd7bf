// What was changed both here and elsewhere, side by side, to choose from.

import { button } from "../parts/components.js";
import { h, uniqueId } from "../parts/dom.js";
import { nameOf } from "./items.js";

const LONGEST = 300;

/**
 * `conflicts` as `merged` gives them. `named(conflict)`: what the member that differs is called. `act` gets the ids of what is
 * taken from elsewhere, as a Set.
 */
export function differing(conflicts, named, act) {
  const sides = conflicts.map((each) => [each.id, uniqueId("side"), each]);
  const rows = sides.map(([, name, each]) => h("fieldset", {},
    h("legend", {}, placeOf(each, named)),
    side(name, "mine", "Here", each.mine, each.path),
    side(name, "theirs", "Saved elsewhere", each.theirs, each.path)));
  const chosen = () => new Set(sides.filter(([, name]) => element.querySelector(`input[name="${name}"][value="theirs"]`).checked).map(([id]) => id));
  const element = h("section", { class: "callout differing", role: "alert", "aria-label": "What differs" },
    h("h2", {}, `${conflicts.length === 1 ? "1 place differs" : `${conflicts.length} places differ`}: choose.`),
    h("p", {}, "This agent was changed elsewhere, too. All the rest goes together; nothing is saved before you choose."),
    rows,
    h("div", { class: "actions" },
      button("Take what is chosen", () => act(chosen()), { kind: "primary" }),
      button("All from here", () => act(new Set())),
      button("All from elsewhere", () => act(new Set(conflicts.map(({ id }) => id))))));
  return element;
}

function side(name, value, label, what, path) {
  const id = uniqueId("choice");
  return h("div", { class: "check-line" },
    h("input", { type: "radio", id, name, value, checked: value === "mine" }),
    h("label", { for: id }, `${label}: `, h("span", { class: "chosen-text" }, textOf(what, path))));
}

function placeOf(conflict, named) {
  const { list, item, path } = conflict;
  const member = path.length ? named(conflict) : "";
  if (!list) return member;
  const what = list === "nodes" ? nameOf(item) : list === "edges" ? `Path “${item.data?.label || item.id}”` : "A note";
  return member ? `${what}, ${member}` : what;
}

function textOf(value, path) {
  if (value === undefined) return path.length ? "nothing" : "removed";
  if (!path.length) return "kept";
  if (path.at(-1) === "position") return `at ${value?.x}, ${value?.y}`;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text || "empty";
}
