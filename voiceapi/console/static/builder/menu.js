// The menu of the canvas: its commands that apply to what was clicked, with their keys.

import { h } from "../parts/dom.js";

const MOVES = { ArrowDown: (at) => at + 1, ArrowUp: (at) => at - 1, Home: () => 0, End: () => -1 };

/** `rows`: what `commandTable` offers. `done(row, how)` gets what was chosen, null if nothing was. `over`: what `floating` gives. */
export function openMenu(over, at, rows, done) {
  const choose = (row) => {
    over.close("chosen");
    done(row);
  };
  const entries = rows.map((row) => h("button", { type: "button", role: "menuitem", on: { click: () => choose(row) } },
    h("span", {}, row.words), row.shown && h("kbd", { class: "quiet" }, row.shown)));
  const menu = h("div", { class: "canvas-menu", role: "menu", "aria-label": "Commands" }, entries);
  const go = (index) => entries.at(index % entries.length).focus();
  menu.addEventListener("keydown", (event) => {
    const at = entries.indexOf(document.activeElement);
    const typed = event.key.length === 1 && [...entries.slice(at + 1), ...entries.slice(0, at)].find((each) => each.textContent.toLowerCase().startsWith(event.key.toLowerCase()));
    if (event.ctrlKey || event.metaKey || event.key === " ") return;
    if (MOVES[event.key]) go(MOVES[event.key](at));
    else if (event.key === "Tab") over.close("escape");
    else if (typed) typed.focus();
    else return;
    event.preventDefault();
  });
  menu.addEventListener("contextmenu", (event) => event.preventDefault());
  over.open(menu, at, (how) => how !== "chosen" && done(null, how));
  go(0);
}
