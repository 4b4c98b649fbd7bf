// What is drawn of a definition, also of a broken one as far as it can be read: nodes with their places, edges with their ends.

import { freePlace } from "./changes.js";
import { idOf, isNote, items, nameOf, placeOf, same } from "./items.js";

const SPEAKING = new Set(["startCall", "agentNode", "endCall"]);
const ON_ERROR = "on_error";

/**
 * {nodes: [{key, item, index, id, type, look, kind, name, place}], edges: [{key, item, index, id, from, to, label}], notes:
 * [{key, item, index, name, text, place}]}; `from` and `to` are nodes, and the place of a note also has its width and height.
 * What stands for a node that an edge names and that isn't there has no item; so has the way that is taken when a node's call
 * fails. `kindOf(type)` names a type. `placed` has the places that nodes have because theirs aren't stored, or can't be used: a
 * Map by their keys of {position, place}, `position` being what is stored meanwhile; a place that is missing there is added.
 */
export function graphOf(definition, kindOf, placed) {
  const listed = items(definition, "nodes");
  const isPlaced = ({ item, key }) => placed.has(key) && same(placed.get(key).position, item.position);
  const stored = listed.map((each) => (isPlaced(each) ? placed.get(each.key).place : placeOf(each.item)));
  const taken = stored.filter(Boolean);
  const free = (near) => {
    const place = freePlace(taken, near);
    taken.push(place);
    return place;
  };
  const nodes = listed.map(({ item, index, key }, at) => {
    const place = stored[at] ?? free(null);
    if (!stored[at]) placed.set(key, { position: item.position, place });
    const type = typeof item.type === "string" && item.type ? item.type : "?";
    const kind = kindOf(type);
    return { key, item, index, id: idOf(item), type, look: kind ? type : "unknown", kind: kind ?? type, name: nameOf(item), place };
  });
  const byId = new Map(nodes.filter(({ id }) => id !== null).map((node) => [node.id, node]));
  const missing = (id, near) => {
    const node = { key: `gone ${id}`, item: null, index: null, id, look: "missing", kind: "There is no such step", type: "?", name: id || "?", place: free(near) };
    byId.set(id, node);
    nodes.push(node);
    return node;
  };
  const end = (value) => idOf({ id: value }) ?? "";
  const edges = [
    ...items(definition, "edges").map(({ item, index, key }) => ({ key, item, index, id: idOf(item), ends: [item.source, item.target], label: item.data?.label })),
    ...nodes.filter(({ type, item }) => SPEAKING.has(type) && item.data?.call?.tool && item.data.call[ON_ERROR]).map(({ key, id, item }) =>
      ({ key: `fails ${key}`, item: null, index: null, id: `${id}.${ON_ERROR}`, ends: [id, item.data.call[ON_ERROR]], label: "if it fails" })),
  ].map(({ ends: [source, target], label, ...edge }) => {
    const from = byId.get(end(source)) ?? missing(end(source), null);
    return { ...edge, from, to: byId.get(end(target)) ?? missing(end(target), from.place), label: typeof label === "string" ? label : "" };
  });
  return { nodes, edges, notes: items(definition, "notes").filter(({ item }) => isNote(item)).map(noteOf) };
}

function noteOf({ item, index, key }) {
  const { text, x, y, width, height } = item;
  return { key, item, index, name: text.trim() ? `Note “${text.trim().slice(0, 40)}”` : "Empty note", text, place: { x: x + width / 2, y: y + height / 2, width, height } };
}
