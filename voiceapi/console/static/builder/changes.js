// Changes of a workflow's definition, each on a copy that shares what stays: what the canvas and the fields do.

import { besides, isFree } from "./geometry.js";
import { isNote, items, kindOf, placeOf, withAt, withKey } from "./items.js";

const STEP = { x: 260, y: 150 };
const NOTE = { width: 200, height: 80 };
const LEAST = { width: 60, height: 30 }; // of a note

/** With both lists, so that there is something to add to. */
function complete(definition) {
  const lists = ["nodes", "edges"].filter((list) => !Array.isArray(definition?.[list]));
  return lists.reduce((found, list) => withAt(found, [list], []), definition ?? {});
}

/** An id that no item of a list has: the wanted one, or with a number. */
export function freeId(definition, list, wanted) {
  const taken = new Set(items(definition, list).map(({ item }) => String(item.id)));
  if (!taken.has(wanted)) return wanted;
  for (let count = 2; ; count += 1) if (!taken.has(`${wanted}-${count}`)) return `${wanted}-${count}`;
}

/** A place below another one, or below everything, that no node is at. */
export function freePlace(places, near = null) {
  const start = near ? { x: near.x, y: near.y + STEP.y } : { x: 0, y: places.length ? Math.max(...places.map((each) => each.y)) + STEP.y : 0 };
  for (let row = 0; ; row += 1) {
    for (const column of [0, 1, -1, 2, -2]) {
      const place = { x: start.x + column * STEP.x, y: start.y + row * STEP.y };
      if (isFree(places, place)) return place;
    }
  }
}

/** Places for nodes that come together, around `middle`: as they were to each other, each beside those at `taken`. */
export function freePlaces(taken, places, middle) {
  const along = (axis) => (Math.min(...places.map((each) => each[axis])) + Math.max(...places.map((each) => each[axis]))) / 2;
  const [x, y] = [along("x"), along("y")];
  return besides(taken, places.map((each) => ({ x: each.x - x + middle.x, y: each.y - y + middle.y })));
}

const SAMPLE = /\{\{\s*(initial|gathered)_context\./; // a variable that only the catalogue's example has

/** The data that a new node of a type begins with: the defaults of the catalogue, without the variables of its example. */
export function defaults(spec) {
  const data = {};
  for (const property of spec.properties) {
    if (property.type === "json" && property.default) data[property.name] = Object.fromEntries(Object.entries(property.default).filter(([, value]) => !SAMPLE.test(value)));
    else if (property.default !== null) data[property.name] = structuredClone(property.default);
    else if (property.required) data[property.name] = "";
  }
  return data;
}

/** With a new node of a type at a place: the last of its list. With an edge to it if `from`, the key of a node, is given. */
export function withNode(definition, spec, { from = null, place = null } = {}) {
  const found = complete(definition);
  const source = from === null ? null : withKey(found, from).item;
  const places = items(found, "nodes").map(({ item }) => placeOf(item)).filter(Boolean);
  const node = {
    id: freeId(found, "nodes", spec.name.replace(/(Call|Node)$/, "").toLowerCase()),
    type: spec.name,
    position: place ?? freePlace(places, source && placeOf(source)),
    data: defaults(spec),
  };
  const added = { ...found, nodes: [...found.nodes, node] };
  return source ? withEdge(added, source.id, node.id) : added;
}

/** With an edge between two nodes: the last of its list. */
export function withEdge(definition, source, target) {
  const found = complete(definition);
  const id = freeId(found, "edges", `${source}-${target}`);
  return { ...found, edges: [...found.edges, { id, source, target, data: { label: "", condition: "" } }] };
}

/** With a new node on an edge, which leads to it then; another edge, the last of its list, leads from there to its target. */
export function withInserted(definition, spec, edge, place) {
  const { item, index } = withKey(definition, edge);
  const added = withNode(definition, spec, { place });
  const { id } = added.nodes.at(-1);
  return withEdge(withAt(added, ["edges", index, "target"], id), id, item.target);
}

/** With a new note, whose middle is at a place: the last of its list. */
export function withNote(definition, { x, y }, text = "") {
  const note = { id: freeId(definition, "notes", "note"), text, x: Math.round(x - NOTE.width / 2), y: Math.round(y - NOTE.height / 2), ...NOTE };
  return withAt(definition, ["notes"], [...(Array.isArray(definition.notes) ? definition.notes : []), note]);
}

/** With a note as much wider and higher as `by` says. */
export function withSize(definition, key, by) {
  const { item, index } = items(definition, "notes").find((each) => each.key === key);
  return ["width", "height"].reduce((found, side) => withAt(found, ["notes", index, side], Math.max(LEAST[side], item[side] + by[side])), definition);
}

/**
 * Without what has these keys, and without the edges that lead to removed nodes or from them, unless another node has the
 * id: {definition, nodes, edges, notes}, the latter three what was removed.
 */
export function without(definition, keys) {
  const found = complete(definition);
  const nodes = items(found, "nodes").filter(({ key }) => keys.has(key)).map(({ item }) => item);
  const stay = found.nodes.filter((node) => !nodes.includes(node));
  const gone = new Set(nodes.map(({ id }) => id).filter((id) => !stay.some((node) => node?.id === id)));
  const edges = items(found, "edges").filter(({ item, key }) => keys.has(key) || gone.has(item.source) || gone.has(item.target)).map(({ item }) => item);
  const notes = items(found, "notes").filter(({ key }) => keys.has(key)).map(({ item }) => item);
  const rest = notes.length ? { notes: found.notes.filter((note) => !notes.includes(note)) } : {};
  return { definition: { ...found, nodes: stay, edges: found.edges.filter((edge) => !edges.includes(edge)), ...rest }, nodes, edges, notes };
}

/** Without a node, whose ways in lead to where its one way out led; null if it hasn't one. */
export function withJoined(definition, key) {
  const edges = items(definition, "edges");
  const { id } = items(definition, "nodes").find((each) => each.key === key).item;
  const [target, ...others] = new Set(edges.filter(({ item }) => item.source === id && item.target !== id).map(({ item }) => item.target));
  if (target === undefined || others.length) return null;
  const led = edges.filter(({ item }) => item.target === id && item.source !== id && item.source !== target)
    .reduce((found, { index }) => withAt(found, ["edges", index, "target"], target), definition);
  return without(led, new Set([key])).definition;
}

/** With a member of what stands at a place of a list set; `undefined` removes it. `path`: names from the item on. */
export function withMember(definition, list, index, path, value) {
  return withAt(definition, [list, index, ...path], value);
}

/** With nodes and notes at other places: a Map of their middles {x, y} by their keys. */
export function withPlaces(definition, places) {
  const all = [...items(definition, "nodes"), ...items(definition, "notes").filter(({ item }) => isNote(item))];
  return all.filter(({ key }) => places.has(key)).reduce((found, { item, index, key }) =>
    Object.entries({ x: "width", y: "height" }).reduce((moved, [axis, side]) => (kindOf(key) === "node"
      ? withAt(moved, ["nodes", index, "position", axis], places.get(key)[axis])
      : withAt(moved, ["notes", index, axis], places.get(key)[axis] - item[side] / 2)), found), definition);
}

/**
 * The definition in a JSON file: a body to create a workflow, an answer of the API, or the definition alone. `more` has the
 * `tools`, the `cases` and the `workflow_configurations` that come with it, but no model of its own: an answer masks its key.
 */
export function read(text, name) {
  const value = JSON.parse(text);
  if (!value || typeof value !== "object" || Array.isArray(value)) throw new Error("The file holds no workflow definition.");
  const definition = value.workflow_definition ?? value.workflow_json ?? value;
  if (!definition || !Array.isArray(definition.nodes)) throw new Error('The file holds no workflow definition: it has no list "nodes".');
  const more = Object.fromEntries(["tools", "cases"].filter((part) => Array.isArray(value[part])).map((part) => [part, value[part]]));
  const { model_configuration_v2_override: _, ...configurations } = Object(value.workflow_configurations);
  more.workflow_configurations = configurations;
  return { name: typeof value.name === "string" && value.name ? value.name : name, definition, more };
}

/** Without the paths of trigger nodes: the service makes new ones. */
export function withoutPaths(definition) {
  return items(definition, "nodes").filter(({ item }) => item.type === "trigger").reduce((found, { index }) =>
    (found.nodes[index].data ? withAt(found, ["nodes", index, "data", "trigger_path"], undefined) : found), definition);
}
