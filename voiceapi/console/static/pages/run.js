// One run: its facts, the conversation beside its canvas, what came of it, reviews and webhooks; live while it goes on.

import { api } from "../app/api.js";
import { followRun } from "../app/live-run.js";
import { every, go } from "../app/router.js";
import { turnsOfRun, waitsOf } from "../app/turns.js";
import { versionWhere } from "../app/versions.js";
import {
  alert, badge, button, code, confirm, details, download, facts, instant, link, notify, seconds, section, stateBadge, table,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { words } from "../parts/words.js";
import { delivery } from "./calls/delivery.js";
import { runConversation } from "./calls/run-conversation.js";
import { answererOf, inWords, milliseconds } from "./calls/turns.js";

const PENDING_DELIVERIES = 3000;
// What the service notes in what a conversation begins with, about how the call came about.
const TECHNICAL = new Set(["provider", "direction", "telephony_configuration_id", "trigger_mode", "agent_identifier", "agent_identifier_type",
  "workflow_uuid", "agent_uuid", "api_key_id", "api_key_created_by", "runtime_configuration", "campaign_id", "simulated_callee",
  "simulated_transfer", "phone_number", "called_number", "caller_number"]);
const RECORDINGS = [["Recording", "recording_public_url"], ["The caller's side", "user_recording_public_url"], ["The agent's side", "bot_recording_public_url"]];

export default async function run({ root, params: [workflowId, runId], query, signal, title }) {
  const path = `/workflow/${encodeURIComponent(workflowId)}/runs/${encodeURIComponent(runId)}`;
  const [first, agent] = await Promise.all([
    api.get(path, { signal }),
    api.get(`/workflow/fetch/${encodeURIComponent(workflowId)}`, { signal }),
  ]);
  title(first.name, [["Agents", "/agents"], [agent.name, `/agents/${agent.id}`], ["Calls", `/runs?workflow=${agent.id}`]]);
  const [head, talkBox, side, webhooks, raw] = Array.from({ length: 5 }, () => h("div", { class: "stack" }));
  const state = h("p", { class: "hidden", "aria-live": "polite" });
  let shownDeliveries = "";
  const kept = h("p", { role: "status" }); // the test that the run was saved as
  show(root,
    state,
    h("section", { class: "card", "aria-label": "Facts" }, head),
    talkBox, side, webhooks, raw);
  show(head, headOf(first));
  const version = await versionWhere(agent.id, signal, (each) => each.id === first.definition_id);
  const turn = query.get("turn");
  const talk = await runConversation({
    version,
    label: version && `Version ${version.version_number} of ${agent.name}, and the way of this conversation`,
    wanted: /^\d+$/.test(turn ?? "") ? Number(turn) : null,
    actions: ({ number }, node) => [
      node !== null && link("Change this step's prompt", `/agents/${agent.id}?step=${encodeURIComponent(node)}`, { class: "button small" }),
      button("Make a test of it", async () => go((await makeTest({ until_turn: number })).path), { kind: "small" }),
    ],
    signal,
  });
  if (signal.aborted) return;
  show(talkBox, talk.element);
  showRun(first);
  await showWebhooks().catch((error) => show(webhooks, alert(error)));
  setTimeout(talk.reveal); // once the page has been scrolled to where it was
  follow();

  function showRun(now) {
    show(head, headOf(now));
    talk.update(now);
    showAgain(side, sideOf(now));
    showAgain(raw, details("All of it as JSON", code(now, "The run as JSON"),
      h("div", { class: "actions" }, button("Download", () => download(`run-${now.id}.json`, JSON.stringify(now, null, 2), "application/json")))));
  }

  function headOf(now) {
    return [h("div", { class: "columns" }, halves(factsOf(now)).map(facts)), h("div", { class: "actions" },
    !now.is_completed && button("End it", () => end(now), { kind: "danger" }),
    !now.is_completed && now.mode === "textchat" && link("Go on talking", `/agents/${now.workflow_id}/talk?run=${now.id}`, { class: "button" }),
    now.transcript_public_url && button("Transcript", async () =>
      download(`transcript-${now.id}.txt`, await api.text(new URL(now.transcript_public_url).pathname.replace(/^.*\/api\/v1/, ""), { signal }))),
    now.is_completed && button("Save as a test", async () => {
      const { isNew, name, path: where } = await makeTest();
      show(kept, isNew ? "It is saved as the test " : "It is a test already: ", link(name, where), ".");
    }),
    now.is_completed && link("Replay on the draft", `/agents/${now.workflow_id}/replay?runs=${now.id}`, { class: "button" }),
    link("Talk to this agent", `/agents/${now.workflow_id}/talk`, { class: "button" }), kept)];
  }

  /** A test made of the run, or of it until a turn; the one that is there if it was made before. */
  async function makeTest(asked = {}) {
    const cases = `/workflow/${agent.id}/cases`;
    const { case: found } = await api.get(`${path}/case`, { query: asked, signal });
    const made = await api.post(cases, { body: { case: found }, signal }).catch((error) => {
      if (error.status !== 409) throw error;
    });
    const { id, name } = made ?? (await api.get(cases, { signal })).find((each) => each.name === found.name);
    return { isNew: Boolean(made), name, path: `/agents/${agent.id}/tests/${id}` };
  }

  async function end(now) {
    const question = now.mode === "textchat" ? "End this chat?" : "Hang up on this call?";
    if (!(await confirm(question, now.mode === "textchat" ? "End it" : "Hang up"))) return;
    const ended = await api.post(`${path}/end`, { signal });
    showRun(ended);
    notify(ended.is_completed ? "It has ended." : "The carrier is asked to end the call.");
  }

  /** The run's webhooks; true while one waits to be sent. */
  async function showWebhooks() {
    const { deliveries } = await api.get(`${path}/deliveries`, { signal });
    const views = deliveries.map((each) => delivery(each, { reload: showWebhooks, signal, isOfRun: true }));
    if (JSON.stringify(deliveries) !== shownDeliveries) showAgain(webhooks, views.length ? section(deliveries.some((each) => each.method === "PYTHON") ? "Webhooks and functions" : "Webhooks", views) : null);
    shownDeliveries = JSON.stringify(deliveries);
    return deliveries.some((each) => each.state === "pending");
  }

  /** Follow the run to its end, then what is done after it, which goes on without anybody here waiting. */
  async function follow() {
    if (!first.is_completed) {
      await followRun(workflowId, runId, signal, (now) => {
        showRun(now);
        if (now.is_completed) state.textContent = `It has ended. The result: ${words(now.disposition ?? "ended")}.`;
      });
    }
    const done = new AbortController();
    signal.addEventListener("abort", () => done.abort(), { once: true });
    await every(PENDING_DELIVERIES, done.signal, async () => {
      const isPending = await showWebhooks();
      if (!first.is_completed || isPending) showRun(await api.get(path, { signal }));
      if (!isPending) done.abort();
    });
  }
}

/** As `show`; what was opened stays open. */
function showAgain(place, ...children) {
  const opened = new Set([...place.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  show(place, children);
  for (const summary of place.querySelectorAll("details > summary")) summary.parentElement.open ||= opened.has(summary.textContent);
}

function statusView(status) {
  const more = ["price", "currency", "machine", "other_leg", "other_call"].filter((name) => status[name] !== null && status[name] !== undefined);
  return h("li", {}, stateBadge(status.status), " ", instant(status.timestamp), status.duration != null && `, lasted ${seconds(status.duration)}`,
    more.map((name) => `, ${words(name)} ${inWords(status[name])}`));
}

const halves = (pairs) => [pairs.slice(0, Math.ceil(pairs.length / 2)), pairs.slice(Math.ceil(pairs.length / 2))];

function factsOf(run) {
  const gathered = run.gathered_context ?? {};
  const price = run.annotations?.call_price;
  return [
    ["Result", run.is_completed ? stateBadge(run.disposition ?? "ended") : badge("in progress", "busy")],
    ["What went wrong", gathered.error],
    ["Kind", [run.mode === "textchat" ? "Chat" : `${run.call_type === "inbound" ? "Call in" : "Call out"}, ${run.mode}`,
      run.is_test && [" ", badge("test")]]],
    ["From", run.caller_number],
    ["To", run.called_number],
    ["Began", instant(run.created_at)],
    ["Lasted", run.call_duration_seconds === null ? null : seconds(run.call_duration_seconds)],
    ["Carrier account", gathered.telephony_configuration_id && link(gathered.telephony_configuration_name ?? "its account", `/carriers/${gathered.telephony_configuration_id}`)],
    ["The carrier's id of the call", gathered.call_id && h("code", {}, gathered.call_id)],
    ["Answered by", answererOf(run)],
    ["Price", price && `${price.amount} ${price.currency ?? ""}`],
    ["Tags", gathered.call_tags?.length ? gathered.call_tags.map((tag) => [stateBadge(tag), " "]) : null],
    ...RECORDINGS.map(([name, member]) => [name, run[member] && h("audio", { controls: true, src: run[member] })]),
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
}

function sideOf(run) {
  const found = run.gathered_context?.extracted_variables ?? {};
  const waits = waitsOf(turnsOfRun(run));
  const median = (seconds) => (seconds[Math.floor((seconds.length - 1) / 2)] + seconds[Math.floor(seconds.length / 2)]) / 2;
  const tokens = Object.entries(run.usage_info?.llm ?? {});
  // The mark of a chat that was typed in the console says nothing that the page doesn't.
  const { call_price: _, tester: __, ...notes } = run.annotations ?? {};
  const [reviews, others] = [true, false].map((isReview) => Object.entries(notes).filter(([name]) => name.startsWith("qa_") === isReview));
  const statuses = run.logs?.telephony_status_callbacks ?? [];
  const [technical, own] = [true, false].map((isIt) => Object.entries(run.initial_context ?? {}).filter(([name]) => TECHNICAL.has(name) === isIt));
  return h("div", { class: "run-more" },
    section("Answers", values(found, "It gathered no answers.")),
    section("Known before the call", values(Object.fromEntries(own), "Nothing."),
      technical.length > 0 && details("How it came about", values(Object.fromEntries(technical)))),
    waits.length > 0 && section("How long the caller waited", table("Waits of the caller", [
      ["Until", ([name]) => name],
      ["Turns", ([, seconds]) => String(seconds.length), { number: true }],
      ["Median", ([, seconds]) => milliseconds(median(seconds) * 1000), { number: true }],
      ["Slowest", ([, seconds]) => milliseconds(seconds.at(-1) * 1000), { number: true }],
    ], waits)),
    statuses.length > 0 && section("What the carrier reported", h("ul", { class: "plain-list" }, statuses.map(statusView))),
    tokens.length > 0 && section("Tokens of the language model", table("Tokens of this run", [
      ["Model", ([model]) => model.replace("|||", " ")],
      ["Tokens", ([, counts]) => Object.entries(counts).map(([kind, count]) => `${count} ${words(kind)}`).join(", ")],
    ], tokens)),
    reviews.length > 0 && section("Reviews of the conversation", reviews.map(([name, value]) => details(`By the step ${name.slice(3)}`, code(value, name)))),
    others.length > 0 && section("Notes", values(Object.fromEntries(others))));
}

function values(found, empty = "") {
  const pairs = Object.entries(found);
  return pairs.length ? facts(pairs.map(([name, value]) => [name, inWords(value)])) : h("p", { class: "empty" }, empty);
}
