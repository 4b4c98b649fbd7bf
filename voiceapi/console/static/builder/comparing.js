// Two versions of an agent on one canvas: what was added, removed, changed and moved, and the words of each change.

import { api } from "../app/api.js";
import { versionWhere } from "../app/versions.js";
import { badge, button, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { legend } from "./legend.js";
import { looking } from "./looking.js";
import { comparison, SIGNS } from "./overlays.js";
import { KINDS, memberName } from "./plain.js";

/** One member's change: its words, or its value before and after. */
export function changed({ old, new: now, words }) {
  if (words) {
    const tag = { kept: "span", removed: "del", added: "ins" };
    return h("p", { class: "words" }, words.map((part) => h(tag[part.change], {}, part.text)));
  }
  const value = (each) => (each === null ? badge("not set") : h("code", {}, typeof each === "string" ? each : JSON.stringify(each)));
  return h("p", {}, value(old), " → ", value(now));
}

/** The difference between two versions, by their numbers, as the API gives it, and how it is shown: {found, element}. */
export async function comparing(agent, from, to, signal) {
  const [found, after] = await Promise.all([
    api.get(`/workflow/${encodeURIComponent(agent)}/versions/${from}/diff/${to}`, { signal }),
    versionWhere(agent, signal, (each) => String(each.version_number) === String(to)),
  ]);
  const { definition, marks, rows } = comparison(found, after.workflow_json);
  const detail = h("div", { class: "stack", "aria-live": "polite" });
  const tell = (row) => show(detail, h("h3", { tabindex: "-1" }, row.name, row.what.map((what) => [" ", badge(SIGNS[what])])),
    row.fields.length ? row.fields.map((change) => h("div", { class: "change" }, h("h4", {}, memberName(change.field)), changed(change))) : null);
  const view = await looking(definition, {
    label: `Version ${to} compared with version ${from}`,
    signal,
    chosen: (part, isOpened) => {
      const row = part && rows.find(({ kind, id }) => kind === part.kind && id === part.id);
      if (row) tell(row);
      else show(detail, part && h("p", { class: "empty" }, "It is the same in both."));
      if (row && isOpened) detail.querySelector("h3").focus();
    },
  });
  view.overlay(marks);
  const choose = (row) => {
    view.choose(row.kind, row.id);
    tell(row);
    detail.querySelector("h3").focus();
  };
  const element = h("div", { class: "stack" }, view.element, legend(marks), detail,
    table("What differs in steps and paths", [
      ["Step or path", (row) => button(row.name, () => choose(row), { kind: "small" })],
      ["Kind", ({ kind }) => KINDS[kind]],
      ["What", ({ what }) => what.map((each) => [badge(SIGNS[each]), " "])],
    ], rows, "Steps and paths are the same."));
  return { found, element };
}
