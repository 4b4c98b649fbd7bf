// The campaigns of the organization.

import { api } from "../app/api.js";
import { every } from "../app/router.js";
import { badge, emptyState, instant, link, stateBadge, table } from "../parts/components.js";
import { h, show } from "../parts/dom.js";

const POLL = 5000;

export default async function campaigns({ root, signal, title }) {
  title("Campaigns");
  const list = h("div", { class: "card" });
  const create = () => link("New campaign", "/campaigns/new", { class: "button primary" });
  let shown = null;
  const refresh = async () => {
    const found = (await api.get("/campaign/", { signal })).campaigns;
    const text = JSON.stringify(found);
    if (text === shown) return;
    show(list, view(found));
    shown = text;
  };
  const view = (found) => table("Campaigns", [
    ["Name", (row) => link(row.name, `/campaigns/${row.id}`)],
    ["Agent", (row) => link(row.workflow_name, `/agents/${row.workflow_id}`)],
    ["State", (row) => stateBadge(row.state)],
    ["People to call", (row) => String(row.contacts_to_call ?? row.total_rows ?? ""), { number: true }],
    ["Called or skipped", (row) => String(row.processed_rows), { number: true }],
    ["Not reached", (row) => (row.failed_rows ? badge(String(row.failed_rows), "bad") : "0"), { number: true }],
    ["Calls placed", (row) => String(row.executed_count), { number: true }],
    ["Made", (row) => instant(row.created_at)],
  ], found, emptyState("There is no campaign yet. A campaign calls the people of a list with one of your agents: paste the list from a spreadsheet, or take a file.", create()));
  await refresh();
  show(root, h("div", { class: "actions" }, create()), list);
  every(POLL, signal, refresh, { later: true });
}
