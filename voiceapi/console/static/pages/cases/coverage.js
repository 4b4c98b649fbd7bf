// How much of an agent is touched by its cases or by callers: in numbers, what isn't by name, and on the drawing.

import { items } from "../../builder/items.js";
import { graphView } from "../../builder/graph-view.js";
import { progress } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

const KINDS = [
  ["nodes", "Nodes", (who) => `Nodes that no ${who} passes`],
  ["edges", "Edges", (who) => `Edges that no ${who} takes`],
  ["variables", "Variables", (who) => `Variables that no ${who} gives a value`],
];

/** `svg`: the drawing of the version that was tested, with marks; `who` touches it. */
export function coverageView(coverage, svg, who = "case") {
  const missing = KINDS.filter(([kind]) => coverage[kind].untouched.length);
  return h("div", { class: "stack" },
    KINDS.map(([kind, label]) => coverage[kind].total
      ? progress(`${label}, ${coverage[kind].percent} %`, coverage[kind].covered, coverage[kind].total)
      : h("p", {}, `${label}: there are none.`)),
    missing.length ? missing.map(([kind, , title]) => [
      h("h3", {}, title(who)),
      h("ul", { "aria-label": title(who) }, coverage[kind].untouched.map((part) => h("li", {}, part.name))),
    ]) : h("p", {}, coverage.variables.total ? "Every node, every edge and every variable is touched." : "Every node and every edge is touched."),
    graphView(svg, { label: "Drawing of what is touched" }).element);
}

/** What the drawing says at a node or an edge that was passed so often; null if nobody counted. */
function mark(kind, id, count, noun) {
  const many = count === 1 ? `one ${noun}` : `${count} ${noun}s`;
  return {
    kind,
    id,
    label: count === 0 ? "never" : count === null ? "" : `${count}×`,
    look: count === 0 ? "untouched" : "touched",
    note: count === 0 ? `In no ${noun}.` : count === null ? "" : `In ${many}.`,
  };
}

/** The marks of a drawing: in how many cases each node and edge was passed. */
export function marksOf(coverage, results) {
  return ["nodes", "edges"].flatMap((kind) => {
    const counts = new Map(coverage[kind].untouched.map((part) => [part.id, 0]));
    for (const result of results) for (const id of new Set(result[kind])) counts.set(id, (counts.get(id) ?? 0) + 1);
    return [...counts].map(([id, count]) => mark(kind.slice(0, -1), id, count, "case"));
  });
}

/** The marks of a drawing for a rehearsal: how many callers came to each node, and which edges none took. */
export function marksOfPassed({ nodes, coverage }, definition) {
  const never = new Set(coverage.edges.untouched.map((part) => part.id));
  const edges = items(definition, "edges").map(({ item }) => item.id).filter((id) => typeof id === "string");
  return [
    ...nodes.map((part) => mark("node", part.id, part.count, "conversation")),
    // The ways after calls that failed are no edges of the definition.
    ...[...new Set([...edges, ...never])].map((id) => mark("edge", id, never.has(id) ? 0 : null, "conversation")),
  ];
}
