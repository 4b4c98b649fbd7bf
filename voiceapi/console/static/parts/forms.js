// Forms: labeled controls, the errors of a request at the fields that they name, and controls that browsers lack.

import { button } from "./controls.js";
import { append, h, show, uniqueId } from "./dom.js";
import { askBeforeLeaving } from "./unsaved.js";

/**
 * A labeled control with its help text. `name` is the field of the request's body that its errors are about, with dots
 * for what lies deeper. `control` may also be an element with controls in it, such as `keyValues(...)`.
 */
export function field(label, control, { help = null, name = null, required = false } = {}) {
  control.id ||= uniqueId("field");
  const message = h("p", { class: "field-error", id: `${control.id}-error`, hidden: true });
  const hint = help && h("p", { class: "help", id: `${control.id}-help` }, help);
  control.setAttribute("aria-describedby", [hint?.id, message.id].filter(Boolean).join(" "));
  const isCheck = control.type === "checkbox";
  const isControl = control.matches("input, select, textarea");
  if (required && isControl && !isCheck) control.required = true;
  const box = h("div", { class: isCheck ? "field check" : "field", data: name ? { name } : {} });
  const text = [label, required && h("span", { class: "required" }, " (required)")];
  const title = isControl ? h("label", { for: control.id }, text) : h("span", { class: "label", id: `${control.id}-label` }, text);
  if (!isControl) {
    control.setAttribute("role", "group");
    control.setAttribute("aria-labelledby", title.id);
  }
  append(box, [isCheck ? [control, title] : [title, control], hint, message]);
  return box;
}

export function input(props = {}) {
  return h("input", { type: "text", autocomplete: "off", ...props });
}

export function textarea(value = "", props = {}) {
  return h("textarea", { rows: "4", ...props, value: value ?? "" });
}

export function checkbox(isChecked, props = {}) {
  return h("input", { type: "checkbox", ...props, checked: Boolean(isChecked) });
}

/** The number in a control, null if it is empty; what isn't one is left to the service to refuse. */
export function numberIn(control) {
  const text = control.value.trim();
  return text === "" ? null : Number.isFinite(Number(text)) ? Number(text) : text;
}

/** A drop-down. `options`: [value, text] pairs. */
export function select(options, value, props = {}) {
  return h("select", { ...props, value }, options.map(([each, text]) => h("option", { value: each }, text)));
}

/** Fields that belong together. */
export function fieldset(title, ...children) {
  return h("fieldset", {}, h("legend", {}, title), children);
}

/** The field in a form that an error's place names, or the one that it lies in. */
function fieldOf(element, place) {
  for (let length = place.length; length > 0; length -= 1) {
    const name = place.slice(0, length).join(".");
    const found = element.querySelector(`.field[data-name="${CSS.escape(name)}"]`);
    if (found) return { box: found, rest: place.slice(length).join(".") };
  }
  return null;
}

/** Show a sentence at a field, beside those that it shows already. */
function mark(box, text) {
  const message = box.querySelector(":scope > .field-error");
  message.textContent = [message.textContent, text].filter(Boolean).join(" ");
  message.hidden = false;
  for (let outer = box.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
  box.querySelector("input, select, textarea")?.setAttribute("aria-invalid", "true");
}

function clearErrors(element) {
  for (const message of element.querySelectorAll(".field-error, .form-alert")) {
    message.textContent = "";
    message.hidden = true;
  }
  for (const control of element.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
}

/** Mark the required fields that are empty; true if there are any. */
function markMissing(element) {
  const missing = [...element.querySelectorAll(".field :required")].filter((each) => !each.value.trim() && each.checkVisibility());
  for (const control of missing) mark(control.closest(".field"), "This is needed.");
  missing[0]?.focus();
  return missing.length > 0;
}

/** Show an ApiError in a form: at the fields that it names, the rest in the form's alert. Without one, clear both. */
export function showErrors(element, error) {
  clearErrors(element);
  const others = [];
  for (const item of error?.items?.length ? error.items : error ? [{ loc: [], msg: error.message }] : []) {
    const place = item.loc.slice(1);
    const found = fieldOf(element, place);
    if (found) {
      mark(found.box, found.rest ? `${found.rest}: ${item.msg}` : item.msg);
    } else {
      others.push(place.length ? `${place.join(".")}: ${item.msg}` : item.msg);
    }
  }
  const alert = element.querySelector(":scope > .form-alert");
  alert.textContent = others.join(" ");
  alert.hidden = !others.length;
  const first = element.querySelector("[aria-invalid]");
  if (first) first.focus();
  else if (others.length) alert.scrollIntoView({ block: "nearest" });
}

/**
 * A form with its submit button. `act` gets the form, and the value of the button that submits it; its ApiError is shown
 * where it belongs, and what was typed stays. Elements after the last field, such as a button to cancel, come by `beside`.
 * `saves`: the signal until which what is typed isn't left without a question, for a form that stores it.
 * `asks(error, retry)` gives what is shown in the place of an error, or null.
 */
export function form(submit, act, ...children) {
  return formWith({ submit, act }, ...children);
}

export function formWith({ submit, act, beside = [], kind = "primary", saves = null, asks = null }, ...children) {
  const send = h("button", { type: "submit", class: `button ${kind}` }, submit);
  const alert = h("p", { class: "form-alert", role: "alert", hidden: true });
  const question = h("div");
  const element = h("form", { novalidate: true }, children, alert, question, h("div", { class: "actions" }, send, beside));
  const contents = () => JSON.stringify([...element.elements].filter((each) => each.matches("input, select, textarea"))
    .map((each) => (each.type === "checkbox" ? each.checked : each.value)));
  let stored = contents();
  /** True if it is done. */
  const carryOut = async (how = "") => {
    if (send.getAttribute("aria-disabled") === "true") return false;
    clearErrors(element);
    show(question);
    if (markMissing(element)) return false;
    send.setAttribute("aria-disabled", "true");
    try {
      await act(element, how);
      stored = contents();
      return true;
    } catch (error) {
      if (error.name === "AbortError") return false;
      const asked = asks?.(error, carryOut);
      if (!asked) showErrors(element, error);
      else {
        show(question, asked);
        question.scrollIntoView({ block: "nearest" });
      }
      return false;
    } finally {
      send.removeAttribute("aria-disabled");
    }
  };
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    carryOut(event.submitter?.value);
  });
  if (saves) askBeforeLeaving(saves, () => contents() !== stored, carryOut);
  return element;
}

/**
 * Rows of a name and a value, such as variables or headers. `read()` of the element gives an object, without rows that
 * have no name. `values`: the object to begin with.
 */
export function keyValues(values = {}, { names = "Name", contents = "Value", add = "Add a row" } = {}) {
  const rows = h("div", { class: "rows" });
  const addRow = (name = "", value = "") => {
    const row = h("div", { class: "row" },
      input({ "aria-label": names, placeholder: names, value: name }),
      input({ "aria-label": contents, placeholder: contents, value: typeof value === "string" ? value : JSON.stringify(value) }),
      button("×", () => {
        const next = row.nextElementSibling ?? row.previousElementSibling;
        row.remove();
        (next?.querySelector("input") ?? more).focus();
      }, { kind: "small plain", "aria-label": "Remove this row" }));
    rows.append(row);
    return row;
  };
  const more = button(add, () => addRow().querySelector("input").focus(), { kind: "small" });
  for (const [name, value] of Object.entries(values ?? {})) addRow(name, value);
  const element = h("div", { class: "key-values" }, rows, more);
  element.read = () => {
    const pairs = [...rows.children].map((row) => [...row.querySelectorAll("input")].map((each) => each.value));
    return Object.fromEntries(pairs.map(([name, value]) => [name.trim(), value]).filter(([name]) => name));
  };
  return element;
}

/** A place to choose a file or to drop it on. `act` gets the File. */
export function fileDrop(text, act, { accept = "" } = {}) {
  const chosen = h("p", { class: "quiet", "aria-live": "polite" });
  const control = h("input", { type: "file", accept, id: uniqueId("file") });
  const box = h("div", { class: "drop" }, h("label", { for: control.id }, text), control, chosen);
  const take = (file) => {
    if (!file) return;
    chosen.textContent = `${file.name} (${bytes(file.size)})`;
    act(file);
  };
  control.addEventListener("change", () => {
    take(control.files[0]);
    control.value = ""; // so that the same file can be chosen again, once it is mended
  });
  box.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.classList.add("over");
  });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  return box;
}

/** A number of bytes for people. */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  return count < 1_000_000 ? `${Math.round(count / 1000)} kB` : `${(count / 1_000_000).toFixed(1)} MB`;
}
