// A small picture of a large graph, with a frame around what the canvas shows.

import { svg } from "../parts/dom.js";
import { around, boxOfNode } from "./geometry.js";
import { fitting, inGraph, onCanvas } from "./view.js";

const FEWEST = 40; // nodes from which on it is shown
const SIZE = { width: 176, height: 116 };
const FROM_BORDER = 8; // pixels

/**
 * `look(place)` gets the place of the graph that the canvas is to show in its middle. Screen readers don't see it, and no key
 * leads to it: Find, Home, End and the arrows go where it goes. Returned: `element`; `paint(nodes)`; `see(view, size)`;
 * `covered()`: up to how many pixels from the canvas' lower border it covers what is there.
 */
export function minimap({ look }) {
  const dots = svg("g");
  const frame = svg("rect", { class: "seen" });
  const element = svg("svg", { class: "minimap workflow", "aria-hidden": "true", hidden: "", ...SIZE }, dots, frame);
  let fitted = null; // how it shows the graph: a view, as the canvas has one
  let shown = "";
  let last = null; // [view, size] that the canvas has
  let held = null; // the id of the pointer that is down on it

  const set = (rect, { left, top, right, bottom }) => {
    for (const [name, value] of [["x", left], ["y", top], ["width", right - left], ["height", bottom - top]]) rect.setAttribute(name, value);
  };

  function see(...given) {
    last = given;
    if (!fitted) return;
    const [view, { width, height }] = given;
    const [from, to] = [{ x: 0, y: 0 }, { x: width, y: height }].map((corner) => onCanvas(fitted, inGraph(view, corner)));
    set(frame, { left: from.x, top: from.y, right: to.x, bottom: to.y });
  }

  function go(event) {
    const { left, top } = element.getBoundingClientRect();
    look(inGraph(fitted, { x: event.clientX - left, y: event.clientY - top }));
  }

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || held !== null) return;
    event.preventDefault(); // the focus stays where it is
    held = event.pointerId;
    element.setPointerCapture(held);
    go(event);
  });
  element.addEventListener("mousedown", (event) => event.preventDefault());
  element.addEventListener("pointermove", (event) => event.pointerId === held && go(event));
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) element.addEventListener(end, () => { held = null; });

  return {
    element,
    paint(nodes) {
      element.toggleAttribute("hidden", nodes.length < FEWEST);
      if (nodes.length < FEWEST) return;
      const now = JSON.stringify(nodes.map(({ place, look: type }) => [place, type]));
      if (now === shown) return;
      shown = now;
      fitted = fitting(around(nodes.map(({ place }) => boxOfNode(place))), SIZE);
      dots.setAttribute("transform", `translate(${fitted.x} ${fitted.y}) scale(${fitted.zoom})`);
      dots.replaceChildren(...nodes.map(({ place, look: type }) => {
        const dot = svg("rect", { class: "box" });
        set(dot, boxOfNode(place));
        return svg("g", { class: `node type-${type}` }, dot);
      }));
      if (last) see(...last);
    },
    see,
    covered: () => (element.getClientRects().length ? SIZE.height + FROM_BORDER : 0),
  };
}
