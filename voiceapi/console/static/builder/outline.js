// The agent as an ordinary list: its nodes with their next steps, its notes, and the commands of what is chosen as buttons.

import { badge, button } from "../parts/components.js";
import { h, show } from "../parts/dom.js";

// Commands of the canvas that are about its view, that go on by clicks on it, or that have a button anyway.
const OTHERS = new Set(["all", "larger", "smaller", "actual", "fit", "fitSelection", "help", "connect", "place", "problem", "find", "undo", "redo", "save"]);

/**
 * `select(key)` selects something, null for nothing; `offered()` gives the rows of commands that apply to it. Returned:
 * `element`; `toggle(control)`, which shows it or hides it, and whether it is shown; `paint({graph, selected, marks})`, as the
 * scene has them, of which some may be left out; `focus(key)`, which focuses its button, else the first one; `point()`, where
 * what has the focus ends, in pixels.
 */
export function outline({ select, offered }) {
  const element = h("div", { class: "outline", role: "region", "aria-label": "Outline", hidden: true });
  let graph = { nodes: [], edges: [], notes: [] };
  let selected = new Set();
  let marks = new Map();

  function entry({ key, item }, text, name, ...inner) {
    const isChosen = selected.has(key);
    const count = marks.get(key)?.length;
    if (!item) return h("li", {}, text, inner);
    return h("li", {},
      h("button", { type: "button", class: "button small", data: { key }, "aria-expanded": String(isChosen), on: { click: () => select(isChosen ? null : key) } },
        text, count && [" ", badge(`${count} finding${count === 1 ? "" : "s"}`, "busy")]),
      isChosen && h("div", { class: "actions", role: "group", "aria-label": `Commands for ${name}` },
        offered().filter(({ id }) => !OTHERS.has(id)).map((row) => button(row.words, () => row.run(null), { kind: "small" }))),
      inner);
  }

  const step = (edge) => entry(edge, `${edge.label || "Without a label"} → ${edge.to.name}`, `the path to ${edge.to.name}`);

  function paint() {
    const { nodes, edges, notes } = graph;
    show(element,
      h("ol", { "aria-label": "Steps" }, nodes.map((node) => {
        const steps = edges.filter(({ from }) => from === node);
        return entry(node, `${node.kind}: ${node.name}`, node.name, steps.length > 0 && h("ul", { "aria-label": `Next steps of ${node.name}` }, steps.map(step)));
      })),
      notes.length > 0 && h("ul", { "aria-label": "Notes" }, notes.map((note) => entry(note, note.name, note.name))),
      !nodes.length && h("p", { class: "empty" }, "Add a step to begin with."));
  }

  return {
    element,
    paint(given) {
      ({ graph, selected, marks } = { graph, selected, marks, ...given });
      if (!element.hidden) paint();
    },
    toggle(control) {
      element.hidden = !element.hidden;
      control.setAttribute("aria-pressed", String(!element.hidden));
      if (!element.hidden) paint();
      return !element.hidden;
    },
    focus(key) {
      const buttons = [...element.querySelectorAll("button[data-key]")];
      (buttons.find((each) => each.dataset.key === key) ?? buttons[0])?.focus();
    },
    point() {
      const [from, { left, bottom }] = [element.getBoundingClientRect(), (element.contains(document.activeElement) ? document.activeElement : element).getBoundingClientRect()];
      return { x: left - from.left, y: bottom - from.top };
    },
  };
}
