// Changes of a workflow's definition, each on a copy: what the editor's buttons and fields do.

const STEP = { x: 260, y: 150 };
// The drawing keeps stored places if the middles of any two nodes are this far apart, in one direction or the other:
// the size of a node and the least gap of voiceapi/workflows/drawing/layout.py.
const ROOM = { x: 196, y: 66 };

/** The objects of one of the definition's lists, with their places in it. */
export function items(definition, list) {
  const found = Array.isArray(definition?.[list]) ? definition[list] : [];
  return found.map((item, index) => ({ item, index })).filter(({ item }) => item && typeof item === "object" && !Array.isArray(item));
}

export function nameOf(node) {
  const name = node?.data?.name;
  return typeof name === "string" && name.trim() ? name : String(node?.id ?? "?");
}

export function nodeWithId(definition, id) {
  return items(definition, "nodes").findLast(({ item }) => item.id === id)?.item ?? null;
}

function copy(definition) {
  const found = structuredClone(definition ?? {});
  for (const list of ["nodes", "edges"]) if (!Array.isArray(found[list])) found[list] = [];
  return found;
}

function freeId(definition, list, wanted) {
  const taken = new Set(items(definition, list).map(({ item }) => String(item.id)));
  if (!taken.has(wanted)) return wanted;
  for (let count = 2; ; count += 1) if (!taken.has(`${wanted}-${count}`)) return `${wanted}-${count}`;
}

const isFree = (places, place) =>
  !places.some((each) => Math.abs(each.x - place.x) < ROOM.x && Math.abs(each.y - place.y) < ROOM.y);

/** The place nearest to the wanted one at which a node overlaps none of those at `places`. */
export function nearestFreePlace(places, wanted) {
  if (isFree(places, wanted)) return wanted;
  // It is beside another node: as far to a side, or up or down, as that node's room reaches.
  const along = (axis) => [wanted[axis], ...places.flatMap((each) => [each[axis] - ROOM[axis], each[axis] + ROOM[axis]])]
    .sort((one, other) => Math.abs(one - wanted[axis]) - Math.abs(other - wanted[axis]));
  const rows = along("y");
  let found = null;
  let nearest = Infinity;
  for (const x of along("x")) {
    for (const y of rows) {
      const distance = Math.hypot(x - wanted.x, y - wanted.y);
      if (distance >= nearest) break; // the other rows are further away
      if (isFree(places, { x, y })) [found, nearest] = [{ x, y }, distance];
    }
  }
  return found;
}

/** A place near another one, or below everything, that no node is at. */
function freePlace(definition, near) {
  const places = items(definition, "nodes").map(({ item }) => item.position)
    .filter((place) => Number.isFinite(place?.x) && Number.isFinite(place?.y));
  const start = near && Number.isFinite(near.x) && Number.isFinite(near.y)
    ? { x: near.x, y: near.y + STEP.y }
    : { x: 0, y: places.length ? Math.max(...places.map((each) => each.y)) + STEP.y : 0 };
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
  const found = copy(definition);
  const source = from === null ? null : found.nodes[from];
  const node = {
    id: freeId(found, "nodes", spec.name.replace(/(Call|Node)$/, "").toLowerCase()),
    type: spec.name,
    position: freePlace(found, source?.position),
    data: defaults(spec),
  };
  found.nodes.push(node);
  return source ? withEdge(found, source.id, node.id).definition : found;
}

/** With an edge between two nodes; `index` is the place of the edge. */
export function withEdge(definition, source, target) {
  const found = copy(definition);
  const count = found.edges.filter((edge) => edge?.source === source).length + 1;
  const id = freeId(found, "edges", `${source}-${target}`);
  found.edges.push({ id, source, target, data: { label: `Way ${count}`, condition: "" } });
  return { definition: found, index: found.edges.length - 1 };
}

/** Without a node, and without the edges that lead to it or from it, unless another node has its id. */
export function withoutNode(definition, index) {
  const found = copy(definition);
  const [removed] = found.nodes.splice(index, 1);
  if (!found.nodes.some((node) => node?.id === removed?.id)) {
    found.edges = found.edges.filter((edge) => edge?.source !== removed?.id && edge?.target !== removed?.id);
  }
  return found;
}

export function withoutEdge(definition, index) {
  const found = copy(definition);
  found.edges.splice(index, 1);
  return found;
}

/** With a member of a node or an edge set; `undefined` removes it. `path`: names from the item on. */
export function withMember(definition, list, index, path, value) {
  const found = copy(definition);
  let holder = found[list][index];
  for (const name of path.slice(0, -1)) {
    if (!holder[name] || typeof holder[name] !== "object" || Array.isArray(holder[name])) holder[name] = {};
    holder = holder[name];
  }
  if (value === undefined) delete holder[path.at(-1)];
  else holder[path.at(-1)] = value;
  return found;
}

/** With the nodes where a drawing has them: a Map of places by the node's index. */
export function withPlaces(definition, places) {
  const found = copy(definition);
  for (const [index, place] of places) found.nodes[index].position = place;
  return found;
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
  const found = copy(definition);
  for (const { item } of items(found, "nodes")) {
    if (item.type === "trigger" && item.data && typeof item.data === "object") delete item.data.trigger_path;
  }
  return found;
}
