// The keys of the canvas: one table, from which the help is made, too. They act only while the canvas has the focus.

// [keys, how they are shown, the command, what it does]
const KEYS = [
  ["ArrowLeft ArrowRight ArrowUp ArrowDown", "Arrows", "go", "To the nearest node or edge that way, connected ones first"],
  ["Home", "Home", "first", "To the start"],
  ["End", "End", "last", "To the last node"],
  ["Enter", "Enter", "open", "Into the form of what has the focus"],
  ["Escape", "Escape", "back", "Stop a drag; from the form back to the canvas; then nothing is selected"],
  ["Space", "Space", "toggle", "Add to the selection, or take away; held, drag to pan"],
  ["Ctrl+a", "Ctrl A", "all", "Select everything"],
  ["Shift+ArrowLeft Shift+ArrowRight Shift+ArrowUp Shift+ArrowDown", "Shift arrows", "nudge", "Move what is selected by 10"],
  ["Ctrl+Shift+ArrowLeft Ctrl+Shift+ArrowRight Ctrl+Shift+ArrowUp Ctrl+Shift+ArrowDown", "Ctrl Shift arrows", "nudgeBit", "Move it by 1"],
  ["Delete Backspace", "Delete, Backspace", "remove", "Remove what is selected"],
  ["Ctrl+z", "Ctrl Z", "undo", "Take the last change back, also past Save"],
  ["Ctrl+Shift+z Ctrl+y", "Ctrl Shift Z, Ctrl Y", "redo", "Do it again"],
  ["Ctrl+s", "Ctrl S", "save", "Save, also from a form"],
  ["+ =", "+", "larger", "Larger"],
  ["- _", "−", "smaller", "Smaller"],
  ["0", "0", "actual", "100 %"],
  ["1", "1", "fit", "Show everything"],
  ["2", "2", "fitSelection", "Show what is selected"],
  ["?", "?", "help", "These keys"],
];
const COMMANDS = new Map(KEYS.flatMap(([keys, , command]) => keys.split(" ").map((key) => [key, command])));

/** The command of a keydown; null if it has none here. ⌘ counts as Ctrl. */
export function commandOf({ key, ctrlKey, metaKey, shiftKey, altKey }) {
  if (altKey) return null;
  const isLetter = /^[a-z]$/i.test(key);
  const name = key === " " ? "Space" : isLetter ? key.toLowerCase() : key;
  // Which signs need Shift depends on the keyboard.
  const shift = shiftKey && (isLetter || name.length > 1) ? "Shift+" : "";
  return COMMANDS.get(`${ctrlKey || metaKey ? "Ctrl+" : ""}${shift}${name}`) ?? null;
}

/** [[keys, what they do], ...] */
export const help = KEYS.map(([, shown, , text]) => [shown, text]);
