// The commands of the canvas: one table, from which its keys, their help and its menu are made.

const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
const CTRL = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
const SHOWN = { Ctrl: CTRL, "-": "−", plus: "+" };

/** "Ctrl+Shift+z" as people read it: "Ctrl Shift Z". */
const shown = (key) => key.split("+").map((part) => SHOWN[part] ?? (part.length === 1 ? part.toUpperCase() : part)).join(" ");

/** How a key of the table is named for an event: ⌘ counts as Ctrl; which signs need Shift depends on the keyboard. */
function nameOf({ key, ctrlKey, metaKey, shiftKey }) {
  const isLetter = /^[a-z]$/i.test(key);
  const name = { " ": "Space", "+": "plus" }[key] ?? (isLetter ? key.toLowerCase() : key);
  return `${ctrlKey || metaKey ? "Ctrl+" : ""}${shiftKey && (isLetter || key.length > 1 || key === " ") ? "Shift+" : ""}${name}`;
}

/**
 * `rows`: {id, words, keys, also, when, run, inMenu}. `words` say what it does, and `run(event)` does it; the event is null if
 * it is chosen from the menu. `keys`: such as "Ctrl+Shift+z Ctrl+y", "Arrows" for all four, "" for none; `also`: keys that
 * the help leaves out. `when()`: whether it applies now; always, if it is missing. `inMenu: false` keeps a row out of the
 * menu. `isNative`: the browser makes an event of its own of the key, as it does to copy.
 *
 * Returned: `of(event)`, the row that a keydown means now, or null; `run(id)`; `offered()`, the rows of the menu that apply;
 * `help`, [[keys, words], ...].
 */
export function commandTable(rows) {
  const byKey = new Map();
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const row of rows.filter(({ isNative }) => !isNative)) {
    for (const key of `${row.keys} ${row.also ?? ""}`.split(" ").filter(Boolean)) {
      for (const each of key.endsWith("Arrows") ? ARROWS.map((arrow) => key.replace("Arrows", arrow)) : [key]) {
        byKey.set(each, [...byKey.get(each) ?? [], row]);
      }
    }
  }
  const applies = ({ when }) => when?.() ?? true;
  const keysOf = ({ keys }) => keys.split(" ").filter(Boolean).map(shown).join(", ");
  return {
    of: (event) => (event.altKey ? null : byKey.get(nameOf(event))?.find(applies) ?? null),
    run: (id, event = null) => byId.get(id).run(event),
    offered: () => rows.filter((row) => row.inMenu !== false && applies(row)).map((row) => ({ ...row, shown: keysOf(row) })),
    help: rows.filter(({ keys }) => keys).map((row) => [keysOf(row), row.words]),
  };
}
