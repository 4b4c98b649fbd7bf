// One contact of a campaign: each decision about it, with its reason.

import { api } from "../app/api.js";
import { badge, facts, instant, link, section, stateBadge, table, words } from "../parts/components.js";
import { h, show } from "../parts/dom.js";

export default async function contactPage({ root, params, signal, title }) {
  const [id, row] = params.map(encodeURIComponent);
  const [campaign, contact] = await Promise.all([
    api.get(`/campaign/${id}`, { signal }), api.get(`/campaign/${id}/contacts/${row}`, { signal }),
  ]);
  title(`Contact ${contact.row}: ${contact.phone_number || "no number"}`, [
    ["Campaigns", "/campaigns"], [campaign.name, `/campaigns/${campaign.id}`], ["Contacts", `/campaigns/${campaign.id}?tab=contacts`],
  ]);
  const variables = Object.entries(contact.variables);
  const decided = new Set(contact.decisions.map((each) => each.reason));
  // Why a contact that is due isn't called yet is no decision: it passes.
  const waits = contact.reasons.filter((reason) => !decided.has(reason));
  show(root,
    section("Where it stands", facts([
      ["State", stateBadge(contact.state)],
      ["Calls so far", String(contact.attempts)],
      ["Next call", instant(contact.next_attempt_at)],
      ["Now", waits.join(" ")],
    ])),
    section("What was decided", table("Decisions about this contact", [
      ["When", (each) => instant(each.at)],
      ["What", (each) => badge(words(each.code), each.code === "answered" ? "good" : "")],
      ["Why", (each) => each.reason],
      ["Call", (each) => each.workflow_run_id && link(`call ${each.workflow_run_id}`, `/agents/${campaign.workflow_id}/runs/${each.workflow_run_id}`)],
    ], contact.decisions, "Nothing was decided about it yet.")),
    section("What its row of the list says", variables.length
      ? table("What its row of the list says", [["Column", ([name]) => h("code", {}, name)], ["Value", ([, value]) => String(value)]], variables)
      : h("p", { class: "empty" }, "Its row can't be read.")));
}
