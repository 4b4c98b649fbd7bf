// What may lead where, from the catalogue of the types of nodes, and why something may not.

const ALONE = {
  startCall: "Nothing can lead to a start.",
  trigger: "It stands by itself: a request to its address starts a call.",
  globalNode: "It stands by itself: its instructions are added to those of the steps.",
  webhook: "A report stands by itself: it is sent when a call ends.",
  qa: "A review stands by itself: it is made when a call ends.",
};

// The catalogue doesn't say it: the published SDK refuses one that does.
const ONCE = new Set(["startCall", "globalNode", "trigger", "noveum", "paygent", "tuner"]);

/** True if another node of a type can be added to so many. */
export const hasRoom = (type, count) => count === 0 || !ONCE.has(type);

const limits = (spec) => spec?.graph_constraints ?? {};
const alone = (type, spec) => ALONE[type] ?? `${spec.display_name} stands by itself.`;

/** Why a node of a type can't be led to; null if it can. `count`: how many edges lead to it. */
export function whyNotTo(type, specs, count = 0) {
  const spec = specs.get(type);
  const most = limits(spec).max_incoming ?? Infinity;
  if (!spec) return "Nothing can lead to a step of an unknown type.";
  return most === 0 ? alone(type, spec) : count >= most ? `As many paths lead there as may: ${most}.` : null;
}

/** Why a node of a type can't lead on; null if it can. `count`: how many edges leave it. */
export function whyNotFrom(type, specs, count = 0) {
  const spec = specs.get(type);
  const most = limits(spec).max_outgoing ?? Infinity;
  if (!spec) return "A step of an unknown type can't lead on.";
  if (type === "endCall") return "An end leads nowhere: the call is over there.";
  if (most === 0 || (ALONE[type] && type !== "startCall")) return alone(type, spec);
  return count >= most ? `As many paths leave it as may: ${most}.` : null;
}

/**
 * Why no edge can lead from one node to another; null if one can. Both are nodes of a `graph`, as `graphOf` gives it;
 * `edge` is the key of one that is led elsewhere, which doesn't count.
 */
export function whyNot(graph, specs, from, to, edge = null) {
  if (!from.item || !to.item) return "There is no such step.";
  if (typeof from.item.id !== "string" || typeof to.item.id !== "string") return "A step without an id can't be connected: give it one in the JSON.";
  const count = (end, node) => graph.edges.filter((each) => each.item && each.key !== edge && each[end].key === node.key).length;
  return whyNotFrom(from.type, specs, count("from", from)) ?? whyNotTo(to.type, specs, count("to", to));
}

/** The types of which a node can be added: behind another one if `isLedTo`, before another one, too, if `leads`. */
export function newTypes(graph, specs, { isLedTo = false, leads = false } = {}) {
  return [...specs.values()].filter((spec) =>
    hasRoom(spec.name, graph.nodes.filter(({ type }) => type === spec.name).length) &&
    !(isLedTo && whyNotTo(spec.name, specs)) && !(leads && whyNotFrom(spec.name, specs)));
}
