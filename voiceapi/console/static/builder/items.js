// The nodes and edges of a definition, each with its place in the list and a key that stays while others come and go.

export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** An id as findings give it: a text, or a number as text; null if there is none. */
export const idOf = (item) => (typeof item.id === "string" ? item.id : typeof item.id === "number" ? String(item.id) : null);

const listed = new WeakMap(); // by the list, which is never changed: a definition that differs has another one

/**
 * The objects of one of the definition's lists: [{item, index, key}, ...]. Ids may be missing or there twice while a
 * definition is broken, so a key also says the how-manieth of its id it is.
 */
export function items(definition, list) {
  const found = definition?.[list];
  if (!Array.isArray(found)) return [];
  if (!listed.has(found)) {
    const counts = new Map();
    listed.set(found, found.flatMap((item, index) => {
      if (!isObject(item)) return [];
      const id = idOf(item);
      const count = (counts.get(id) ?? 0) + 1;
      counts.set(id, count);
      return [{ item, index, key: `${list.slice(0, -1)} ${count} ${id ?? ""}` }];
    }));
  }
  return listed.get(found);
}

/** "node", "edge" or "note". */
export const kindOf = (key) => key.slice(0, 4);

/** What has this key: {item, index, key}, or null. */
export function withKey(definition, key) {
  return items(definition, `${kindOf(key)}s`).find((each) => each.key === key) ?? null;
}

/** The key of what stands at a place of a list. */
export function keyAt(definition, list, index) {
  return items(definition, list).find((each) => each.index === index)?.key ?? null;
}

export function nameOf(node) {
  const name = node?.data?.name;
  return typeof name === "string" && name.trim() ? name : String(node?.id ?? "?");
}

/** The node that edges with this id mean: of several, the last. */
export function nodeWithId(definition, id) {
  return items(definition, "nodes").findLast(({ item }) => item.id === id)?.item ?? null;
}

/** The stored place of a node, if it can be one. */
export function placeOf({ position }) {
  return Number.isFinite(position?.x) && Number.isFinite(position?.y) ? { x: position.x, y: position.y } : null;
}

/** True if a note can be shown: a text, with a place and a size. */
export const isNote = ({ text, x, y, width, height }) => typeof text === "string" && [x, y, width, height].every(Number.isFinite) && width > 0 && height > 0;

/** True if two JSON values are the same. Parts that two definitions share cost nothing. */
export function same(one, other) {
  if (one === other) return true;
  if (!one || !other || typeof one !== "object" || typeof other !== "object" || Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && same(one[name], other[name]));
}

/** How a value differs: [{path, from, to}, ...], undefined where there is nothing. Lists of other lengths differ whole. */
export function differences(from, to, path = []) {
  if (from === to) return [];
  const isList = Array.isArray(from) && Array.isArray(to) && from.length === to.length;
  if (!isList && !(isObject(from) && isObject(to))) return same(from, to) ? [] : [{ path, from, to }];
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((name) => differences(from[name], to[name], [...path, name]));
}

/** What is at a path, undefined for nothing. */
export const at = (value, path) => path.reduce((holder, name) => holder?.[name], value);

/** With what is at a path set, and what isn't on the way shared; `undefined` removes it. */
export function withAt(holder, [name, ...rest], value) {
  if (name === undefined) return value;
  const found = Array.isArray(holder) ? [...holder] : isObject(holder) ? { ...holder } : {};
  const inner = withAt(found[name], rest, value);
  if (inner === undefined) delete found[name];
  else found[name] = inner;
  return found;
}
