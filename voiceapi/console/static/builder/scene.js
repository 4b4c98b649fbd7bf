// The graph as SVG. Elements are kept by the key of what they show, and changed only where it changed.

import { debounced } from "../parts/controls.js";
import { h, svg } from "../parts/dom.js";
import { boxOfNode, lead, movedRoutes, NODE, routes, touches } from "./geometry.js";
import { inGraph } from "./view.js";

const FAR = 0.45; // a zoom below which labels can't be read
const ROUND = { startCall: 27, endCall: 27, agentNode: 10, globalNode: 10 };
// What a handle is for: its title, and the sign in it.
const HANDLES = {
  next: ["Next step: press, or drag to a step", "M-5 0H5M0 -5V5"],
  insert: ["Insert a step", "M-5 0H5M0 -5V5"],
  source: ["Have it come from another step: press, or drag to a step", ""],
  target: ["Have it go to another step: press, or drag to a step", ""],
};
const SEVERITIES = ["error", "warning", "note"];
const CALLED = { error: "error", warning: "warning", note: "hint" };
const SIGNS = { error: "✕", warning: "!", note: "i" };
const NONE = [];
const EDGE_BADGES = 150; // how wide they may be

function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const counted = (count, noun) => `${count || "no"} ${noun}${count === 1 ? "" : "s"}`;

/**
 * `element` is an <svg> to be put somewhere. `paint(graph)` shows what `graphOf` gives; `decorate` is to follow. What is
 * `selected`, a Set of keys, which key is `active` (the one stop of the Tab key), which are `moving`, the `marks` (a Map of
 * findings by key), what an `overlay` says (a Map of {look, label, note, width} by "node" or "edge" and the id) and what is `lit`
 * (a Set of the same names) are set by `decorate({...})`; so are, while an edge is led to a node, `reach`, a Map by key of why
 * something can't be reached, and the key that is `aimed` at. `move(keys)`, a Map or Set, shows the new places of these, while
 * labels stay where they are on their edges. `see(view, size)` moves and zooms it, and leaves out what isn't seen;
 * `band(box)` shows a frame, null for none; `preview(ends)` the line of an edge to be, null for none. `handles(nodes, edges)`
 * gives these the handles that new edges are drawn from.
 */
export function scene() {
  const notes = svg("g", {});
  const edges = svg("g", {});
  const nodes = svg("g", {});
  const line = svg("path", { class: "preview", hidden: "" });
  const grips = svg("g", { "aria-hidden": "true" });
  const world = svg("g", {}, notes, edges, nodes, line, grips);
  const frame = svg("rect", { class: "marquee", hidden: "" });
  const element = svg("svg", { class: "workflow scene" }, world, frame);
  const parts = new Map(); // by key: {group, title, ...}
  const shares = new Map(); // by an edge's key: where its label is on its curve
  let graph = { nodes: [], edges: [], notes: [] };
  let state = { selected: new Set(), active: null, moving: new Set(), marks: new Map(), overlay: new Map(), lit: new Set(), reach: null, aimed: null };
  let seen = null; // the part of the graph that is seen, as a box
  let places = "";
  let found = []; // the routes of the edges
  let zoom = 1;
  let handled = ""; // what has handles, and which
  let gripped = [[], []]; // the keys of nodes and edges that have handles

  function nodePart() {
    const title = svg("title");
    const box = svg("rect", { class: "box", width: NODE.width, height: NODE.height });
    const kind = h("span", { class: "kind" });
    const name = h("span", { class: "name" });
    const texts = svg("foreignObject", { width: NODE.width, height: NODE.height }, h("div", { class: "node-text" }, kind, name));
    const group = svg("g", {}, title, svg("rect", { class: "hit", width: NODE.width, height: NODE.height }), box, texts);
    nodes.append(group);
    return { group, title, box, kind, name };
  }

  function edgePart() {
    const [title, hit, line, arrow] = [svg("title"), svg("path", { class: "hit" }), svg("path", { class: "line" }), svg("path", { class: "arrow" })];
    const label = h("span", { class: "label" });
    const box = svg("foreignObject", { height: 24 }, h("div", { class: "label-place" }, label));
    const group = svg("g", {}, title, hit, line, arrow, box);
    edges.append(group);
    return { group, title, hit, line, arrow, label, box };
  }

  function notePart() {
    const [title, hit, box, text] = [svg("title"), svg("rect", { class: "hit" }), svg("rect", { class: "box", rx: 3 }), h("div", { class: "note-text" })];
    const texts = svg("foreignObject", {}, text);
    const grip = svg("g", { class: "grip" }, svg("path", { d: "M0 -12L0 0L-12 0Z" }), svg("circle", { class: "hit", r: 3 }));
    const group = svg("g", {}, title, hit, box, texts, grip);
    notes.append(group);
    return { group, title, words: text, grip, sized: [hit, box, texts] };
  }

  function paintNote(part, note) {
    const { key, name, text, place } = note;
    if (part.note === note && part.place === place) return;
    Object.assign(part, { note, place, bounds: boxOfNode(place), look: "note", text: name });
    set(part.group, "transform", `translate(${place.x - place.width / 2} ${place.y - place.height / 2})`);
    for (const each of part.sized) for (const side of ["width", "height"]) set(each, side, place[side]);
    set(part.grip, "transform", `translate(${place.width} ${place.height})`);
    write(part.words, text);
    part.group.dataset.key = key;
  }

  function paintNode(part, node) {
    const { key, id, type, look, kind, name, place } = node;
    const now = [id, type, look, kind, name, place.x, place.y];
    if (part.painted && now.every((value, at) => value === part.painted[at])) return;
    part.painted = now;
    part.bounds = boxOfNode(place);
    set(part.group, "transform", `translate(${place.x - NODE.width / 2} ${place.y - NODE.height / 2})`);
    set(part.group, "data-node", id);
    set(part.box, "rx", ROUND[type] ?? 2);
    write(part.kind, kind);
    write(part.name, name);
    part.look = `node ${look === "missing" ? look : `type-${look}`}`;
    part.text = `${kind}: ${name}`;
    part.group.dataset.key = key;
  }

  function paintEdge(part, edge, route) {
    const { key, item, id, from, to, label } = edge;
    const now = [route, id, from.name, to.name, label, Boolean(item)];
    if (part.painted && now.every((value, at) => value === part.painted[at])) return;
    Object.assign(part, { painted: now, place: route.place, bounds: route.bounds });
    if (part.badges) for (const [axis, value] of Object.entries(edgeBadges(route.place))) set(part.badges, axis, value);
    set(part.group, "data-edge", id);
    for (const shape of [part.line, part.hit]) set(shape, "d", route.line);
    set(part.arrow, "d", route.arrow);
    set(part.box, "width", route.place.width);
    set(part.box, "x", route.place.x - route.place.width / 2);
    set(part.box, "y", route.place.y - 12);
    write(part.label, label);
    part.look = `edge${item ? "" : " on-error"}${label ? "" : " unnamed"}`;
    part.text = `${label || "Path without a label"}, from ${from.name} to ${to.name}`;
    part.group.dataset.key = key;
  }

  /** Show texts [[look, text], ...] over the upper border of a node, or above the label of an edge. */
  function showBadges(part, texts) {
    const now = texts.map(([look, text]) => `${look} ${text}`).join("\n");
    if (now === (part.badged ?? "")) return;
    part.badged = now;
    part.badges?.remove();
    part.badges = null;
    if (!now) return;
    const place = part.label ? { width: EDGE_BADGES, height: 22, ...edgeBadges(part.place) } : { x: 0, y: -14, width: NODE.width, height: 22 };
    part.badges = svg("foreignObject", { class: "badges", ...place }, h("div", {}, texts.map(([look, text]) => h("span", { class: look }, text))));
    part.group.append(part.badges);
  }

  // What is pressed inherits how wide it is, the same on the screen at any zoom. It is laid out anew then, so not in each frame.
  const reach = () => set(world, "stroke-width", (matchMedia("(pointer: coarse)").matches ? 44 : 24) / zoom);
  const reachSoon = debounced(reach, 150);
  reach();

  // Above the label: the node that an edge leads to has its badges below it.
  const edgeBadges = ({ x, y }) => ({ x: x - EDGE_BADGES / 2, y: y - 32 });

  /** Leave out what isn't seen, but never what the Tab key leads to. */
  function cull() {
    if (!seen) return;
    for (const [key, part] of parts) {
      const isSeen = key === state.active || touches(part.bounds, seen);
      if (isSeen === (part.isSeen ?? true)) continue;
      part.isSeen = isSeen;
      set(part.group, "display", isSeen ? null : "none");
    }
  }

  function decorate(given = {}) {
    state = { ...state, ...given };
    const ways = new Map(graph.nodes.map(({ key }) => [key, [0, 0]]));
    for (const { from, to } of graph.edges) {
      ways.get(to.key)[0] += 1;
      ways.get(from.key)[1] += 1;
    }
    const many = graph.nodes.filter(({ item }) => item).length;
    for (const each of [...graph.nodes, ...graph.edges, ...graph.notes]) {
      const part = parts.get(each.key);
      const { group, title, look, text } = part;
      const name = `${each.from ? "edge" : ways.has(each.key) ? "node" : "note"} ${each.id}`;
      const mark = state.overlay.get(name);
      const found = state.marks.get(each.key) ?? NONE;
      const worst = SEVERITIES.find((severity) => found.some((finding) => finding.severity === severity));
      const isSelected = state.selected.has(each.key);
      const count = ways.get(each.key);
      // Most stays as it was, such as all that isn't typed in.
      const now = [look, text, mark, found, isSelected, state.moving.has(each.key), state.lit.has(name), Boolean(state.reach?.get(each.key)), each.key === state.aimed, each.key === state.active, each.item === null, count?.[0], count?.[1], each.index, many];
      if (part.decorated && now.every((value, at) => value === part.decorated[at])) continue;
      part.decorated = now;
      set(group, "class", [look, each.item && "choosable", isSelected && "selected", state.moving.has(each.key) && "moving",
        state.reach?.get(each.key) && "unreachable", each.key === state.aimed && "aimed", worst && `has-${worst}`,
        mark?.look && `is-${mark.look}`, mark?.width && `width-${mark.width}`, state.lit.has(name) && "lit"].filter(Boolean).join(" "));
      set(group, "aria-current", state.lit.has(name) ? "true" : null);
      showBadges(part, [worst && [`badge-${worst}`, `${SIGNS[worst]} ${found.length}`], mark?.label && [`badge-${mark.look}`, mark.label],
        state.lit.has(name) && each.place && ["badge-here", "● here"]].filter(Boolean));
      write(title, [text, mark?.note, ...found.map(({ severity, message }) => `${CALLED[severity]}: ${message}`)].filter(Boolean).join("\n"));
      if (!each.item) continue;
      const problems = SEVERITIES.map((severity) => [found.filter((finding) => finding.severity === severity).length, severity])
        .filter(([count]) => count).map(([count, severity]) => counted(count, CALLED[severity]));
      const facts = count ? [`${counted(count[0], "path")} in`, `${counted(count[1], "path")} out`] : [];
      set(group, "aria-label", [text, mark?.note, ...facts, ...problems, ...(count ? [`${each.index + 1} of ${many}`] : [])].filter(Boolean).join(", "));
      set(group, "role", "button");
      set(group, "aria-pressed", isSelected);
      set(group, "tabindex", each.key === state.active ? 0 : -1);
    }
    cull();
  }

  /** Only the places of these keys have changed since; labels stay where they are on their edges. */
  function move(moved) {
    const before = found;
    found = movedRoutes(graph, shares, moved, before);
    places = "";
    for (const node of graph.nodes) if (moved.has(node.key)) paintNode(parts.get(node.key), node);
    for (const note of graph.notes) if (moved.has(note.key)) paintNote(parts.get(note.key), note);
    graph.edges.forEach((edge, at) => {
      if (found[at] === before[at]) return;
      paintEdge(parts.get(edge.key), edge, found[at]);
      edge.labelPlace = found[at].place;
    });
    cull();
    handles(...gripped);
  }

  function paint(next) {
    graph = next;
    const there = new Set([...graph.nodes, ...graph.edges, ...graph.notes].map(({ key }) => key));
    for (const [key, { group }] of parts) {
      if (there.has(key)) continue;
      group.remove();
      parts.delete(key);
    }
    // While nothing but texts changes, edges and labels stay where they are.
    const now = JSON.stringify([graph.nodes.map(({ key, place }) => [key, place]), graph.edges.map(({ key, from, to, label }) => [key, from.key, to.key, label.length])]);
    if (now !== places) {
      shares.clear();
      found = routes(graph.nodes, graph.edges, shares);
    }
    places = now;
    for (const node of graph.nodes) {
      if (!parts.has(node.key)) parts.set(node.key, nodePart());
      paintNode(parts.get(node.key), node);
    }
    for (const note of graph.notes) {
      if (!parts.has(note.key)) parts.set(note.key, notePart());
      paintNote(parts.get(note.key), note);
    }
    graph.edges.forEach((edge, at) => {
      if (!parts.has(edge.key)) parts.set(edge.key, edgePart());
      paintEdge(parts.get(edge.key), edge, found[at]);
      edge.labelPlace = found[at].place;
    });
    cull();
    handles(...gripped);
  }

  function handle([key, part]) {
    const [title, sign] = HANDLES[part];
    const group = svg("g", { class: `handle ${part}` },
      svg("title", {}, title), svg("circle", { class: "around", r: 12 }), svg("circle", { class: "knob", r: sign ? 9 : 6 }), svg("path", { d: sign }));
    Object.assign(group.dataset, { of: key, part });
    return group;
  }

  function handles(nodeKeys, edgeKeys) {
    gripped = [nodeKeys, edgeKeys];
    const at = (keys, list) => keys.map((key) => list.findIndex((each) => each.key === key && each.item)).filter((index) => index >= 0);
    const wanted = [
      ...at(nodeKeys, graph.nodes).map((index) => graph.nodes[index]).map(({ key, place: { x, y } }) => [key, "next", { x, y: y + NODE.height / 2 }, 12]),
      ...at(edgeKeys, graph.edges).flatMap((index) => {
        const { key, label } = graph.edges[index];
        const { place: { x, y }, ends: [start, end] } = found[index];
        return [[key, "insert", { x, y: y + (!label || zoom < FAR ? 0 : 12 + 12 / zoom) }], [key, "source", start], [key, "target", end]];
      })];
    // What is there is moved. One that is pressed has to stay: the end of a touch comes to what it began at.
    const now = JSON.stringify(wanted.map(([key, part]) => [key, part]));
    if (now !== handled) grips.replaceChildren(...wanted.map(handle));
    handled = now;
    // Each is as large on the screen at any zoom.
    wanted.forEach(([, , { x, y }, dy = 0], at) => set(grips.children[at], "transform", `translate(${x} ${y}) scale(${1 / zoom}) translate(0 ${dy})`));
  }

  return {
    element,
    paint,
    move,
    decorate,
    group: (key) => parts.get(key)?.group ?? null,
    handles,
    preview(ends) {
      line.toggleAttribute("hidden", !ends);
      if (ends) set(line, "d", lead(...ends));
    },
    see(view, size) {
      const { x, y } = view;
      const isZoomed = zoom !== view.zoom;
      zoom = view.zoom;
      if (isZoomed) handles(...gripped);
      set(world, "transform", `translate(${x} ${y}) scale(${zoom})`);
      element.classList.toggle("far", zoom < FAR);
      if (isZoomed) reachSoon();
      const [from, to] = [inGraph(view, { x: 0, y: 0 }), inGraph(view, { x: size.width, y: size.height })];
      seen = { left: from.x, top: from.y, right: to.x, bottom: to.y };
      cull();
    },
    band(box) {
      frame.toggleAttribute("hidden", !box);
      if (!box) return;
      for (const [name, value] of [["x", box.left], ["y", box.top], ["width", box.right - box.left], ["height", box.bottom - box.top]]) set(frame, name, value);
    },
  };
}
