// What floats over the canvas, one thing at a time: the picker, the menu, what is edited in place.

import { h, svg } from "../parts/dom.js";

const MARGIN = 6; // pixels

/**
 * `element` covers the canvas, which `size()` gives the size of. `open(content, at, closed)` shows something near a point of
 * the canvas in pixels, until `close(how)`, a press elsewhere ("outside") or Escape ("escape"); `closed(how)` is called then.
 */
export function floating(size) {
  // Styles in the page are forbidden, so what takes up the room beside it says where it is.
  const spacer = svg("svg", { "aria-hidden": "true" });
  const element = h("div", { class: "floating", hidden: true });
  let open = null;

  function close(how = "") {
    if (!open) return;
    const { closed } = open;
    open = null;
    element.hidden = true;
    element.replaceChildren();
    document.removeEventListener("pointerdown", outside, true);
    closed(how);
  }

  const outside = (event) => !element.firstElementChild.nextElementSibling.contains(event.target) && close("outside");

  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    close("escape");
  });

  return {
    element,
    close,
    open(content, at, closed) {
      close("outside");
      open = { closed };
      element.replaceChildren(spacer, content);
      element.hidden = false;
      const { width, height } = size();
      const within = (wanted, length, own) => Math.round(Math.max(MARGIN, Math.min(wanted, length - own - MARGIN)));
      spacer.setAttribute("width", within(at.x, width, content.offsetWidth));
      spacer.setAttribute("height", within(at.y, height, content.offsetHeight));
      document.addEventListener("pointerdown", outside, true);
    },
  };
}
