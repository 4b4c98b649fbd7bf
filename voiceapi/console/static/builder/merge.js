// Two changes of one agent, joined by item and member. What both changed otherwise is listed, to be chosen from.

import { at, differences, items, same, withAt } from "./items.js";

const LISTS = ["nodes", "edges", "notes"]; // whose items have ids
const WHOLE = new Set(["position"]); // members that make no sense half from here, half from there

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isMask = (value) => typeof value === "string" && /^\*|[:/]\*{8}@/.test(value);
const byKey = (definition, list) => new Map(items(definition, list).map(({ item, key }) => [key, item]));

/** True if `stored` is what the service makes of `sent`: members that it fills in, and masks of secrets, don't count. */
export const isFilled = (sent, stored) => differences(sent, stored).every(({ from, to }) => from === undefined || isMask(to));

/**
 * `base` with the changes that made it `mine` and `theirs`: {value, conflicts}. It is a definition, or any other object,
 * which has no lists of items. A conflict: {id, list, item, path, mine, theirs}: `item` is the node, edge or note, `list`
 * null beside them; a side that has removed it is undefined. `isTheirs(id)` says which of them the value has, mine if not.
 */
export function merged(base, mine, theirs, isTheirs = () => false) {
  const conflicts = [];
  if (same(base, mine)) return { value: theirs, conflicts };
  const own = withFreeIds(base, mine, theirs);

  function collide(place, path, one, other) {
    const id = [place?.list, place?.key, ...path].join(" ");
    conflicts.push({ id, list: place?.list ?? null, item: place?.item ?? null, path, mine: one, theirs: other });
    return isTheirs(id) ? other : one;
  }

  function join(before, one, other, path, place = null) {
    if (same(one, other) || same(before, other)) return one;
    if (same(before, one) || (before === undefined && isFilled(one, other))) return other;
    const isOpen = isObject(one) && isObject(other) && (isObject(before) || before === undefined) && !WHOLE.has(path.at(-1));
    if (!isOpen) return collide(place, path, one, other);
    const found = {};
    for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
      const isList = !place && !path.length && LISTS.includes(name) && Array.isArray(one[name]) && Array.isArray(other[name]);
      const value = isList ? joinLists(name) : join(before?.[name], one[name], other[name], [...path, name], place);
      if (value !== undefined) found[name] = value;
    }
    return found;
  }

  /** Mine in their order, then those that were only added there. */
  function joinLists(list) {
    const [before, one, other] = [base, own, theirs].map((each) => byKey(each, list));
    const used = list === "nodes" ? [endsOfNew(base, own), endsOfNew(base, theirs)] : [new Set(), new Set()];
    return [...new Set([...one.keys(), ...other.keys()])].map((key) => {
      const [was, here, there] = [before, one, other].map((each) => each.get(key));
      const place = { list, key, item: here ?? there };
      if (here && there) return join(was, here, there, [], place);
      const [left, ends] = here ? [here, used[0]] : [there, used[1]];
      if (!was) return left;
      return same(was, left) && !ends.has(left.id) ? undefined : collide(place, [], here, there);
    }).filter((item) => item !== undefined);
  }

  const value = join(base, own, theirs, []);
  return { value: withoutLooseEdges(value, own, theirs), conflicts };
}

/** The nodes that new or changed edges lead to or from. */
function endsOfNew(base, definition) {
  const before = byKey(base, "edges");
  return new Set(items(definition, "edges").filter(({ item, key }) => !same(before.get(key), item)).flatMap(({ item }) => [item.source, item.target]));
}

/** Without edges of nodes that one side has and the joined definition hasn't. */
function withoutLooseEdges(definition, ...sides) {
  const ids = (each) => new Set(items(each, "nodes").map(({ item }) => item.id));
  const here = ids(definition);
  const gone = new Set(sides.flatMap((side) => [...ids(side)]).filter((id) => !here.has(id)));
  if (!gone.size || !Array.isArray(definition.edges)) return definition;
  return { ...definition, edges: definition.edges.filter((edge) => !gone.has(edge?.source) && !gone.has(edge?.target)) };
}

/** Mine, with other ids for what I added where they added something else with the same id, and for the edges there. */
function withFreeIds(base, mine, theirs) {
  return LISTS.reduce((definition, list) => {
    const [before, there] = [base, theirs].map((each) => byKey(each, list));
    return items(definition, list).reduce((found, { item, index, key }) => {
      if (before.has(key) || !there.has(key) || same(item, there.get(key)) || isFilled(item, there.get(key))) return found;
      const taken = new Set([found, theirs].flatMap((each) => items(each, list)).map((each) => String(each.item.id)));
      let count = 2;
      while (taken.has(`${item.id}-${count}`)) count += 1;
      const id = `${item.id}-${count}`;
      const renamed = withAt(found, [list, index, "id"], id);
      return list === "nodes" ? ledTo(renamed, item.id, id) : renamed;
    }, definition);
  }, mine);
}

/** With what leads to a node, or from it, leading to its other id. */
function ledTo(definition, from, to) {
  const places = [["edges", ["source"]], ["edges", ["target"]], ["nodes", ["data", "call", "on_error"]]];
  return places.reduce((found, [list, path]) => items(found, list).filter(({ item }) => at(item, path) === from)
    .reduce((each, { index }) => withAt(each, [list, index, ...path], to), found), definition);
}
