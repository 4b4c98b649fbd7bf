// The versions of an agent: what differs between two, publish the draft, restore an earlier one.

import { api } from "../app/api.js";
import { keepQuery } from "../app/router.js";
import { changed, comparing } from "../builder/comparing.js";
import { looking } from "../builder/looking.js";
import { memberName } from "../builder/plain.js";
import { lackingView, sorted } from "../builder/publish-requirements.js";
import { alert, badge, button, confirm, details, emptyState, field, instant, link, notify, section, select, stateBadge, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";

const PAGE = 100;

export default async function versions({ root, params: [id], query, signal, title }) {
  const path = `/workflow/${id}`;
  const workflow = await api.get(`/workflow/fetch/${id}`, { signal });
  title(`Versions of ${workflow.name}`, [["Agents", "/agents"], [workflow.name, `/agents/${id}`]]);
  let all = [];
  const list = h("div");
  const compared = h("div", { class: "stack", "aria-live": "polite" });
  const picture = h("div", { class: "stack", "aria-live": "polite" });
  const first = select([], null);
  const second = select([], null);

  async function load() {
    all = [];
    for (let offset = 0; offset === all.length; offset += PAGE) {
      all.push(...await api.get(`${path}/versions`, { query: { limit: PAGE, offset }, signal }));
    }
    show(list, table("Versions", [
      ["Version", (each) => String(each.version_number), { number: true }],
      ["State", (each) => stateBadge(each.status)],
      ["Made", (each) => instant(each.created_at)],
      ["Published", (each) => instant(each.published_at)],
      ["Actions", (each) => h("div", { class: "actions" },
        button("Look", () => look(each), { kind: "small", "aria-label": `Look at version ${each.version_number}` }),
        each.status === "draft"
          ? button("Publish", () => publish(), { kind: "small", "aria-label": `Publish version ${each.version_number}` })
          : button("Restore", () => restore(each), { kind: "small", "aria-label": `Restore version ${each.version_number} as the draft` }))],
    ], all));
    const named = all.map((each) => [String(each.version_number), `Version ${each.version_number} (${each.status})`]);
    const kept = [first.value, second.value];
    for (const control of [first, second]) control.replaceChildren(...named.map(([value, text]) => h("option", { value }, text)));
    const known = new Set(named.map(([value]) => value));
    const wanted = [kept[0] || query.get("from"), kept[1] || query.get("to")];
    first.value = known.has(wanted[0]) ? wanted[0] : named[Math.min(1, named.length - 1)][0];
    second.value = known.has(wanted[1]) ? wanted[1] : named[0][0];
    await compare();
  }

  async function compare() {
    if (all.length < 2) {
      show(compared, emptyState("There is one version only. Save a change of the agent, and a draft follows it."));
      return;
    }
    keepQuery({ from: first.value, to: second.value });
    try {
      const { found, element } = await comparing(id, first.value, second.value, signal);
      show(compared, difference(found), element);
    } catch (error) {
      if (error.name !== "AbortError") show(compared, alert(error));
    }
  }

  async function look(each) {
    const number = each.version_number;
    const view = await looking(each.workflow_json, { label: `Version ${number} as it was`, signal });
    show(picture, h("section", { class: "card", "aria-label": `Version ${number}` },
      h("div", { class: "agent-head" }, h("h2", { tabindex: "-1" }, `Version ${number} as it ${each.status === "draft" ? "is" : "was"}`),
        link("Edit the draft", `/agents/${id}`, { class: "button small" })),
      view.element));
    picture.scrollIntoView({ block: "nearest" });
    picture.querySelector("h2").focus();
  }

  async function publish() {
    try {
      const done = await api.post(`${path}/publish`, { signal });
      notify(`Version ${done.version_number} is published: calls use it from now on.`);
      await load();
    } catch (error) {
      if (error.status !== 422) throw error;
      const { lacking, broken } = sorted(error.detail?.errors ?? []);
      const mend = h("p", {}, h("a", { href: `#/agents/${id}` }, "Mend it in the editor."));
      show(compared, lacking.length > 0 && lackingView(lacking, id), (broken.length > 0 || !lacking.length) && [alert(error), mend]);
    }
  }

  async function restore(each) {
    const hasDraft = all.some((version) => version.status === "draft");
    const question = hasDraft
      ? `Replace the draft by version ${each.version_number}? What the draft holds is lost.`
      : `Make a draft of version ${each.version_number}? Calls go on with the published version.`;
    if (!(await confirm(question, "Restore"))) return;
    const draft = await api.post(`${path}/versions/${each.version_number}/restore`, { signal });
    notify(`The draft, version ${draft.version_number}, is now as version ${each.version_number} was. Publish it when it is right.`);
    await load();
  }

  first.addEventListener("change", compare);
  second.addEventListener("change", compare);
  show(root,
    section("All versions", list),
    picture,
    section("What differs", h("div", { class: "fields" }, field("Before", first), field("After", second)), compared));
  await load();
}

/** The sentences, and below them each changed text by word. */
function difference(found) {
  const changes = [
    ...found.nodes.changed.map((node) => [node.name, node.fields]),
    ...found.edges.changed.map((edge) => [`Path “${edge.label}”`, edge.fields]),
    ["Settings", found.configurations],
    ["Known before the call", found.variables],
  ];
  const shown = changes.flatMap(([name, fields]) => fields.map((change) => h("div", { class: "change" },
    h("h3", {}, `${name}: ${memberName(change.field)}`), changed(change))));
  return [
    h("ul", {}, found.sentences.map((sentence) => h("li", {}, sentence))),
    shown.length ? details("Each change in full", shown) : null,
  ];
}
