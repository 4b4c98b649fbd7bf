// One run: its facts, what was said and why, the carrier's statuses, use, reviews and webhooks; live while it goes on.

import { api } from "../app/api.js";
import { followRun } from "../app/live-run.js";
import { every } from "../app/router.js";
import { turnsOfRun, waitsOf } from "../app/turns.js";
import { versionWhere } from "../app/versions.js";
import { course } from "../builder/course.js";
import { items } from "../builder/items.js";
import { looking } from "../builder/looking.js";
import {
  alert, badge, button, code, confirm, details, download, facts, instant, link, notify, seconds, section, stateBadge, table,
} from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { delivery } from "./calls/delivery.js";
import { inWords, milliseconds, showList, turnView } from "./calls/turns.js";

const PENDING_DELIVERIES = 3000;
const RECORDINGS = [["Recording", "recording_public_url"], ["The caller's side", "user_recording_public_url"], ["The agent's side", "bot_recording_public_url"]];

export default async function run({ root, params: [workflowId, runId], signal, title }) {
  const path = `/workflow/${encodeURIComponent(workflowId)}/runs/${encodeURIComponent(runId)}`;
  const [first, agent] = await Promise.all([
    api.get(path, { signal }),
    api.get(`/workflow/fetch/${encodeURIComponent(workflowId)}`, { signal }),
  ]);
  title(first.name, [["Agents", "/agents"], [agent.name, `/agents/${agent.id}`], ["Runs", `/runs?workflow=${agent.id}`]]);
  const [head, said, side, webhooks, raw, way] = Array.from({ length: 6 }, () => h("div", { class: "stack" }));
  const nothing = h("p", { class: "empty" }, "Nothing was said yet.");
  const state = h("p", { class: "hidden", "aria-live": "polite" });
  const kept = h("p", { role: "status" }); // the case that the run was saved as
  show(root,
    state,
    h("section", { class: "card", "aria-label": "Facts" }, head),
    h("div", { class: "run" }, section("What was said, and why", said, nothing), h("div", { class: "stack" }, way, side)),
    webhooks, raw);

  const showRun = (now) => {
    show(head, headOf(now));
    showTimeline(said, now);
    nothing.hidden = said.childElementCount > 0;
    steps?.update(turnsOfRun(now));
    showAgain(side, sideOf(now));
    showAgain(raw, details("All of it as JSON", code(now, "The run as JSON"),
      h("div", { class: "actions" }, button("Download", () => download(`run-${now.id}.json`, JSON.stringify(now, null, 2), "application/json")))));
  };
  const headOf = (now) => [h("div", { class: "columns" }, halves(factsOf(now)).map(facts)), h("div", { class: "actions" },
    !now.is_completed && button("End it", () => end(now), { kind: "danger" }),
    !now.is_completed && now.mode === "textchat" && link("Go on talking", `/agents/${now.workflow_id}/talk?run=${now.id}`, { class: "button" }),
    now.transcript_public_url && button("Transcript", async () =>
      download(`transcript-${now.id}.txt`, await api.text(new URL(now.transcript_public_url).pathname.replace(/^.*\/api\/v1/, ""), { signal }))),
    now.is_completed && button("Save as a case", () => saveAsCase(now)),
    now.is_completed && link("Replay on the draft", `/agents/${now.workflow_id}/replay?runs=${now.id}`, { class: "button" }),
    link("Talk to this agent", `/agents/${now.workflow_id}/talk`, { class: "button" })),
  kept];
  const saveAsCase = async (now) => {
    const cases = `/workflow/${now.workflow_id}/cases`;
    const { case: found } = await api.get(`${path}/case`, { signal });
    let made;
    let text = "It is saved as the case ";
    try {
      made = await api.post(cases, { body: { case: found }, signal });
    } catch (error) {
      if (error.status !== 409) throw error;
      made = (await api.get(cases, { signal })).find((each) => each.name === found.name);
      text = "It is a case already: ";
    }
    show(kept, text, link(made.name, `/agents/${now.workflow_id}/tests/${made.id}`), ".");
  };
  const end = async (now) => {
    const question = now.mode === "textchat" ? "End this chat?" : "Hang up on this call?";
    if (!(await confirm(question, now.mode === "textchat" ? "End it" : "Hang up"))) return;
    const ended = await api.post(`${path}/end`, { signal });
    showRun(ended);
    notify(ended.is_completed ? "The run has ended." : "The carrier is asked to end the call.");
  };

  let steps = null; // on the canvas

  async function showWay({ version_number: number, workflow_json: definition }) {
    const view = await looking(definition, { label: `Version ${number} of ${agent.name}, and the way of this run`, signal });
    steps = course(view, (kind, id) => items(definition, `${kind}s`).some(({ item }) => item.id === id));
    show(way, section("Its way", view.element, steps.element));
    steps.update(turnsOfRun(first));
  }

  let shownDeliveries = "";

  /** The run's webhooks; true while one waits to be sent. */
  const showWebhooks = async () => {
    const { deliveries } = await api.get(`${path}/deliveries`, { signal });
    const views = deliveries.map((each) => delivery(each, { reload: showWebhooks, signal, isOfRun: true }));
    if (JSON.stringify(deliveries) !== shownDeliveries) showAgain(webhooks, views.length ? section(deliveries.some((each) => each.method === "PYTHON") ? "Webhooks and functions" : "Webhooks", views) : null);
    shownDeliveries = JSON.stringify(deliveries);
    return deliveries.some((each) => each.state === "pending");
  };

  showRun(first);
  const version = await versionWhere(agent.id, signal, (each) => each.id === first.definition_id);
  if (version && turnsOfRun(first).some(({ events }) => events.length)) await showWay(version);
  await showWebhooks().catch((error) => show(webhooks, alert(error)));
  follow();

  /** Follow the run to its end, then what is done after it, which goes on without anybody here waiting. */
  async function follow() {
    if (!first.is_completed) {
      await followRun(workflowId, runId, signal, (now) => {
        showRun(now);
        if (now.is_completed) state.textContent = `The run has ended as ${now.disposition}.`;
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

/** Show what was said and what the carrier reported, in the order of time. */
function showTimeline(place, run) {
  const model = run.initial_context?.runtime_configuration ? null : "scripted model";
  const statuses = (run.logs?.telephony_status_callbacks ?? []).map((status) => ({ at: status.timestamp, status }));
  const turns = turnsOfRun(run).map((turn) => ({ at: turn.at, turn }));
  // Of the same instant, the last status follows what was said.
  const ended = run.is_completed ? statuses.splice(-1) : [];
  const all = [...[...statuses, ...turns].sort((one, other) => new Date(one.at) - new Date(other.at)), ...ended];
  showList(place, all, ({ status, turn }) => (turn ? turnView(turn, { model }) : statusView(status)));
}

function statusView(status) {
  const more = ["duration", "price", "currency", "machine", "other_leg", "other_call"].filter((name) => status[name] !== null && status[name] !== undefined);
  return h("p", { class: "status" }, "Carrier: ", stateBadge(status.status), " ", instant(status.timestamp),
    more.map((name) => `, ${name.replace("_", " ")} ${inWords(status[name])}`));
}

const halves = (pairs) => [pairs.slice(0, Math.ceil(pairs.length / 2)), pairs.slice(Math.ceil(pairs.length / 2))];

function factsOf(run) {
  const gathered = run.gathered_context ?? {};
  const runtime = run.initial_context?.runtime_configuration;
  const price = run.annotations?.call_price;
  return [
    ["State", run.is_completed ? stateBadge(run.disposition ?? "ended") : badge("in progress", "busy")],
    ["Error", gathered.error],
    ["Kind", [run.mode === "textchat" ? "Text chat" : `${run.call_type === "inbound" ? "Call to us" : "Call from us"}, ${run.mode}`,
      run.is_test && [" ", badge("test")]]],
    ["From", run.caller_number],
    ["To", run.called_number],
    ["Began", instant(run.created_at)],
    ["Duration", run.call_duration_seconds === null ? null : seconds(run.call_duration_seconds)],
    ["Carrier", gathered.telephony_configuration_id && link(gathered.telephony_configuration_name ?? "its carrier", `/carriers/${gathered.telephony_configuration_id}`)],
    ["Call id", gathered.call_id && h("code", {}, gathered.call_id)],
    ["Model", runtime ? `${runtime.llm_provider} ${runtime.llm_model ?? ""}` : "scripted model"],
    ["Price", price && `${price.amount} ${price.currency ?? ""}`],
    ["Tags", gathered.call_tags?.length ? gathered.call_tags.map((tag) => [badge(tag), " "]) : null],
    ...RECORDINGS.map(([name, member]) => [name, run[member] && h("audio", { controls: true, src: run[member] })]),
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
}

function sideOf(run) {
  const found = run.gathered_context?.extracted_variables ?? {};
  const waits = waitsOf(turnsOfRun(run));
  const median = (seconds) => (seconds[Math.floor((seconds.length - 1) / 2)] + seconds[Math.floor(seconds.length / 2)]) / 2;
  const tokens = Object.entries(run.usage_info?.llm ?? {});
  const { call_price: _, ...notes } = run.annotations ?? {};
  return [
    section("What it found", values(found, "No variable was found.")),
    section("What it knew before", values(run.initial_context ?? {}, "Nothing.")),
    waits.length > 0 && section("How long the caller waited", table("Waits of the caller", [
      ["Until", ([name]) => name],
      ["Turns", ([, seconds]) => String(seconds.length), { number: true }],
      ["Median", ([, seconds]) => milliseconds(median(seconds) * 1000), { number: true }],
      ["Slowest", ([, seconds]) => milliseconds(seconds.at(-1) * 1000), { number: true }],
    ], waits)),
    section("Time and use",
      facts([
        ["Talked for, in seconds", run.usage_info?.call_duration_seconds ? inWords(Math.round(run.usage_info.call_duration_seconds * 10) / 10) : null],
      ]),
      table("Tokens", [
        ["Model", ([model]) => model.replace("|||", " ")],
        ["Tokens", ([, counts]) => Object.entries(counts).map(([kind, count]) => `${count} ${kind.replaceAll("_", " ")}`).join(", ")],
      ], tokens, "No tokens were used.")),
    Object.keys(notes).length > 0 && section("Reviews and notes", Object.entries(notes).map(([name, value]) =>
      details(name.replaceAll("_", " "), code(value, name)))),
  ];
}

function values(found, empty) {
  const pairs = Object.entries(found);
  return pairs.length ? facts(pairs.map(([name, value]) => [name, inWords(value)])) : h("p", { class: "empty" }, empty);
}
