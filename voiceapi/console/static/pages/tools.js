// The tools of the organization: what agents can do besides talking.

import { api } from "../app/api.js";
import { keepQuery } from "../app/router.js";
import { emptyState, field, instant, link, section, select, stateBadge, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { KINDS } from "./setup/tool-forms.js";

const NAMES = new Map([...KINDS.map(([kind, name]) => [kind, name]), ["python", "A function of your app"]]);

export default async function tools({ root, query, signal, title }) {
  const list = h("div", { "aria-live": "polite" });
  const status = select([["active", "in use"], ["archived", "archived"], ["active,draft,archived", "all"]], query.get("status") ?? "active");
  const load = async () => {
    keepQuery({ status: status.value === "active" ? "" : status.value });
    const found = await api.get("/tools/", { query: { status: status.value }, signal });
    show(list, table("Tools", [
      ["Name", (row) => link(row.name, `/tools/${row.tool_uuid}`)],
      ["What it does", (row) => NAMES.get(row.category) ?? row.category],
      ["When the agent uses it", (row) => row.description],
      ["State", (row) => stateBadge(row.status)],
      ["Changed", (row) => instant(row.updated_at ?? row.created_at)],
    ], found, emptyState("There is no tool yet. Make one with the buttons above; then open an agent, choose a step of it, and tick the tool there.", link("Go to the agents", "/agents", { class: "button" }))));
  };
  status.addEventListener("change", () => load().catch((error) => show(list, h("p", { class: "form-alert" }, error.message))));
  await load();
  title("Tools");
  show(root,
    section("New tool", h("p", { class: "quiet" }, "A tool is something an agent can do besides talking. Choose what it should do:"), h("ul", { class: "choices" }, KINDS.map(([kind, name, what]) =>
      h("li", {}, link(name, `/tools/new?kind=${kind}`, { class: "button" }), h("span", { class: "quiet" }, ` ${what}`))))),
    h("div", { class: "card" }, h("div", { class: "filters" }, field("State", status)), list));
}
