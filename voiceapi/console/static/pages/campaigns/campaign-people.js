// Whom a campaign calls now, who comes next and when, and who isn't called and why.

import { api } from "../../app/api.js";
import { instant, link, section, table } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

// How many people of each kind are shown; the tab of the contacts has all.
const MOST = 5;
// The time in a sentence of the service, such as "opens at 2026-11-30T08:00:00Z."
const INSTANT = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/;

/**
 * The contacts that are being called, each with its row's texts and its decisions, and the next and the skipped ones.
 * `counts`: how many are in each state.
 */
export async function peopleOf(path, counts, signal) {
  const of = async (state) => counts[state] > 0 ? (await api.get(`${path}/contacts`, { query: { state, page: 1, limit: MOST }, signal })).contacts : [];
  const [dialing, retry, queued, skipped] = await Promise.all(["dialing", "retry", "queued", "skipped"].map(of));
  const called = await Promise.all(dialing.map((each) => api.get(`${path}/contacts/${each.row}`, { signal })));
  return { called, next: [...retry, ...queued].sort((one, other) => (one.next_attempt_at ?? "").localeCompare(other.next_attempt_at ?? "")).slice(0, MOST), skipped };
}

/** A sentence with its times in the reader's own zone. */
const inOwnTime = (text) => text.split(INSTANT).map((part) => (INSTANT.test(part) ? instant(part) : part));

/** The number of a contact and the first texts of its row that have letters, which mostly are a name. */
const who = (campaign, contact) => [
  link(contact.phone_number || "(none)", `/campaigns/${campaign.id}/contacts/${contact.row}`), " ",
  Object.entries(contact.variables ?? {}).filter(([name, value]) => name !== "phone_number" && name !== campaign.phone_number_column && /\p{L}/u.test(value))
    .slice(0, 2).map(([, value]) => value).join(" "),
];

/** What a pause means at this moment. `contacts`: how many are in each state. */
export function pausedNow({ dialing, queued, retry }) {
  const going = dialing ? `${dialing} ${dialing === 1 ? "call that is in progress goes" : "calls that are in progress go"} on to ${dialing === 1 ? "its" : "their"} end` : "No call is in progress";
  const waiting = queued + retry;
  return `Paused. ${going}; nobody else is called before you press Resume. Then it goes on with the ${waiting} ${waiting === 1 ? "contact that waits" : "contacts that wait"}.`;
}

export function peopleNow(campaign, { called, next, skipped }) {
  const more = (state) => h("p", {}, link("All of them", `/campaigns/${campaign.id}?tab=contacts&state=${state}`));
  return h("div", { class: "now" },
    ["running", "paused"].includes(campaign.state) && section("Being called now", table("Being called now", [
      ["Contact", (each) => who(campaign, each)],
      ["Since", (each) => instant(each.decisions.at(-1)?.at)],
      ["Call", (each) => each.workflow_run_ids.length > 0 && link("follow it", `/agents/${campaign.workflow_id}/runs/${each.workflow_run_ids.at(-1)}`)],
    ], called, "Nobody at the moment.")),
    next.length > 0 && section("Comes next", table("Comes next", [
      ["Contact", (each) => who(campaign, each)],
      ["When", (each) => [new Date(each.next_attempt_at) > new Date() ? ["From ", instant(each.next_attempt_at), " on. "] : null, inOwnTime(each.reasons.at(-1) ?? "")]],
    ], next)),
    skipped.length > 0 && section("Not called, and why", table("Not called, and why", [
      ["Contact", (each) => who(campaign, each)],
      ["Why", (each) => inOwnTime(each.reasons.at(-1) ?? "")],
    ], skipped), skipped.length === MOST && more("skipped")));
}
