// Where the service puts the nodes of a definition whose stored places can't be shown, or that is to be arranged.

import { api } from "../app/api.js";
import { drawing } from "../parts/dom.js";
import { areUsable } from "./geometry.js";
import { items, placeOf } from "./items.js";

/** The middle of each node by its key, as positions are stored. `layout`: "layered", or "stored" to keep what can be kept. */
export async function drawnPlaces(definition, layout, signal) {
  const answer = await api.send("POST", "/workflow/graph", { body: { workflow_definition: definition, name: "", layout }, signal });
  const keys = new Map(items(definition, "nodes").map(({ index, key }) => [String(index), key]));
  const nodes = [...drawing(await answer.text()).querySelectorAll("g.node[data-index]")];
  return new Map(nodes.map((group) => {
    const box = group.querySelector(".box");
    const middle = (start, length) => Math.round(Number(box.getAttribute(start)) + Number(box.getAttribute(length)) / 2);
    return [keys.get(group.dataset.index), { x: middle("x", "width"), y: middle("y", "height") }];
  }));
}

/** What a canvas keeps as `placed`: nothing if all stored places can be shown. They are stored with the next move. */
export async function missingPlaces(definition, signal) {
  const nodes = items(definition, "nodes");
  const places = nodes.map(({ item }) => placeOf(item));
  if (places.every(Boolean) && areUsable(places)) return new Map();
  const found = await drawnPlaces(definition, "stored", signal);
  return new Map(nodes.filter(({ key }) => found.has(key)).map(({ item, key }) => [key, { position: item.position, place: found.get(key) }]));
}
