// One property of a node as a labeled control, whatever its type in the catalogue.

import { button, checkbox, field, input, select, textarea } from "../parts/components.js";
import { h, uniqueId } from "../parts/dom.js";

/**
 * The control of a property. `value` is what the node has, `change` gets what it is to have: undefined for nothing.
 * `choices`: {tools, documents, credentials}, each [{value, text}, ...], for references. `name` is the property's path
 * inside the node, as findings name it.
 */
export function propertyField(property, value, change, { choices, name }) {
  const make = MAKERS[property.type] ?? text;
  const control = make(property, value, change, { choices, name });
  const help = property.description || null;
  return field(property.display_name, control, { help, name, required: property.required });
}

const filled = (value) => (value === "" ? undefined : value);

function text(property, value, change) {
  const props = {
    placeholder: property.placeholder,
    maxlength: property.max_length,
    spellcheck: property.type === "url" ? "false" : null,
    inputmode: property.type === "url" ? "url" : null,
  };
  const shown = value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const isLong = property.editor === "textarea" || property.type === "mention_textarea";
  const control = isLong ? textarea(shown, { ...props, rows: property.type === "mention_textarea" ? "6" : "3" }) : input({ ...props, value: shown });
  // A required text that is emptied stays, empty: a name that is missing reads worse than one that is empty.
  control.addEventListener("input", () => change(property.required ? control.value : filled(control.value)));
  return control;
}

function number(property, value, change) {
  const control = input({
    type: "number",
    step: "any",
    min: property.min_value,
    max: property.max_value,
    placeholder: property.placeholder ?? (property.default === null ? null : `${property.default} when empty`),
    value: value === null || value === undefined ? "" : String(value),
  });
  control.addEventListener("input", () => {
    // What isn't a number has no value here; the browser marks it.
    if (!control.validity.badInput) change(control.value === "" ? undefined : Number(control.value));
  });
  return control;
}

const TRUE = new Set([true, 1, "true", "yes", "on", "t", "y", "1"]);

function boolean(property, value, change) {
  const isOn = value === undefined || value === null ? property.default === true : TRUE.has(typeof value === "string" ? value.toLowerCase() : value);
  const control = checkbox(isOn);
  control.addEventListener("change", () => change(control.checked));
  return control;
}

function options(property, value, change) {
  const listed = property.options.map((option) => [String(option.value), option.label]);
  const current = value === undefined || value === null ? "" : String(value);
  if (current && !listed.some(([each]) => each === current)) listed.push([current, `${current} (unknown)`]);
  if (!property.required || !current) listed.unshift(["", property.default === null ? "Not set" : `Not set (${property.default})`]);
  const control = select(listed, current);
  control.addEventListener("change", () => {
    const found = property.options.find((option) => String(option.value) === control.value);
    change(control.value === "" ? undefined : found ? found.value : control.value);
  });
  return control;
}

function json(property, value, change) {
  const control = textarea(value === undefined || value === null ? "" : JSON.stringify(value, null, 2), { rows: "6", class: "code", spellcheck: "false", placeholder: property.placeholder });
  const complaint = h("p", { class: "field-error", role: "status" });
  control.addEventListener("input", () => {
    try {
      change(control.value.trim() ? JSON.parse(control.value) : undefined);
      complaint.textContent = "";
      control.removeAttribute("aria-invalid");
    } catch (error) {
      complaint.textContent = `This isn't JSON yet, so it isn't taken over: ${error.message}`;
      control.setAttribute("aria-invalid", "true");
    }
  });
  control.setAttribute("aria-label", property.display_name);
  return h("div", { class: "stack" }, control, complaint);
}

/** A list of records: a box for each, with its own fields. */
function collection(property, value, change, { choices, name }) {
  let records = Array.isArray(value) ? structuredClone(value) : [];
  const rows = h("div", { class: "records" });
  const { one } = property;
  const send = () => change(records.length ? structuredClone(records) : undefined);
  const draw = () => {
    rows.replaceChildren(...records.map((record, index) => {
      const title = `${one} ${index + 1}`;
      if (!record || typeof record !== "object" || Array.isArray(record)) {
        return h("p", {}, `${title} isn't an object; mend it in the JSON.`);
      }
      return h("fieldset", {}, h("legend", {}, title),
        property.properties.map((each) => propertyField(each, record[each.name], (given) => {
          if (given === undefined) delete record[each.name];
          else record[each.name] = given;
          send();
        }, { choices, name: `${name}.${index}.${each.name}` })),
        button("Remove", () => {
          records.splice(index, 1);
          draw();
          send();
          more.focus();
        }, { kind: "small", "aria-label": `Remove ${title}` }));
    }));
  };
  const more = button(`Add ${one.toLowerCase()}`, () => {
    const record = {};
    for (const each of property.properties) if (each.required) record[each.name] = each.default ?? "";
    records = [...records, record];
    draw();
    send();
    rows.lastElementChild.querySelector("input, select, textarea")?.focus();
  }, { kind: "small" });
  draw();
  return h("div", { class: "stack" }, rows, more);
}

/** References: a checkbox for each of what there is, and for those that aren't there any more. */
function references(kind, page) {
  return (property, value, change, { choices }) => {
    const chosen = new Set(Array.isArray(value) ? value.filter((each) => typeof each === "string") : []);
    const known = choices[kind];
    const listed = [...known, ...[...chosen].filter((each) => !known.some((one) => one.value === each))
      .map((each) => ({ value: each, text: `${each} (not there)` }))];
    if (!listed.length) return h("p", { class: "quiet" }, "There are none yet. ", h("a", { href: `#${page}` }, "Add one."));
    return h("div", { class: "checks" }, listed.map((each) => {
      const control = checkbox(chosen.has(each.value), { id: uniqueId("check") });
      control.addEventListener("change", () => {
        if (control.checked) chosen.add(each.value);
        else chosen.delete(each.value);
        change(chosen.size ? [...chosen] : undefined);
      });
      return h("div", { class: "check-line" }, control, h("label", { for: control.id }, each.text));
    }));
  };
}

function credential(property, value, change, { choices }) {
  const listed = choices.credentials.map((each) => [each.value, each.text]);
  if (value && !listed.some(([each]) => each === value)) listed.push([value, `${value} (not there)`]);
  const control = select([["", "None"], ...listed], value ?? "");
  control.addEventListener("change", () => change(filled(control.value)));
  return control;
}

const MAKERS = {
  string: text,
  mention_textarea: text,
  url: text,
  recording_ref: text,
  number,
  boolean,
  options,
  json,
  fixed_collection: collection,
  tool_refs: references("tools", "/tools"),
  document_refs: references("documents", "/documents"),
  credential_ref: credential,
};

/** True if a property is to be shown, by the values of the others: what isn't set counts as its default. */
export function isShown(property, data, spec) {
  const value = (name) => data[name] ?? spec.properties.find((each) => each.name === name)?.default ?? null;
  const { show, hide } = property.display_options ?? {};
  const matches = ([name, wanted]) => wanted.includes(value(name));
  return (!show || Object.entries(show).every(matches)) && !(hide && Object.entries(hide).some(matches));
}
