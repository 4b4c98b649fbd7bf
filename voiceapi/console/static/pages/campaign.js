// One campaign: its course, its contacts, the dry run, its settings and its log.

import { api } from "../app/api.js";
import { Edited } from "../app/edited.js";
import { every, go, keepQuery } from "../app/router.js";
import {
  badge, button, callout, checkbox, confirm, details, dialogForm, download, facts, field, formWith, input, instant, link, notify,
  progress, showWhenReady, stateBadge, table, tabs, words,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { isUnsaved, oneAfterAnother } from "../parts/unsaved.js";
import { contactList } from "./campaigns/campaign-contacts.js";
import { peopleOf, peopleNow, pausedNow } from "./campaigns/campaign-people.js";
import { dryRun } from "./campaigns/campaign-dry-run.js";
import { hoursInWords, settingsFields, settingsInWords } from "./campaigns/campaign-settings.js";

const AT_WORK = ["syncing", "running"];
const POLL = 2000;
const TABS = ["progress", "contacts", "dry-run", "settings", "log"];

export default async function campaignPage({ root, params, query, signal, title }) {
  const id = params[0];
  const path = `/campaign/${encodeURIComponent(id)}`;
  let campaign = await api.get(path, { signal });
  const head = h("div", { class: "card" });
  const course = h("div");
  const log = h("div");
  const state = h("p", { class: "hidden", "aria-live": "polite" });
  let asked = 0;
  let isCourseOld = true;
  // What is shown in each place, as text.
  const shown = new Map();
  const update = (place, given, view) => {
    const text = JSON.stringify(given);
    if (shown.get(place) !== text) show(place, view());
    shown.set(place, text);
  };

  /** Ask for what is shown and changes while the campaign is at work; `known`: the campaign, if it was just asked for. */
  const refresh = async (known = null) => {
    const turn = (asked += 1);
    const isCourseSeen = course.isConnected;
    const asksProgress = isCourseSeen && api.get(`${path}/progress`, { signal });
    const [now, progressed, outcomes, people] = await Promise.all([
      known ?? api.get(path, { signal }),
      asksProgress,
      isCourseSeen && api.get(`${path}/outcomes`, { signal }),
      isCourseSeen && asksProgress.then(({ contacts }) => peopleOf(path, contacts, signal)),
    ]);
    if (turn !== asked) return; // an answer to a later question is newer
    if (now.state !== campaign.state) state.textContent = `The campaign is ${now.state}.`;
    campaign = now;
    showHead();
    if (isCourseSeen) {
      update(course, [now.state, now.executed_count, progressed, outcomes, people], () => courseOf(campaign, progressed, outcomes, people));
      isCourseOld = false;
    }
  };
  const showHead = () => {
    title(campaign.name, [["Campaigns", "/campaigns"]]);
    const { name, state: now, failed_rows: failed, redialed_campaign_id: redialed } = campaign;
    update(head, [name, now, failed > 0, redialed], () => headOf(campaign, act, signal));
    update(log, campaign.logs, () => logOf(campaign));
  };
  const act = async (what) => {
    await api.post(`${path}/${what}`, { signal });
    await refresh();
  };

  const at = Math.max(0, TABS.indexOf(query.get("tab")));
  const keep = (tab, more = {}) => keepQuery({ tab: tab === "progress" ? "" : tab, ...more });
  const first = { state: query.get("state"), page: query.get("page") };
  const contacts = () => contactList(campaign, signal, first, (chosen) => {
    Object.assign(first, chosen);
    keep("contacts", chosen);
  });
  let settings = null;
  const next = oneAfterAnother(signal);
  const showSettings = () => {
    settings ??= h("div");
    showWhenReady(settings, settingsOf(path, next(), () => refresh(), showSettings), (element) => element);
    return settings;
  };
  showHead();
  show(root,
    state, head,
    h("div", { class: "card" }, tabs("Parts of the campaign", [
      ["Progress", () => {
        isCourseOld = true;
        return course;
      }],
      ["Contacts", contacts],
      ["Dry run", () => dryRun(campaign, signal)],
      ["Settings", () => (isUnsaved() ? settings : showSettings())], // what is typed stays while another tab is looked at
      ["Log", () => log],
    ], { at, chosen: (number) => keep(TABS[number], TABS[number] === "contacts" ? first : {}) })));
  await refresh(campaign);
  let rounds = 0;
  every(POLL, signal, async () => {
    rounds += 1;
    // What isn't at work is changed by people only.
    if (AT_WORK.includes(campaign.state) || (isCourseOld && course.isConnected) || rounds % 5 === 0) await refresh();
  }, { later: true });
}

function headOf(campaign, act, signal) {
  const can = {
    created: [["Start", "start", "primary"]],
    syncing: [["Pause", "pause", ""]],
    running: [["Pause", "pause", ""]],
    paused: [["Resume", "resume", "primary"]],
  }[campaign.state] ?? [];
  const acted = async (what) => {
    if (what === "start" && !(await confirm(await startQuestion(campaign, signal), "Start calling"))) return;
    await act(what);
  };
  return [
    facts([
      ["State", stateBadge(campaign.state)],
      ["Agent", link(campaign.workflow_name, `/agents/${campaign.workflow_id}`)],
      ["Carrier account", campaign.telephony_configuration_id && link(campaign.telephony_configuration_name, `/carriers/${campaign.telephony_configuration_id}`)],
      ["Column with the numbers", campaign.phone_number_column],
      ["Calls again who wasn't reached by", campaign.parent_campaign_id && link(`campaign ${campaign.parent_campaign_id}`, `/campaigns/${campaign.parent_campaign_id}`)],
      ["Who wasn't reached is called again by", campaign.redialed_campaign_id && link(`campaign ${campaign.redialed_campaign_id}`, `/campaigns/${campaign.redialed_campaign_id}`)],
    ]),
    h("div", { class: "actions" },
      can.map(([text, what, kind]) => button(text, () => acted(what), { kind })),
      campaign.state === "completed" && campaign.failed_rows > 0 && !campaign.redialed_campaign_id && button("Call again who wasn't reached", () => redial(campaign, signal)),
      link("Its calls", `/runs?campaign=${campaign.id}`, { class: "button" }),
      button("Report as CSV", async () =>
        download(`campaign-${campaign.id}-report.csv`, await api.text(`/campaign/${campaign.id}/report`, { signal }), "text/csv")),
      button("Contact list", () => openList(campaign, signal))),
  ];
}

/** Whom a campaign would call, through which carrier, and when. */
async function startQuestion(campaign, signal) {
  const { contacts_to_call: count, telephony_configuration_name: carrier } = campaign;
  const contacts = count === null ? "the people of its list" : `${count} ${count === 1 ? "person" : "people"}`;
  const hours = hoursInWords(campaign, await api.get("/organizations/preferences", { signal }));
  return `Start “${campaign.name}”? It calls ${contacts} through ${carrier ?? "its carrier account"}, ` +
    (hours.length ? `${hours.join(", and ")}.` : "at any time of the day and night: no hours are set.");
}

async function openList(campaign, signal) {
  const { download_url: url } = await api.get(`/campaign/${campaign.id}/source-download-url`, { signal });
  // The address is that of the public URL, which this browser may not reach; its path is the same here.
  const { pathname, search } = new URL(url);
  const path = pathname.slice(pathname.indexOf("/api/v1") + "/api/v1".length);
  const response = await api.send("GET", path, { query: Object.fromEntries(new URLSearchParams(search)), signal });
  download(`campaign-${campaign.id}-contacts.csv`, await response.blob());
}

async function redial(campaign, signal) {
  const name = input({ value: `${campaign.name} (Redial)`.slice(-255), maxlength: "255" });
  const flags = [["retry_on_voicemail", "Voicemail answered"], ["retry_on_no_answer", "Nobody answered"], ["retry_on_busy", "The line was busy"], ["retry_on_refused", "The carrier refused the call"]]
    .map(([key, text]) => [key, text, checkbox(true)]);
  const made = await dialogForm({
    title: "Call again who wasn't reached",
    submit: "Make the campaign",
    act: () => api.post(`/campaign/${campaign.id}/redial`, {
      body: { name: name.value.trim() || null, ...Object.fromEntries(flags.map(([key, , control]) => [key, control.checked])) }, signal,
    }),
  }, h("p", {}, "It makes a campaign of the contacts that failed, by what their last call came to. It can be made once."),
  field("Name", name, { name: "name" }), flags.map(([key, text, control]) => field(text, control, { name: key })));
  if (made) go(`/campaigns/${made.id}`);
}

function courseOf(campaign, progressed, outcomes, people) {
  const { contacts } = progressed;
  // Rows that can't be called aren't among those to call, as in the list of campaigns.
  const total = progressed.total_rows;
  const done = total - contacts.queued - contacts.dialing - contacts.retry;
  // Contacts are stored after the start; until then their number is that of the list.
  const isListed = campaign.state === "created" && !total;
  const calls = Object.entries(outcomes.outcomes).filter(([, count]) => count);
  const share = (count, all) => `${Math.round((100 * count) / all)} %`;
  const made = calls.reduce((sum, [, count]) => sum + count, 0);
  const coded = outcomes.dispositions.reduce((sum, each) => sum + each.calls, 0);
  return h("div", { class: "page" },
    isListed && callout("It isn't started yet, and nobody is called. The dry run shows what would happen."),
    progressed.source_sync.error && callout(progressed.source_sync.error),
    progressed.not_dialed_since && callout("Nothing has dialed since ", instant(progressed.not_dialed_since),
      ": no process that dials is at work. Whoever runs the service has to start one."),
    campaign.state === "paused" && callout(pausedNow(contacts)),
    total ? progress("People to call who are done with", done, total) : null,
    h("p", { class: "quiet" }, "Contacts of the list, as they stand now:"),
    counters([
      ["Wait for their first call", isListed ? campaign.contacts_to_call ?? "not counted yet" : contacts.queued],
      ["Are being called", contacts.dialing],
      ["Wait to be called again", contacts.retry],
      ["Reached", contacts.completed],
      ["Not reached", contacts.failed],
      !isListed && ["Skipped, not called", contacts.skipped],
      ["Called, result unknown", contacts.unknown],
    ]),
    people && peopleNow(campaign, people),
    facts([["Started", instant(progressed.started_at)], ["Completed", instant(progressed.completed_at)], ["Calls placed since the start", String(campaign.executed_count)]]),
    h("div", { class: "columns" },
      h("div", {}, h("h2", {}, "Answered or not"), table("Calls, answered or not", [
        ["Call", ([name]) => badge(words(name), name === "answered" ? "good" : "")],
        ["Calls", ([, count]) => String(count), { number: true }],
        ["Share", ([, count]) => share(count, made), { number: true }],
      ], calls, "No call has ended yet.")),
      h("div", {}, h("h2", {}, "Results of the conversations"), table("Results of the conversations", [
        ["Result", (each) => stateBadge(each.disposition)],
        ["Calls", (each) => String(each.calls), { number: true }],
        ["Share", (each) => share(each.calls, coded), { number: true }],
      ], outcomes.dispositions, "No call has ended yet."))));
}

function counters(pairs) {
  return h("dl", { class: "counters" }, pairs.filter(Boolean).map(([name, count]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(count)))));
}

async function settingsOf(path, signal, refresh, again) {
  const record = await Edited.read(path, signal);
  const campaign = record.value;
  const inWords = h("div", {}, facts(settingsInWords(campaign)));
  if (["completed", "failed"].includes(campaign.state)) return h("div", {}, inWords, h("p", { class: "quiet" }, "It has ended."));
  const defaults = await api.get("/organizations/campaign-defaults", { signal });
  const name = input({ value: campaign.name, maxlength: "255" });
  const settings = settingsFields(campaign, defaults.concurrent_call_limit);
  const save = async () => {
    const saved = await record.send("PATCH", { name: name.value.trim(), ...settings.read() });
    show(inWords, facts(settingsInWords(saved)));
    notify("The settings are saved.");
    await refresh();
  };
  return h("div", { class: "page" }, inWords,
    details("Change them", formWith({ submit: "Save", act: save, saves: signal, asks: record.asks("This campaign was", again) },
      field("Name", name, { name: "name", required: true }), settings)));
}

function logOf(campaign) {
  return table("Log of the campaign", [
    ["When", (entry) => instant(entry.ts)],
    ["What", (entry) => badge(words(entry.event), entry.level === "error" ? "bad" : entry.level === "warning" ? "busy" : "")],
    ["Why", (entry) => entry.message],
  ], [...campaign.logs].reverse(), "Nothing has gone wrong.");
}
