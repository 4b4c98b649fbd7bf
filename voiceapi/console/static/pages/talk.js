// Talk to an agent: by text, by voice, or in a simulated call from or to it, and see why it says what it says.

import { api } from "../app/api.js";
import { keepQuery } from "../app/router.js";
import { looking } from "../builder/looking.js";
import { callout, facts, field, keyValues, link, notify, section, tabs } from "../parts/components.js";
import { h, show } from "../parts/dom.js";
import { chatPanel } from "./calls/chat-panel.js";
import { simulatedCalls } from "./calls/simulated-call.js";
import { inWords } from "./calls/turns.js";
import { isScriptedIn } from "./setup/model-settings.js";

const MODES = ["text", "from", "to"];
// What a run's gathered context holds besides what the conversation has found.
const OF_THE_SERVICE = new Set(["provider", "telephony_configuration_id", "telephony_configuration_name", "call_id",
  "conversation_id", "triggered_by", "trigger_uuid", "extracted_variables", "mapped_call_disposition", "nodes_visited"]);
// Variables that the service itself sets.
const BUILT_IN = /^(current_|phone_number$|caller_number$|called_number$|gathered_context|initial_context)/;

export default async function talk({ root, params: [id], query, signal, title }) {
  const [workflow, model] = await Promise.all([
    api.get(`/workflow/fetch/${encodeURIComponent(id)}`, { signal }),
    api.get("/organizations/model-configurations/v2", { signal }),
  ]);
  title(`Talk to ${workflow.name}`, [["Agents", "/agents"], [workflow.name, `/agents/${workflow.id}`]]);
  const graph = await looking(workflow.workflow_definition, { label: `Drawing of ${workflow.name}`, signal });
  const known = h("div", { "aria-live": "polite" });
  const context = contextOf(workflow);
  const shared = {
    workflow,
    signal,
    readContext: context.read,
    light: graph.light,
    variables: (found) => show(known, variablesView(found)),
  };
  const chat = chatPanel({
    ...shared,
    language: workflow.workflow_configurations?.language || "en-US",
    changed: (now) => keepQuery({ run: now.workflow_run_id }),
  });
  const calls = simulatedCalls(shared);
  let run = query.get("run");
  const modes = tabs("Ways to talk", [
    ["By text or voice", () => chat.element],
    ["It calls you", calls.from],
    ["You call it", calls.to],
  ], {
    at: Math.max(0, MODES.indexOf(query.get("mode"))),
    chosen: (number) => {
      chat.stop();
      graph.light();
      shared.variables({});
      keepQuery({ mode: number ? MODES[number] : "", run: number ? "" : run });
      if (number === 0) {
        calls.stop();
        chat.tell();
      }
      context.element.hidden = number === 2;
    },
  });
  show(root,
    isScriptedIn(workflow, model) &&
      callout("Without a language model, it speaks its sentences as they are written. ", link("Choose a language model", "/settings/models")),
    h("div", { class: "talk" },
      h("section", { class: "card", "aria-label": "Conversation" }, modes),
      h("div", { class: "stack talk-side" },
        section("Where the conversation is", graph.element),
        section("Answers so far", known),
        context.element)));
  if (query.has("start")) {
    // Who has just made the agent is led here to talk. If that fails, there is Start.
    await chat.open().catch((error) => error.name !== "AbortError" && notify(error.message, "error"));
  } else if (run && !MODES.slice(1).includes(query.get("mode"))) {
    await chat.load(run).catch((error) => {
      if (![404, 422].includes(error.status)) throw error; // an address of a run that is no chat of this agent
      run = "";
      keepQuery({});
    });
  }
}

/** What is known before the call: the variables that the definition names, and the workflow's own values. */
function contextOf(workflow) {
  const own = workflow.template_context_variables ?? {};
  const spoken = (workflow.workflow_definition?.nodes ?? []).filter((node) => !["webhook", "qa"].includes(node?.type));
  const named = [...JSON.stringify([spoken, workflow.workflow_definition?.edges]).matchAll(/\{\{\s*([A-Za-z_]\w*)/g)].map((found) => found[1]);
  const names = [...new Set(named)].filter((name) => !BUILT_IN.test(name) && !(name in own) && !found(workflow).has(name));
  const values = keyValues({ ...Object.fromEntries(names.map((name) => [name, ""])), ...own },
    { add: "Add a name and a value" });
  const element = section("Known before the call",
    field("What the agent knows of the caller", values, { help: "It counts from the next chat or call on. What has no value is unknown to the agent." }));
  const read = () => Object.fromEntries(Object.entries(values.read()).filter(([, value]) => value !== "")
    .map(([name, value]) => [name, typeof own[name] === "string" || !(name in own) ? value : parsed(value)]));
  return { element, read };
}

/** The names of the variables that a conversation finds out itself. */
function found(workflow) {
  const nodes = workflow.workflow_definition?.nodes ?? [];
  return new Set(nodes.flatMap((node) => node?.data?.extraction_variables ?? []).map((variable) => variable?.name));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function variablesView(found) {
  const pairs = Object.entries(found).filter(([name]) => !OF_THE_SERVICE.has(name));
  if (!pairs.length) return h("p", { class: "empty" }, "None yet. What the agent finds out appears here.");
  return facts(pairs.map(([name, value]) => [name.replaceAll("_", " "), inWords(Array.isArray(value) ? value.join(", ") : value)]));
}
