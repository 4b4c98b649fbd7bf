// Nodes as JSON text, to be copied within an agent and between agents.

import { freeId, freePlaces } from "./changes.js";
import { isNote, items, nameOf, placeOf, withAt } from "./items.js";
import { hasRoom } from "./rules.js";

const FORMAT = "voiceapi nodes";
const SECRETS = /key|url|endpoint|headers/;
const MASKED = /^\*{2,}[^*]{0,4}$|\/\/[^/]*\*{4}/;

/**
 * The text of nodes and notes with these keys, and of the edges between the nodes; null if there is none of them. `places`:
 * where nodes are seen, a Map by their keys.
 */
export function copied(definition, keys, places) {
  const nodes = items(definition, "nodes").filter(({ key }) => keys.has(key)).map(({ key, item }) => ({ ...item, position: places.get(key) ?? placeOf(item) }));
  const ids = new Set(nodes.map(({ id }) => id));
  const edges = items(definition, "edges").map(({ item }) => item).filter(({ source, target }) => ids.has(source) && ids.has(target));
  const notes = items(definition, "notes").filter(({ key }) => keys.has(key)).map(({ item }) => item);
  return nodes.length + notes.length ? JSON.stringify({ format: FORMAT, nodes, edges, notes }, null, 2) : null;
}

/** Without masked secrets: [value, names of the members that had one]. */
function withoutMasks(data) {
  const found = [];
  const clean = (value, name, isSecret) => {
    if (typeof value === "string" && isSecret && MASKED.test(value)) {
      found.push(name);
      return "";
    }
    if (Array.isArray(value)) return value.map((each) => clean(each, name, isSecret));
    if (!value || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([each, inner]) => [each, clean(inner, isSecret ? name : each, isSecret || SECRETS.test(each))]));
  };
  return [clean(data, "data", false), [...new Set(found)]];
}

/**
 * With what a text has, around `place` and beside the nodes at `taken`: {definition, nodes and notes: the indexes of the new
 * ones, edges: how many, left: what was left out}; null if the text holds none. All get new ids, and edges are between them. Left
 * out is what the service would refuse: more nodes of a type than may be, paths that are taken, and masked secrets.
 */
export function pasted(definition, text, place, taken, specs) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const given = items(value, "nodes").map(({ item }) => item).filter(({ type }) => typeof type === "string");
  const notes = items(value, "notes").map(({ item }) => item).filter(isNote);
  if (!given.length && !notes.length) return null;
  const ids = new Map();
  const left = [];
  const counts = new Map();
  for (const { item } of items(definition, "nodes")) counts.set(item.type, (counts.get(item.type) ?? 0) + 1);
  const found = given.filter((node) => {
    const count = counts.get(node.type) ?? 0;
    counts.set(node.type, count + 1);
    if (!hasRoom(node.type, count)) left.push(`${nameOf(node)}, because there can't be another ${specs.get(node.type).display_name}`);
    return hasRoom(node.type, count);
  });
  const places = freePlaces(taken, found.map((item) => placeOf(item) ?? { x: 0, y: 0 }), place);
  let next = ["nodes", "edges"].reduce((each, list) => (Array.isArray(each?.[list]) ? each : withAt(each ?? {}, [list], [])), definition);
  const add = (list, item, wanted) => {
    const id = freeId(next, list, wanted);
    next = { ...next, [list]: [...Array.isArray(next[list]) ? next[list] : [], { ...item, id }] };
    return id;
  };
  found.forEach((item, at) => {
    const [data, secrets] = withoutMasks(item.data);
    const hasPath = item.type === "trigger" && Boolean(data?.trigger_path);
    if (hasPath) delete data.trigger_path;
    if (hasPath) left.push(`the address of ${nameOf(item)}, which gets one of its own`);
    if (secrets.length) left.push(`${secrets.join(" and ")} of ${nameOf(item)}, to be entered again`);
    ids.set(item.id, add("nodes", { ...item, data, position: places[at] }, String(item.id ?? item.type)));
  });
  // Notes keep their places beside the nodes; alone, the first is where it is wanted.
  const [from, to] = found.length ? [placeOf(found[0]) ?? { x: 0, y: 0 }, places[0]] : [{ x: notes[0]?.x + notes[0]?.width / 2, y: notes[0]?.y + notes[0]?.height / 2 }, place];
  for (const note of notes) add("notes", { ...note, x: Math.round(note.x + to.x - from.x), y: Math.round(note.y + to.y - from.y) }, String(note.id ?? "note"));
  const edges = items(value, "edges").map(({ item }) => item).filter(({ source, target }) => ids.has(source) && ids.has(target));
  for (const edge of edges) {
    const [source, target] = [ids.get(edge.source), ids.get(edge.target)];
    add("edges", { ...edge, source, target }, `${source}-${target}`);
  }
  for (const id of ids.values()) {
    // The way when a node's call fails leads to the copy, if its node was copied, too.
    const index = next.nodes.findLastIndex((node) => node?.id === id);
    const target = next.nodes[index].data?.call?.on_error;
    if (ids.has(target)) next = withAt(next, ["nodes", index, "data", "call", "on_error"], ids.get(target));
  }
  const last = (list, all) => all.map((_, at) => next[list].length - all.length + at);
  return { definition: next, nodes: last("nodes", found), notes: last("notes", notes), edges: edges.length, left };
}
