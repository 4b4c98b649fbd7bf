// What builds the graph: adding, leading, inserting, editing in place and copying, each one step of the history.

import { notify } from "../parts/components.js";
import * as change from "./changes.js";
import { copied, pasted } from "./clipboard.js";
import { around, besides, boxOfNode } from "./geometry.js";
import { editTexts } from "./inline.js";
import { keyAt, kindOf, nameOf, withKey } from "./items.js";
import { waysOn } from "./node-form.js";
import { pick } from "./picker.js";
import { newTypes, whyNot, whyNotFrom } from "./rules.js";

const QUESTION = "When does the call go this way?";
const HALF = 142; // pixels: of what is edited in place

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/**
 * `definition()` now; `specs`, the types by name; `view()`, the canvas; `apply(label, definition, {selection, isTyped})`;
 * `remove()` what is chosen; `refresh()` of the panel and the findings.
 *
 * Returned: `act` and `commands` for the canvas; `add(type)` of a node; `addNote()`; `waysOn(key, open)` of a node's form;
 * `isFresh(key)`: whether it is new, and its texts are still being typed; `listen(signal)` to what is copied and pasted.
 */
export function building({ definition, specs, view, apply, remove, refresh }) {
  const fresh = new Set();
  const item = (key) => withKey(definition(), key).item;
  const graph = () => view().graph();
  const places = () => graph().nodes.map(({ place }) => place);
  const free = (place) => besides(places(), [place])[0];
  const below = (key) => change.freePlace(places(), view().find(key).place);
  const lastKey = (next, list) => keyAt(next, list, next[list].length - 1);
  const typesAsOptions = (types) => types.map((spec) => ({ group: "New step", text: spec.display_name, detail: spec.description, value: { spec } }));

  // -- in place

  /** Take over texts that were edited in place; the focus goes on, unless it was taken elsewhere. */
  function edited(how, label, next, focus) {
    const isElsewhere = how === "outside";
    if (next) apply(label, next, { isTyped: isElsewhere });
    // The panel is shown anew once the press that ended it is over, so that it does what it was meant to.
    if (isElsewhere) document.addEventListener("pointerup", () => setTimeout(refresh), { once: true });
    else refresh();
    if (!isElsewhere) focus();
  }

  function inPlace(key, fields, done) {
    view().reveal(key);
    const { place, labelPlace } = view().find(key);
    const { x, y } = view().point(place ?? labelPlace);
    editTexts(view().over, { x: x - HALF, y: y - 18 }, fields, done);
  }

  function editName(key) {
    inPlace(key, [["name", "Name", nameOf(item(key))]], (texts, how) => {
      const isChanged = texts?.name && texts.name !== nameOf(item(key));
      fresh.clear();
      edited(how, `Renamed ${nameOf(item(key))}`,
        isChanged && change.withMember(definition(), "nodes", withKey(definition(), key).index, ["data", "name"], texts.name), () => view().focus(key));
    });
  }

  /** Edit an edge's texts; then the name of `node`, if it came with it. */
  function editEdge(key, node = null) {
    const { label, condition } = item(key).data ?? {};
    const before = { label: typeof label === "string" ? label : "", condition: typeof condition === "string" ? condition : "" };
    inPlace(key, [["label", "Label", before.label, QUESTION], ["condition", "Taken when", before.condition, "What the caller says, or what is settled"]], (texts, how) => {
      const { index } = withKey(definition(), key);
      const next = Object.entries(texts ?? {}).filter(([name, text]) => text !== before[name])
        .reduce((found, [name, text]) => change.withMember(found, "edges", index, ["data", name], text), definition());
      const isNamed = node && how === "enter";
      if (!isNamed) fresh.clear();
      edited(how, "Changed a path", next !== definition() && next, () => {
        if (isNamed) editName(node);
        else view().focus(node ?? key);
      });
    });
  }

  function editNote(key) {
    const { text } = item(key);
    inPlace(key, [["text", "Text of the note", text, "What people are to know", "4"]], (texts, how) => {
      const isChanged = texts && texts.text !== text;
      edited(how, "Changed a note", isChanged && change.withMember(definition(), "notes", withKey(definition(), key).index, ["text"], texts.text), () => view().focus(key));
    });
  }

  function addNote(place) {
    const next = change.withNote(definition(), free(place));
    apply("Added a note", next, { selection: new Set([lastKey(next, "notes")]) });
    editNote(lastKey(next, "notes"));
  }

  /** Take over a new edge, and with it a new node, and edit the edge's texts in place. */
  function applyNew(label, next, { hasNode = false } = {}) {
    const edge = lastKey(next, "edges");
    const node = hasNode ? lastKey(next, "nodes") : null;
    fresh.add(edge);
    if (node) fresh.add(node);
    apply(label, next, { selection: new Set([node ?? edge]) });
    editEdge(edge, node);
  }

  // -- new nodes and edges

  function addAt(spec, place) {
    applyNode(change.withNode(definition(), spec, { place }), spec);
  }

  function applyNode(next, spec) {
    const key = lastKey(next, "nodes");
    fresh.add(key);
    apply(`Added ${spec.display_name}`, next, { selection: new Set([key]) });
    editName(key);
  }

  const addBehind = (key, spec, place) =>
    applyNew(`Added ${spec.display_name}`, change.withNode(definition(), spec, { from: key, place }), { hasNode: true });

  function pickFrom(label, at, options, chosen, from = null) {
    pick(view().over, at, { label, options, done: (value, how) => {
      if (value) chosen(value);
      else if (how !== "outside") view().focus(from ?? undefined);
    } });
  }

  const act = {
    lead({ key, part }, target) {
      const { id } = item(target);
      if (part !== "next") {
        apply("Led a path elsewhere", change.withMember(definition(), "edges", withKey(definition(), key).index, [part], id), { selection: new Set([key]) });
        view().focus(key);
      } else {
        applyNew(`Connected ${nameOf(item(key))}`, change.withEdge(definition(), item(key).id, id));
      }
    },
    pick({ key, part }, at, place) {
      const own = view().find(key);
      const why = { next: (node) => whyNot(graph(), specs, own, node), target: (node) => whyNot(graph(), specs, own.from, node, key), source: (node) => whyNot(graph(), specs, node, own.to, key) }[part];
      const nodes = graph().nodes.filter((node) => !why(node)).map((node) => ({ group: part === "source" ? "Comes from" : "Goes to", text: node.name, detail: node.kind, value: { node } }));
      const types = part === "source" ? [] : typesAsOptions(newTypes(graph(), specs, { isLedTo: true }));
      pickFrom({ next: "Next step", target: "Goes to", source: "Comes from" }[part], at, [...types, ...nodes], ({ spec, node }) => {
        if (node) return act.lead({ key, part }, node.key);
        const there = place ? free(place) : below(part === "next" ? key : own.from.key);
        if (part === "next") return addBehind(key, spec, there);
        const added = change.withNode(definition(), spec, { place: there });
        const next = change.withMember(added, "edges", withKey(added, key).index, ["target"], added.nodes.at(-1).id);
        return applyNode(next, spec);
      }, key);
    },
    insert(key, at) {
      pickFrom("Step in between", at, typesAsOptions(newTypes(graph(), specs, { isLedTo: true, leads: true })), ({ spec }) =>
        applyNew(`Inserted ${spec.display_name}`, change.withInserted(definition(), spec, key, free(view().find(key).labelPlace)), { hasNode: true }), key);
    },
    add(at, place) {
      pickFrom("New step", at, typesAsOptions(newTypes(graph(), specs)), ({ spec }) => addAt(spec, free(place)));
    },
    edit: (key) => ({ node: editName, edge: editEdge, note: editNote })[kindOf(key)](key),
  };

  // -- copies

  const text = () => copied(definition(), view().chosen(), new Map(graph().nodes.map(({ key, place }) => [key, place])));

  function paste(given, place) {
    const found = pasted(definition(), given, place, places(), specs);
    if (!found) return notify("What was copied holds no steps.", "warning");
    const { nodes, notes, edges, left } = found;
    const what = [nodes.length && counted(nodes.length, "step"), edges && counted(edges, "path"), notes.length && counted(notes.length, "note")].filter(Boolean).join(" and ");
    const keys = [["nodes", nodes], ["notes", notes]].flatMap(([list, indexes]) => indexes.map((index) => keyAt(found.definition, list, index)));
    if (keys.length) {
      apply(`Pasted ${what}`, found.definition, { selection: new Set(keys) });
      view().reveal(keys[0]);
    }
    notify([keys.length ? `Pasted ${what}.` : "Nothing is pasted.", left.length && `Not pasted: ${left.join("; ")}.`].filter(Boolean).join(" "), left.length ? "warning" : "");
    return view().focus();
  }

  function duplicate() {
    const keys = view().chosen();
    const { left, top, right, bottom } = around([...graph().nodes, ...graph().notes].filter(({ key }) => keys.has(key)).map(({ place }) => boxOfNode(place)));
    paste(text(), { x: (left + right) / 2 + 40, y: (top + bottom) / 2 + 80 });
  }

  async function pasteByMenu() {
    try {
      paste(await navigator.clipboard.readText(), view().last());
    } catch {
      notify("The browser gives what was copied to its key only: press it on the canvas.", "warning");
    }
  }

  const byKey = {
    copy(event) {
      const copy = text();
      if (!copy) return false;
      event.clipboardData.setData("text/plain", copy);
      view().say("Copied.");
      return true;
    },
    cut: (event) => byKey.copy(event) && (remove(), true),
    paste: (event) => (paste(event.clipboardData.getData("text/plain"), view().last()), true),
  };

  // -- the table

  const onNode = () => kindOf(view().active() ?? "") === "node";
  const onEdge = () => kindOf(view().active() ?? "") === "edge";
  const leads = () => onNode() && !whyNotFrom(view().find(view().active()).type, specs);
  const hasNodes = () => [...view().chosen()].some((key) => kindOf(key) !== "edge");
  const join = () => {
    const next = change.withJoined(definition(), view().active());
    if (!next) return view().say("Not removed: it doesn't lead to exactly one step.");
    apply(`Removed ${nameOf(item(view().active()))}`, next, { selection: new Set() });
    return view().focus();
  };
  const at = () => {
    const { place, labelPlace } = view().find(view().active());
    return view().point(place ?? labelPlace);
  };
  const pickEnd = (part) => () => act.pick({ key: view().active(), part }, at(), null);
  const commands = [
    { id: "next", keys: "Ctrl+Enter", words: "Add the next step", when: leads, run: pickEnd("next") },
    { id: "connect", keys: "c", words: "Connect to another step", when: leads, run: () => view().connect(view().active()) },
    { id: "insert", keys: "n", words: "Insert a step on this path", when: onEdge, run: () => act.insert(view().active(), at()) },
    { id: "add", keys: "n", words: "New step", when: () => !onEdge(), run: () => act.add(view().point(view().last()), view().last()) },
    { id: "edit", keys: "F2", words: "Change the name in place", when: () => view().active() !== null, run: () => act.edit(view().active()) },
    { id: "target", keys: "", words: "Have it go to another step", when: onEdge, run: pickEnd("target") },
    { id: "source", keys: "", words: "Have it come from another step", when: onEdge, run: pickEnd("source") },
    { id: "place", keys: "", words: "Move to where the next click is", when: onNode, run: () => view().place() },
    { id: "note", keys: "", words: "New note", run: () => addNote(view().last()) },
    { id: "join", keys: "Shift+Delete", words: "Remove it, and connect its neighbours", when: onNode, run: join },
    { id: "copy", keys: "Ctrl+c", words: "Copy", isNative: true, when: hasNodes, run: () => document.execCommand("copy") },
    { id: "cut", keys: "Ctrl+x", words: "Cut", isNative: true, when: hasNodes, run: () => document.execCommand("cut") },
    { id: "paste", keys: "Ctrl+v", words: "Paste where the pointer is", isNative: true, run: pasteByMenu },
    { id: "duplicate", keys: "Ctrl+d", words: "Duplicate", when: hasNodes, run: duplicate },
  ];

  return {
    act,
    commands,
    isFresh: (key) => fresh.has(key),
    addNote: () => addNote(view().middle()),
    add: (type) => addAt(specs.get(type), null),
    waysOn: (key, open) => !whyNotFrom(item(key).type, specs) && waysOn(definition(), item(key), {
      open: (edge) => open(keyAt(definition(), "edges", edge)),
      connect: (target) => act.lead({ key, part: "next" }, target),
      addNode: (type) => addBehind(key, specs.get(type), below(key)),
      targets: graph().nodes.filter((node) => !whyNot(graph(), specs, view().find(key), node)),
      types: newTypes(graph(), specs, { isLedTo: true }),
    }),
    listen(signal) {
      // Without a selection, the event's target is the page, not what has the focus.
      for (const [type, act] of Object.entries(byKey)) document.addEventListener(type, (event) => view().hasFocus() && act(event) && event.preventDefault(), { signal });
    },
  };
}
