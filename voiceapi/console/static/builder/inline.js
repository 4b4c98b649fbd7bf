// Texts edited in place, over the canvas.

import { h } from "../parts/dom.js";

/**
 * Edit texts at a point of the canvas. `fields`: [[name, label, value, placeholder, rows], ...], the last for a text of several
 * lines, in which Shift Enter begins one. Enter goes to the next field and from the last one on; Escape leaves them as they were,
 * a press elsewhere takes them over. `done(texts, how)` gets them by name, or null, and how it ended: "enter", "outside" or
 * "escape".
 */
export function editTexts(over, at, fields, done) {
  const inputs = fields.map(([name, label, value, placeholder, rows]) =>
    h(rows ? "textarea" : "input", { ...(rows ? { rows } : { type: "text" }), name, "aria-label": label, value, placeholder: placeholder ?? label, autocomplete: "off" }));
  const texts = () => Object.fromEntries(inputs.map((input) => [input.name, input.value.trim()]));
  const content = h("div", { class: "in-place", role: "group", "aria-label": fields.map(([, label]) => label).join(" and ") }, inputs);
  content.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || (event.shiftKey && event.target.rows)) return;
    event.preventDefault();
    const next = inputs[inputs.indexOf(event.target) + 1];
    next?.focus();
    if (next) next.select();
    else over.close("enter");
  });
  // By the Tab key, out of it.
  content.addEventListener("focusout", (event) => event.relatedTarget && !content.contains(event.relatedTarget) && over.close("outside"));
  over.open(content, at, (how) => done(how === "escape" ? null : texts(), how));
  inputs[0].focus({ preventScroll: true });
  inputs[0].select();
}
