// What an overlay's marks mean.

import { h } from "../parts/dom.js";
import { SIGNS } from "./overlays.js";

const MEANINGS = {
  touched: "passed by so many", untouched: "passed by none", failed: "passed by so many that failed", passed: "passed so often; the wider an edge, the oftener",
  step: "passed by these steps", left: "passed so often, and where callers left", added: "added", removed: "removed", changed: "changed", moved: "moved",
};

/** What the marks that are shown mean; nothing for none. */
export function legend(marks) {
  const looks = Object.keys(MEANINGS).filter((look) => [...marks.values()].some((mark) => mark.look === look));
  return h("p", { class: "overlay-legend", role: "note", "aria-label": "Legend" },
    looks.map((look) => h("span", {}, h("span", { class: `badge-${look}` }, SIGNS[look]), ` ${MEANINGS[look]}`)));
}
