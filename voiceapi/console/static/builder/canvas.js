// The canvas: the graph under one's hands, by pointer and by keys. It changes nothing itself, but says what is wanted.

import { showDialog, table as tableOf } from "../parts/components.js";
import { h, uniqueId } from "../parts/dom.js";
import { beside } from "./beside.js";
import { withSize } from "./changes.js";
import { floating } from "./floating.js";
import { following } from "./following.js";
import { around, boxOfLabel, boxOfNode, dropped, nearestThatWay, touches } from "./geometry.js";
import { graphOf } from "./graph.js";
import { kindOf, placeOf } from "./items.js";
import { commandTable } from "./keys.js";
import { leading } from "./leading.js";
import { openMenu } from "./menu.js";
import { pointing } from "./pointing.js";
import { scene } from "./scene.js";
import { fitting, inGraph, onCanvas, panned, readable, showing, zoomedTo } from "./view.js";

const STEP = 10;
const DIRECTIONS = { ArrowLeft: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, ArrowUp: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 } };
const NOTHING = new Set();

/**
 * `specs`: the types of nodes, a Map. `view`: the last one, as `seen(view)` got it. `act` is told what is wanted:
 * `select(keys)`, `move(places)` with a Map of places by key and how they were moved ("drag" or "key"), `resize(key, by)` of
 * a note, `open()`, `lead(aim, key)` of an edge to a node, `pick(aim, point, place)` of what it leads to, a new node being put
 * at a place of the graph, `insert(key, point)` of a node on an edge, `add(point, place)` of a node, and `edit(key)` in place; the
 * points are on the canvas. `commands`: further rows of the canvas' commands, as `commandTable` gets them; the editor's. Without
 * a `move` it is to be looked at only; then the wheel is the page's until it has the focus.
 *
 * Returned: `element`; `paint(definition, selection)`; `mark(findings by key)`; `reveal(key)` shows something, `focus(key)` also
 * gives it the focus, by default what had it last, and `near(key)` so that it can be read, too; `chosen()`, the keys that a
 * command is about; `active()`, the key of what has the focus; `middle()`, the place in the graph that is seen in the middle;
 * `last()`, where the pointer was last, else the middle; `placed`, the places of nodes that have none stored; `fit()`; `over`,
 * what floats over it; `graph()` as it is seen; `find(key)` in it; `point(place)` there; `connect(key)` and `place()` by clicks
 * or keys; `hasFocus()`; `say(text)`; `overlay(marks)`, as the scene takes them; `light(node, edge)`, ids of where it is.
 */
export function canvas({ label, specs, view: before, seen, act, commands = [] }) {
  const drawn = scene();
  const isFixed = !act.move;
  const hint = h("p", { class: "hidden", id: uniqueId("hint") }, isFixed ? "Arrows go from step to step, Enter shows more, question mark lists all keys."
    : "Arrows go from step to step, Enter opens the form, Shift and arrows move, Delete removes, question mark lists all keys.");
  const box = h("div", { class: "canvas-box", role: "application", "aria-label": label, "aria-describedby": hint.id }, drawn.element);
  const status = h("p", { class: "hidden", role: "status" });
  const tool = (text, name, command) => h("button", { type: "button", class: "button small", "aria-label": name, title: name, on: { click: () => table.run(command) } }, text);
  const course = following({ decorate: (lit) => drawn.decorate({ lit }), reveal: (id) => reveal(graph.nodes.findLast((each) => each.id === id)?.key) });
  const note = h("p", { class: "canvas-note", hidden: true });
  const over = floating(() => aids.size() ?? size());
  const aids = beside({
    element: () => element, over, go: goTo, active: () => active, offered: () => table.offered(),
    look: ({ x, y }) => look({ ...view, x: box.clientWidth / 2 - x * view.zoom, y: box.clientHeight / 2 - y * view.zoom }),
    select: (key) => (key ? ORDERS.select(key, false) : ORDERS.clear()),
  });
  const element = h("div", { class: isFixed ? "canvas looking" : "canvas" }, hint, h("div", { class: "canvas-frame" }, box, note, aids.parts, over.element), status,
    h("div", { class: "graph-tools" }, tool("−", "Smaller", "smaller"), tool("Fit", "Show everything", "fit"), tool("+", "Larger", "larger"), course.button, tool("?", "Keys", "help"), aids.tools));
  const placed = new Map();
  let definition = null;
  let graph = { nodes: [], edges: [], notes: [] };
  let selected = NOTHING;
  let active = null;
  let view = before;
  let isOwnView = Boolean(before); // not fitted to the canvas whenever its size changes
  let shift = null; // {from, by} while nodes are dragged: where they were, by key, and how far they are from there
  let sizing = null; // {key, by} while a note is made larger or smaller
  let isSpaceHeld = false;
  let isPointing = false; // the focus comes by the pointer, so the view stays
  let isOnGround = false; // the menu is about nothing

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
    aids.see(view, size());
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
    drawn.move(shift.from);
  }

  function draw() {
    graph = graphOf(sizing ? withSize(definition, sizing.key, sizing.by) : definition, (type) => specs.get(type)?.display_name, placed);
    drawn.paint(graph);
    if (shift) displace();
  }

  function paint(given, selection) {
    const hadFocus = element.contains(document.activeElement);
    const before = withKey(active);
    definition = given;
    selected = selection;
    draw();
    // What a gesture holds may be gone: then it ends.
    if (!leads.painted() || [...shift?.from.keys() ?? [], ...(sizing ? [sizing.key] : [])].some((key) => !withKey(key))) stop();
    if (!withKey(active)) active = [...selected].find(withKey) ?? (before ? nearestTo(placeIn(before)) : start())?.key ?? null;
    decorate();
    drawn.element.setAttribute("tabindex", active === null ? "0" : "-1");
    if (hadFocus && !element.contains(document.activeElement)) focus();
  }

  function decorate() {
    drawn.decorate({ selected, active, moving: shift?.from ?? NOTHING });
    leads.grip();
    aids.paint(graph, selected);
  }

  function reveal(key) {
    const found = withKey(key);
    if (found && view && box.clientWidth) see(showing(view, boxOf(found), { ...size(), height: box.clientHeight - aids.covered() }), false);
  }

  function focus(key = active) {
    if (withKey(key)) active = key;
    decorate();
    if (!aids.focus(active)) (drawn.group(active) ?? drawn.element).focus({ preventScroll: true });
  }

  // Once, after the last repeat of a key.
  let saying = null;
  function say(text) {
    clearTimeout(saying);
    saying = setTimeout(() => { status.textContent = text; }, 400);
  }

  const named = (keys) => {
    const [only, ...others] = [...keys].map(withKey).filter(Boolean);
    return !only ? "Nothing" : others.length ? `${others.length + 1} items` : only.name ?? (only.label || "The path");
  };

  // -- the pointer

  function select(keys) {
    selected = keys;
    act.select(keys);
    decorate();
  }

  const toggled = (key) => (selected.has(key) ? new Set([...selected].filter((each) => each !== key)) : new Set([...selected, key]));

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
    zoom: (share, at) => look(zoomedTo(view, view.zoom * share, at)),
    move(by, isFree, keys = selected) {
      const isFirst = !shift;
      shift ??= { from: new Map(boxes().filter(({ key }) => keys.has(key)).map(({ key, place }) => [key, place])) };
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
    menu: (key, at) => showMenu(key, at),
    restore() {
      shift = null;
      sizing = null;
      drawn.band(null);
      leads.stop();
    },
  };

  const leads = leading({
    box, drawn, specs, note, say, act, focus, goTo, find: withKey, isFixed,
    graph: () => graph, view: () => view, selected: () => selected, active: () => active,
    redraw() {
      draw();
      leads.painted();
      decorate();
    },
    moveBy(keys, by) {
      ORDERS.move(by, true, keys);
      ORDERS.drop();
    },
  });

  const pointer = pointing(box, {
    view: () => view,
    see,
    look,
    find: withKey,
    about: (key) => ({ isSelected: selected.has(key), isChoosing: leads.mode() !== null, space: isSpaceHeld, isFixed }),
    takesWheel: () => !isFixed || box.contains(document.activeElement),
    pressed(on) {
      isSpaceHeld &&= "used";
      isPointing = true;
      focus(leads.mode() ? active : on ?? active);
      isPointing = false;
    },
    orders: { ...ORDERS, ...leads.orders },
    twice: (key, at) => isFixed || leads.mode() || (key ? act.edit(key) : act.add(at, at.graph)),
    menu: (key, at) => over.element.hidden && !leads.isOn() && showMenu(key, at),
    hover: leads.hover,
  });

  function stop() {
    pointer.cancel();
    return leads.isOn() ? leads.stop() : null;
  }

  box.addEventListener("pointermove", (event) => leads.mode() && leads.overPoint(pointer.plain(event).graph));

  /** All commands that apply to what was clicked, and to all that is selected, if that is part of it. */
  function showMenu(key, at) {
    if (key) active = key;
    if (!selected.has(key)) select(key ? new Set([key]) : NOTHING);
    isOnGround = !key;
    openMenu(over, at, table.offered(), (row, how) => {
      if (how !== "outside") focus();
      row?.run(null);
      isOnGround = false;
    });
  }

  // -- keys

  const middle = () => ({ x: box.clientWidth / 2, y: box.clientHeight / 2 });

  /** Give something the focus, in view; `isWanted`: so that it can be read, too. */
  function goTo(key, isWanted = false) {
    if (!key) return;
    focus(key);
    reveal(key);
    if (!isWanted || !box.clientWidth) return;
    if (!view) fit();
    see(readable(view, placeIn(withKey(key)), size(), true));
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
    const others = all().filter(({ key }) => key !== active && leads.may(key)).map((each) => ({ key: each.key, place: placeIn(each) }));
    goTo(nearestThatWay(placeIn(from), others, DIRECTIONS[event.key], new Set(ends))?.key);
  }

  function open() {
    if (leads.mode()) return leads.enter();
    if (!selected.has(active)) select(new Set([active]));
    return act.open();
  }

  function back() {
    if (leads.isOn() || pointer.name() !== "idle") focus(stop() ?? active);
    else if (selected.size) {
      select(NOTHING);
      say("Nothing is selected.");
    }
  }

  const hasActive = () => active !== null && !isOnGround;
  const table = commandTable([
    { id: "go", keys: "Arrows", words: "To the nearest step or path that way, connected ones first", run: go, inMenu: false },
    { id: "first", keys: "Home", words: "To the start", run: () => goTo(start()?.key), inMenu: false },
    { id: "last", keys: "End", words: "To the last step", run: () => goTo(graph.nodes.findLast(({ item }) => item)?.key), inMenu: false },
    ...commands,
    { id: "open", keys: "Enter", words: "Into the form of what has the focus", when: hasActive, run: open },
    { id: "back", keys: "Escape", words: "Stop a drag; from the form back to the canvas; then nothing is selected", run: back, inMenu: false },
    { id: "toggle", keys: "Space", words: "Add to the selection, or take away; held, drag to pan", run: (event) => { if (!event.repeat) isSpaceHeld ||= true; }, inMenu: false },
    { id: "all", keys: "Ctrl+a", words: "Select everything", run() { select(new Set(all().map(({ key }) => key))); say(`${selected.size} items are selected.`); } },
    { id: "nudge", keys: "Shift+Arrows", words: "Move what is selected by 10", run: (event) => nudge(event, STEP), inMenu: false },
    { id: "nudgeBit", keys: "Ctrl+Shift+Arrows", words: "Move it by 1", run: (event) => nudge(event, 1), inMenu: false },
    { id: "larger", keys: "plus", also: "=", words: "Larger", run: () => see(zoomedTo(view, view.zoom * 1.25, middle())) },
    { id: "smaller", keys: "-", also: "_", words: "Smaller", run: () => see(zoomedTo(view, view.zoom / 1.25, middle())) },
    { id: "actual", keys: "0", words: "100 %", run: () => see(zoomedTo(view, 1, middle())) },
    { id: "fit", keys: "1", words: "Show everything", run: () => fit() },
    { id: "fitSelection", keys: "2", words: "Show what is selected", run: () => fit(selected.size ? selected : new Set([active])) },
    ...aids.commands,
    { id: "help", keys: "?", words: "These keys", run: () => showDialog("Keys of the canvas", tableOf("Keys", [["Key", ([shown]) => shown], ["What it does", ([, text]) => text]], table.help)) },
  ].filter(({ id }) => !isFixed || !id.startsWith("nudge")));

  box.addEventListener("keydown", (event) => {
    const isUsed = leads.key(event);
    const row = isUsed ? null : table.of(event);
    if (!row && !isUsed) return;
    event.preventDefault();
    if (!row) return;
    if (row.id === "save") event.stopPropagation(); // saved once
    if (row.id === "back" || row.id === "toggle" || (pointer.name() === "idle" && leads.allows(row))) row.run(event);
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
    if (leads.mode()) leads.over(key, withKey(key).place);
  });
  box.addEventListener("focusout", () => { isSpaceHeld = false; });

  new ResizeObserver(() => {
    if (!box.clientWidth) return;
    if (view && isOwnView) return see(view, false);
    fit();
    if (withKey(active)) see(readable(view, placeIn(withKey(active)), size()), false);
    course.show();
  }).observe(box);

  return {
    element, paint, reveal, focus, placed, over, say,
    middle: () => inGraph(view, middle()),
    fit: () => fit(), near: (key) => goTo(key, true),
    chosen: () => (selected.size || !hasActive() ? selected : new Set([active])),
    active: () => (hasActive() ? active : null),
    graph: () => graph,
    find: withKey,
    point: (place) => aids.point() ?? onCanvas(view, place),
    last: () => pointer.last() ?? inGraph(view, middle()),
    hasFocus: () => box.contains(document.activeElement) || aids.hasFocus(),
    connect: leads.connect, place: leads.place,
    mark(marks) { drawn.decorate({ marks }); aids.mark(marks); },
    overlay: (marks) => drawn.decorate({ overlay: marks }),
    light: course.light, end: pointer.end,
  };
}
