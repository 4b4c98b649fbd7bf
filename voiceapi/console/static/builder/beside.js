// What helps beside the canvas: the graph in small, the outline in its place, finding, and going from problem to problem.

import { button } from "../parts/components.js";
import { h } from "../parts/dom.js";
import { found } from "./find.js";
import { around, boxOfNode } from "./geometry.js";
import { minimap } from "./minimap.js";
import { outline } from "./outline.js";
import { pick } from "./picker.js";
import { onCanvas } from "./view.js";

/**
 * `element()` holds the canvas, and `over` floats over it. `look(place)` shows a place of the graph in the middle; `select(key)`
 * selects something, null for nothing; `go(key)` gives it the focus, `active()` has it; `offered()`: the rows of the menu.
 *
 * Returned: `parts`, to be put over the canvas; `tools`, buttons; `commands`; `see(view, size)` and `covered()` of the minimap;
 * `mark(marks)` and `paint(graph, selected)` as of the scene; and of the outline: `hasFocus()`; null while the canvas is shown:
 * `size()`, `point()`, where what has the focus ends, and `focus(key)`, which is true then.
 */
export function beside({ element, over, look, select, go, active, offered }) {
  const map = minimap({ look });
  const list = outline({ select, offered });
  const listing = button("Outline", () => element().classList.toggle("is-list", list.toggle(listing)), { kind: "small beside", "aria-pressed": "false" });
  const isList = () => !list.element.hidden;
  const cut = h("span", { class: "cut quiet", hidden: true }, "Part of it is out of sight: drag, or press Fit.");
  let bounds = null; // a box around all of the graph
  let last = null; // [view, size]
  let graph = null;
  let marks = new Map();

  /** Go to what is found; Escape leaves the focus where it was. */
  function find() {
    const options = (words) => found(graph, words).map(({ key, name, detail }) => ({ group: "Found", text: name, detail, value: key }));
    pick(over, { x: 12, y: 12 }, { label: "Find", options, done: (key, how) => {
      if (key) select(key);
      if (key || how !== "outside") go(key ?? active());
    } });
  }

  function goToProblem() {
    const keys = [...graph.nodes, ...graph.edges, ...graph.notes].map(({ key }) => key).filter((key) => marks.has(key) || key === active());
    go(keys[(keys.indexOf(active()) + 1) % keys.length]);
  }

  /** Say so if something is outside of what the canvas shows. */
  function see(...given) {
    last = given;
    map.see(...given);
    if (!bounds) return;
    const [view, { width, height }] = given;
    const [from, to] = [{ x: bounds.left, y: bounds.top }, { x: bounds.right, y: bounds.bottom }].map((corner) => onCanvas(view, corner));
    cut.hidden = from.x >= 0 && from.y >= 0 && to.x <= width && to.y <= height;
  }

  return {
    parts: [map.element, list.element],
    tools: [cut, button("Find", find, { kind: "small beside" }), listing],
    commands: [
      { id: "problem", keys: "F8", words: "To the next problem", when: () => marks.size > 0, run: goToProblem },
      { id: "find", keys: "/", words: "Find by name, text or type", run: find },
    ],
    see,
    covered: map.covered,
    mark(given) {
      marks = given;
      list.paint({ marks });
    },
    paint(given, selected) {
      graph = given;
      map.paint(graph.nodes);
      bounds = around([...graph.nodes, ...graph.notes].map(({ place }) => boxOfNode(place)));
      if (last) see(...last);
      list.paint({ graph, selected });
    },
    hasFocus: () => list.element.contains(document.activeElement),
    size: () => (isList() ? { width: list.element.clientWidth, height: list.element.clientHeight } : null),
    point: () => (isList() ? list.point() : null),
    focus: (key) => isList() && (list.focus(key), true),
  };
}
