// The start: what to do next, how much there is, what agents speak and call with, and what may be in the way.

import { api } from "../app/api.js";
import {
  badge, emptyState, facts, instant, link, progress, seconds, section, showWhenReady, stateBadge, table,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { findingBadge, findingName, findingText } from "./setup/doctor.js";
import { modelInUse } from "./setup/model-settings.js";

const SIMULATOR = "simulator";
const LATELY = 6;

export default async function home({ root, signal, title }) {
  const agents = api.get("/workflow/fetch", { query: { status: "active" }, signal });
  const usage = api.get("/organizations/usage/runs", { query: { limit: LATELY }, signal });
  const totals = api.get("/organizations/usage/totals", { query: { include_tests: true }, signal });
  const campaigns = api.get("/campaign/", { signal }).then((answer) => answer.campaigns);
  const carriers = api.get("/organizations/telephony-configs", { signal }).then((answer) => answer.configurations);
  const model = api.get("/organizations/model-configurations/v2", { signal });
  const preferences = api.get("/organizations/preferences", { signal });
  const all = { agents, usage, totals, campaigns, carriers, model, preferences };
  // Each part of the page shows its own errors; only that nobody is let in concerns all of it.
  for (const each of Object.values(all)) each.catch(() => {});
  await agents.catch((error) => {
    if (error.status === 401) throw error;
  });

  const [next, counts, inUse, runs, running, doctor] = ["What to do next", "So far", "Set up", "The latest calls and chats",
    "Campaigns under way", "Checked just now"].map((name) => [h("div"), name]);
  const card = ([box, name]) => section(name, box);
  show(root,
    h("div", { class: "actions" }, link("New agent", "/agents/new", { class: "button primary" })),
    h("div", { class: "columns" }, card(next), card(counts), card(inUse)),
    card(running), card(runs), card(doctor));
  title("Home");
  const parts = [
    showWhenReady(next[0], settled(all), (found) => nextSteps(found)),
    showWhenReady(counts[0], settled(all), (found) => whatThereIs(found)),
    showWhenReady(inUse[0], settled({ carriers, model }), (found) => whatIsInUse(found)),
    showWhenReady(runs[0], usage, (answer) => runsLately(answer.runs)),
    showWhenReady(running[0], campaigns, (found) => campaignsUnderWay(found)),
  ];
  await Promise.all(parts);
  // It asks other servers, which may take its time; the page doesn't wait for it.
  show(doctor[0], h("p", { class: "loading" }, "Asking the model and the carriers…"));
  showDoctor(doctor[0], signal);
}

/** What each promise gives, by name; null for one that failed, whose error its own part of the page shows. */
async function settled(promises) {
  const outcomes = await Promise.allSettled(Object.values(promises));
  const failed = outcomes.filter((each) => each.status === "rejected");
  if (failed.length === outcomes.length) throw failed[0].reason;
  return Object.fromEntries(Object.keys(promises).map((name, at) => [name, outcomes[at].value ?? null]));
}

const isReal = (carrier) => carrier.provider !== SIMULATOR && !carrier.inactive;

/** The three steps that help most now: [text of the link, path, why]. */
function nextSteps({ agents, usage, campaigns, carriers, model, preferences }) {
  const latest = agents?.[0];
  const real = carriers?.filter(isReal);
  const blocked = real?.find((carrier) => !carrier.is_ready_for_outbound);
  const isScripted = model && modelInUse(model).isScripted;
  const isUnlimited = preferences && preferences.allowed_countries === null && preferences.max_calls_a_day === null;
  const steps = [
    agents?.length === 0 && ["Make your first agent", "/agents/new", "Say what it should do, or begin with a template."],
    latest && usage?.total_count === 0 &&
      [`Talk to ${latest.name}`, `/agents/${latest.id}/talk`, "By text or by voice, right here. Nobody is called."],
    blocked && [`Finish ${blocked.name}`, `/carriers/${blocked.id}`, blocked.outbound_blocked_reason ?? "It can't place calls yet."],
    real?.length > 0 && isUnlimited &&
      ["Limit what calls may cost", "/settings/preferences", "By country or by day, in case a key gets lost."],
    isScripted && ["Choose a language model", "/settings/models", "So far agents say what you wrote, word for word."],
    real?.length === 0 && ["Connect a telephone number", "/carriers/connect", "So far no real telephone rings: calls are simulated."],
    latest && campaigns?.length === 0 && ["Call a list of people", "/campaigns/new", "From a spreadsheet. A dry run shows how it would go, without calling anybody."],
    latest && [`Change ${latest.name}`, `/agents/${latest.id}`, "See its steps as a picture, and change what it says."],
    usage?.total_count > 0 && ["Look at the calls", "/runs", "What was said in each, and how it ended."],
    ["Give an agent something to look up", "/documents", "It answers from documents that you add."],
    ["Let an agent do something", "/tools", "Such as asking your shop's server, or putting the caller through to a person."],
  ];
  return h("ol", { class: "steps" }, steps.filter(Boolean).slice(0, 3).map(([text, path, why]) =>
    h("li", {}, link(text, path), h("p", { class: "quiet" }, why))));
}

function whatThereIs({ agents, totals, campaigns, carriers }) {
  const running = campaigns?.filter((each) => each.state === "running").length;
  return facts([
    ["Agents", agents && [link(String(agents.length), "/agents"), " in use"]],
    ["Calls and chats", totals && [link(String(totals.total_count), "/runs"), " since the beginning, tests included"]],
    ["Time talked", totals && [seconds(totals.total_duration_seconds), " in all of them together"]],
    ["Campaigns", campaigns && [link(String(campaigns.length), "/campaigns"), ` in all, ${running} running now`]],
    ["Carrier accounts", carriers && [link(String(carriers.filter(isReal).length), "/carriers"), " for real calls",
      carriers.some((carrier) => carrier.provider === SIMULATOR) && ", and the simulator"]],
  ]);
}

function whatIsInUse({ carriers, model }) {
  const used = model && modelInUse(model);
  const outbound = carriers?.find((carrier) => carrier.is_default_outbound) ?? carriers?.[0];
  return facts([
    ["Language model", used ? [link(used.name, "/settings/models"), used.note && h("div", { class: "quiet" }, used.note)] : "can't be read"],
    ["Calls out go through", outbound ? [
      link(outbound.name, `/carriers/${outbound.id}`), " ",
      outbound.provider === SIMULATOR ? h("span", { class: "quiet" }, "no real telephone rings")
        : outbound.is_ready_for_outbound ? badge("complete", "good") : badge("incomplete", "bad"),
      outbound.outbound_blocked_reason && h("div", { class: "quiet" }, outbound.outbound_blocked_reason),
    ] : link("none", "/carriers")],
  ]);
}

function runsLately(runs) {
  return table("The latest calls and chats", [
    ["When", (run) => link(instant(run.created_at), `/agents/${run.workflow_id}/runs/${run.id}`, { "aria-label": `${run.name}, ${new Date(run.created_at).toLocaleString()}` })],
    ["Agent", (run) => run.workflow_name],
    ["With whom", (run) => run.phone_number ?? (run.mode === "textchat" ? "chat" : "")],
    ["Lasted", (run) => seconds(run.call_duration_seconds), { number: true }],
    ["Result", (run) => (run.is_completed === false ? badge("in progress", "busy") : stateBadge(run.disposition))],
  ], runs, emptyState("Nobody has talked to an agent yet.", link("Go to the agents", "/agents", { class: "button" })));
}

function campaignsUnderWay(campaigns) {
  const found = campaigns.filter((each) => ["running", "syncing", "paused"].includes(each.state));
  if (!found.length) return emptyState("No campaign is under way.", link("New campaign", "/campaigns/new", { class: "button" }));
  return h("ul", { class: "plain-list" }, found.map((each) => h("li", {},
    h("div", { class: "actions" }, link(each.name, `/campaigns/${each.id}`), stateBadge(each.state)),
    progress("Contacts called at least once", each.processed_rows, each.total_rows ?? 0))));
}

function showDoctor(box, signal) {
  showWhenReady(box, api.get("/organizations/doctor", { signal }), ({ findings }) =>
    h("ul", { class: "plain-list" }, findings.map((finding) => h("li", {},
      h("div", { class: "actions" }, findingBadge(finding), h("span", {}, findingName(finding))),
      findingText(finding).some(Boolean) && h("p", { class: "quiet" }, findingText(finding))))));
}
