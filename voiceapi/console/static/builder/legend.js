// What an overlay's marks mean.

import { h } from "../parts/dom.js";
import { SIGNS } from "./overlays.js";

const MEANINGS = {
  touched: "so many tests or callers came here", untouched: "none came here", failed: "so many tests came here, and so many of them failed",
  passed: "callers came here so often; the wider a path, the more often", step: "which steps of the conversation these are",
  left: "callers came here so often, and so many ended the conversation here", added: "", removed: "", changed: "", moved: "", // the sign says it
};

/** What the marks that are shown mean; nothing for none. */
export function legend(marks) {
  const looks = Object.keys(MEANINGS).filter((look) => [...marks.values()].some((mark) => mark.look === look));
  return h("p", { class: "overlay-legend", role: "note", "aria-label": "Legend" },
    looks.map((look) => h("span", {}, h("span", { class: `badge-${look}` }, SIGNS[look]), MEANINGS[look] && ` ${MEANINGS[look]}`)));
}
