// Keys for all pages: through the rows of a list, to the page's search, and the dialog that names them.

import { showDialog } from "./dialogs.js";
import { h } from "./dom.js";
import { checkbox, field } from "./forms.js";

const SWITCH = "voiceapi-letter-keys";
const NAMES = [
  ["↓ or J", "the next row of a list"], ["↑ or K", "the row before"], ["Enter", "opens what has the focus"],
  ["Home, End", "the first and the last row, in a list"], ["/", "the page's search"], ["?", "these keys"],
];
const STEPS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, Home: -Infinity, End: Infinity };
// Where letters and arrows have a meaning of their own.
const OTHERS = "input:not([type=checkbox]), select, textarea, [contenteditable], dialog, audio, .canvas-box, [role=menu], [role=listbox], [role=tablist]";

// Who speaks to the computer, or presses keys unawares, may do without those of one letter.
const hasLetters = () => localStorage.getItem(SWITCH) !== "off";

/** What has the focus when a row is gone to: its first link, or its first control. */
const first = (row) => row.querySelector("a[href]") ?? row.querySelector("button:not(:disabled), summary, input");

/** Go to another row of the list that has the focus, or else into the page's first list; false if there is none. */
function step(main, by, isInside) {
  const focused = document.activeElement;
  const list = isInside ? focused.closest(".table-box") : [...main.querySelectorAll(".table-box.cards")].find((each) => each.checkVisibility() && each.querySelector("tbody a"));
  const rows = [...(list?.querySelectorAll("tbody tr") ?? [])].filter(first);
  if (!rows.length) return false;
  const at = rows.findIndex((row) => row.contains(focused));
  const next = at < 0 && by < 0 && Number.isFinite(by) ? rows.length - 1 : Math.min(Math.max(at + by, 0), rows.length - 1);
  first(rows[next]).focus();
  return true;
}

function search(main) {
  const found = [...main.querySelectorAll("input[type=search]")].find((each) => each.closest("details") || each.checkVisibility());
  if (!found) return false;
  for (let around = found.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  found.focus();
  found.select();
  return true;
}

export function showKeys() {
  const letters = checkbox(hasLetters());
  letters.addEventListener("change", () => {
    if (letters.checked) localStorage.removeItem(SWITCH);
    else localStorage.setItem(SWITCH, "off");
  });
  return showDialog("Keys", h("dl", { class: "facts keys" }, NAMES.map(([keys, text]) => [h("dt", {}, keys), h("dd", {}, text)])),
    h("p", { class: "quiet" }, "The canvas of an agent has its own: press ? while it has the focus."),
    field("Keys of one character work on every page of this browser", letters));
}

/** Listen for the keys on all pages, whose lists and search are in `main`. */
export function listenForKeys(main) {
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (target.closest(OTHERS) || document.querySelector("dialog[open]")) return;
    const isLetter = key.length === 1;
    if (isLetter && !hasLetters()) return;
    const isInside = target.closest("tbody") !== null || target.matches(".table-box.cards");
    const isDone = key === "?" ? (showKeys(), true)
      : key === "/" ? search(main)
        : Object.hasOwn(STEPS, key) && (isLetter || isInside) && step(main, STEPS[key], isInside);
    if (isDone) event.preventDefault();
  });
}
