// Leading an edge to a node, by a drag, by clicks or by keys, and choosing a place to move to: what is shown meanwhile.

import { notify } from "../parts/components.js";
import { NODE, boxOfNode } from "./geometry.js";
import { whyNot, whyNotFrom } from "./rules.js";
import { onCanvas } from "./view.js";

const ONE_NODE = "This agent only says hello. Press + below it to add what comes next.";
const LEADING = "Choose the step to connect, or an empty place for a new one. Escape stops.";
const MOVING = "Choose the place to move to. Escape stops.";
const PAUSE = 1000; // milliseconds after which a name that is typed begins anew
const KEYS = new Set(["go", "first", "last", "open", "larger", "smaller", "actual", "fit", "fitSelection"]);

const shifted = ({ x, y }, dy) => ({ x, y: y + dy });

/**
 * Of the canvas: `box`; `drawn`, its scene; `graph()`, `find(key)` and `view()`; `selected()` keys; `active()`, what has the
 * focus; `say`; `act`; `redraw()`; `focus(key)`; `goTo(key)`; `moveBy(keys, by)`; `isFixed`: it is only looked at. `note` is an
 * element for a sentence.
 *
 * An aim is {key, part}: from a node if the part is "next", else an end of an edge, "source" or "target". Returned: `orders` of
 * the machine of gestures; `connect(key)` and `place()`, until a click or Enter; `isOn()`; `mode()`, "aim" or "place" while it
 * waits for these; `painted()` when the graph has changed; `grip()`, which shows the handles; `hover(key)`; `over(key, place)`
 * of a pointer or the focus; `may(key)`: whether an edge may lead there; `allows(row)` of the commands; `key(event)`, true if it
 * was used; `enter()`; `stop()`.
 */
export function leading({ box, drawn, specs, graph, find, view, selected, active, note, say, act, redraw, focus, goTo, moveBy, isFixed }) {
  let aim = null; // {key, part, stays: the node at the other end, reach: why not, by key of a node, over: a key}
  let mode = null;
  let hovered = null;
  let typed = { text: "", at: 0 };

  function tell(text) {
    note.textContent = text;
    note.hidden = !text;
  }

  const nodeAt = ({ x, y }) => graph().nodes.findLast(({ place }) => {
    const { left, top, right, bottom } = boxOfNode(place);
    return x >= left && x <= right && y >= top && y <= bottom;
  })?.key ?? null;

  function begin(key, part) {
    const found = find(key);
    const why = { next: (node) => whyNot(graph(), specs, found, node), target: (node) => whyNot(graph(), specs, found.from, node, key), source: (node) => whyNot(graph(), specs, node, found.to, key) };
    aim = { key, part, stays: { next: found, target: found.from, source: found.to }[part], over: aim?.over ?? null };
    aim.reach = new Map(graph().nodes.map((node) => [node.key, why[part](node)]));
    drawn.decorate({ reach: aim.reach });
  }

  function over(key, point) {
    const node = key && find(key);
    const [stays, goes] = [aim.stays.place, node?.place];
    const half = NODE.height / 2;
    drawn.preview(aim.part === "source" ? [goes ? shifted(goes, half) : point, shifted(stays, -half)] : [shifted(stays, half), goes ? shifted(goes, -half) : point]);
    if (aim.over === key) return;
    aim.over = key;
    drawn.decorate({ aimed: key });
    tell(aim.reach.get(key) ?? LEADING);
    if (key) say(aim.reach.get(key) ?? `To ${node.name}.`);
  }

  function enter(name, words) {
    mode = name;
    typed = { text: "", at: 0 };
    box.classList.add("choosing");
    tell(words);
    say(words);
    grip();
  }

  function end() {
    [aim, mode] = [null, null];
    box.classList.remove("choosing");
    drawn.preview(null);
    drawn.decorate({ reach: null, aimed: null });
    redraw();
  }

  /** Lead the edge to a node, or to what is picked for a place of the graph. */
  function lead(key, point) {
    const { key: own, part, reach } = aim;
    end();
    if (key && reach.get(key)) notify(reach.get(key), "warning");
    else if (key) act.lead({ key: own, part }, key);
    else act.pick({ key: own, part }, onCanvas(view(), point), point);
  }

  function putAt({ x, y }) {
    const from = find(active()).place;
    const keys = selected().has(active()) ? selected() : new Set([active()]);
    end();
    moveBy(keys, { x: Math.round(x - from.x), y: Math.round(y - from.y) });
  }

  /** Handles at what is pointed at or alone selected, and at nodes that lead nowhere yet. */
  function grip() {
    if (isFixed) return;
    const leaving = new Set(graph().edges.map(({ from }) => from.key));
    const alone = selected().size === 1 ? [...selected()][0] : null;
    const isShown = ({ key, item }) => item && !mode && (key === hovered || key === alone);
    drawn.handles(
      graph().nodes.filter((node) => (isShown(node) || (!mode && !leaving.has(node.key))) && !whyNotFrom(node.type, specs)).map(({ key }) => key),
      graph().edges.filter(isShown).map(({ key }) => key));
  }

  return {
    over: (key, point) => aim && over(key, point),
    overPoint: (point) => aim && over(nodeAt(point), point),
    grip,
    isOn: () => aim !== null || mode !== null,
    mode: () => mode,
    may: (key) => mode !== "aim" || (aim.reach.has(key) && !aim.reach.get(key)),
    allows: ({ id }) => !mode || KEYS.has(id) || id === "back",
    orders: {
      choose: (key, point) => (mode === "aim" ? lead(nodeAt(point), point) : putAt(point)),
      press(key, part) {
        const { place, labelPlace } = find(key);
        const at = onCanvas(view(), place ? shifted(place, NODE.height / 2) : labelPlace);
        if (part === "insert") act.insert(key, at);
        else act.pick({ key, part }, at, null);
      },
      aim(key, part, point) {
        if (!aim) {
          begin(key, part);
          tell(LEADING);
          say(LEADING);
        }
        over(nodeAt(point), point);
      },
      lead: (key, part, point) => lead(nodeAt(point), point),
    },
    connect(key) {
      begin(key, "next");
      enter("aim", LEADING);
      focus(key);
    },
    place: () => enter("place", MOVING),
    painted() {
      const isThere = aim && find(aim.key) && find(aim.stays.key);
      if (aim && isThere) begin(aim.key, aim.part);
      const [first, ...others] = graph().nodes;
      if (!aim && !mode && !isFixed) tell(first?.type === "startCall" && !others.length ? ONE_NODE : "");
      return !aim || isThere;
    },
    hover(key) {
      if (key === hovered) return;
      hovered = key;
      grip();
    },
    /** Letters go to the node whose name begins so, among those that the edge may lead to. */
    key(event) {
      const before = Date.now() - typed.at < PAUSE ? typed.text : "";
      if (mode !== "aim" || event.key.length !== 1 || (event.key === " " && !before) || event.ctrlKey || event.metaKey || event.altKey) return false;
      typed = { text: before + event.key.toLowerCase(), at: Date.now() };
      goTo(graph().nodes.find(({ key, name }) => !aim.reach.get(key) && name.toLowerCase().startsWith(typed.text))?.key);
      return true;
    },
    enter() {
      if (mode === "aim") lead(active(), find(active()).place);
    },
    stop() {
      const stays = aim?.stays.key;
      end();
      return stays;
    },
  };
}
