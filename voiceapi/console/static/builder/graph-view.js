// The service's drawing of a workflow: its nodes and edges can be chosen by click and key, and lit.

import { drawing, h } from "../parts/dom.js";

const LEAST_FIT = { narrow: 0.55, wide: 0.42 };
const NARROW = 500; // pixels

const named = (group) => group.querySelector("title")?.textContent ?? "";

/**
 * Show the drawing that the service made.
 *
 * `onNode` and `onEdge` get {id, index, element} of what is chosen: the id may be null, the index is its place in the
 * definition's list. Without them the drawing is a picture only. The arrow keys scroll, + and - zoom, 0 fits.
 *
 * Returned: `element`; `light(nodeId, edgeId)`, null for none; `choose("node" or "edge", index)`, null for nothing;
 * `replace(svgText)`, which keeps what is lit and chosen.
 */
export function graphView(svgText, { onNode = null, onEdge = null, label = "Drawing of the agent" } = {}) {
  const box = h("div", { class: "graph-box", tabindex: "0", role: "group", "aria-label": label });
  const zoomed = h("div", { class: "graph-tools" },
    tool("−", "Smaller", () => zoom((scale ?? fitted()) / 1.25)),
    tool("Fit", "Fit the width", () => zoom(null)),
    tool("+", "Larger", () => zoom((scale ?? fitted()) * 1.25)));
  const element = h("div", { class: "graph-view" }, box, zoomed);
  let svg = null;
  let scale = null;
  let lit = [null, null];
  let chosen = [null, null];

  function tool(text, name, act) {
    return h("button", { type: "button", class: "button small", "aria-label": name, title: name, on: { click: act } }, text);
  }

  const groups = (kind) => [...svg.querySelectorAll(`g.${kind}`)];
  const withId = (kind, id) => groups(kind).filter((group) => group.dataset[kind] === id);
  const withIndex = (kind, index) => groups(kind).find((group) => group.dataset.index === String(index));
  // Smaller than this, nobody reads it: then it is scrolled.
  const fitted = () => Math.min(1, Math.max(box.clientWidth < NARROW ? LEAST_FIT.narrow : LEAST_FIT.wide, (box.clientWidth - 18) / svg.viewBox.baseVal.width || 1));

  function zoom(wanted) {
    scale = wanted === null ? null : Math.min(3, Math.max(0.1, wanted));
    const { width, height } = svg.viewBox.baseVal;
    svg.setAttribute("width", width * (scale ?? fitted()));
    svg.setAttribute("height", height * (scale ?? fitted()));
  }

  function makeChoosable(kind, act) {
    for (const group of groups(kind)) {
      if (group.dataset.index === undefined) continue;
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", named(group));
      group.classList.add("choosable");
      const choose = () =>
        act({ id: group.dataset[kind] ?? null, index: Number(group.dataset.index), element: group });
      group.addEventListener("click", choose);
      group.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      });
    }
  }

  function showState() {
    for (const group of svg.querySelectorAll(".lit, .chosen")) {
      group.classList.remove("lit", "chosen");
      group.removeAttribute("aria-current");
    }
    const [node, edge] = lit;
    for (const group of [...(node === null ? [] : withId("node", node)), ...(edge === null ? [] : withId("edge", edge))]) {
      group.classList.add("lit");
      group.setAttribute("aria-current", "true");
    }
    if (chosen[0]) withIndex(...chosen)?.classList.add("chosen");
  }

  function replace(text) {
    const held = svg?.contains(document.activeElement) ? document.activeElement : null;
    svg = drawing(text);
    svg.removeAttribute("role");
    if (onNode || onEdge) {
      svg.setAttribute("role", "group");
    } else {
      svg.setAttribute("role", "img");
    }
    svg.setAttribute("aria-label", svg.querySelector("title")?.textContent ?? label);
    if (onNode) makeChoosable("node", onNode);
    if (onEdge) makeChoosable("edge", onEdge);
    box.replaceChildren(svg);
    zoom(scale);
    showState();
    if (held?.dataset.index) withIndex(held.classList.contains("node") ? "node" : "edge", held.dataset.index)?.focus();
  }

  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+") zoom((scale ?? fitted()) * 1.25);
    else if (event.key === "-") zoom((scale ?? fitted()) / 1.25);
    else if (event.key === "0") zoom(null);
    else return;
    event.preventDefault();
  });

  new ResizeObserver(() => scale === null && zoom(null)).observe(box);
  replace(svgText);
  return {
    element,
    replace,
    light(nodeId = null, edgeId = null) {
      lit = [nodeId, edgeId];
      showState();
      if (nodeId !== null) withId("node", nodeId)[0]?.scrollIntoView({ block: "nearest", inline: "nearest" });
    },
    choose(kind, index) {
      chosen = [kind, index];
      showState();
    },
  };
}

/** Where the service's drawing has the nodes: the middle of each by its index, as positions are stored. */
export function placesIn(svgText) {
  const nodes = [...drawing(svgText).querySelectorAll("g.node[data-index]")];
  return new Map(nodes.map((group) => {
    const box = group.querySelector(".box");
    const middle = (start, length) => Math.round(Number(box.getAttribute(start)) + Number(box.getAttribute(length)) / 2);
    return [Number(group.dataset.index), { x: middle("x", "width"), y: middle("y", "height") }];
  }));
}
