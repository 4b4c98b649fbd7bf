// Builds elements. Text is always set as text, never parsed as markup.

const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "indeterminate"]);

/**
 * An element. `props`: `class`, `on` ({click: handler}), `data` (dataset), true or false for boolean attributes,
 * properties of the control such as `value`, `checked` and `disabled`; anything else is an attribute.
 * Children are nodes, texts, lists of them; null, undefined and false are left out.
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  let value;
  for (const [name, given] of Object.entries(props ?? {})) {
    if (given === null || given === undefined) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(given)) element.addEventListener(event, handler);
    } else if (name === "data") {
      Object.assign(element.dataset, given);
    } else if (name === "value") {
      value = given;
    } else if (PROPERTIES.has(name)) {
      element[name] = given;
    } else if (given === true || given === false) {
      element.toggleAttribute(name, given);
    } else {
      element.setAttribute(name, given);
    }
  }
  append(element, children);
  // Last: a select has its options by now, a number field its type and limits.
  if (value !== undefined) element.value = value;
  return element;
}

/** An element of a drawing: all props are attributes. */
export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  append(element, children);
  return element;
}

/** Append nodes and texts, however deep the lists of them. */
export function append(parent, children) {
  for (const child of [children].flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) parent.append(child);
  }
}

/** Show these children in an element instead of what it has. The focus stays on the control that looks the same. */
export function show(parent, ...children) {
  const find = focused(parent);
  parent.replaceChildren();
  append(parent, children);
  find?.()?.focus({ preventScroll: true });
}

/** How to find again the control in `parent` that has the focus, once its like is there; null if it has none. */
function focused(parent) {
  const was = document.activeElement;
  if (was === parent || !parent.contains(was)) return null;
  const look = (element) =>
    [element.dataset.key, element.name, element.getAttribute("aria-label"), element.getAttribute("href"),
      element.children.length || "value" in element ? "" : element.textContent].join("\n");
  const alike = () => [...parent.getElementsByTagName(was.localName)].filter((each) => look(each) === look(was));
  const at = alike().indexOf(was);
  return () => alike()[at];
}

/** The <svg> element of a drawing that the service made. */
export function drawing(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  if (parsed.querySelector("parsererror")) throw new Error("The drawing can't be read.");
  return document.importNode(parsed.documentElement, true);
}

let last = 0;

/** An id for an element that another one refers to. */
export function uniqueId(prefix = "id") {
  last += 1;
  return `${prefix}-${last}`;
}
