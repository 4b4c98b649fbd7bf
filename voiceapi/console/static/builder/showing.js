// What an overlay's marks mean.

import { h } from "../parts/dom.js";
import { SIGNS } from "./overlays.js";

const MEANINGS = {
  touched: "passed so often", untouched: "never passed", failed: "passed by so many cases that failed", passed: "passed so often, or by these steps; the wider an edge, the oftener",
  left: "callers left here", added: "added", removed: "removed", changed: "changed", moved: "moved",
};

/** What the marks that are shown mean: none for none. */
export function legend(marks) {
  const looks = [...new Set([...marks.values()].map(({ look }) => look))].filter((look) => look in MEANINGS);
  return h("p", { class: "overlay-legend", "aria-label": "Legend" }, looks.map((look) => h("span", {}, h("span", { class: `badge-${look}` }, SIGNS[look]), ` ${MEANINGS[look]}`)));
}
