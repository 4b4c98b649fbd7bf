// What comes next, chosen from a list that is narrowed by typing.

import { h, show, uniqueId } from "../parts/dom.js";

/**
 * `options`: [{group, text, detail, value}, ...], or what gives those that have the typed words. `done(value, how)` gets what was
 * chosen, null if nothing was; `how` it was left then: "outside" or "escape". `over`: what `floating` gives.
 */
export function pick(over, at, { label, options, done }) {
  const list = h("div", { class: "picker-list", role: "listbox", id: uniqueId("list"), "aria-label": label });
  const input = h("input", {
    type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-label": label, "aria-expanded": "true",
    "aria-autocomplete": "list", "aria-controls": list.id, placeholder: `${label}: type to find`,
  });
  const nothing = h("p", { class: "quiet", role: "status", hidden: true }, "Nothing is called so.");
  let found = [];
  let current = 0;

  function choose(option) {
    over.close("chosen");
    done(option.value);
  }

  function light(index) {
    current = found.length ? (index + found.length) % found.length : 0;
    found.forEach(({ element }, each) => element.setAttribute("aria-selected", String(each === current)));
    const element = found[current]?.element;
    input.setAttribute("aria-activedescendant", element?.id ?? "");
    element?.scrollIntoView({ block: "nearest" });
  }

  function filter() {
    const words = input.value.toLowerCase().split(/\s+/);
    const groups = new Map();
    const has = ({ text, detail }) => words.every((word) => `${text} ${detail}`.toLowerCase().includes(word));
    found = (Array.isArray(options) ? options.filter(has) : options(input.value)).map((option) => {
      const element = h("div", { class: "picker-option", role: "option", id: uniqueId("option"), on: { click: () => choose(option) } },
        h("span", {}, option.text), h("span", { class: "quiet" }, option.detail));
      groups.set(option.group, [...groups.get(option.group) ?? [], element]);
      return { option, element };
    });
    show(list, [...groups].map(([name, elements]) => h("div", { role: "group", "aria-label": name },
      h("div", { class: "picker-group", "aria-hidden": "true" }, name), elements)));
    list.hidden = !found.length;
    nothing.hidden = found.length > 0;
    light(0);
  }

  input.addEventListener("input", filter);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) light(current + step);
    else if (event.key === "Enter" && found.length) choose(found[current].option);
    else if (event.key === "Tab") over.close("escape");
    else return;
    event.preventDefault();
  });
  const content = h("div", { class: "picker", role: "group", "aria-label": label }, input, list, nothing);
  filter();
  over.open(content, at, (how) => how !== "chosen" && done(null, how));
  input.focus({ preventScroll: true });
}
