// The contacts of a campaign: where each stands, and why.

import { api } from "../../app/api.js";
import { button, callout, download, field, instant, link, pager, select, stateBadge, table } from "../../parts/components.js";
import { h, show } from "../../parts/dom.js";

const STATES = [
  ["", "all"], ["queued", "wait for their first call"], ["dialing", "are being called"], ["retry", "wait to be called again"],
  ["completed", "reached: there was a conversation"], ["failed", "not reached, and not called again"], ["skipped", "skipped: not called"],
  ["unknown", "called, result unknown: the carrier never said"],
];
const LIMIT = 25;

/** The contacts of a campaign, with a filter by state and pages. `query`: {state, page}; `keep` gets what was chosen. */
export function contactList(campaign, signal, query, keep) {
  const list = h("div");
  const choice = select(STATES, query.state ?? "");
  let page = Number(query.page) || 1;
  let asked = 0;
  const load = async () => {
    const turnOf = (asked += 1);
    keep({ state: choice.value, page: page > 1 ? page : "" });
    const options = { query: { state: choice.value, page, limit: LIMIT }, signal };
    const found = await api.get(`/campaign/${campaign.id}/contacts`, options);
    if (turnOf !== asked) return; // something else was chosen meanwhile
    const turn = async (to) => {
      page = to;
      await load();
      list.querySelector(".table-box")?.focus();
    };
    show(list, contactTable(campaign, found.contacts, choice.value), pager(found.page, found.total_pages, turn));
  };
  choice.addEventListener("change", () => {
    page = 1;
    load().catch(failed);
  });
  const failed = (error) => error.name !== "AbortError" && show(list, callout(error.message));
  load().catch(failed);
  const save = async () => {
    const options = { query: { state: choice.value }, signal };
    const response = await api.send("GET", `/campaign/${campaign.id}/contacts/report`, options);
    download(`campaign-${campaign.id}-${choice.value || "all"}-contacts.csv`, await response.blob());
  };
  return h("div", {},
    h("div", { class: "filters" },
      field("Which contacts", choice), button("Refresh", load, { kind: "small" }), button("These contacts as CSV", save, { kind: "small" })),
    list);
}

function contactTable(campaign, contacts, state) {
  const empty = state ? "No contact is in this state." :
    "The list is read when the campaign is started. Until then, the dry run shows what will happen.";
  return table("Contacts", [
    ["Row", (row) => link(String(row.row), `/campaigns/${campaign.id}/contacts/${row.row}`), { number: true }],
    ["Number", (row) => link(row.phone_number || "(none)", `/campaigns/${campaign.id}/contacts/${row.row}`)],
    ["State", (row) => stateBadge(row.state)],
    ["Calls so far", (row) => String(row.attempts), { number: true }],
    ["Next call", (row) => instant(row.next_attempt_at)],
    ["Why", (row) => row.reasons.at(-1) ?? ""],
  ], contacts, empty);
}
