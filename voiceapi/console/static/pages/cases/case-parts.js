// The parts of a case's form: a control for each common member that holds what the control can show, and JSON for the rest.

import { ApiError } from "../../app/api.js";
import { details, field, input, keyValues, select, textarea } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

const LINE = 36; // characters of a text in a line of its control, about

/** True for a text in one line. */
const isLine = (value) => typeof value === "string" && value.trim() === value && value !== "" && !value.includes("\n");
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const asList = (value) => (Array.isArray(value) ? value : [value]);

/** A value of a variable as a text to edit: JSON, unless it is a text that can't be taken for it. */
const written = (value) => (typeof value === "string" && readValue(value) === value ? value : JSON.stringify(value));

function readValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * The kinds of controls: whether a value can be shown in one, how it is made, and how it is read again; undefined leaves
 * the member out.
 */
const KINDS = {
  text: {
    fits: (value) => value === "" || isLine(value),
    make: (value, props) => input({ value: value ?? "", ...props }),
    read: (control) => control.value.trim() || undefined,
  },
  lines: {
    fits: (value) => asList(value).length > 0 && asList(value).every(isLine),
    make: (value, props) => {
      const lines = value === undefined ? [] : asList(value);
      const rows = lines.reduce((sum, line) => sum + Math.ceil(line.length / LINE), 0);
      const control = textarea(lines.join("\n"), { rows: Math.min(Math.max(rows, 2), 6), ...props });
      control.isText = typeof value === "string";
      return control;
    },
    read: (control) => {
      const found = control.value.split("\n").map((line) => line.trim()).filter(Boolean);
      // What was a text, and still is one line, stays a text.
      return found.length === 1 && control.isText ? found[0] : found.length ? found : undefined;
    },
  },
  choice: {
    fits: isLine,
    make: (value, { options, ...props }) => {
      const isKnown = value === undefined || options.some(([each]) => each === value);
      return select(isKnown ? options : [...options, [value, `${value} (not there)`]], value ?? "", props);
    },
    read: (control) => control.value || undefined,
  },
  values: {
    fits: isObject,
    make: (value, props) =>
      keyValues(Object.fromEntries(Object.entries(value ?? {}).map(([name, each]) => [name, written(each)])), props),
    read: (control) => {
      const found = Object.entries(control.read()).map(([name, text]) => [name, readValue(text)]);
      return found.length ? Object.fromEntries(found) : undefined;
    },
  },
  json: {
    fits: () => true,
    make: (value, props) => textarea(value === undefined ? "" : JSON.stringify(value, null, 2), { rows: "4", class: "code", spellcheck: "false", ...props }),
    read: (control) => {
      if (!control.value.trim()) return undefined;
      try {
        return JSON.parse(control.value);
      } catch (error) {
        throw new ApiError(422, [{ loc: ["body", ...placeOf(control)], msg: `This isn't JSON: ${error.message}.` }]);
      }
    },
  },
};

/** The place of a control in the request, as its field says at this moment. */
const placeOf = (control) => (control.closest("[data-name]")?.dataset.name ?? "").split(".");

/**
 * A part of a case: {fields, rest, read()}. `members`: [name, kind, label, {help, ...props of the control}]. `rest` is a
 * closed box with the members named in `seldom`, and JSON for what else `data` has; its title names what is in it.
 */
export function part(data, members, { title, help = null, seldom = [] }) {
  const shown = members.map(([name, kind, label, { help: hint = null, ...props } = {}]) => {
    const value = data[name] ?? undefined;
    const fits = value === undefined || KINDS[kind].fits(value);
    const control = KINDS[kind].make(fits ? value : undefined, props);
    const box = field(label, control, { help: hint, required: props.required });
    box.dataset.part = name;
    return { name, label, kind, control, box, fits };
  });
  const taken = new Set(shown.filter(({ fits }) => fits).map(({ name }) => name));
  const others = Object.entries(data).filter(([name, value]) => !taken.has(name) && value !== null && value !== undefined);
  const control = KINDS.json.make(others.length ? Object.fromEntries(others) : undefined, { rows: others.length ? "6" : "3" });
  const box = field("As JSON", control, { help });
  box.dataset.part = "";
  const boxes = Object.fromEntries(shown.map((each) => [each.name, each.box]));
  const inside = [...shown.filter(({ name }) => seldom.includes(name) && taken.has(name) && (data[name] ?? null) !== null).map(({ label }) => label.toLowerCase()), ...others.map(([name]) => name)];
  const rest = details([title, inside.length > 0 && h("span", { class: "quiet" }, `: ${inside.join(", ")}`)],
    seldom.length > 0 && fields(...seldom.map((name) => boxes[name])), box);
  return {
    fields: boxes,
    rest,
    read() {
      const found = {};
      for (const { name, kind, control: each } of shown) {
        const value = KINDS[kind].read(each);
        if (value !== undefined) found[name] = value;
      }
      const more = KINDS.json.read(control);
      if (more !== undefined && !isObject(more)) {
        throw new ApiError(422, [{ loc: ["body", ...placeOf(control)], msg: "It must be an object." }]);
      }
      return { ...found, ...more };
    },
  };
}

/** Give the fields of a part its place in the case, so that the errors of the service are shown at them. */
export function placeAt(element, place) {
  for (const box of element.querySelectorAll("[data-part]")) {
    box.dataset.name = [place, box.dataset.part].filter(Boolean).join(".");
  }
}

export const fields = (...boxes) => h("div", { class: "fields" }, boxes);
