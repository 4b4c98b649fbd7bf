// What is shown over a graph: marks at its nodes and edges, what they mean, and the same as rows of a table.
// Marks: a Map of {look, label, note, width} by "node" or "edge" and the id. A look has a sign of its own, not a color only.

import { items } from "./items.js";

/** The signs of the looks, as the legend explains them. */
export const SIGNS = {
  touched: "2×", untouched: "never", failed: "2×, ✕ 1 failed", passed: "3", step: "1, 3", left: "3, 1 left", added: "+ added", removed: "− removed", changed: "≠ changed", moved: "↔ moved",
};

const WIDEST = 5;
const named = (kind, id) => `${kind} ${id}`;
const many = (count, noun) => (count === 1 ? `one ${noun}` : `${count} ${noun}s`);

function touched(count, noun, failed = 0) {
  if (count === null) return { look: "touched", label: "", note: "" };
  if (count === 0) return { look: "untouched", label: "never", note: `In no ${noun}` };
  const note = `In ${many(count, noun)}`;
  return failed ? { look: "failed", label: `${count}×, ✕ ${failed} failed`, note: `${note}, failed: ${failed}` } : { look: "touched", label: `${count}×`, note };
}

/** In how many of the cases each node and edge was passed, and in how many that failed. */
export function testMarks(coverage, results) {
  const marks = new Map();
  for (const kind of ["node", "edge"]) {
    const counts = new Map(coverage[`${kind}s`].untouched.map(({ id }) => [id, [0, 0]]));
    for (const result of results) {
      for (const id of new Set(result[`${kind}s`])) {
        const [passed, failed] = counts.get(id) ?? [0, 0];
        counts.set(id, [passed + 1, failed + (result.passed ? 0 : 1)]);
      }
    }
    for (const [id, [count, failed]] of counts) marks.set(named(kind, id), touched(count, "case", failed));
  }
  return marks;
}

/** How many played callers came to each node, and which edges none took. */
export function callerMarks({ nodes, coverage }, definition) {
  const never = new Set(coverage.edges.untouched.map(({ id }) => id));
  // The ways after calls that failed are no edges of the definition.
  const edges = new Set([...items(definition, "edges").map(({ item }) => item.id).filter((id) => typeof id === "string"), ...never]);
  return new Map([
    ...nodes.map(({ id, count }) => [named("node", id), touched(count, "conversation")]),
    ...[...edges].map((id) => [named("edge", id), touched(never.has(id) ? 0 : null, "conversation")]),
  ]);
}

/** The numbers of insights: how often each node and edge was passed, the wider the oftener, and where callers left. */
export function trafficMarks({ nodes, edges }) {
  const there = (found) => found.filter(({ in_workflow: isThere, id }) => isThere && id !== null);
  const most = Math.max(1, ...there(edges).map(({ passed }) => passed));
  const mark = ({ passed, left = 0 }) => ({
    look: !passed ? "untouched" : left ? "left" : "passed",
    label: left ? `${passed}, ${left} left` : passed ? String(passed) : "never",
    note: `Times passed: ${passed}${left ? `. Callers left here: ${left}` : ""}`,
  });
  return new Map([
    ...there(nodes).map((node) => [named("node", node.id), mark(node)]),
    ...there(edges).map((edge) => [named("edge", edge.id), { ...mark(edge), width: edge.passed ? Math.max(1, Math.round((WIDEST * edge.passed) / most)) : null }]),
  ]);
}

/** The steps of one call: {node, edge, name, turn} for each node that it came to, in order; `turns` as app/turns gives them. */
export function stepsOf(turns) {
  return turns.flatMap(({ title, events }) => events.filter(({ type }) => type === "node_transition")
    .map(({ payload }) => ({ node: payload.node_id, edge: payload.edge_id ?? null, name: payload.node_name, label: payload.edge_label ?? "", turn: title })));
}

/** The marks of a call up to a step: which steps led to each node. */
export function stepMarks(steps, last) {
  const numbers = new Map();
  steps.slice(0, last + 1).forEach(({ node, edge }, at) => {
    for (const name of [named("node", node), edge !== null && named("edge", edge)].filter(Boolean)) numbers.set(name, [...numbers.get(name) ?? [], at + 1]);
  });
  return new Map([...numbers].map(([name, found]) => [name, { look: "step", label: found.join(", "), note: `Step ${found.join(", ")}` }]));
}

/** The way of one case: its nodes and edges, and that it failed there or passed. */
export function wayMarks({ nodes, edges, passed }) {
  const mark = passed ? { look: "touched", label: "", note: "On the way of the case" } : { look: "failed", label: "✕", note: "On the way of the case, which failed" };
  return new Map([...nodes.map((id) => [named("node", id), mark]), ...edges.map((id) => [named("edge", id), { ...mark, width: 3 }])]);
}

/** Two versions: `found` is their difference as the API gives it, `after` the definition of the second one. */
export function comparison(found, after) {
  const marks = new Map();
  const rows = [];
  const add = (kind, part, look, fields = []) => {
    const name = part.name ?? (part.label || "an edge");
    const before = marks.get(named(kind, part.id));
    marks.set(named(kind, part.id), { look: before?.look ?? look, label: [before?.label, SIGNS[look]].filter(Boolean).join(", "), note: [before?.note, look].filter(Boolean).join(", ") });
    const row = rows.find((each) => each.kind === kind && each.id === part.id);
    if (row) row.what.push(look);
    else rows.push({ kind, id: part.id, name, what: [look], fields });
  };
  for (const [kind, list] of [["node", found.nodes], ["edge", found.edges]]) {
    for (const part of list.added) add(kind, part, "added");
    for (const part of list.removed) add(kind, part, "removed");
    for (const part of list.changed) add(kind, part, "changed", part.fields);
  }
  for (const part of found.moved) add("node", part, "moved");
  const withRemoved = (list) => [...(Array.isArray(after?.[list]) ? after[list] : []), ...found[list].removed.map(({ item }) => item)];
  return { definition: { ...after, nodes: withRemoved("nodes"), edges: withRemoved("edges") }, marks, rows };
}
