// What the pointer does on the canvas, as a machine of plain values: a state, an event, the next state and what to do.

import { kindOf } from "./items.js";

export const IDLE = { name: "idle" };
const START = 4; // pixels that the pointer moves before a press becomes a drag

/**
 * [state, orders]. `event`: {type: "down", "move", "up", "hold" (pressed for long), "second" (another finger comes) or "cancel";
 * x, y on the canvas in pixels, graph: {x, y} in the graph; with two fingers x, y of their middle, and apart, their distance}; of
 * "down" also {on: the key below it or null, part: of a handle, what it is for, isGrip: at the corner that makes it larger,
 * isSelected, isFixed: nothing can be moved, isChoosing: what is clicked is what another one leads to, button, isTouch, adds:
 * with Shift or Ctrl, shift, space}; of "move" {isFree: without steps}. Orders: ["select", key, adds], ["clear"], ["choose", key,
 * graph], ["pan", dx, dy], ["zoom", share, at], ["move", by, isFree], ["drop"], ["resize", key, by, isFree], ["size"], ["band",
 * from, to], ["catch", from, to], ["press", key, part] for a click on a handle, ["aim", key, part, graph] and ["lead", key, part,
 * graph] for its drag and its drop, ["menu", key, at], ["restore"]. Whatever ends a gesture but the drop restores all.
 */
export function next(state, event) {
  return (event.type === "second" ? pinch : STATES[state.name])(state, event) ?? [state, []];
}

/** Two fingers: what the first one has done is taken back, but for panning. */
function pinch(state, { x, y, apart }) {
  return [{ name: "pinching", x, y, apart }, state.name === "panning" ? [] : next(state, { type: "cancel" })[1]];
}

function pan(state, event) {
  const [dx, dy] = [event.x - state.x, event.y - state.y];
  return [{ name: "panning", x: event.x, y: event.y, total: [state.total[0] + dx, state.total[1] + dy] }, [["pan", dx, dy]]];
}

const isFar = (state, event) => event.type === "move" && Math.hypot(event.x - state.x, event.y - state.y) >= START;

const STATES = {
  idle(_, event) {
    if (event.type !== "down") return null;
    const { x, y, graph, on, part, button, adds, isSelected, isTouch, isFixed, isChoosing } = event;
    if (button === 1 || (button === 0 && event.space)) return [{ name: "panning", x, y, total: [0, 0] }, []];
    if (button !== 0) return null;
    if (event.isGrip) return [{ name: "resizing", key: on, graph }, []];
    if (part) return [{ name: "gripped", x, y, on, part }, []];
    if (on === null && event.shift && !isChoosing) return [{ name: "marquee", graph }, []];
    return [{ name: "pressed", x, y, graph, on, adds, isSelected, isTouch, isFixed, isChoosing }, []];
  },
  pressed(state, event) {
    const { on, adds } = state;
    if (event.type === "cancel") return [IDLE, []];
    if (event.type === "hold") return state.isTouch ? [IDLE, [["menu", on, { x: state.x, y: state.y }]]] : null;
    if (event.type === "up" && state.isChoosing) return [IDLE, [["choose", on, state.graph]]];
    if (event.type === "up") return [IDLE, on === null ? (adds ? [] : [["clear"]]) : [["select", on, adds]]];
    if (!isFar(state, event)) return null;
    if (state.isChoosing || state.isFixed || on === null || kindOf(on) === "edge" || (state.isTouch && !state.isSelected)) return pan({ ...state, total: [0, 0] }, event);
    const [moving, orders] = STATES.moving({ name: "moving", graph: state.graph }, event);
    return [moving, state.isSelected ? orders : [["select", on, adds], ...orders]];
  },
  gripped(state, event) {
    const { on, part } = state;
    if (event.type === "cancel") return [IDLE, []];
    if (event.type === "up") return [IDLE, [["press", on, part]]];
    return isFar(state, event) && part !== "insert" ? STATES.connecting({ name: "connecting", on, part }, event) : null;
  },
  connecting(state, event) {
    const { on, part } = state;
    if (event.type === "move") return [state, [["aim", on, part, event.graph]]];
    if (event.type === "up") return [IDLE, [["lead", on, part, event.graph]]];
    return event.type === "cancel" ? [IDLE, [["restore"]]] : null;
  },
  panning(state, event) {
    if (event.type === "move") return pan(state, event);
    if (event.type === "up") return [IDLE, []];
    return event.type === "cancel" ? [IDLE, [["pan", -state.total[0], -state.total[1]]]] : null;
  },
  pinching(state, { type, x, y, apart }) {
    if (type !== "move") return [IDLE, []];
    return [{ ...state, x, y, apart }, [["pan", x - state.x, y - state.y], ["zoom", apart / state.apart, { x, y }]]];
  },
  moving(state, event) {
    if (event.type === "move") return [state, [["move", { x: event.graph.x - state.graph.x, y: event.graph.y - state.graph.y }, event.isFree]]];
    if (event.type === "up") return [IDLE, [["drop"]]];
    return event.type === "cancel" ? [IDLE, [["restore"]]] : null;
  },
  resizing(state, event) {
    const { key, graph, isSized } = state;
    if (event.type === "move") return [{ ...state, isSized: true }, [["resize", key, { x: event.graph.x - graph.x, y: event.graph.y - graph.y }, event.isFree]]];
    if (event.type === "up") return [IDLE, isSized ? [["size"]] : []];
    return event.type === "cancel" ? [IDLE, [["restore"]]] : null;
  },
  marquee(state, event) {
    if (event.type === "move") return [{ ...state, to: event.graph }, [["band", state.graph, event.graph]]];
    if (event.type === "up") return [IDLE, state.to ? [["catch", state.graph, state.to]] : []];
    return event.type === "cancel" ? [IDLE, [["restore"]]] : null;
  },
};
