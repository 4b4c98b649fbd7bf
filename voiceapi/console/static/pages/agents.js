// The list of agents. Where there is none, a new one is begun at once.

import { api } from "../app/api.js";
import { go, keepQuery } from "../app/router.js";
import { button, confirm, emptyState, field, input, instant, link, notify, select, stateBadge, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import newAgent from "./agent-new.js";

export default async function agents({ root, query, signal, title }) {
  let all = await api.get("/workflow/fetch", { signal });
  if (!all.length) return newAgent({ root, signal, title });
  title("Agents");
  const wanted = { search: query.get("search") ?? "", status: query.get("status") ?? "active" };
  const list = h("div", { "aria-live": "polite" });
  const search = input({ type: "search", value: wanted.search, placeholder: "Name or id" });
  const status = select([["active", "In use"], ["archived", "Archived"], ["", "All"]], wanted.status);

  function showList() {
    wanted.search = search.value.trim();
    wanted.status = status.value;
    keepQuery({ search: wanted.search, status: wanted.status === "active" ? "" : wanted.status || "all" });
    const words = wanted.search.toLocaleLowerCase();
    const found = all
      .filter((each) => !wanted.status || each.status === wanted.status)
      .filter((each) => !words || each.name.toLocaleLowerCase().includes(words) || String(each.id) === words || each.workflow_uuid === words)
      .toReversed();
    show(list, table("Agents", [
      ["Name", (each) => link(each.name, `/agents/${each.id}`)],
      ["State", (each) => stateBadge(each.status)],
      ["Calls and chats, in all", (each) => String(each.total_runs), { number: true }],
      ["Made", (each) => instant(each.created_at)],
      ["Actions", (each) => h("div", { class: "actions" },
        link("Talk", `/agents/${each.id}/talk`, { class: "button small", "aria-label": `Talk to ${each.name}` }),
        button("Duplicate", () => duplicate(each), { kind: "small", "aria-label": `Duplicate ${each.name}` }),
        each.status === "active"
          ? button("Archive", () => archive(each), { kind: "small danger", "aria-label": `Archive ${each.name}` })
          : button("Use again", () => setStatus(each, "active"), { kind: "small", "aria-label": `Use again: ${each.name}` }))],
    ], found, emptyState("No agent is like that.", button("Show all", () => {
      search.value = "";
      status.value = "";
      showList();
    }))));
  }

  async function setStatus(each, value) {
    await api.put(`/workflow/${each.id}/status`, { body: { status: value }, signal });
    all = await api.get("/workflow/fetch", { signal });
    showList();
    notify(value === "archived" ? `“${each.name}” is archived.` : `“${each.name}” is in use again.`);
  }

  async function archive(each) {
    if (await confirm(`Archive “${each.name}”? Calls to it and by it are refused until it is in use again.`, "Archive")) await setStatus(each, "archived");
  }

  async function duplicate(each) {
    const made = await api.post(`/workflow/${each.id}/duplicate`, { signal });
    notify(`“${made.name}” was made.`);
    go(`/agents/${made.id}`);
  }

  search.addEventListener("input", showList);
  status.addEventListener("change", showList);
  if (wanted.status === "all") status.value = "";
  show(root,
    h("div", { class: "actions" }, link("New agent", "/agents/new", { class: "button primary" })),
    h("section", { class: "card", "aria-label": "List of agents" },
      h("div", { class: "fields" }, field("Search", search), field("State", status)), list));
  showList();
}
