// The canvas: the graph under one's hands, by pointer and by keys. It changes nothing itself, but says what is wanted.

import { showDialog, table as tableOf } from "../parts/components.js";
import { h, uniqueId } from "../parts/dom.js";
import { withSize } from "./changes.js";
import { around, boxOfLabel, boxOfNode, dropped, nearestThatWay, touches } from "./geometry.js";
import { following } from "./following.js";
import { IDLE, next } from "./gestures.js";
import { graphOf } from "./graph.js";
import { kindOf, placeOf } from "./items.js";
import { commandTable } from "./keys.js";
import { scene } from "./scene.js";
import { fitting, inGraph, onCanvas, panned, readable, showing, wheeled, zoomedTo } from "./view.js";

const STEP = 10;
const BORDER = 28; // pixels from the canvas' border in which the view moves while something is dragged
const DRIFT = 12; // pixels a frame
const DIRECTIONS = { ArrowLeft: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, ArrowUp: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 } };
const NOTHING = new Set();
const isHeld = (event) => event.ctrlKey || event.metaKey;

/**
 * `nameOfType(type)`: what a type of node is called. `view`: the last one, as `seen(view)` got it. `act` is told what is wanted:
 * `select(keys)`, `move(places)` with a Map of places by key and how they were moved ("drag" or "key"), `resize(key, by)` of
 * a note, `open()`. `commands`: further rows of the canvas' commands, as `commandTable` gets them; the editor's,
 * after those of the canvas. Without a `move` it is to be looked at only; then the wheel is the page's until it has the focus.
 *
 * Returned: `element`; `paint(definition, selection)`; `mark(findings by key)`; `reveal(key)`, which shows something, and
 * `focus(key)`, which also gives it the focus, by default what had it last; `chosen()`; `middle()`, the place in the
 * graph that is seen in the middle; `placed`, the places of nodes that have none stored; `fit()`; `overlay(marks)`, as the
 * scene takes them; `light(node, edge)`, ids or null: where a conversation is.
 */
export function canvas({ label, nameOfType, view: before, seen, act, commands = [] }) {
  const drawn = scene();
  const isFixed = !act.move;
  const hint = h("p", { class: "hidden", id: uniqueId("hint") }, isFixed ? "Arrows go from node to node, Enter shows more, question mark lists all keys."
    : "Arrows go from node to node, Enter opens the form, Shift and arrows move, Delete removes, question mark lists all keys.");
  const box = h("div", { class: "canvas-box", role: "application", "aria-label": label, "aria-describedby": hint.id }, drawn.element);
  const status = h("p", { class: "hidden", role: "status" });
  const tool = (text, name, command) => h("button", { type: "button", class: "button small", "aria-label": name, title: name, on: { click: () => table.run(command) } }, text);
  const course = following({ decorate: (lit) => drawn.decorate({ lit }), reveal: (id) => reveal(graph.nodes.findLast((each) => each.id === id)?.key) });
  const element = h("div", { class: isFixed ? "canvas looking" : "canvas" }, hint, box, status,
    h("div", { class: "graph-tools" }, tool("−", "Smaller", "smaller"), tool("Fit", "Show everything", "fit"), tool("+", "Larger", "larger"), course.button, tool("?", "Keys", "help")));
  const placed = new Map();
  let definition = null;
  let graph = { nodes: [], edges: [], notes: [] };
  let selected = NOTHING;
  let active = null;
  let view = before;
  let isOwnView = Boolean(before); // not fitted to the canvas whenever its size changes
  let gesture = IDLE;
  let pointer = null; // the last event of the gesture's pointer
  let shift = null; // {from, by} while nodes are dragged: where they were, by key, and how far they are from there
  let sizing = null; // {key, by} while a note is made larger or smaller
  let isSpaceHeld = false;
  let isPointing = false; // the focus comes by the pointer, so the view stays

  // -- what is shown

  const size = () => ({ width: box.clientWidth, height: box.clientHeight });
  const boxes = () => [...graph.nodes, ...graph.notes]; // what has a place of its own
  const all = () => [...boxes(), ...graph.edges].filter(({ item }) => item);
  const withKey = (key) => all().find((each) => each.key === key) ?? null;
  const placeIn = (each) => each.place ?? each.labelPlace;
  const boxOf = (each) => (each.place ? boxOfNode(each.place) : boxOfLabel(each.labelPlace));

  const start = () => graph.nodes.find(({ type }) => type === "startCall") ?? graph.nodes[0];
  const nearestTo = ({ x, y }) => graph.nodes.filter(({ item }) => item).map((each) => ({ ...each, far: Math.hypot(each.place.x - x, each.place.y - y) }))
    .reduce((best, each) => (best && best.far <= each.far ? best : each), null);

  function see(wanted, isOwn = true) {
    view = wanted;
    isOwnView ||= isOwn;
    drawn.see(view, size());
    if (isOwn) seen(view);
  }

  /** Move the view by hand. */
  function look(wanted) {
    see(wanted);
    course.leave();
  }

  function fit(keys = null) {
    const shown = (keys?.size ? all().filter(({ key }) => keys.has(key)) : boxes()).map(boxOf);
    see(fitting(around(shown) ?? { left: 0, top: 0, right: 1, bottom: 1 }, size()), Boolean(keys));
    if (!keys) isOwnView = false;
  }

  /** Show dragged nodes where the pointer has them. */
  function displace() {
    for (const each of boxes()) {
      const from = shift.from.get(each.key);
      if (from) each.place = { ...from, x: from.x + shift.by.x, y: from.y + shift.by.y };
    }
    drawn.paint(graph, { isMoving: true });
  }

  function draw() {
    graph = graphOf(sizing ? withSize(definition, sizing.key, sizing.by) : definition, nameOfType, placed);
    drawn.paint(graph);
    if (shift) displace();
  }

  function paint(given, selection) {
    const hadFocus = box.contains(document.activeElement);
    const before = withKey(active);
    definition = given;
    selected = selection;
    draw();
    if ([...shift?.from.keys() ?? [], ...(sizing ? [sizing.key] : [])].some((key) => !withKey(key))) point({ type: "cancel" });
    if (!withKey(active)) active = [...selected].find(withKey) ?? (before ? nearestTo(placeIn(before)) : start())?.key ?? null;
    decorate();
    drawn.element.setAttribute("tabindex", active === null ? "0" : "-1");
    if (hadFocus && !box.contains(document.activeElement)) focus();
  }

  function decorate() {
    drawn.decorate({ selected, active, moving: shift?.from ?? NOTHING });
  }

  function reveal(key) {
    const found = withKey(key);
    if (found && view && box.clientWidth) see(showing(view, boxOf(found), size()), false);
  }

  function focus(key = active) {
    if (withKey(key)) active = key;
    decorate();
    (drawn.group(active) ?? drawn.element).focus({ preventScroll: true });
  }

  // Once, after the last repeat of a key.
  let saying = null;
  function say(text) {
    clearTimeout(saying);
    saying = setTimeout(() => { status.textContent = text; }, 400);
  }

  const named = (keys) => {
    const [only, ...others] = [...keys].map(withKey).filter(Boolean);
    return !only ? "Nothing" : others.length ? `${others.length + 1} items` : only.name ?? (only.label || "The edge");
  };

  // -- the pointer

  function select(keys) {
    selected = keys;
    act.select(keys);
    decorate();
  }

  function toggled(key) {
    const keys = new Set(selected);
    if (!keys.delete(key)) keys.add(key);
    return keys;
  }

  /** Nodes at these places, and all others where they are seen, if that isn't stored. */
  function move(places, how) {
    for (const { key, item, place } of graph.nodes) {
      const stored = item && placeOf(item);
      if (item && !places.has(key) && (stored?.x !== place.x || stored?.y !== place.y)) places.set(key, place);
    }
    act.move(places, how);
  }

  const stepped = (value, isFree) => (isFree ? value : Math.round(value / STEP) * STEP);

  const ORDERS = {
    select(key, adds) {
      active = key;
      select(adds ? toggled(key) : new Set([key]));
    },
    clear: () => select(NOTHING),
    pan: (dx, dy) => look(panned(view, dx, dy)),
    move(by, isFree) {
      const isFirst = !shift;
      shift ??= { from: new Map(boxes().filter(({ key }) => selected.has(key)).map(({ key, place }) => [key, place])) };
      shift.by = { x: stepped(by.x, isFree), y: stepped(by.y, isFree) };
      displace();
      if (isFirst) decorate();
    },
    drop() {
      if (!shift.by.x && !shift.by.y) return ORDERS.restore();
      const places = dropped(graph.nodes, graph.notes, shift.from);
      shift = null;
      return move(places, "drag");
    },
    resize(key, by, isFree) {
      sizing = { key, by: { width: stepped(by.x, isFree), height: stepped(by.y, isFree) } };
      draw();
    },
    size() {
      const { key, by } = sizing;
      sizing = null;
      act.resize(key, by);
    },
    band(from, to) {
      const [one, other] = [onCanvas(view, from), onCanvas(view, to)];
      drawn.band(around([one, other].map(({ x, y }) => ({ left: x, top: y, right: x, bottom: y }))));
    },
    catch(from, to) {
      drawn.band(null);
      const band = around([from, to].map(({ x, y }) => ({ left: x, top: y, right: x, bottom: y })));
      select(new Set([...selected, ...all().filter((each) => touches(boxOf(each), band)).map(({ key }) => key)]));
    },
    restore() {
      shift = null;
      sizing = null;
      drawn.band(null);
      draw();
      decorate();
    },
  };

  function point(event) {
    const [state, orders] = next(gesture, event);
    const began = state.name !== gesture.name;
    gesture = state;
    for (const [order, ...given] of orders) ORDERS[order](...given);
    if (state === IDLE) pointer = null;
    box.classList.toggle("panning", state.name === "panning");
    if (began && (state.name === "moving" || state.name === "marquee")) requestAnimationFrame(drift);
  }

  /** While something is dragged at the canvas' border, the view moves there. */
  function drift() {
    if (!pointer || (gesture.name !== "moving" && gesture.name !== "marquee")) return;
    const { left, top } = box.getBoundingClientRect();
    const speed = (at, length) => (at < BORDER ? DRIFT : at > length - BORDER ? -DRIFT : 0);
    const [dx, dy] = [speed(pointer.clientX - left, box.clientWidth), speed(pointer.clientY - top, box.clientHeight)];
    if (dx || dy) {
      see(panned(view, dx, dy));
      point(plain(pointer, "move"));
    }
    requestAnimationFrame(drift);
  }

  function plain(event, type) {
    const { left, top } = box.getBoundingClientRect();
    const at = { x: event.clientX - left - box.clientLeft, y: event.clientY - top - box.clientTop };
    return { type, ...at, graph: inGraph(view, at), isFree: event.altKey };
  }

  box.addEventListener("pointerdown", (event) => {
    if (pointer) return;
    const key = event.target.closest("g[data-key]")?.dataset.key ?? null;
    const on = key !== null && withKey(key) ? key : null;
    pointer = event;
    point({
      ...plain(event, "down"), on, isSelected: selected.has(on), button: event.button, isTouch: event.pointerType === "touch",
      adds: event.shiftKey || isHeld(event), shift: event.shiftKey, space: isSpaceHeld, isFixed, isGrip: !isFixed && Boolean(event.target.closest(".grip")),
    });
    if (gesture === IDLE) return;
    isSpaceHeld &&= "used";
    // The end of the gesture comes here, wherever the pointer is by then.
    box.setPointerCapture(event.pointerId);
    isPointing = true;
    focus(on ?? active);
    isPointing = false;
  });
  box.addEventListener("mousedown", (event) => event.preventDefault()); // the focus is given above; no text is selected
  // A screen reader presses without a pointer.
  box.addEventListener("click", (event) => {
    const key = event.detail === 0 && event.target.closest("g[data-key]")?.dataset.key;
    if (key && withKey(key)) ORDERS.select(key, false);
  });
  box.addEventListener("pointermove", (event) => {
    if (event.pointerId !== pointer?.pointerId) return;
    pointer = event;
    point(plain(event, "move"));
  });
  box.addEventListener("pointerup", (event) => event.pointerId === pointer?.pointerId && point(plain(event, "up")));
  for (const lost of ["pointercancel", "lostpointercapture"]) {
    box.addEventListener(lost, (event) => event.pointerId === pointer?.pointerId && point({ type: "cancel" }));
  }
  const stop = () => pointer && point({ type: "cancel" });
  box.addEventListener("wheel", (event) => {
    if (isFixed && !isHeld(event) && !box.contains(document.activeElement)) return;
    event.preventDefault();
    look(wheeled(view, event, plain(event, "wheel"), box.clientHeight));
  }, { passive: false });

  // -- keys

  const middle = () => ({ x: box.clientWidth / 2, y: box.clientHeight / 2 });

  function goTo(key) {
    if (!key) return;
    focus(key);
    reveal(key);
  }

  function nudge(event, step) {
    const keys = new Set([...(selected.size ? selected : [active])].filter((key) => key && kindOf(key) !== "edge"));
    if (!keys.size) return;
    const { x, y } = DIRECTIONS[event.key];
    if (!selected.size) select(keys);
    move(new Map(boxes().filter(({ key }) => keys.has(key)).map(({ key, place }) => [key, { x: place.x + x * step, y: place.y + y * step }])), "key");
    say(`Moved ${named(keys)}.`);
  }

  function go(event) {
    const from = withKey(active);
    if (!from) return;
    const ends = !from.from ? graph.edges.filter(({ from: one, to }) => one.key === from.key || to.key === from.key).map(({ key }) => key) : [from.from.key, from.to.key];
    const others = all().filter(({ key }) => key !== active).map((each) => ({ key: each.key, place: placeIn(each) }));
    goTo(nearestThatWay(placeIn(from), others, DIRECTIONS[event.key], new Set(ends))?.key);
  }

  function open() {
    if (!selected.has(active)) select(new Set([active]));
    act.open();
  }

  function back() {
    if (pointer) stop();
    else if (selected.size) {
      select(NOTHING);
      say("Nothing is selected.");
    }
  }

  function selectAll() {
    select(new Set(all().map(({ key }) => key)));
    say(`${selected.size} items are selected.`);
  }

  const table = commandTable([
    { id: "go", keys: "Arrows", words: "To the nearest node or edge that way, connected ones first", run: go, inMenu: false },
    { id: "first", keys: "Home", words: "To the start", run: () => goTo(start()?.key), inMenu: false },
    { id: "last", keys: "End", words: "To the last node", run: () => goTo(graph.nodes.findLast(({ item }) => item)?.key), inMenu: false },
    { id: "open", keys: "Enter", words: "Into the form of what has the focus", when: () => active !== null, run: open },
    { id: "back", keys: "Escape", words: "Stop a drag; from the form back to the canvas; then nothing is selected", run: back, inMenu: false },
    { id: "toggle", keys: "Space", words: "Add to the selection, or take away; held, drag to pan", run: (event) => { if (!event.repeat) isSpaceHeld ||= true; }, inMenu: false },
    { id: "all", keys: "Ctrl+a", words: "Select everything", run: selectAll },
    { id: "nudge", keys: "Shift+Arrows", words: "Move what is selected by 10", run: (event) => nudge(event, STEP), inMenu: false },
    { id: "nudgeBit", keys: "Ctrl+Shift+Arrows", words: "Move it by 1", run: (event) => nudge(event, 1), inMenu: false },
    ...commands,
    { id: "larger", keys: "plus", also: "=", words: "Larger", run: () => see(zoomedTo(view, view.zoom * 1.25, middle())) },
    { id: "smaller", keys: "-", also: "_", words: "Smaller", run: () => see(zoomedTo(view, view.zoom / 1.25, middle())) },
    { id: "actual", keys: "0", words: "100 %", run: () => see(zoomedTo(view, 1, middle())) },
    { id: "fit", keys: "1", words: "Show everything", run: () => fit() },
    { id: "fitSelection", keys: "2", words: "Show what is selected", run: () => fit(selected.size ? selected : new Set([active])) },
    { id: "help", keys: "?", words: "These keys", run: () => showDialog("Keys of the canvas", tableOf("Keys", [["Key", ([shown]) => shown], ["What it does", ([, text]) => text]], table.help)) },
  ].filter(({ id }) => !isFixed || !id.startsWith("nudge")));

  box.addEventListener("keydown", (event) => {
    const row = table.of(event);
    if (!row) return;
    event.preventDefault();
    if (row.id === "save") event.stopPropagation(); // saved once
    if (pointer && row.id !== "back" && row.id !== "toggle") return;
    row.run(event);
  });
  box.addEventListener("keyup", (event) => {
    if (event.key !== " ") return;
    if (isSpaceHeld === true && active !== null) {
      select(toggled(active));
      say(`${named([active])} ${selected.has(active) ? "is" : "isn't"} selected.`);
    }
    isSpaceHeld = false;
  });
  box.addEventListener("focusin", (event) => {
    const key = event.target.closest("g[data-key]")?.dataset.key;
    if (!key) return;
    if (key !== active && withKey(key)) {
      active = key;
      decorate();
    }
    if (!isPointing) reveal(key);
  });
  box.addEventListener("focusout", () => {
    isSpaceHeld = false;
  });
  const leave = (event) => event.target === window && stop();
  window.addEventListener("blur", leave);

  new ResizeObserver(() => {
    if (!box.clientWidth) return;
    if (view && isOwnView) return see(view, false);
    fit();
    if (withKey(active)) see(readable(view, placeIn(withKey(active)), size()), false);
    course.show();
  }).observe(box);

  return {
    element, paint, reveal, focus, placed,
    middle: () => inGraph(view, middle()),
    fit: () => fit(),
    /** The keys of what a command is about: what is selected, else what has the focus. */
    chosen: () => (selected.size || active === null ? selected : new Set([active])),
    /** Findings by the keys of what they are about. */
    mark: (marks) => drawn.decorate({ marks }),
    overlay: (marks) => drawn.decorate({ overlay: marks }),
    light: course.light,
    end: () => window.removeEventListener("blur", leave),
  };
}
