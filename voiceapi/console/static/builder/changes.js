// Changes of a workflow's definition, each on a copy that shares what stays: what the canvas and the fields do.

import { isFree } from "./geometry.js";
import { items, placeOf, withAt } from "./items.js";

const STEP = { x: 260, y: 150 };

/** With both lists, so that there is something to add to. */
function complete(definition) {
  const lists = ["nodes", "edges"].filter((list) => !Array.isArray(definition?.[list]));
  return lists.reduce((found, list) => withAt(found, [list], []), definition ?? {});
}

function freeId(definition, list, wanted) {
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

/** The data that a new node of a type begins with: the defaults of the catalogue. */
export function defaults(spec) {
  const data = {};
  for (const property of spec.properties) {
    if (property.default !== null) data[property.name] = structuredClone(property.default);
    else if (property.required) data[property.name] = "";
  }
  return data;
}

/** With a new node of a type, and with an edge to it if `from`, the place of a node, is given. */
export function withNode(definition, spec, from = null) {
  const found = complete(definition);
  const source = from === null ? null : found.nodes[from];
  const places = items(found, "nodes").map(({ item }) => placeOf(item)).filter(Boolean);
  const node = {
    id: freeId(found, "nodes", spec.name.replace(/(Call|Node)$/, "").toLowerCase()),
    type: spec.name,
    position: freePlace(places, source && placeOf(source)),
    data: defaults(spec),
  };
  const added = { ...found, nodes: [...found.nodes, node] };
  return source ? withEdge(added, source.id, node.id) : added;
}

/** With an edge between two nodes: the last of its list. */
export function withEdge(definition, source, target) {
  const found = complete(definition);
  const count = found.edges.filter((edge) => edge?.source === source).length + 1;
  const id = freeId(found, "edges", `${source}-${target}`);
  return { ...found, edges: [...found.edges, { id, source, target, data: { label: `Way ${count}`, condition: "" } }] };
}

/**
 * Without what has these keys, and without the edges that lead to removed nodes or from them, unless another node has the
 * id: {definition, nodes, edges}, the latter two what was removed.
 */
export function without(definition, keys) {
  const found = complete(definition);
  const nodes = items(found, "nodes").filter(({ key }) => keys.has(key)).map(({ item }) => item);
  const stay = found.nodes.filter((node) => !nodes.includes(node));
  const gone = new Set(nodes.map(({ id }) => id).filter((id) => !stay.some((node) => node?.id === id)));
  const edges = items(found, "edges").filter(({ item, key }) => keys.has(key) || gone.has(item.source) || gone.has(item.target)).map(({ item }) => item);
  return { definition: { ...found, nodes: stay, edges: found.edges.filter((edge) => !edges.includes(edge)) }, nodes, edges };
}

/** With a member of what stands at a place of a list set; `undefined` removes it. `path`: names from the item on. */
export function withMember(definition, list, index, path, value) {
  return withAt(definition, [list, index, ...path], value);
}

/** With nodes at other places: a Map of {x, y} by their keys. */
export function withPlaces(definition, places) {
  return items(definition, "nodes").filter(({ key }) => places.has(key)).reduce((found, { index, key }) =>
    ["x", "y"].reduce((moved, axis) => withAt(moved, ["nodes", index, "position", axis], places.get(key)[axis]), found), definition);
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
