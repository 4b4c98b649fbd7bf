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

/** In how many of the tests each node and edge was passed, and in how many that failed. */
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
    for (const [id, [count, failed]] of counts) marks.set(named(kind, id), touched(count, "test", failed));
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

/**
 * The steps of one conversation in order, {node, edge, name, label, turn, number, isStay}: each node that it came to, and each
 * turn in which it stayed where it was. `turns` as app/turns gives them; `number` is the turn's.
 */
export function stepsOf(turns) {
  const steps = [];
  for (const { title: turn, number, events } of turns) {
    const moves = events.filter(({ type }) => type === "node_transition").map(({ payload }) => payload);
    for (const { node_id: node, edge_id: edge = null, node_name: name, edge_label: label } of moves) steps.push({ node, edge, name, label: label ?? "", turn, number, isStay: false });
    if (!moves.length && steps.length) steps.push({ ...steps.at(-1), edge: null, label: "", turn, number, isStay: true });
  }
  return steps;
}

/** The marks of a conversation up to a step: which steps led to each node; the paths of that step's turn are wider. */
export function stepMarks(steps, last) {
  const found = new Map();
  steps.slice(0, last + 1).forEach(({ node, edge, number }, at) => {
    for (const name of [named("node", node), edge !== null && named("edge", edge)].filter(Boolean)) {
      found.set(name, { numbers: [...found.get(name)?.numbers ?? [], at + 1], width: number === steps[last].number ? 4 : null });
    }
  });
  return new Map([...found].map(([name, { numbers, width }]) => [name, { look: "step", label: numbers.join(", "), note: `Step ${numbers.join(", ")}`, width }]));
}

/** The way of one test: its nodes and edges, and that it failed there or passed. */
export function wayMarks({ nodes, edges, passed }) {
  const mark = passed ? { look: "touched", label: "", note: "On the way of the test" } : { look: "failed", label: "✕", note: "On the way of the test, which failed" };
  return new Map([...nodes.map((id) => [named("node", id), mark]), ...edges.map((id) => [named("edge", id), { ...mark, width: 3 }])]);
}

/** Two versions: `found` is their difference as the API gives it, `after` the definition of the second one. */
export function comparison(found, after) {
  const marks = new Map();
  const rows = [];
  const add = (kind, part, look, fields = []) => {
    const name = part.name ?? (part.label || "a path without a name");
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
