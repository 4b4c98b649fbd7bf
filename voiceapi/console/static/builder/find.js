// Finding nodes, edges and notes by any of their words.

import { isObject } from "./items.js";

/** All texts in a value, however deep. */
function texts(value) {
  if (typeof value === "string") return [value];
  return isObject(value) || Array.isArray(value) ? Object.values(value).flatMap(texts) : [];
}

const around = (text, at) => `${at > 30 ? "…" : ""}${text.slice(Math.max(0, at - 30), at + 60).trim()}${text.length > at + 60 ? "…" : ""}`;

/**
 * What a graph, as `graphOf` gives it, has with all of these words, in names and types first, then in any text:
 * [{key, name, detail}, ...]; `detail` is the type, or the text with the first of the words.
 */
export function found(graph, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const named = [
    ...graph.nodes.map((each) => ({ ...each, detail: each.kind })),
    ...graph.edges.map((each) => ({ ...each, name: each.label || "Path without a label", detail: `from ${each.from.name} to ${each.to.name}` })),
    ...graph.notes.map((each) => ({ ...each, detail: "Note" })),
  ].filter(({ item }) => item);
  const has = (text) => wanted.every((word) => text.toLowerCase().includes(word));
  const byName = named.filter(({ name, detail }) => has(`${name} ${detail}`));
  const byText = named.filter((each) => !byName.includes(each)).flatMap((each) => {
    const inside = texts(each.item.data ?? each.item.text);
    if (!has([each.name, each.detail, each.id, ...inside].join(" "))) return [];
    const text = inside.find((one) => one.toLowerCase().includes(wanted[0])) ?? each.detail;
    return [{ ...each, detail: around(text, Math.max(0, text.toLowerCase().indexOf(wanted[0]))) }];
  });
  return [...byName, ...byText].map(({ key, name, detail }) => ({ key, name, detail }));
}
