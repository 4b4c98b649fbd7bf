// The form of a node or an edge, made from the catalogue, with the findings at the fields that they are about.

import { button, field, input, select, textarea } from "../parts/components.js";
import { h } from "../parts/dom.js";
import { items, nameOf } from "./items.js";
import { isShown, propertyField } from "./property-field.js";

/** The form of a node. `change(path, value)` sets a member; `choices` as in `propertyField`. */
export function nodeForm(node, spec, change, choices) {
  const data = node.data && typeof node.data === "object" ? node.data : {};
  const shown = new Map();
  const setAndShow = (name, value) => {
    if (value === undefined) delete data[name];
    else data[name] = value;
    change(["data", name], value);
    for (const property of spec.properties) shown.get(property.name).hidden = !isShown(property, data, spec);
  };
  const fields = spec ? spec.properties.map((property) => {
    const box = propertyField(property, data[property.name], (value) => setAndShow(property.name, value),
      { choices, name: `data.${property.name}` });
    box.hidden = !isShown(property, data, spec);
    shown.set(property.name, box);
    return box;
  }) : [h("p", {}, `There is no type of step “${node.type}”. Change it in the JSON.`)];
  return h("div", { class: "node-form" },
    spec && h("p", { class: "help" }, spec.description),
    fields,
    h("details", {}, h("summary", {}, "Place in the drawing"), h("div", { class: "fields" },
      numbers(node.position, ["x", "y"], (axis, value) => change(["position", axis], value), "position."))));
}

const NUMBERS = { x: "From the left", y: "From the top", width: "Width", height: "Height" };

/** Fields of a place or a size; what is no number isn't taken over. */
function numbers(holder, names, change, prefix = "") {
  return names.map((name) => {
    const control = input({ type: "number", step: "any", value: holder?.[name] ?? "", min: name in { x: 1, y: 1 } ? null : "1" });
    control.addEventListener("input", () => {
      if (control.value !== "" && control.validity.valid) change(name, Number(control.value));
    });
    return field(NUMBERS[name], control, { name: `${prefix}${name}` });
  });
}

/** The form of a note. */
export function noteForm(note, change) {
  const text = textarea(note.text, { rows: "6" });
  text.addEventListener("input", () => change(["text"], text.value));
  return h("div", { class: "node-form" },
    field("Text", text, { name: "text", help: "What people are to know who edit the agent. Conversations don't read it." }),
    h("details", {}, h("summary", {}, "Place and size"), h("div", { class: "fields" }, numbers(note, Object.keys(NUMBERS), (name, value) => change([name], value)))));
}

const EDGE_TEXTS = [
  ["label", "Label", "A few words that name this path, such as “Yes”. Each path from the same step needs a name of its own.", false, true],
  ["condition", "Taken when", "What the caller says, or what has been settled, when the conversation goes this way.", true, true],
  ["transition_speech", "Said on the way", "Spoken while the conversation goes on to the next step; may hold {{variables}}.", true, false],
];

/** The form of an edge. */
export function edgeForm(edge, definition, change) {
  const nodes = items(definition, "nodes").filter(({ item }) => typeof item.id === "string");
  const ends = [["source", "From"], ["target", "To"]].map(([end, text]) => {
    const listed = nodes.map(({ item }) => [item.id, nameOf(item)]);
    if (!nodes.some(({ item }) => item.id === edge[end])) listed.unshift([edge[end] ?? "", `${edge[end] ?? "nothing"} (not there)`]);
    const control = select(listed, edge[end] ?? "");
    control.addEventListener("change", () => change([end], control.value));
    return field(text, control, { name: end, required: true });
  });
  const texts = EDGE_TEXTS.map(([name, text, help, isLong, required]) => {
    const value = edge.data?.[name];
    const shown = typeof value === "string" ? value : "";
    const control = isLong ? textarea(shown, { rows: "3" }) : input({ value: shown });
    control.addEventListener("input", () => change(["data", name], control.value || required ? control.value : undefined));
    return field(text, control, { help, name: `data.${name}`, required });
  });
  return h("div", { class: "node-form" }, texts, h("div", { class: "fields" }, ends));
}

/** Show findings at the fields of a form that they are about; the rest above it. Nothing loses the focus. */
export function showFindings(form, findings) {
  for (const message of form.querySelectorAll(".field > .field-error[id]")) {
    message.textContent = "";
    message.hidden = true;
    message.classList.remove("is-warning");
  }
  for (const control of form.querySelectorAll("[aria-invalid]:not(.code)")) control.removeAttribute("aria-invalid");
  const rest = [];
  for (const finding of findings) {
    const parts = (finding.field ?? "").split(".");
    let box = null;
    while (parts.length && !box) {
      box = form.querySelector(`.field[data-name="${CSS.escape(parts.join("."))}"]`);
      parts.pop();
    }
    if (!box) {
      rest.push(finding);
      continue;
    }
    const message = box.querySelector(":scope > .field-error");
    message.textContent = [message.textContent, finding.message].filter(Boolean).join(" ");
    message.hidden = false;
    message.classList.toggle("is-warning", finding.severity !== "error");
    if (finding.severity === "error") box.querySelector("input, select, textarea")?.setAttribute("aria-invalid", "true");
  }
  return rest;
}

/** What a node leads to, with buttons to open each edge, and to add another. */
export function waysOn(definition, node, { open, connect, addNode, targets, types }) {
  const edges = items(definition, "edges").filter(({ item }) => item.source === node.id);
  const target = select(targets.map((each) => [each.key, each.name]), null, { "aria-label": "Step to connect to" });
  const type = select(types.map((each) => [each.name, each.display_name]), "agentNode", { "aria-label": "Type of the next step to add" });
  return h("div", { class: "stack" }, h("h3", {}, "Next steps"),
    edges.length
      ? h("ul", { class: "plain-list" }, edges.map(({ item, index }) => {
        const to = items(definition, "nodes").findLast(({ item: each }) => each.id === item.target)?.item;
        return h("li", {}, button(`${item.data?.label || "(no label)"} → ${to ? nameOf(to) : item.target}`, () => open(index), { kind: "small" }));
      }))
      : h("p", { class: "quiet" }, "Nothing comes after this step yet."),
    h("div", { class: "actions" }, target, button("Connect", () => connect(target.value), { kind: "small", disabled: !target.options.length })),
    h("div", { class: "actions" }, type, button("Add and connect", () => addNode(type.value), { kind: "small" })));
}
