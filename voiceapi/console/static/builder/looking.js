// A canvas to be looked at: a definition with what an overlay says of it, and where a conversation is.

import { canvas } from "./canvas.js";
import { items, kindOf, withKey } from "./items.js";
import { missingPlaces } from "./placing.js";
import { nodeTypes } from "./plain.js";

/**
 * `chosen({kind, id, item}, isOpened)` is told what is chosen, null for nothing; `isOpened`: by Enter, which leads on to what
 * is said of it. Returned: `element`; `paint(definition)`, which shows another one; `overlay(marks)`; `light(node, edge)`;
 * `choose(kind, id)`, which shows that as chosen, false if it isn't there.
 */
export async function looking(definition, { label, signal, chosen = () => {} }) {
  let shown = definition;
  let selection = new Set();
  const tell = (isOpened = false) => {
    const [key] = [...selection].slice(-1);
    const item = key && withKey(shown, key)?.item;
    chosen(item ? { kind: kindOf(key), id: item.id ?? null, item } : null, isOpened);
  };
  const types = await nodeTypes(signal);
  const view = canvas({
    label, specs: new Map(types.map((type) => [type.name, type])), view: null, seen: () => {},
    act: {
      select: (keys) => {
        selection = keys;
        tell();
      },
      open: () => tell(true),
    },
  });
  signal.addEventListener("abort", view.end);

  async function paint(given) {
    const places = await missingPlaces(given, signal);
    shown = given;
    selection = new Set();
    view.placed.clear();
    for (const [key, place] of places) view.placed.set(key, place);
    view.paint(shown, selection);
  }

  await paint(definition);
  return {
    element: view.element,
    paint,
    overlay: view.overlay,
    light: view.light,
    choose(kind, id) {
      const found = items(shown, `${kind}s`).findLast(({ item }) => item.id === id);
      selection = new Set(found ? [found.key] : []);
      view.paint(shown, selection);
      if (found) view.reveal(found.key);
      return Boolean(found);
    },
  };
}
